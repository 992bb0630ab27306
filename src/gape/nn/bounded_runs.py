r"""Runs of at most T steps, each length by itself, from anywhere into a node or from a node back to itself.

A run of t steps is followed step by step, so transitions may depend on the label of the node left and on the type of
the edge taken (Definition 2 of Soga & Chiang, 2023). Runs into a node carry ``[n, k]`` numbers. Runs back to their
start depend on the labels along the way, so they have to be followed from each start by itself: ``[n, starts, k]``
numbers, start 0 of every graph beside start 1 of every graph and so on. They are taken a few starts at a time: each
such chunk needs only the graphs that have so many nodes, fits into the cache, and is computed again in the backward
pass (Chen et al., 2016) when keeping all would take more memory than allowed.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from gape.nn.steps import Steps
from gape.sparse import Adjacency

# Starts followed together.
STARTS = 8


def runs_into(steps: Steps, matrices: Tensor, source: Tensor, length: int) -> Tensor:
    """``[n, T, k]``: weight of the runs of 1 … T steps into each node and state.

    Args:
        steps: the edges.
        matrices: ``[n, k, R · k]``, μ for the label of each node and every edge type; ``[1, …]`` if all are alike.
        source: ``[n, k]``, the weight with which runs start.
        length: T.
    """
    x, found = source.unsqueeze(1), []
    for _ in range(length):
        x = steps(x, matrices)
        found.append(x.squeeze(1))
    return torch.stack(found, 1)


def runs_back(
    steps: Steps, adjacency: Adjacency, matrices: Tensor, source: Tensor, length: int, memory: float
) -> Tensor:
    """``[n, T, k]``: weight of the runs of 1 … T steps from each node back to itself; arguments as above.

    Args:
        adjacency: which nodes belong to which graph.
        memory: GiB that may be kept for the backward pass.
    """
    out = source.new_zeros(len(source), length, source.shape[1])
    needed = int(adjacency.sizes.square().sum()) * source.shape[1] * length * source.element_size()
    again = torch.is_grad_enabled() and needed > memory * 2**30
    rows, found = [], []
    for nodes, first in _chunks(adjacency):
        local = adjacency.local[nodes]
        starts = ((local >= first) & (local < first + STARTS)).nonzero().flatten()
        columns = local[starts] - first
        inside = matrices if len(matrices) == 1 else matrices[nodes]
        given = (steps.within(nodes), inside, source[nodes[starts]], starts, columns, length)
        found.append(checkpoint(_from_starts, *given, use_reentrant=False) if again else _from_starts(*given))
        rows.append(nodes[starts])
    return out.index_copy(0, torch.cat(rows), torch.cat(found)) if rows else out


def _chunks(adjacency: Adjacency) -> Iterator[tuple[Tensor, int]]:
    """The nodes of the graphs that have a node of number ``first``, for ``first`` = 0, STARTS, 2 STARTS, …"""
    size = adjacency.sizes[adjacency.batch]
    largest = int(adjacency.sizes.max()) if len(adjacency.sizes) else 0
    for first in range(0, largest, STARTS):
        yield (size > first).nonzero().flatten(), first


def _from_starts(
    steps: Steps, matrices: Tensor, source: Tensor, starts: Tensor, columns: Tensor, length: int
) -> Tensor:
    """``[starts, T, k]``: runs back to ``starts``, each followed in its column."""
    width = int(columns.max()) + 1
    x = source.new_zeros(steps.num_nodes, width, source.shape[1]).index_put((starts, columns), source)
    found = []
    for _ in range(length):
        x = steps(x, matrices)
        found.append(x[starts, columns])
    return torch.stack(found, 1)
