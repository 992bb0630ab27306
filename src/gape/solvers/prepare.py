"""Bases computed once for a graph batch, to be used for many automata."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gape.automaton import Automaton
from gape.graph.convert import as_graph
from gape.graph.graph import Graph
from gape.solvers.basis import Basis
from gape.solvers.krylov import Krylov
from gape.solvers.problem import Problem, check_fit
from gape.solvers.schur import Schur
from gape.solvers.spectral import Spectral


@dataclass(frozen=True, eq=False)
class GraphBasis:
    """A basis for every part of a graph batch, good for any automaton with at least these labels."""

    graph: Graph
    matrix: str
    labels: int
    parts: tuple[Basis, ...]

    def check(self, automaton: Automaton, graph: Graph, matrix: str) -> None:
        if automaton.typed:
            raise ValueError("transitions by type have no basis that is independent of the automaton; leave basis out")
        if automaton.labels < self.labels or (automaton.labels > self.labels == 1 and _varied(graph.labels)):
            raise ValueError(
                f"the basis follows {self.labels} labels, the automaton has {automaton.labels}: "
                f"prepare it with labels={automaton.labels}"
            )
        if matrix != self.matrix:
            raise ValueError(f"the basis is for matrix={self.matrix!r}, the solve asks for {matrix!r}")
        mine = self.graph
        if graph is not mine and not all(
            _same(getattr(graph, name), getattr(mine, name)) for name in ("ptr", "edge_index", "edge_weight", "labels")
        ):
            raise ValueError(f"the basis is for {mine!r}, the solve is on {graph!r}: prepare it for this graph")
        if _learned(mine) or (torch.is_grad_enabled() and _learned(graph)):
            raise ValueError(
                f"edge_weight of {graph!r} requires gradients, and a basis is computed for fixed weights; "
                "leave basis out, or detach the weights"
            )

    def __repr__(self) -> str:
        dimension = max((part.dimension for part in self.parts), default=0)
        return f"GraphBasis({self.parts[0].solver}, matrix={self.matrix}, dimension={dimension}, {self.graph!r})"


def prepare(
    graph: Any,
    *,
    solver: Krylov | Spectral | Schur | None = None,
    matrix: str = "adjacency",
    labels: int | None = None,
) -> GraphBasis:
    """Compute once what a solve needs of the graphs, to solve (or learn) many automata on them.

    Args:
        graph: a :class:`Graph`, or anything :func:`gape.as_graph` takes.
        solver: :class:`Krylov`, :class:`Spectral` or :class:`Schur`; ``None`` for Krylov with 32 steps, which is
            exact for graphs up to that size; on larger ones the certificate of each solve says if it was enough.
        matrix: the walk matrix.
        labels: number of node labels; as many as ``graph.labels`` shows if ``None``.

    Example:
        >>> import gape
        >>> ring = Graph.from_edges([(0, 1), (1, 2), (2, 0)], undirected=True)
        >>> basis = prepare(ring)
        >>> gape.solve(Automaton.katz(0.25), ring, basis=basis).weights[0].item()
        2.0
    """
    graph = as_graph(graph)
    solver = solver or Krylov(max_steps=32)
    if not isinstance(solver, Krylov | Spectral | Schur):
        raise ValueError(f"a basis comes from Krylov, Spectral or Schur, got {solver!r}")
    if labels is None:
        labels = 1 if graph.labels is None or not graph.labels.numel() else int(graph.labels.max()) + 1
    probe = Automaton(torch.ones(1, labels, dtype=torch.float64), torch.zeros(1, 1, dtype=torch.float64))
    check_fit(probe, graph)
    # Not in inference mode, whatever the caller is in: a basis has to be fit for training.
    with torch.inference_mode(False), torch.no_grad():
        parts = tuple(solver.basis(Problem.of(probe, part, matrix)) for part in graph.parts)
    return GraphBasis(graph, matrix, labels, parts)


def _learned(graph: Graph) -> bool:
    return graph.edge_weight is not None and graph.edge_weight.requires_grad


def _varied(labels: Tensor | None) -> bool:
    return labels is not None and bool(labels.any())


def _same(a: Tensor | None, b: Tensor | None) -> bool:
    return a is b or (a is not None and b is not None and torch.equal(a, b))
