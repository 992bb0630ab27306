"""Row form of bases, for PyG: one row per node or graph, so that batches are made by concatenation.

A :class:`WalkBasis` also has return weights, and digests of the graphs it was computed from. :func:`walk_basis`
computes it; :class:`gape.pyg.AddWalkBasis` attaches it to data; :class:`gape.nn.GAPE` reads it.
"""

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
from gape.solvers.base import Solver
from gape.solvers.basis import Basis, GraphBasis
from gape.solvers.krylov import Krylov
from gape.solvers.schur import Schur
from gape.solvers.solve import prepare
from gape.solvers.spectral import Spectral

#: Prefix of the fields of a :class:`WalkBasis` as attributes of PyG data.
PREFIX = "walk_"
#: Fields with one row per graph; the others have one per node.
GRAPH_FIELDS = ("matrix", "radius", "spectrum", "complete", "weight", "digest")


@dataclass(frozen=True, eq=False)
class WalkBasis:
    """Vectors V with Aᵀ V ≈ V H for the walk matrix A of each graph divided by its radius, in rows.

    Args:
        matrix: ``[graphs]``, index of the walk matrix in :data:`gape.graph.walk_matrix.NAMES`.
        radius: ``[graphs]``, divisor of each graph's matrix.
        vectors: ``[n, J]``, zero in columns that a graph does not need.
        spectrum: ``[graphs, J]`` if H is diagonal, else ``[graphs, J, J]``, H itself, triangular.
        scale: ``[n]`` vector c if V is the basis of diag(1/c) Aᵀ diag(c), which is symmetric.
        complete: ``[graphs]``, whether V spans the whole space of the graph; otherwise it serves one label only.
        returns: ``[n, T]``, return weights (Aᵗ)_vv for t = 1 … T.
        weight: ``[graphs, 2]``, sums of the positive and of the negative edge weights, to detect other weights.
        digest: ``[graphs]``, digest of the edges, to detect other edges.
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
        """Read what :class:`gape.pyg.AddWalkBasis` attached to a PyG ``Data`` or ``Batch``, ``None`` if nothing."""
        if getattr(data, PREFIX + "matrix", None) is None:
            return None
        found: dict[str, Any] = {name: getattr(data, PREFIX + name, None) for name in cls.__dataclass_fields__}
        return cls(**found)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name}={list(value.shape)}" for name, value in self.tensors().items())
        return f"{type(self).__name__}({shapes})"

    def to(self, device: torch.device | str, non_blocking: bool = False) -> WalkBasis:
        """Move all tensors to a device."""
        moved = {name: value.to(device, non_blocking=non_blocking) for name, value in self.tensors().items()}
        return replace(self, **moved)

    def tensors(self) -> dict[str, Tensor]:
        """Return the fields that are not ``None``, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def padded(self, graph: Graph) -> GraphBasis:
        """Pad the vectors: the basis of all graphs as one part."""
        assert self.vectors is not None
        assert self.spectrum is not None
        assert self.complete is not None
        complete = bool(self.complete.all())
        part = Basis.from_rows(graph.adjacency, self.vectors, self.spectrum, self.scale, complete=complete)
        matrix = NAMES[int(self.matrix[0])]
        return GraphBasis(graph, matrix, 1, (part,), self.radius.to(torch.float64))

    def check(self, graph: Graph, matrix: str) -> None:
        """Raise if the rows are of another walk matrix or, as far as the digests can tell, of other graphs."""
        if self.matrix.numel() and bool((self.matrix != NAMES.index(matrix)).any()):
            found = NAMES[int(self.matrix[self.matrix != NAMES.index(matrix)][0])]
            raise ValueError(f"the basis is for matrix={found!r}, the layer has matrix={matrix!r}")
        rows = {name: len(value) for name, value in self.tensors().items()}
        graphs = {number for name, number in rows.items() if name in GRAPH_FIELDS}
        nodes = {number for name, number in rows.items() if name not in GRAPH_FIELDS}
        if graphs != {graph.num_graphs} or nodes - {graph.num_nodes}:
            raise ValueError(f"the basis is for other graphs: its rows are {rows}, the graphs are {graph!r}")
        if self.digest is not None and len(other := (self.digest != _edge_digest(graph)).nonzero()):
            raise ValueError(
                f"the basis is for other edges than those of graph {int(other[0])}, or for another order of its "
                "nodes; compute it from the edges as they are now, and give each batch its own"
            )
        if self.weight is not None:
            self._check_weight(self.weight, graph)

    def _check_weight(self, weight: Tensor, graph: Graph) -> None:
        known, actual = weight.to(torch.float64), _weight_sums(graph)
        # Either of them may have been rounded.
        dtypes = [weight.dtype] if graph.edge_weight is None else [weight.dtype, graph.edge_weight.dtype]
        rounding = max(1e-6, *(4 * torch.finfo(dtype).eps for dtype in dtypes if dtype.is_floating_point))
        other = (~torch.isclose(actual, known, rtol=rounding, atol=0.0)).nonzero()
        if len(other):
            at = int(other[0, 0])
            there, here = (
                " and ".join(f"{part:g}" for part in side[at].tolist() if part) or 0 for side in (known, actual)
            )
            hint = "edge_weight, too" if graph.edge_weight is None else "the same edge_weight"
            raise ValueError(
                f"the basis is for other weights: those of graph {at} add up to {there} there and to {here} here; "
                f"give {hint}, or compute the basis from the edges as they are now"
            )


