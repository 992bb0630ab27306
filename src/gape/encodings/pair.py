r"""The pair readout: runs from every node to every other, ``[n, n, k]`` per graph.

    pair(u, v) = Σ_t (Aᵗ)_uv · (μᵀ)ᵗ α[:, ℓ(u)]

It generalises the personalised PageRank matrix; with the shift automaton on D⁻¹A it is RRWP (Ma et al., 2023).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gape._internal.validation import check_at_least
from gape.automaton import Automaton
from gape.encodings.certificate import certified
from gape.encodings.pairs import empty_pairs, spread_pairs
from gape.encodings.readout import Readout, check
from gape.encodings.run_lengths import RunLengths, weigh
from gape.graph.batching import BLOCK_ELEMENTS, Block, blocks, check_memory
from gape.graph.convert import as_graph
from gape.solvers import Solution
from gape.solvers.equation import output_dtype
from gape.solvers.solution import OnSingular


@torch.no_grad()
def pair(
    automaton: Automaton,
    graph: Any,
    *,
    matrix: str = "adjacency",
    on_singular: OnSingular = "raise",
    dtype: torch.dtype | None = None,
    memory: float = 4.0,
) -> Solution:
    """Total weight of the runs from each node to each other, flat ``[Σ n², k]`` as in :class:`Pairs`.

    Arguments as for :func:`closed`; ``memory`` is for the result of all graphs and the work on one.

    Example:
        >>> path = as_graph(torch.tensor([[0, 1], [1, 2]]))
        >>> pair(Automaton.shift(2), path).weights.reshape(3, 3, 3)[0, 2]  # from node 0 to node 2: one walk of 2 steps
        tensor([0., 0., 1.], dtype=torch.float64)
    """
    check_at_least(0, memory=memory)
    graph = as_graph(graph)
    check(automaton, graph, on_singular)
    out_type = output_dtype(automaton, dtype)
    automaton = automaton.to(graph.device, torch.float64)
    pairs, k = int(graph.sizes.square().sum()), automaton.states
    readouts = [Readout.of(automaton, part, matrix, on_singular) for part in graph.parts]
    check_memory(
        memory,
        pairs * k * out_type.itemsize + max(readout.bytes_needed(pairs=True) for readout in readouts),
        f"the pair readout of {k} states on {pairs} pairs of nodes",
        "encode fewer graphs at a time, take fewer states, or raise memory",
    )
    weights = []
    for readout in readouts:
        out = empty_pairs(readout.walk.adjacency, k, dtype=out_type)
        for block in blocks(readout.walk, entries=BLOCK_ELEMENTS // k):
            spread_pairs(out, block, _read(readout, block))
        readout.certificate.add_weights(out.values, out.sizes.square())
        weights.append(out.values)
    joined = weights[0] if len(weights) == 1 else torch.cat(weights)
    return certified(joined, [readout.certificate for readout in readouts], on_singular)


def _read(readout: Readout, block: Block) -> Tensor:
    """``[B, n, n, k]``: from, to, state."""
    if readout.lengths is not None:
        return _by_powers(block.matrices, readout.lengths, readout.labels_of(block))
    out = block.matrices.new_zeros(*block.matrices.shape, readout.automaton.states)
    if readout.walk.similarity is not None:
        out = _by_eigenvectors(readout, block, out)
    else:
        for i, vectors, sources, columns in readout.schur(block, back=False):
            table = torch.einsum("vs,ksb->bvk", vectors, columns)
            out[i, sources] = (table @ readout.form.vectors.mH).real
    for i, runs in readout.nearest(block):
        out[i] = runs
    return out


def _by_eigenvectors(readout: Readout, block: Block, weighted: Tensor) -> Tensor:
    vectors, by_label = readout.eigenvectors(block)
    for where, y in by_label:
        # [graph, from u, eigenvector j, state]
        along = vectors.unsqueeze(-1) * y.unsqueeze(1)
        weighted += along * (where if isinstance(where, float) else where[:, :, None, None])
    table = torch.einsum("bujk,bvj->buvk", weighted, vectors)
    walk = readout.walk
    if walk.symmetric:
        return table
    assert walk.similarity is not None
    c = walk.similarity[block.nodes]
    return table * (c.unsqueeze(1) / c.unsqueeze(2)).unsqueeze(-1)


def _by_powers(matrices: Tensor, lengths: RunLengths, labels: Tensor | None) -> Tensor:
    scaled = matrices / lengths.scale
    power = torch.eye(matrices.shape[1], dtype=matrices.dtype, device=matrices.device).expand_as(matrices)
    powers = [power]
    for _ in range(lengths.steps):
        power = power @ scaled
        powers.append(power)
    return weigh(torch.stack(powers, -1), lengths.worth, labels)
