"""The lowest eigenpairs of Laplacians: dense for many small graphs, Lanczos's method for large ones."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.csgraph
import torch
from torch import Tensor

from gape.encodings.laplacian_matrix import LaplacianKind, count_components
from gape.encodings.signs import fix_signs
from gape.graph.batching import Block, blocks, spread_rows
from gape.graph.graph import Graph
from gape.linalg.lanczos import lowest_eigenpairs

# Largest graph for a dense decomposition: from about 500 nodes on Lanczos is faster, at 1,000 up to four times.
DENSE_NODES = 512
# From so many nodes on, LAPACK's solver for a few eigenpairs (syevr) beats all of them (syevd).
SUBSET_NODES = 100
# A second eigenvalue below this, relative to the largest degree, may be a zero: components are counted then.
DOUBTFUL = 1e-8


@dataclass(frozen=True, eq=False)
class Eigenpairs:
    """The lowest eigenpairs of each graph, in ascending order.

    Args:
        values: ``[graphs, k]``, NaN where a graph has no more.
        vectors: ``[n, k]``, unit vectors with fixed signs, zero where a graph has no more.
    """

    values: Tensor
    vectors: Tensor


def eigenpairs(graph: Graph, k: int, kind: LaplacianKind, *, trivial: bool) -> Eigenpairs:
    """The k lowest eigenpairs of each graph's Laplacian.

    Without ``trivial`` those of eigenvalue zero, one for each component, are left out.
    """
    kind.check(graph)
    large = (graph.sizes > DENSE_NODES).nonzero().flatten().tolist()
    if large and graph.num_graphs == 1:
        return _sparse(graph, k, kind, trivial)
    if large:
        # Each large graph by itself, those between two large ones together.
        bounds = sorted({0, graph.num_graphs, *large, *(i + 1 for i in large)})
        found = [eigenpairs(graph.slice(a, b), k, kind, trivial=trivial) for a, b in pairwise(bounds)]
        return Eigenpairs(torch.cat([f.values for f in found]), torch.cat([f.vectors for f in found]))
    values = torch.full((graph.num_graphs, k), torch.nan, dtype=torch.float64, device=graph.device)
    vectors = torch.zeros(graph.num_nodes, k, dtype=torch.float64, device=graph.device)
    for block in blocks(graph.walk("adjacency")):
        matrices = kind.dense(block.matrices)
        theta, basis = _dense(matrices, 0 if trivial else 1, k)
        _write(values, vectors, block, theta, basis)
        if not trivial:
            for i in _doubtful(matrices, theta):
                one = Block(block.graphs[i : i + 1], block.nodes[i : i + 1], block.matrices[:0])
                skip = count_components(matrices[i])
                _write(values, vectors, one, *_dense(matrices[i : i + 1], skip, k))
    return Eigenpairs(values, vectors)


def _doubtful(matrices: Tensor, theta: Tensor) -> list[int]:
    """The graphs that may have more than one component, judged by their second eigenvalue."""
    if theta.shape[1] == 0:
        return []
    scale = matrices.diagonal(dim1=-2, dim2=-1).amax(-1)
    doubtful: list[int] = (theta[:, 0] <= DOUBTFUL * scale).nonzero().flatten().tolist()
    return doubtful


def _write(values: Tensor, vectors: Tensor, block: Block, theta: Tensor, basis: Tensor) -> None:
    found, k = theta.shape[1], values.shape[1]
    values[block.graphs] = torch.nn.functional.pad(theta, (0, k - found), value=torch.nan)
    spread_rows(vectors, block, torch.nn.functional.pad(fix_signs(basis), (0, k - found)))


def _dense(matrices: Tensor, skip: int, k: int) -> tuple[Tensor, Tensor]:
    """Eigenpairs ``skip`` to ``skip + k - 1`` of ``[B, n, n]``, as many as there are."""
    n = matrices.shape[1]
    last = min(skip + k, n)
    if last <= skip:
        return matrices.new_zeros(len(matrices), 0), matrices.new_zeros(len(matrices), n, 0)
    if n < SUBSET_NODES or matrices.device.type != "cpu" or last > n // 3:
        theta, basis = torch.linalg.eigh(matrices)
        return theta[:, skip:last], basis[..., skip:last]
    pairs = [
        scipy.linalg.eigh(matrix, subset_by_index=(skip, last - 1), driver="evr", check_finite=False)
        for matrix in matrices.numpy()
    ]
    return (
        torch.from_numpy(np.stack([theta for theta, _ in pairs])),
        torch.from_numpy(np.stack([basis for _, basis in pairs])),
    )


def _sparse(graph: Graph, k: int, kind: LaplacianKind, trivial: bool) -> Eigenpairs:
    """One large graph. Its trivial vectors, if wanted, are those of its components in the order of their nodes."""
    matrix, degree = kind.sparse(graph)
    count, component = scipy.sparse.csgraph.connected_components(matrix, directed=False)
    null = kind.trivial(component, degree)
    values, vectors = np.full(k, np.nan), np.zeros((graph.num_nodes, k))
    first = min(k, count) if trivial else 0
    values[:first] = 0.0
    for i in range(first):
        vectors[:, i] = np.where(component == i, null, 0.0)
    # A node alone has only its trivial vector.
    joined = np.flatnonzero(np.bincount(component)[component] > 1)
    parts = np.unique(component[joined], return_inverse=True)[1]
    skip = int(parts.max(initial=-1)) + 1
    wanted = min(k - first, len(joined) - skip)
    if wanted > 0:
        matrix = matrix[joined][:, joined]
        if len(joined) <= DENSE_NODES or wanted > len(joined) // 3:
            dense = torch.from_numpy(matrix.toarray()).unsqueeze(0)
            theta, basis = (part[0].numpy() for part in _dense(dense, skip, wanted))
        else:
            theta, basis = lowest_eigenpairs(matrix, wanted, null[joined], parts)
        values[first : first + wanted] = theta
        vectors[joined, first : first + wanted] = fix_signs(torch.from_numpy(basis).unsqueeze(0))[0].numpy()
    device = graph.device
    return Eigenpairs(torch.from_numpy(values).unsqueeze(0).to(device), torch.from_numpy(vectors).to(device))