def walk_basis(
    graph: Graph,
    matrix: str = "adjacency",
    *,
    vectors: int | None = 35,
    complete: bool = False,
    returns: int = 0,
    directed: bool | None = None,
) -> WalkBasis:
    """Compute the basis of each graph's walk matrix of unit radius, in rows and float64.

    Args:
        graph: one graph or many.
        matrix: the walk matrix, see :mod:`gape.graph.walk_matrix`.
        vectors: number of columns J: the largest number of Krylov vectors, or of nodes of a graph if ``complete``;
            ``None`` for as many as the largest graph has nodes, 0 for no basis.
        complete: all eigenvectors, which serve any labels, and closed and pair runs.
        returns: number T of return weights.
        directed: store H as a matrix, for directed graphs, which then all get a complete basis (Schur vectors);
            ``None`` to do so if any graph is directed.

    Example:
        >>> ring = Graph.from_edges([(0, 1), (1, 2), (2, 0)], undirected=True)
        >>> walk_basis(ring, vectors=2).spectrum  # all nodes are equal, so one vector spans the Krylov space
        tensor([[1., 0.]], dtype=torch.float64)
    """
    if (vectors is not None and vectors < 0) or returns < 0:
        raise ValueError(f"vectors and returns must not be negative, got {vectors} and {returns}")
    radius = walk_radius(graph, matrix)
    kind = torch.full((graph.num_graphs,), NAMES.index(matrix), device=graph.device)
    found = WalkBasis(kind, radius, weight=_weight_sums(graph), digest=_edge_digest(graph))
    if returns:
        found = replace(found, returns=return_weights(unit_walk(graph, matrix, radius), returns))
    if vectors == 0:
        return found
    largest = int(graph.sizes.max()) if graph.num_graphs else 0
    columns = largest if vectors is None else vectors
    any_directed = graph.num_nodes > 0 and graph.walk(matrix).similarity is None
    if any_directed and directed is False:
        raise ValueError("a graph is directed, and the basis is for undirected graphs only; use directed=True")
    general = any_directed if directed is None else directed
    complete = complete or general
    if complete and columns < largest:
        raise ValueError(
            f"a complete basis{' (which directed graphs need)' if general else ''} of {largest} nodes does not fit "
            f"into vectors={vectors}; raise vectors, or take vectors=None for a whole dataset"
        )
    basis = unit_basis(graph, matrix, vectors=columns, complete=complete)
    rows = [_rows(part, columns, complete, general) for part in basis.parts]
    return replace(found, **{name: torch.cat([part[name] for part in rows]) for name in rows[0]})


def unit_basis(graph: Graph, matrix: str, *, vectors: int, complete: bool) -> GraphBasis:
    """Prepare the walk matrices of unit radius: ``vectors`` Krylov vectors for one label, or a complete basis."""
    parts = []
    for part in graph.parts:
        if part.num_nodes and not complete:
            solver: Solver = Krylov(max_steps=vectors)
        else:
            symmetric = part.num_nodes == 0 or part.walk(matrix).similarity is not None
            solver = Spectral() if symmetric else Schur()
        parts.append(prepare(part, solver=solver, matrix=matrix, labels=1, unit_radius=True))
    radius = torch.cat([part.unit_radius for part in parts if part.unit_radius is not None])
    return GraphBasis(graph, matrix, 1, tuple(basis for part in parts for basis in part.parts), radius)


def _rows(basis: Basis, columns: int, complete: bool, general: bool) -> dict[str, Tensor]:
    """Rows of one part, with ``columns`` vectors each; ``general``: H as a matrix."""
    dtype = torch.complex128 if complete and general else torch.float64
    own, h, scale = basis.rows()
    graphs, size = len(h), min(columns, own.shape[1])
    vectors = torch.zeros(len(own), columns, dtype=dtype, device=own.device)
    vectors[:, :size] = own[:, :size].to(dtype)
    spectrum = torch.zeros(graphs, *([columns] * (2 if general else 1)), dtype=dtype, device=own.device)
    if general:
        h = torch.diag_embed(h) if h.dim() == 2 else h
        spectrum[:, :size, :size] = h[:, :size, :size].to(dtype)
    else:
        spectrum[:, :size] = h[:, :size]
    return {
        "vectors": vectors,
        "spectrum": spectrum,
        "scale": torch.ones(len(own), dtype=torch.float64, device=own.device) if scale is None else scale,
        "complete": torch.full((graphs,), complete, device=own.device),
    }


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


def _weight_sums(graph: Graph) -> Tensor:
    """Return the sums of each graph's positive and negative edge weights, ``[graphs, 2]`` in float64."""
    total = torch.zeros(graph.num_graphs, 2, dtype=torch.float64, device=graph.device)
    each = total.new_ones(graph.num_edges) if graph.edge_weight is None else graph.edge_weight.detach().to(total)
    signed = torch.stack([each.clamp(min=0), each.clamp(max=0)], dim=1)
    return total.index_add_(0, graph.batch[graph.edge_index[0]], signed)


def _edge_digest(graph: Graph) -> Tensor:
    """Return a digest of each graph's edges, ``[graphs]``, independent of their order and weights."""
    source, target = graph.edge_index
    local, batch = graph.adjacency.local, graph.batch
    return digest_edges(local[source], local[target], torch.zeros_like(source), batch[source], graph.num_graphs)
