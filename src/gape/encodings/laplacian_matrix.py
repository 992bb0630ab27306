"""Laplacians of undirected graphs, dense and sparse, and the eigenvectors everybody knows: the trivial ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph
import torch
from torch import Tensor

from gape.graph.graph import Graph
from gape.graph.validate import check_nonnegative
from gape.graph.walk_matrix import SMALLEST_DEGREE, check_range

LaplacianName = Literal["normalized", "combinatorial"]


@dataclass(frozen=True)
class LaplacianKind:
    """Which Laplacian, and of what.

    Loops count in the degrees of the normalized one and nowhere else. The diagonals are sums over the edges to other
    nodes, not differences, so that heavy loops cost no digits and a node with loops only has exactly zero.

    Args:
        name: "normalized", I - D^(-1/2) A D^(-1/2), or "combinatorial", D - A.
        symmetrize: take directed graphs as (A + Aᵀ)/2 instead of refusing them.
        asked_by: the encoding, for error messages.
    """

    name: LaplacianName
    symmetrize: bool
    asked_by: str

    def check(self, graph: Graph) -> None:
        """Refuse weights that are negative or out of range and, unless they are to be symmetrised, directed graphs."""
        if graph.edge_weight is not None:
            check_range(graph.adjacency.out_degree.detach(), "degree", SMALLEST_DEGREE)
        check_nonnegative(graph, self.asked_by)
        if not self.symmetrize and not graph.undirected:
            raise ValueError(
                f"{self.asked_by} needs undirected graphs: of a directed one the Laplacian is not symmetric and its "
                "eigenvectors are complex; if each edge stands for both directions, read it with undirected=True; "
                "else set symmetrize=True to walk edges both ways, (A + Aᵀ)/2, or use 'gape' or 'rw', which follow "
                "directions"
            )

    def dense(self, weights: Tensor) -> Tensor:
        """Laplacians ``[B, n, n]`` from adjacency matrices ``[B, n, n]``, of (A + Aᵀ)/2."""
        # Parallel edges of an undirected graph may have been added up in another order than their reverses.
        weights = (weights + weights.mT) / 2
        loops = weights.diagonal(dim1=-2, dim2=-1).clone()
        weights.diagonal(dim1=-2, dim2=-1).zero_()
        between = weights.sum(-1)
        diagonal, matrices = between, -weights
        if self.name == "normalized":
            degree = torch.where(between + loops > 0, between + loops, torch.inf)
            root = degree.rsqrt()
            diagonal, matrices = between / degree, matrices * (root.unsqueeze(2) * root.unsqueeze(1))
        matrices.diagonal(dim1=-2, dim2=-1).copy_(diagonal)
        return matrices

    def sparse(self, graph: Graph) -> tuple[scipy.sparse.csr_array, np.ndarray]:
        """The Laplacian of one graph, of (A + Aᵀ)/2, and its degrees."""
        source, target = graph.edge_index.cpu().numpy()
        weights = graph.adjacency.weights.detach().cpu().numpy()
        n = graph.num_nodes
        matrix = scipy.sparse.csr_array((weights, (source, target)), shape=(n, n))
        if graph.edge_weight is not None or not graph.undirected:
            matrix = (matrix + matrix.T) / 2
        loops = matrix.diagonal()
        matrix = matrix - scipy.sparse.diags_array(loops)
        matrix.eliminate_zeros()
        between = np.asarray(matrix.sum(1)).ravel()
        degree = between + loops
        if self.name == "combinatorial":
            return scipy.sparse.csr_array(scipy.sparse.diags_array(between) - matrix), degree
        safe = np.where(degree > 0, degree, np.inf)
        root = scipy.sparse.diags_array(1.0 / np.sqrt(safe))
        return scipy.sparse.csr_array(scipy.sparse.diags_array(between / safe) - root @ matrix @ root), degree

    def trivial(self, component: np.ndarray, degree: np.ndarray) -> np.ndarray:
        """``[n]``: on each component the unit vector of eigenvalue zero, constant or in proportion to √degree."""
        weight = np.ones(len(degree))
        if self.name == "normalized":
            weight = np.where(degree > 0, degree, 1.0)
        return np.asarray(np.sqrt(weight / np.bincount(component, weight)[component]))


def count_components(matrix: Tensor) -> int:
    """Number of connected components of one dense Laplacian."""
    pattern = scipy.sparse.csr_array(matrix.cpu().numpy() != 0)
    return int(scipy.sparse.csgraph.connected_components(pattern, directed=False)[0])
