"""Transform that precomputes the basis of each graph for learnable automata."""

from __future__ import annotations

from typing import Any

import torch
from torch_geometric.data import Batch
from torch_geometric.data.datapipes import functional_transform

from gape._internal.validation import whole_number
from gape.graph.graph import Graph
from gape.graph.walk_matrix import NAMES, MatrixName
from gape.pyg.base import GraphTransform
from gape.solvers.walk_basis import GRAPH_FIELDS, PREFIX, walk_basis


@functional_transform("add_walk_basis")
class AddWalkBasis(GraphTransform):
    """Adds the basis in which :class:`gape.nn.GAPE` solves (Soga & Chiang, TMLR 2023), so training does not compute it.

    Attributes ``walk_vectors`` ``[n, J]``, ``walk_scale`` ``[n]``, ``walk_spectrum`` ``[1, J]`` (``[1, J, J]`` if
    directed), ``walk_returns`` ``[n, T]``, ``walk_weight`` ``[1, 2]``, ``walk_radius``, ``walk_digest``,
    ``walk_matrix`` and ``walk_complete`` ``[1]``, as far as requested. PyG batches them by concatenating rows, and
    ``WalkBasis.of(batch)`` reads them. :meth:`over` computes them for a whole dataset at once.

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
        >>> from gape.nn import GAPE, WalkBasis
        >>> layer = GAPE(states=8, seed=0)
        >>> triangle = Data(edge_index=torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]]), num_nodes=3)
        >>> triangle = AddWalkBasis(**layer.basis_settings)(triangle)
        >>> layer(triangle.edge_index, basis=WalkBasis.of(triangle)).shape
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
        if matrix not in NAMES:
            raise ValueError(f"there is no walk matrix {matrix!r}; there are {', '.join(NAMES)}")
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

    def compute(self, graph: Graph, data: Any) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
        """Compute by attribute name the values and the offsets of each graph's rows."""
        settings = {"vectors": self.vectors, "complete": self.complete, "returns": self.returns}
        basis = walk_basis(graph, self.matrix, directed=self.directed, **settings)  # type: ignore[arg-type]
        graphs = torch.arange(graph.num_graphs + 1, device=graph.device)
        found = {}
        for name, value in basis.tensors().items():
            if value.is_floating_point() or value.is_complex():
                value = value.to(self.dtype.to_complex() if value.is_complex() else self.dtype)
            found[PREFIX + name] = (value, graphs if name in GRAPH_FIELDS else graph.ptr)
        return found

    def __repr__(self) -> str:
        settings = ("matrix", "vectors", "complete", "returns", "directed", "dtype")
        return f"{type(self).__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in settings)})"
