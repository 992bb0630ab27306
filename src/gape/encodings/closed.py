r"""The closed readout: runs that come back to the node where they began.

    closed(v) = Σ_t (Aᵗ)_vv · (μᵀ)ᵗ α[:, ℓ(v)]

is the diagonal of a resolvent, not a power series only: with A = V Θ Vᵀ it is Σ_j V_vj² (I - θ_jμᵀ)⁻¹ α[:, ℓ(v)].
With the shift automaton on D⁻¹A it is the random-walk encoding.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gape._internal.validation import check_at_least
from gape.automaton import Automaton
from gape.encodings.certificate import certified
from gape.encodings.readout import Readout, check
from gape.encodings.run_lengths import RunLengths, weigh
from gape.graph.batching import Block, blocks, check_memory, scatter_rows
from gape.graph.convert import as_graph
from gape.linalg.powers import PowerDiagonals
from gape.solvers import Solution
from gape.solvers.equation import output_dtype
from gape.solvers.solution import OnSingular


@torch.no_grad()
def closed(
    automaton: Automaton,
    graph: Any,
    *,
    matrix: str = "adjacency",
    on_singular: OnSingular = "raise",
    dtype: torch.dtype | None = None,
    memory: float = 4.0,
) -> Solution:
    """Total weight of the runs of each node back to itself, ``[num_nodes, k]``, with a certificate per graph.

    Sums powers of the walk matrix where few matter (exactly, for a nilpotent μ such as the shift automaton's); else
    eigenvectors where the matrix is similar to a symmetric one; else Schur forms. Cost n³ per graph, memory n². The
    weights have no gradient; :class:`gape.nn.GAPE` has readouts to learn with.

    Args:
        automaton: with one μ for all labels and edges.
        graph: anything :func:`gape.as_graph` takes.
        matrix: the walk matrix, see :mod:`gape.graph.walk_matrix`.
        on_singular: "raise", or "least_squares"; the latter, where the walk matrix is not symmetric, for singular
            graphs of up to 4,096 nodes times states.
        dtype: of the weights; the automaton's own if ``None``.
        memory: most memory, in GiB, for the dense matrices of one graph.

    Example:
        >>> triangle = as_graph(torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]]))
        >>> closed(Automaton.shift(3), triangle, matrix="random_walk").weights[0]
        tensor([1.0000, 0.0000, 0.5000, 0.2500], dtype=torch.float64)
    """
    check_at_least(0, memory=memory)
    graph = as_graph(graph)
    check(automaton, graph, on_singular)
    out_type, largest = output_dtype(automaton, dtype), int(graph.sizes.max())
    automaton = automaton.to(graph.device, torch.float64)
    readouts = [Readout.of(automaton, part, matrix, on_singular) for part in graph.parts]
    needed = max(readout.bytes_needed(pairs=False) for readout in readouts)
    check_memory(memory, needed, f"the closed readout on a graph of {largest} nodes", "raise memory to allow it")
    weights = []
    for readout in readouts:
        rows = torch.zeros(readout.walk.num_nodes, automaton.states, dtype=out_type, device=graph.device)
        for block in blocks(readout.walk):
            scatter_rows(rows, block, _read(readout, block))
        readout.certificate.add_weights(rows, readout.walk.adjacency.sizes)
        weights.append(rows)
    return certified(torch.cat(weights), [readout.certificate for readout in readouts], on_singular)


def _read(readout: Readout, block: Block) -> Tensor:
    if readout.lengths is not None:
        return _by_powers(block.matrices, readout.lengths, readout.labels_of(block), readout.walk.symmetric)
    out = block.matrices.new_zeros(*block.nodes.shape, readout.automaton.states)
    if readout.walk.similarity is not None:
        vectors, by_label = readout.eigenvectors(block)
        squares = vectors.square()
        for where, y in by_label:
            out += (squares @ y) * (where if isinstance(where, float) else where.unsqueeze(-1))
    else:
        for i, vectors, sources, columns in readout.schur(block, back=True):
            # Only the rows of the sources themselves: no n × n × k array.
            back = torch.einsum("bs,ksb->bk", vectors[sources], columns)
            out[i, sources] = (back @ readout.form.vectors.mH).real
    for i, runs in readout.nearest(block):
        out[i] = runs.diagonal().T
    return out


def _by_powers(matrices: Tensor, lengths: RunLengths, labels: Tensor | None, symmetric: bool) -> Tensor:
    amounts = matrices.new_ones(*matrices.shape[:2], lengths.steps + 1)
    if lengths.steps:
        diagonals = PowerDiagonals(lengths.steps, matrices.dtype)
        amounts[..., 1:] = diagonals(matrices / lengths.scale, symmetric=symmetric)
    return weigh(amounts, lengths.worth, labels)
