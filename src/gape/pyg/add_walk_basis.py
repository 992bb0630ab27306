"""Transform that precomputes the basis of each graph for learnable automata.

PyG makes batches by concatenating attributes, so a :class:`gape.solvers.Basis` is stored in rows, one per node or
graph.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Batch
from torch_geometric.data.datapipes import functional_transform

from gape._internal.validation import check_one_of, whole_number
from gape.graph.adjacency import Adjacency
from gape.graph.graph import Graph
from gape.graph.walk_matrix import NAMES, MatrixName
from gape.pyg.base import GraphTransform
from gape.solvers.basis import Basis, GraphDigest, prepare_layer
from gape.solvers.projection import Projection

#: Attributes with one row per graph; those in ``NODE_ROWS`` have one per node.
GRAPH_ROWS = ("walk_matrix", "walk_radius", "walk_spectrum", "walk_complete", "walk_weight", "walk_digest")
NODE_ROWS = ("walk_vectors", "walk_scale", "walk_returns")


@functional_transform("add_walk_basis")
class AddWalkBasis(GraphTransform):
    """Adds the basis in which :class:`gape.nn.GAPE` solves (Soga & Chiang, TMLR 2023), so training does not compute it.

    Attributes ``walk_vectors`` ``[n, J]``, ``walk_scale`` ``[n]``, ``walk_spectrum`` ``[1, J]`` (``[1, J, J]`` if
    directed), ``walk_returns`` ``[n, T]``, ``walk_weight`` ``[1, 2]``, ``walk_radius``, ``walk_digest``,
    ``walk_matrix`` and ``walk_complete`` ``[1]``, as far as requested. PyG batches them by concatenating rows, and
    :func:`basis_of` reads them. :meth:`over` computes them for a whole dataset at once.

    Args:
        matrix: name of the walk matrix, see :mod:`gape.graph.walk_matrix`.
        vectors: number of columns J; with ``complete`` no graph may have more nodes than this. ``None`` for the number
            of nodes of the largest graph of a dataset or ``Batch``; 0 for none.
        complete: all eigenvectors, for several labels and for closed and pair readouts; otherwise Krylov vectors.
        returns: number T of return weights, for closed readouts with a ``length``.
        directed: allow directed graphs; the same for all graphs of a dataset. Bases are then complete, since no number
            of Krylov vectors suffices for every directed graph.
        dtype: float64 gives the same encodings as without the transform; float32 halves the memory and changes them by
            about 1e-6.

    Example:
        >>> from torch_geometric.data import Data
        >>> from gape.nn import GAPE
        >>> layer = GAPE(states=8, seed=0)
        >>> triangle = Data(edge_index=torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]]), num_nodes=3)
        >>> triangle = AddWalkBasis(**layer.basis_settings)(triangle)
        >>> layer(triangle.edge_index, basis=basis_of(triangle)).shape
        torch.Size([3, 8])
    """

    def __init__(
        self,
        matrix: MatrixName = "adjacency",
        *,
        vectors: int | None = 35,
        complete: bool = False,
        returns: int = 0,
        directed: bool = False,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        if dtype not in (torch.float32, torch.float64):
            raise ValueError(f"dtype must be torch.float32 or torch.float64, got {dtype}")
        check_one_of(NAMES, matrix=matrix)
        if vectors is not None:
            whole_number(vectors, "vectors", at_least=0)
        whole_number(returns, "returns", at_least=0)
        complete = complete or (directed and vectors != 0)
        self.matrix, self.vectors, self.complete, self.returns = matrix, vectors, complete, returns
        self.directed, self.dtype = directed, dtype

    def forward(self, data: Any) -> Any:
        """Attach the basis to a ``Data`` or a ``Batch``."""
        if self.vectors is None and not isinstance(data, Batch):
            raise ValueError(
                "vectors=None needs all graphs at once, over(dataset) or a Batch; "
                "for single graphs set vectors to the number of nodes of the largest one"
            )
        return super().forward(data)

    def compute(self, graph: Graph, data: Any) -> dict[str, tuple[Tensor, Tensor]]:
        """Compute by attribute name the values and the offsets of each graph's rows."""
        columns = self._columns(graph)
        basis = prepare_layer(
            graph, self.matrix, vectors=columns, complete=self.complete and columns > 0, returns=self.returns
        )
        digest, device = GraphDigest.of(graph), graph.device
        found = {
            "walk_matrix": torch.full((graph.num_graphs,), NAMES.index(self.matrix), device=device),
            "walk_radius": basis.unit_radius,
            "walk_weight": digest.weights,
            "walk_digest": digest.edges,
            "walk_returns": basis.returns,
        }
        parts = [_rows(part, columns, self.complete, self.directed) for part in basis.parts]
        for name in parts[0] if parts else ():
            found[name] = torch.cat([part[name] for part in parts])
        graphs = torch.arange(graph.num_graphs + 1, device=device)
        return {
            name: (_rounded(value, self.dtype), graphs if name in GRAPH_ROWS else graph.ptr)
            for name, value in found.items()
            if value is not None
        }

    def _columns(self, graph: Graph) -> int:
        """Return J, the number of vectors of every graph."""
        if self.vectors == 0:
            return 0
        largest = int(graph.sizes.max()) if graph.num_graphs else 0
        columns = largest if self.vectors is None else self.vectors
        if not self.directed and graph.num_nodes > 0 and graph.walk(self.matrix).similarity is None:
            raise ValueError("a graph is directed, and the basis is for undirected graphs only; use directed=True")
        if self.complete and columns < largest:
            raise ValueError(
                f"a complete basis{' (which directed graphs need)' if self.directed else ''} of {largest} nodes does "
                f"not fit into vectors={self.vectors}; raise vectors, or take vectors=None for a whole dataset"
            )
        return columns

    def __repr__(self) -> str:
        settings = ("matrix", "vectors", "complete", "returns", "directed", "dtype")
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in settings)})"


