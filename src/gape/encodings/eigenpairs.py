"""The lowest eigenpairs of Laplacians: dense for many small graphs, shift-invert Lanczos for large ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse
import torch
from torch import Tensor

from gape.encodings.blocks import Block, blocks, spread_rows
from gape.encodings.lanczos import lowest_eigenpairs
from gape.encodings.laplacian_matrix import LaplacianName, components, trivial_vectors
from gape.encodings.signs import fix_signs
from gape.graph import Graph
from gape.walk import WalkMatrix

# Largest graph for a dense decomposition.
DENSE_NODES = 1024
# From so many nodes on, LAPACK's solver for a few eigenpairs (syevr) beats all of them (syevd).
SUBSET_NODES = 48


@dataclass(frozen=True, eq=False)
class Eigenpairs:
    """The lowest eigenpairs of each graph, in ascending order.

    Args:
        values: ``[graphs, k]``, NaN where a graph has no more.
        vectors: ``[n, k]``, unit vectors with fixed signs, zero where a graph has no more.
    """

    values: Tensor
    vectors: Tensor


def eigenpairs(graph: Graph, walk: WalkMatrix, k: int, kind: LaplacianName, *, trivial: bool) -> Eigenpairs:
    """The k lowest eigenpairs of each graph's Laplacian ``walk``.

    Without ``trivial`` those of eigenvalue zero, one for each component, are left out.
    """
    component, count = components(graph)
    if graph.num_graphs == 1 and graph.num_nodes > DENSE_NODES:
        return _sparse(graph, walk, k, kind, trivial, component)
    values = torch.full((graph.num_graphs, k), torch.nan, dtype=torch.float64, device=graph.device)
    vectors = torch.zeros(graph.num_nodes, k, dtype=torch.float64, device=graph.device)
    for block in blocks(walk):
        skipped = torch.zeros_like(block.graphs) if trivial else count[block.graphs]
        # Graphs with the same number of components together: a plain slice then drops the trivial vectors.
        for skip in torch.unique(skipped).tolist():
            same = (skipped == skip).nonzero().flatten()
            theta, basis = _dense(block.matrices[same], skip, k)
            found = theta.shape[1]
            values[block.graphs[same], :found] = theta
            chosen = Block(block.graphs[same], block.nodes[same], block.matrices[:0])
            rows = torch.zeros(*chosen.nodes.shape, k, dtype=torch.float64, device=graph.device)
            rows[..., :found] = fix_signs(basis)
            spread_rows(vectors, chosen, rows)
    return Eigenpairs(values, vectors)


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


def _sparse(
    graph: Graph, walk: WalkMatrix, k: int, kind: LaplacianName, trivial: bool, component: Tensor
) -> Eigenpairs:
    """One large graph. Its trivial vectors, if wanted, are those of its components in the order of their nodes."""
    values = torch.full((1, k), torch.nan, dtype=torch.float64, device=graph.device)
    vectors = torch.zeros(graph.num_nodes, k, dtype=torch.float64, device=graph.device)
    null = trivial_vectors(graph, component, kind)
    first = min(k, int(component.max()) + 1) if trivial else 0
    for i in range(first):
        vectors[:, i] = torch.where(component == i, null, 0.0)
    values[0, :first] = 0.0
    # A node alone has only its trivial vector.
    joined = (torch.bincount(component)[component] > 1).nonzero().flatten()
    parts = torch.unique(component[joined], return_inverse=True)[1]
    wanted = min(k - first, len(joined) - (int(parts.max()) + 1 if len(parts) else 0))
    if wanted < 1:
        return Eigenpairs(values, vectors)
    source, target, entries = (part.detach().cpu().numpy() for part in walk.entries())
    matrix = scipy.sparse.csr_array((entries, (source, target)), shape=(graph.num_nodes,) * 2)
    rows = joined.cpu().numpy()
    matrix = matrix[rows][:, rows]
    if len(rows) <= DENSE_NODES or wanted > len(rows) // 3:
        skip = int(parts.max()) + 1
        theta, basis = (part[0] for part in _dense(torch.from_numpy(matrix.toarray()).unsqueeze(0), skip, wanted))
    else:
        found = lowest_eigenpairs(matrix, wanted, null[joined].cpu().numpy(), parts.cpu().numpy())
        theta, basis = (torch.from_numpy(part) for part in found)
    last = first + wanted
    values[0, first:last] = theta.to(graph.device)
    fixed = fix_signs(basis.to(graph.device).unsqueeze(0)).squeeze(0)
    vectors[:, first:last] = torch.zeros_like(vectors[:, first:last]).index_copy(0, joined, fixed)
    return Eigenpairs(values, vectors)


def graph_by_graph(graph: Graph) -> list[Graph]:
    """The batch itself if all its graphs are small, else its graphs one by one."""
    if graph.num_graphs == 1 or not bool((graph.sizes > DENSE_NODES).any()):
        return [graph]
    return [graph.slice(i, i + 1) for i in range(graph.num_graphs)]
