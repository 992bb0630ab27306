"""Bases: what a solve needs of the graphs alone, computed once by :func:`gape.prepare` and used for any automaton."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from gape.automaton import Automaton
from gape.graph.graph import Graph
from gape.linalg.hashing import digest_edges
from gape.solvers.projection import Projection


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
