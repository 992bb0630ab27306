"""Laplacians of undirected graphs: dense, sparse, and their null vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from gape.graph.graph import Graph
from gape.graph.validate import check_nonnegative
from gape.graph.walk_matrix import SMALLEST_DEGREE, check_range

LaplacianName = Literal["normalized", "combinatorial"]


@dataclass(frozen=True)
class LaplacianMatrix:
    """Laplacians of undirected graphs, dense or sparse, and their null vectors.

    Self-loops count in the degrees of the normalized Laplacian and nowhere else. Diagonal entries are sums over the
    edges to other nodes, not differences, so heavy loops cost no digits and a node with only loops has exactly zero.

    Args:
        name: "normalized", I - D^(-1/2) A D^(-1/2), or "combinatorial", D - A.
        symmetrize: replace A of a directed graph by (A + Aᵀ)/2 instead of raising an error.
        encoding: name of the encoding, for error messages.
    """

    name: LaplacianName
    symmetrize: bool
    encoding: str

    def check(self, graph: Graph) -> None:
        """Validate that weights are nonnegative and in range and, unless ``symmetrize``, that graphs are undirected."""
        if graph.edge_weight is not None:
            check_range(graph.adjacency.out_degree.detach(), "degree", SMALLEST_DEGREE)
        check_nonnegative(graph, self.encoding)
        if not self.symmetrize and not graph.undirected:
            raise ValueError(
                f"{self.encoding} needs undirected graphs, got a directed one, whose Laplacian is not symmetric and "
                "has complex eigenvectors; if each edge stands for both directions, read the graph with "
                "undirected=True; else set symmetrize=True to walk edges both ways, (A + Aᵀ)/2, or use 'gape' or 'rw', "
                "which follow edge directions"
            )

    def dense(self, weights: Tensor) -> Tensor:
        """Build Laplacians ``[B, n, n]`` of (A + Aᵀ)/2 from adjacency matrices A ``[B, n, n]``."""
        # Parallel edges of an undirected graph may have been summed in another order than their reverses.
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

    def array(self, adjacency: np.ndarray) -> np.ndarray:
        """Build the Laplacian ``[n, n]`` of (A + Aᵀ)/2 of one small graph, as :meth:`dense` does."""
        weights: np.ndarray = -0.5 * (adjacency + adjacency.T)
        loops = -weights.diagonal()
        np.fill_diagonal(weights, 0.0)
        between = -weights.sum(1)
        if self.name == "normalized":
            degree = np.where(between + loops > 0, between + loops, np.inf)
            root = 1.0 / np.sqrt(degree)
            weights *= root[:, None] * root
            between = between / degree
        np.fill_diagonal(weights, between)
        return weights

    def sparse(self, graph: Graph) -> tuple[scipy.sparse.csr_array, np.ndarray]:
        """Build the Laplacian of (A + Aᵀ)/2 of one graph; returns it with the degrees ``[n]``."""
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
        """Return ``[n]``: on each component its unit null vector, constant or proportional to √degree."""
        weight = np.ones(len(degree))
        if self.name == "normalized":
            weight = np.where(degree > 0, degree, 1.0)
        return np.asarray(np.sqrt(weight / np.bincount(component, weight)[component]))
