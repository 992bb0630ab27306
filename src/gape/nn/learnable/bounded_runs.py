r"""Runs of at most T steps, each length by itself, from anywhere into a node or from a node back to itself.

A run is followed step by step, so transitions may depend on the label of the node left and on the type of the edge
taken (Definition 2 of Soga & Chiang, 2023). Runs into a node share one column of ``[n, 1, k]`` numbers. Runs back to
their start depend on the labels along the way and have to be followed from each start by itself, ``[n, starts, k]``:
start 0 of every graph beside start 1 of every graph and so on. They are taken a few starts at a time: such a chunk
involves only the graphs that have so many nodes, fits into the cache, and is followed again in the backward pass
(Chen et al., 2016) when keeping every step of every chunk would take more memory than allowed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from gape.graph.adjacency import Adjacency
from gape.nn.learnable.steps import Steps

# Starts followed together, at most.
STARTS = 16


@dataclass(frozen=True, eq=False)
class Course:
    """Which runs to follow: they start, and are read, at one column of some nodes.

    Args:
        steps: the edges.
        rows: ``[r]``, ``node · width + column``.
        width: number of columns.
        length: T.
        keep: whether to keep every step for the backward pass.
    """

    steps: Steps
    rows: Tensor
    width: int
    length: int
    keep: bool

    def follow(self, matrices: Tensor, source: Tensor, keep: bool) -> tuple[Tensor, list[Tensor]]:
        """What is read after each step, ``[r, T, k]``, and X before each step, if they are to be kept."""
        x = source.new_zeros(self.steps.num_nodes, self.width, source.shape[1])
        x.view(-1, source.shape[1]).index_copy_(0, self.rows, source)
        read, kept = source.new_empty(len(source), self.length, source.shape[1]), []
        table = self.steps.table(x)
        for t in range(self.length):
            if keep:
                kept.append(x)
            x = self.steps.forward(x, matrices, table)
            read[:, t] = x.view(-1, source.shape[1]).index_select(0, self.rows)
        return read, kept


def runs_into(steps: Steps, matrices: Tensor, source: Tensor, labels: Tensor | None, length: int) -> Tensor:
    """``[n, T, k]``: weight of the runs of 1 … T steps into each node and state.

    Args:
        steps: the edges.
        matrices: ``[labels or 1, R, k, k]``, μ for each label and edge type.
        source: ``[n, k]``, the weight with which runs start.
        labels: ``[n]``, ``None`` if μ does not depend on them.
        length: T.
    """
    nodes, sizes = _by_label(torch.arange(len(source), device=source.device), labels, len(matrices))
    every = torch.arange(len(nodes), device=nodes.device)
    course = Course(steps.among(nodes, sizes), every, width=1, length=length, keep=True)
    found = _follow(matrices, source[nodes], course)
    return torch.empty_like(found).index_copy(0, nodes, found)


def runs_back(
    steps: Steps,
    adjacency: Adjacency,
    matrices: Tensor,
    source: Tensor,
    labels: Tensor | None,
    length: int,
    memory: float,
) -> Tensor:
    """``[n, T, k]``: weight of the runs of 1 … T steps from each node back to itself; arguments as above.

    Args:
        adjacency: which nodes belong to which graph.
        memory: GiB that may be kept for the backward pass.
    """
    number = source.shape[1] * source.element_size()
    keep = int(adjacency.sizes.square().sum()) * number * length <= memory * 2**30
    # A chunk that is followed again has to fit by itself: all its steps, and the tables of all edge types.
    together = max(1, min(STARTS, int(memory * 2**30 / (len(source) * number * (length + 2 * steps.types)))))
    size, largest = adjacency.sizes[adjacency.batch], int(adjacency.sizes.max())
    rows, found = [], []
    for start in range(0, largest, together):
        nodes, sizes = _by_label((size > start).nonzero().flatten(), labels, len(matrices))
        column = adjacency.local[nodes] - start
        here = ((column >= 0) & (column < together)).nonzero().flatten()
        width = min(together, largest - start)
        starts = here * width + column[here]
        course = Course(steps.among(nodes, sizes), starts, width, length, keep)
        rows.append(nodes[here])
        found.append(_follow(matrices, source[rows[-1]], course))
    joined = torch.cat(found)
    return torch.empty_like(joined).index_copy(0, torch.cat(rows), joined)


def _by_label(nodes: Tensor, labels: Tensor | None, count: int) -> tuple[Tensor, tuple[int, ...]]:
    """The nodes sorted by label, and how many have each."""
    if labels is None or count == 1:
        return nodes, (len(nodes),)
    chosen = labels[nodes]
    return nodes[torch.argsort(chosen, stable=True)], tuple(torch.bincount(chosen, minlength=count).tolist())


def _follow(matrices: Tensor, source: Tensor, course: Course) -> Tensor:
    read: Tensor = _Follow.apply(matrices, source, course)  # type: ignore[no-untyped-call]
    return read


class _Follow(torch.autograd.Function):
    """:meth:`Course.follow`, its gradient step by step backwards."""

    @staticmethod
    def forward(ctx: Any, matrices: Tensor, source: Tensor, course: Course) -> Tensor:
        read, kept = course.follow(matrices.detach(), source.detach(), course.keep)
        ctx.save_for_backward(matrices, source, *kept)
        ctx.course = course
        return read

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        course: Course = ctx.course
        matrices, source, *kept = ctx.saved_tensors
        if not course.keep:
            kept = course.follow(matrices, source, keep=True)[1]
        to_matrices = torch.zeros_like(matrices)
        gradient = torch.zeros_like(kept[0])
        for t in range(course.length - 1, -1, -1):
            gradient.view(-1, source.shape[1]).index_add_(0, course.rows, gradients[0][:, t])
            gradient = course.steps.backward(gradient, kept[t], matrices, to_matrices)
        return to_matrices, gradient.view(-1, source.shape[1]).index_select(0, course.rows), None
