"""Precomputed bases and return weights of walk matrices, for learnable automata."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from gape.graph.batching import blocks, scatter_rows
from gape.graph.graph import Graph
from gape.graph.spectral_radius import unit_walk, walk_radius
from gape.graph.walk_matrix import NAMES, WalkMatrix
from gape.linalg.hashing import digest_edges
from gape.linalg.powers import PowerDiagonals
from gape.solvers.equation import Equation
from gape.solvers.krylov import Krylov
from gape.solvers.schur import Schur
from gape.solvers.spectral import Spectral

#: Before the names of the fields of a :class:`WalkBasis`, as attributes of PyG data.
PREFIX = "walk_"
#: Fields with one row per graph; the others have one per node.
GRAPH_FIELDS = ("matrix", "radius", "spectrum", "complete", "weight", "digest")


@dataclass(frozen=True, eq=False)
class WalkBasis:
    """Vectors V of unit length with Aᵀ V ≈ V H for the unit walk matrix A of each graph, node by node.

    Rows are nodes or graphs, so batches of graphs are made by joining rows, as PyG does.

    Args:
        matrix: ``[graphs]``, the number of the walk matrix in :data:`gape.graph.walk_matrix.NAMES`.
        radius: ``[graphs]``, what each graph's matrix was divided by.
        vectors: ``[n, J]``, zero in columns that a graph does not need.
        spectrum: ``[graphs, J]`` if H is diagonal, else ``[graphs, J, J]``, H itself.
        scale: ``[n]``, c when V is the basis of diag(1/c) Aᵀ diag(c), which is symmetric.
        complete: ``[graphs]``, whether V spans the whole space of the graph; if not, only all nodes alike.
        returns: ``[n, T]``, entries (Aᵗ)_vv for t = 1 … T.
        weight: ``[graphs, 2]``, the sums of each graph's positive and negative edges: other weights are noticed by it.
        digest: ``[graphs]``, one of each graph's edges: other edges are noticed by it.
    """

    matrix: Tensor
    radius: Tensor
    vectors: Tensor | None = None
    spectrum: Tensor | None = None
    scale: Tensor | None = None
    complete: Tensor | None = None
    returns: Tensor | None = None
    weight: Tensor | None = None
    digest: Tensor | None = None

    @classmethod
    def of(cls, data: Any) -> WalkBasis | None:
        """What :class:`gape.pyg.AddWalkBasis` attached to a PyG ``Data`` or ``Batch``, ``None`` if nothing."""
        if getattr(data, PREFIX + "matrix", None) is None:
            return None
        found: dict[str, Any] = {name: getattr(data, PREFIX + name, None) for name in cls.__dataclass_fields__}
        return cls(**found)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name}={list(value.shape)}" for name, value in self.tensors().items())
        return f"{type(self).__name__}({shapes})"

    def to(self, device: torch.device | str, non_blocking: bool = False) -> WalkBasis:
        """The same on another device."""
        moved = {name: value.to(device, non_blocking=non_blocking) for name, value in self.tensors().items()}
        return replace(self, **moved)

    def tensors(self) -> dict[str, Tensor]:
        """The fields that are there, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}


def enough_vectors(damping: float, accuracy: float = 1e-7) -> int:
    """Krylov vectors that make any automaton of that relative damping accurate, whatever the undirected graph.

    (I - θμ)⁻¹ is analytic for |θ| < 1/γ. On the spectrum [-1, 1] of a symmetric A polynomials of degree J converge to
    it as r^J with r = (1 - √(1 - γ²))/γ (Bernstein's ellipse). Directed graphs have no such bound: the runs of a deep
    acyclic graph grow with their length before they end.

    Example:
        >>> enough_vectors(0.9), enough_vectors(0.5)
        (35, 13)
    """
    rate = (1.0 - math.sqrt(1.0 - damping**2)) / damping
    return max(1, math.ceil(math.log(accuracy) / math.log(rate)))