def basis_of(data: Any) -> Basis | None:
    """Read the basis that :class:`AddWalkBasis` attached to a PyG ``Data`` or ``Batch``; ``None`` if there is none."""
    kind = getattr(data, "walk_matrix", None)
    if kind is None or not len(kind):
        return None
    if bool((kind != kind[0]).any()):
        names = ", ".join(repr(NAMES[i]) for i in kind.unique().tolist())
        raise ValueError(f"the graphs of a batch have bases for different walk matrices, {names}; use one transform")
    ptr = getattr(data, "ptr", None)
    ptr = torch.tensor([0, data.num_nodes], device=kind.device) if ptr is None else ptr
    num_nodes = int(ptr[-1])
    rows = {name: len(data[name]) for name in (*GRAPH_ROWS, *NODE_ROWS) if getattr(data, name, None) is not None}
    if any(count != (len(ptr) - 1 if name in GRAPH_ROWS else num_nodes) for name, count in rows.items()):
        raise ValueError(f"the basis is for other graphs: its rows are {rows}, the graphs are {data!r}")
    parts: tuple[Projection, ...] = ()
    if getattr(data, "walk_vectors", None) is not None:
        adjacency = Adjacency(ptr.new_zeros(2, 0), num_nodes, ptr)
        complete = bool(data.walk_complete.all())
        parts = (
            Projection.from_rows(adjacency, data.walk_vectors, data.walk_spectrum, data.walk_scale, complete=complete),
        )
    digest = GraphDigest(num_nodes, data.walk_digest, data.walk_weight)
    return Basis(digest, NAMES[int(kind[0])], 1, parts, data.walk_radius, getattr(data, "walk_returns", None))


def _rows(part: Projection, columns: int, complete: bool, general: bool) -> dict[str, Tensor]:
    """Rows of one part, with ``columns`` vectors each; ``general``: H as a matrix."""
    dtype = torch.complex128 if complete and general else torch.float64
    own, h, scale = part.rows()
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
        "walk_vectors": vectors,
        "walk_spectrum": spectrum,
        "walk_scale": torch.ones(len(own), dtype=torch.float64, device=own.device) if scale is None else scale,
        "walk_complete": torch.full((graphs,), complete, device=own.device),
    }


def _rounded(value: Tensor, dtype: torch.dtype) -> Tensor:
    if value.is_complex():
        return value.to(dtype.to_complex())
    return value.to(dtype) if value.is_floating_point() else value
