"""Singular vectors of the adjacency matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import scipy.sparse
import torch
from torch import Tensor

from gape._internal.threads import one_blas_thread
from gape._internal.validation import check_at_least
from gape.encodings.base import NodeEncoding
from gape.graph.batching import blocks, check_memory, isolate, scatter_rows
from gape.graph.graph import Graph
from gape.linalg.eigenpairs import canonical_basis, fix_signs
from gape.linalg.lanczos import sparse_singular_vectors

# Largest graph for a dense decomposition, and the largest share of the singular vectors for a sparse one.
MAX_DENSE_NODES = 512
MAX_SPARSE_SHARE = 3


@dataclass(frozen=True)
class SingularVectors(NodeEncoding):
    r"""Singular vectors of the adjacency matrix of the largest singular values (Hussain, Zaki & Subramanian, 2022).

    A ≈ UΣVᵀ, and a node's row is [U√Σ, V√Σ]: how it appears as a source and as a target of edges, so the products of
    both give back A. The encoding of the edge-augmented graph transformer (EGT), for directed graphs too. Signs follow
    :func:`gape.encodings.fix_signs` on U. For a multiple singular value, as bipartite undirected graphs have, any basis
    of its space is valid; the one returned depends on the order of the nodes, but on no other graph: up to 512 nodes it
    is that of :func:`gape.linalg.eigenpairs.canonical_basis` for U. Graphs of up to 512 nodes are decomposed densely,
    larger ones by Lanczos's method with fixed start vectors.

    Args:
        rank: number of singular values r; columns beyond the rank of A are zero.
        memory: memory limit, in GiB, for the dense matrices of one graph.

    Returns, when called on a graph: ``[num_nodes, 2 · rank]``.

    Example:
        >>> arrow = Graph.from_edges([(0, 1)])
        >>> SingularVectors(rank=1)(arrow)  # source, target
        tensor([[1., 0.],
                [0., 1.]])
    """

    rank: int = 8
    memory: float = 4.0

    version: ClassVar[int] = 2  # in version 1 the bases of multiple values depended on the other graphs

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(1, rank=self.rank)

    def parts(self, graph: Graph) -> list[Graph]:
        # Each large graph by itself.
        return [part for batch in graph.parts for part in isolate(batch, self._is_large(batch.sizes))]

    def _is_large(self, sizes: Tensor) -> Tensor:
        return (sizes > MAX_DENSE_NODES) & (MAX_SPARSE_SHARE * self.rank <= sizes)

    def rows(self, graph: Graph) -> Tensor:
        out = torch.zeros(graph.num_nodes, 2 * self.rank, dtype=torch.float64, device=graph.device)
        if graph.num_graphs == 1 and bool(self._is_large(graph.sizes).all()):
            source, target = graph.edge_index.cpu().numpy()
            weights, n = graph.adjacency.weights.detach().cpu().numpy(), graph.num_nodes
            matrix = scipy.sparse.csr_array((weights, (source, target)), (n, n))
            with one_blas_thread():
                found = sparse_singular_vectors(matrix, self.rank)
            return self._scaled(*(torch.from_numpy(each).unsqueeze(0) for each in found))[0].to(graph.device)
        largest = int(graph.sizes.max()) if graph.num_graphs else 0
        what = f"SingularVectors on a graph of {largest} nodes"
        check_memory(self.memory, 10 * 8 * largest**2, what, "lower rank to a third of the nodes, or raise memory")
        for block in blocks(graph.walk("adjacency")):
            left, values, right = torch.linalg.svd(block.matrices)
            chosen = _canonical(left, values, self.rank)
            # Rotate U and V together, which keeps U S Vᵀ.
            right = right.mT if chosen is left else right.mT @ (left.mT @ chosen)
            scatter_rows(out, block, self._scaled(chosen, values, right))
        return out

    def _scaled(self, left: Tensor, values: Tensor, right: Tensor) -> Tensor:
        """Scale ``[B, n, j]``, ``[B, j]`` and ``[B, n, j]`` to rows ``[B, n, 2 · rank]`` with fixed signs."""
        left, values, right = left[..., : self.rank], values[:, : self.rank], right[..., : self.rank]
        rounding = torch.finfo(values.dtype).eps * left.shape[1] * values.amax(1, keepdim=True)
        root = torch.where(values > rounding, values, 0.0).sqrt().unsqueeze(1)
        fixed = fix_signs(left)
        sign = torch.where((fixed * left).sum(1, keepdim=True) < 0, -1.0, 1.0)
        missing = (0, self.rank - values.shape[1])
        return torch.cat([torch.nn.functional.pad(each * root, missing) for each in (fixed, right * sign)], -1)


def _canonical(left: Tensor, values: Tensor, rank: int) -> Tensor:
    """Choose the bases of multiple singular values among the first ``rank``; ``left`` itself if there are none."""
    basis, falling = left.cpu().numpy(), values.cpu().numpy()
    found = canonical_basis(-falling, basis, falling[:, 0], slice(0, rank))
    return left if found is basis else torch.from_numpy(found).to(left.device)