def walk_basis(
    graph: Graph,
    matrix: str = "adjacency",
    *,
    vectors: int | None = 35,
    complete: bool = False,
    returns: int = 0,
    directed: bool | None = None,
) -> WalkBasis:
    """Compute the basis of each graph, in float64.

    Args:
        graph: one graph or many.
        matrix: the walk matrix, see :mod:`gape.graph.walk_matrix`.
        vectors: number of columns J: at most so many Krylov vectors, or room for so many nodes if ``complete``;
            ``None`` for as many as the largest graph has nodes, 0 for no basis.
        complete: all eigenvectors, which serve any labels and closed runs.
        returns: number T of return weights.
        directed: whether H has to have room for directed graphs; seen from the graphs if ``None``. Then all bases are
            complete: Schur vectors.

    Example:
        >>> ring = Graph.from_edges([(0, 1), (1, 2), (2, 0)], undirected=True)
        >>> walk_basis(ring, vectors=2).spectrum  # all walks from all nodes alike: one vector is enough
        tensor([[1., 0.]], dtype=torch.float64)
    """
    if (vectors is not None and vectors < 0) or returns < 0:
        raise ValueError(f"vectors and returns must not be negative, got {vectors} and {returns}")
    radius = walk_radius(graph, matrix)
    kind = torch.full((graph.num_graphs,), NAMES.index(matrix), device=graph.device)
    found = WalkBasis(kind, radius, weight=graph_weight(graph), digest=graph_edges(graph))
    if returns:
        found = replace(found, returns=return_weights(unit_walk(graph, matrix, radius), returns))
    largest = int(graph.sizes.max()) if graph.num_graphs else 0
    room = largest if vectors is None else vectors
    if vectors == 0:
        return found
    general = (graph.num_nodes > 0 and graph.walk(matrix).similarity is None) if directed is None else directed
    complete = complete or general
    if complete and room < largest:
        raise ValueError(
            f"a complete basis{' (which directed graphs need)' if general else ''} of {largest} nodes does not fit "
            f"into vectors={vectors}; raise vectors, or take vectors=None for a whole data set"
        )
    tables, first = [], 0
    for part in graph.parts:
        walk = unit_walk(part, matrix, radius[first : first + part.num_graphs])
        tables.append(_part(walk, room, complete, general))
        first += part.num_graphs
    joined = {name: torch.cat([table[name] for table in tables]) for name in tables[0]}
    return replace(found, **joined)


def graph_weight(graph: Graph) -> Tensor:
    """``[graphs, 2]``: the sums of the positive and of the negative weights of each graph's edges, in float64."""
    total = torch.zeros(graph.num_graphs, 2, dtype=torch.float64, device=graph.device)
    each = total.new_ones(graph.num_edges) if graph.edge_weight is None else graph.edge_weight.detach().to(total)
    signed = torch.stack([each.clamp(min=0), each.clamp(max=0)], dim=1)
    return total.index_add_(0, graph.batch[graph.edge_index[0]], signed)


def graph_edges(graph: Graph) -> Tensor:
    """``[graphs]``: a digest of each graph's edges, in any order and whatever their weights."""
    source, target = graph.edge_index
    local, batch = graph.adjacency.local, graph.batch
    return digest_edges(local[source], local[target], torch.zeros_like(source), batch[source], graph.num_graphs)


def return_weights(walk: WalkMatrix, length: int) -> Tensor:
    """``[n, length]``: (Aᵗ)_vv for t = 1 … length, in float64."""
    out = torch.zeros(walk.num_nodes, length, dtype=torch.float64, device=walk.ptr.device)
    if walk.num_nodes:
        diagonals = PowerDiagonals(length, out.dtype)
        for block in blocks(walk, multiple=4):
            scatter_rows(out, block, diagonals(block.matrices, symmetric=walk.symmetric))
    return out


def _part(walk: WalkMatrix, room: int, complete: bool, general: bool) -> dict[str, Tensor]:
    graphs, nodes, device = len(walk.ptr) - 1, walk.num_nodes, walk.ptr.device
    symmetric = nodes == 0 or walk.similarity is not None
    if not symmetric and not general:
        raise ValueError("a graph is directed and the basis has no room for it; ask for directed=True")
    dtype = torch.complex128 if complete and general else torch.float64
    vectors = torch.zeros(nodes, room, dtype=dtype, device=device)
    spectrum = torch.zeros(graphs, *([room] * (2 if general else 1)), dtype=dtype, device=device)
    scale = torch.ones(nodes, dtype=torch.float64, device=device)
    whole = torch.full((graphs,), complete, device=device)
    if nodes:
        basis = _solver(complete, symmetric, room).basis(_equation(walk))
        rows = basis.padding.unpad(basis.vectors[:, 0].mT)
        size = min(room, rows.shape[1])
        vectors[:, :size] = rows[:, :size].to(dtype)
        h = basis.h[:, 0]
        if general:
            h = torch.diag_embed(h) if h.dim() == 2 else h
            spectrum[:, :size, :size] = h[:, :size, :size].to(dtype)
        else:
            spectrum[:, :size] = h[:, :size]
        scale = scale if basis.scale is None else basis.scale
    return {"vectors": vectors, "spectrum": spectrum, "scale": scale, "complete": whole}


def _solver(complete: bool, symmetric: bool, room: int) -> Krylov | Spectral | Schur:
    if not complete:
        return Krylov(max_steps=room)
    return Spectral() if symmetric else Schur()


def _equation(walk: WalkMatrix) -> Equation:
    """All nodes alike, one state: only the graphs matter to a basis."""
    one = torch.ones(1, 1, dtype=torch.float64, device=walk.ptr.device)
    return Equation(walk, initial=one, transition=0 * one)
