"""``prepare``: compute bases of the graphs' walk matrices, for many automata or for learnable ones."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gape._internal.validation import check_at_least
from gape.automaton import Automaton
from gape.graph.batching import blocks, scatter_rows
from gape.graph.convert import as_graph
from gape.graph.graph import Graph
from gape.graph.spectral_radius import unit_walk, walk_radius
from gape.graph.walk_matrix import WalkMatrix
from gape.linalg.powers import PowerDiagonals
from gape.solvers.base import Solver
from gape.solvers.basis import Basis
from gape.solvers.equation import Equation, check_fit
from gape.solvers.krylov import Krylov
from gape.solvers.schur import Schur
from gape.solvers.spectral import Spectral


def prepare(
    graph: Any,
    *,
    solver: Solver | None = None,
    matrix: str = "adjacency",
    labels: int | None = None,
    unit_radius: bool = False,
) -> Basis:
    """Compute the bases of the graphs' walk matrices once, to solve (or learn) many automata on them.

    Args:
        graph: a :class:`Graph`, or anything :func:`gape.as_graph` takes.
        solver: :class:`Krylov`, :class:`Spectral` or :class:`Schur`; ``None`` for Krylov with 32 steps, which is
            exact for graphs up to that size; on larger ones the certificate of each solve tells if it was enough.
        matrix: the walk matrix.
        labels: number of node labels; as many as ``graph.labels`` shows if ``None``.
        unit_radius: divide each graph's walk matrix by its spectral radius, as :class:`gape.nn.GAPE` does.

    Example:
        >>> from gape.solvers import solve
        >>> ring = Graph.from_edges([(0, 1), (1, 2), (2, 0)], undirected=True)
        >>> basis = prepare(ring)
        >>> solve(Automaton.katz(0.25), ring, basis=basis).weights[0].item()
        2.0
    """
    graph = as_graph(graph)
    solver = Krylov(max_steps=32) if solver is None else solver
    if not isinstance(solver, Solver):
        raise ValueError(f"a basis comes from Krylov, Spectral or Schur, got {solver!r}")
    if graph.num_nodes == 0 and isinstance(solver, Krylov):
        solver = Spectral()  # a Krylov space needs a vector to start from
    if labels is None:
        labels = 1 if graph.labels is None or not graph.labels.numel() else int(graph.labels.max()) + 1
    probe = Automaton(torch.ones(1, labels, dtype=torch.float64), torch.zeros(1, 1, dtype=torch.float64))
    check_fit(probe, graph)
    # Leave inference mode: a basis has to be fit for training.
    with torch.inference_mode(False), torch.no_grad():
        equations = [Equation.of(probe, part, matrix) for part in graph.parts]
        radius = None
        if unit_radius:
            radius = walk_radius(graph, matrix)
            each = torch.split(radius, [part.num_graphs for part in graph.parts])
            equations = [
                replace(equation, walk=unit_walk(part, matrix, own), graph=None)
                for equation, part, own in zip(equations, graph.parts, each, strict=True)
            ]
        parts = tuple(solver.projection(equation) for equation in equations)
        return Basis(graph, matrix, labels, parts, radius)


def prepare_layer(
    graph: Graph, matrix: str = "adjacency", *, vectors: int | None = 35, complete: bool = False, returns: int = 0
) -> Basis:
    """Compute a basis of each graph's walk matrix of unit radius, for learnable automata.

    Args:
        graph: one graph or many.
        matrix: the walk matrix, see :mod:`gape.graph.walk_matrix`.
        vectors: number of Krylov vectors; 0 for none at all, only radii.
        complete: all eigenvectors, or Schur vectors of directed graphs, which serve any labels, and closed and pair
            runs; ``vectors`` then only matters if 0.
        returns: number T of return weights.

    Example:
        >>> ring = Graph.from_edges([(0, 1), (1, 2), (2, 0)], undirected=True)
        >>> prepare_layer(ring, vectors=2)  # all nodes are equal, so one vector spans the Krylov space
        Basis(Krylov, matrix=adjacency, dimension=1, Graph(graphs=1, nodes=3, edges=6, undirected))
    """
    check_at_least(0, vectors=0 if vectors is None else vectors, returns=returns)
    if vectors == 0:
        radius, parts = walk_radius(graph, matrix), []
    else:
        each = [_prepare_part(part, matrix, vectors, complete) for part in graph.parts]
        radius = torch.cat([part.unit_radius for part in each if part.unit_radius is not None])
        parts = [projection for part in each for projection in part.parts]
    found = return_weights(unit_walk(graph, matrix, radius), returns) if returns else None
    return Basis(graph, matrix, 1, tuple(parts), radius, found)


def _prepare_part(part: Graph, matrix: str, vectors: int | None, complete: bool) -> Basis:
    if not complete:
        solver: Solver = Krylov(max_steps=vectors or max(1, int(part.sizes.max())))
    else:
        solver = Spectral() if part.num_nodes == 0 or part.walk(matrix).similarity is not None else Schur()
    return prepare(part, solver=solver, matrix=matrix, labels=1, unit_radius=True)


def return_weights(walk: WalkMatrix, length: int) -> Tensor:
    """Return (Aᵗ)_vv for t = 1 … length, ``[n, length]`` in float64."""
    out = torch.zeros(walk.num_nodes, length, dtype=torch.float64, device=walk.ptr.device)
    if walk.num_nodes:
        diagonals = PowerDiagonals(length, out.dtype)
        for block in blocks(walk, multiple=4):
            scatter_rows(out, block, diagonals(block.matrices, symmetric=walk.symmetric))
    return out


def enough_vectors(damping: float, accuracy: float = 1e-7) -> int:
    """Return the number of Krylov vectors that suffices for any automaton with ‖μ‖₂ ≤ γ on any undirected graph.

    (I - θμ)⁻¹ is analytic for |θ| < 1/γ. On the spectrum [-1, 1] of a symmetric A polynomials of degree J converge to
    it as r^J with r = (1 - √(1 - γ²))/γ (Bernstein's ellipse). Directed graphs have no such bound: the runs of a deep
    acyclic graph grow with their length before they end.

    Example:
        >>> enough_vectors(0.9), enough_vectors(0.5)
        (35, 13)
    """
    rate = (1.0 - math.sqrt(1.0 - damping**2)) / damping
    return max(1, math.ceil(math.log(accuracy) / math.log(rate)))
