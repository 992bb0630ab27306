"""The transform that computes once what learnable automata need of the graphs."""

from __future__ import annotations

from typing import Any

import torch
from torch_geometric.data import Batch
from torch_geometric.data.datapipes import functional_transform

from gape._internal.validation import whole_number
from gape.graph.graph import Graph
from gape.graph.walk_matrix import NAMES, MatrixName
from gape.nn.learnable.basis import GRAPH_FIELDS, PREFIX
from gape.nn.learnable.compute_basis import walk_basis
from gape.pyg.graph_transform import GraphTransform


@functional_transform("add_walk_basis")
class AddWalkBasis(GraphTransform):
    """Adds what :class:`gape.nn.GAPE` needs of a graph (Soga & Chiang, TMLR 2023), once and not in training.

    Attributes ``walk_vectors`` ``[n, J]``, ``walk_scale`` ``[n]``, ``walk_spectrum`` ``[1, J]`` (``[1, J, J]`` if
    directed), ``walk_returns`` ``[n, T]``, ``walk_weight`` ``[1, 2]``, ``walk_radius``, ``walk_digest``,
    ``walk_matrix`` and ``walk_complete`` ``[1]``, those that are asked for; PyG batches them by joining rows, and
    ``WalkBasis.of(batch)`` picks them up. :meth:`over` does a whole data set at once.

    Args:
        matrix: the walk matrix, see :mod:`gape.graph.walk_matrix`.
        vectors: number of columns J; with ``complete`` no graph may have more nodes; ``None`` for as many as the
            largest graph of a data set or ``Batch`` has nodes; 0 for none.
        complete: all eigenvectors, for several labels and for closed and pair readouts; otherwise Krylov vectors.
        returns: number T of return weights, for closed readouts with a ``length``.
        directed: whether the graphs may be directed; all graphs of a data set have to agree. Bases are complete then,
            since no number of Krylov vectors is enough for every directed graph.
        dtype: float64 gives the encodings that are computed without the transform; float32 takes half the memory and
            changes them by about 1e-6.

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
                "vectors=None is for graphs that are seen together, over(dataset) or a Batch; "
                "for one at a time give vectors, the most nodes that a graph has"
            )
        return super().forward(data)

    def compute(self, graph: Graph, data: Any) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
        """By attribute name: the values, and where each graph's rows begin."""
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
