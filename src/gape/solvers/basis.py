"""Bases: the part of a solve that depends on the graphs only, computed once by :func:`gape.prepare`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
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
from gape.linalg.integers import digest_edges
from gape.linalg.powers import PowerDiagonals
from gape.solvers.auto import basis_solver
from gape.solvers.base import Solver, solver_names
from gape.solvers.equation import Equation, check_fit
from gape.solvers.projection import Projection

# Krylov vectors of a basis if no solver is given: exact for graphs of at most so many nodes.
DEFAULT_VECTORS = 32


@dataclass(frozen=True, eq=False)
class GraphDigest:
    """Enough of a batch of graphs to recognise it.

    Args:
        num_nodes: of all graphs together.
        edges: ``[graphs]``, a digest of the edges of each graph, independent of their order and weights.
        weights: ``[graphs, 2]``, sums of the positive and of the negative edge weights.
    """

    num_nodes: int
    edges: Tensor
    weights: Tensor

    @classmethod
    def of(cls, graph: Graph) -> GraphDigest:
        """Compute the digest of a batch."""
        total = torch.zeros(graph.num_graphs, 2, dtype=torch.float64, device=graph.device)
        each = total.new_ones(graph.num_edges) if graph.edge_weight is None else graph.edge_weight.detach().to(total)
        signed = torch.stack([each.clamp(min=0), each.clamp(max=0)], dim=1)
        (source, target), local, batch = graph.edge_index, graph.adjacency.local, graph.batch
        edges = digest_edges(local[source], local[target], torch.zeros_like(source), batch[source], graph.num_graphs)
        return cls(graph.num_nodes, edges, total.index_add_(0, batch[source], signed))

    @property
    def num_graphs(self) -> int:
        return len(self.edges)

    def to(self, device: torch.device | str, non_blocking: bool = False) -> GraphDigest:
        """Move the tensors to a device."""
        edges, weights = (value.to(device, non_blocking=non_blocking) for value in (self.edges, self.weights))
        return replace(self, edges=edges, weights=weights)

    def check(self, graph: Graph) -> None:
        """Raise if these are, as far as the digest can tell, other graphs."""
        if (graph.num_graphs, graph.num_nodes) != (self.num_graphs, self.num_nodes):
            raise ValueError(
                f"the basis is for other graphs, {self.num_graphs} of {self.num_nodes} nodes together, got {graph!r}: "
                "prepare it for this graph"
            )
        actual = GraphDigest.of(graph)
        if len(other := (self.edges != actual.edges).nonzero()):
            raise ValueError(
                f"the basis is for other edges than those of graph {int(other[0])}, or for another order of its "
                "nodes; compute it from the edges as they are now, and give each batch its own"
            )
        known = self.weights.to(torch.float64)
        # Either of them may have been rounded.
        dtypes = [self.weights.dtype] if graph.edge_weight is None else [self.weights.dtype, graph.edge_weight.dtype]
        rounding = max(1e-6, *(4 * torch.finfo(dtype).eps for dtype in dtypes if dtype.is_floating_point))
        if len(other := (~torch.isclose(actual.weights, known, rtol=rounding, atol=0.0)).nonzero()):
            at = int(other[0, 0])
            there, here = (
                " and ".join(f"{part:g}" for part in side[at].tolist() if part) or 0 for side in (known, actual.weights)
            )
            hint = "edge_weight, too" if graph.edge_weight is None else "the same edge_weight"
            raise ValueError(
                f"the basis is for other weights: those of graph {at} add up to {there} there and to {here} here; "
                f"give {hint}, or compute the basis from the edges as they are now"
            )

    def __repr__(self) -> str:
        return f"GraphDigest(graphs={self.num_graphs}, nodes={self.num_nodes})"


@dataclass(frozen=True, eq=False)
class Basis:
    """The walk matrices of a batch of graphs, prepared for any automaton with at least these labels.

    Made by :func:`gape.prepare`, :meth:`gape.nn.GAPE.prepare` or, from attributes of PyG data, by
    :func:`gape.pyg.basis_of`; used by :func:`gape.solve` and :class:`gape.nn.GAPE`.

    Args:
        graph: the batch; of a basis from PyG data only its digest.
        matrix: the walk matrix by name.
        labels: number of node labels followed.
        parts: the projection of each part of the batch; empty if a layer needs only the radii.
        unit_radius: ``[graphs]``, what each graph's walk matrix was divided by; ``None`` if it was not.
        returns: ``[n, T]``, return weights (Aᵗ)_vv for t = 1 … T of these matrices, if they were prepared.
    """

    graph: Graph | GraphDigest
    matrix: str
    labels: int
    parts: tuple[Projection, ...]
    unit_radius: Tensor | None = None
    returns: Tensor | None = None

    @property
    def num_graphs(self) -> int:
        return self.graph.num_graphs

    @property
    def complete(self) -> bool:
        """True if the vectors span the whole space of each graph."""
        return bool(self.parts) and all(part.complete for part in self.parts)

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Basis:
        """Move all tensors to a device."""
        rows = {name: getattr(self, name) for name in ("unit_radius", "returns")}
        moved = {name: value.to(device, non_blocking=non_blocking) for name, value in rows.items() if value is not None}
        parts = tuple(part.to(device, non_blocking) for part in self.parts)
        return replace(self, graph=self.graph.to(device), parts=parts, **moved)

    def check(self, automaton: Automaton, graph: Graph, matrix: str) -> Graph:
        """Return the graph of the basis, or raise if the basis is not one for this automaton, graph and matrix."""
        if automaton.typed:
            raise ValueError("transitions by type have no basis that is independent of the automaton; leave basis out")
        if automaton.labels < self.labels or (automaton.labels > self.labels == 1 and _varied(graph.labels)):
            raise ValueError(
                f"the basis follows {self.labels} labels, the automaton has {automaton.labels}: "
                f"prepare it with labels={automaton.labels}"
            )
        mine = self.graph
        if self.unit_radius is not None or not isinstance(mine, Graph):
            raise ValueError("the basis is for walk matrices of unit radius; prepare it without unit_radius")
        self._check_matrix(matrix)
        if graph is not mine and not all(
            _same(getattr(graph, name), getattr(mine, name)) for name in ("ptr", "edge_index", "edge_weight", "labels")
        ):
            raise ValueError(f"the basis is for {mine!r}, got {graph!r}: prepare it for this graph")
        if _learned(mine) or (torch.is_grad_enabled() and _learned(graph)):
            raise ValueError(
                f"edge_weight of {graph!r} requires gradients, and a basis is computed for fixed weights; "
                "leave basis out, or detach the weights"
            )
        return mine

    def check_layer(self, graph: Graph, matrix: str) -> Tensor:
        """Return the radii, or raise if the basis is not one for a learnable automaton on this graph and matrix.

        Edges may be in another order, and their weights rounded.
        """
        self._check_matrix(matrix)
        if self.unit_radius is None or self.labels > 1:
            raise ValueError(
                f"a learnable automaton walks on matrices of unit radius, got {self!r}; use "
                "gape.prepare(..., labels=1, unit_radius=True)"
            )
        if graph is not self.graph:
            self._digest.check(graph)
        return self.unit_radius.to(torch.float64)

    def _check_matrix(self, matrix: str) -> None:
        if matrix != self.matrix:
            raise ValueError(f"the basis is for matrix={self.matrix!r}, got matrix={matrix!r}: prepare it for this one")

    @cached_property
    def _digest(self) -> GraphDigest:
        return self.graph if isinstance(self.graph, GraphDigest) else GraphDigest.of(self.graph)

    def __repr__(self) -> str:
        solver = self.parts[0].solver if self.parts else "radius"
        dimension = max((part.dimension for part in self.parts), default=0)
        return f"Basis({solver}, matrix={self.matrix}, dimension={dimension}, {self.graph!r})"


def _learned(graph: Graph) -> bool:
    return graph.edge_weight is not None and graph.edge_weight.requires_grad


def _varied(labels: Tensor | None) -> bool:
    return labels is not None and bool(labels.any())


def _same(a: Tensor | None, b: Tensor | None) -> bool:
    return a is b or (a is not None and b is not None and torch.equal(a, b))


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
    if solver is not None and not (isinstance(solver, Solver) and solver.prepares()):
        raise ValueError(f"a basis comes from {solver_names(lambda kind: kind.prepares())}, got {solver!r}")
    if solver is None or graph.num_nodes == 0:
        solver = basis_solver(graph, matrix, DEFAULT_VECTORS)
    if labels is None:
        labels = 1 if graph.labels is None or not graph.labels.numel() else int(graph.labels.max()) + 1
    probe = Automaton(torch.ones(1, labels, dtype=torch.float64), torch.zeros(1, 1, dtype=torch.float64))
    check_fit(probe, graph)
    # Leave inference mode: a basis has to be fit for training.
    with torch.inference_mode(False), torch.no_grad():
        equations = [Equation.of(probe, part, matrix) for part in graph.parts]
        radius = None
        if unit_radius:
            radius = walk_radius(graph, matrix, absolute=True)
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
        radius, parts = walk_radius(graph, matrix, absolute=True), []
    else:
        each = [_prepare_part(part, matrix, vectors, complete) for part in graph.parts]
        radius = torch.cat([part.unit_radius for part in each if part.unit_radius is not None])
        parts = [projection for part in each for projection in part.parts]
    found = return_weights(unit_walk(graph, matrix, radius), returns) if returns else None
    return Basis(graph, matrix, 1, tuple(parts), radius, found)


def _prepare_part(part: Graph, matrix: str, vectors: int | None, complete: bool) -> Basis:
    solver = basis_solver(part, matrix, vectors or max(1, int(part.sizes.max())), complete=complete)
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
