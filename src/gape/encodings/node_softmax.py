r"""GAPE** as the authors computed it: the softmax of αℓ over the nodes of each graph.

Per state q, node v of a graph gets exp(α[q, ℓ(v)]) / Σ_u exp(α[q, ℓ(u)]): a source that no α of its own produces, since
the denominators differ from graph to graph. With one label it is exactly 1/n.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from gape.automaton import Automaton
from gape.graph.graph import Graph
from gape.solvers import Solution, Status, solve
from gape.solvers.certificate import lost_rows
from gape.solvers.equation import check_fit
from gape.solvers.solution import OnSingular


def node_softmax(automaton: Automaton, graph: Graph) -> Tensor:
    """The source, ``[n, k]``: every column sums to 1 over the nodes of each graph."""
    if automaton.labels == 1:
        return (1.0 / graph.sizes.double())[graph.batch].unsqueeze(1).expand(-1, automaton.states)
    # The largest weight of each state is taken out, so that no exponential overflows.
    weights = automaton.initial.double()
    rows = (weights - weights.amax(1, keepdim=True)).exp().T[graph.labels]
    return rows / graph.adjacency.segment_sum(rows)[graph.batch]


def solve_node_softmax(
    automaton: Automaton, graph: Graph, *, matrix: str, on_singular: OnSingular, dtype: torch.dtype
) -> Solution:
    """Solve with that source: one label by scaling, several with k columns."""
    if automaton.labels > 1:
        check_fit(automaton, graph)
        rhs = node_softmax(automaton, graph)
        return solve(automaton, graph, rhs=rhs, matrix=matrix, on_singular=on_singular, dtype=dtype)
    ones = Automaton(torch.ones_like(automaton.initial), automaton.transition)
    solution = solve(ones, graph, matrix=matrix, on_singular=on_singular)
    weights = (solution.weights / graph.sizes[graph.batch].unsqueeze(1)).to(dtype)
    lost = lost_rows(weights)
    if lost is None:
        return replace(solution, weights=weights)
    graphs = set(graph.batch[lost].tolist())
    status = [Status.OVERFLOW if i in graphs else status for i, status in enumerate(solution.status)]
    solution = replace(solution, weights=weights, status=status)
    solution.raise_or_warn()
    return solution
