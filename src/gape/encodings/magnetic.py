"""Eigenvectors of magnetic Laplacians, for directed graphs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, get_args

import torch
from torch import Tensor

from gape._internal.validation import check_at_least, check_one_of
from gape.encodings.base import NodeEncoding
from gape.encodings.laplacian import Eigenpairs
from gape.encodings.laplacian_matrix import LaplacianMatrix, LaplacianName
from gape.graph.batching import blocks, check_memory, scatter_rows
from gape.graph.convert import as_graph
from gape.graph.graph import Graph
from gape.linalg.eigenpairs import dense_eigenpairs, fix_phases


@dataclass(frozen=True)
class MagneticLaplacian(NodeEncoding):
    r"""Eigenvectors of the magnetic Laplacian of the lowest eigenvalues, for directed graphs (Geisler et al., 2023).

    The Laplacian of (A + Aᵀ)/2 in which an edge without its reverse has the phase e^(2πiq) along it and e^(-2πiq)
    against it: Hermitian, with real eigenvalues. q = 0 is the Laplacian without directions; several potentials q
    together determine how many walks have how many steps forward and backward (Huang, Wang & Li, 2025), which
    :class:`WalkProfile` counts. Every eigenvector is turned by the phase that makes Σ v|v|² real and positive, whatever
    the order of the nodes (:func:`gape.linalg.eigenpairs.fix_phases`); for a multiple eigenvalue any basis is valid.
    Trivial vectors are kept, since they are not constant on directed graphs. All matrices are dense.

    Args:
        vectors: number of eigenvectors k per potential.
        potentials: q, between 0 and 0.5; 0.25 makes an edge i and its reverse -i.
        laplacian: "normalized", I - D^(-1/2) H D^(-1/2), or "combinatorial", D - H, with H = (A + Aᵀ)/2 with phases.
        memory: memory limit, in GiB, for the dense matrices of one graph.

    Returns, when called on a graph: ``[num_nodes, 2 · vectors · potentials]``: for each potential the real parts, then
    the imaginary parts; zero beyond the number of nodes.

    Example:
        >>> arrow = Graph.from_edges([(0, 1)])
        >>> MagneticLaplacian(vectors=1)(arrow)  # one quarter of a turn apart
        tensor([[ 0.5000,  0.5000],
                [ 0.5000, -0.5000]])
    """

    vectors: int = 8
    potentials: tuple[float, ...] = (0.25,)
    laplacian: LaplacianName = "normalized"
    memory: float = 4.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(1, vectors=self.vectors)
        check_one_of(get_args(LaplacianName), laplacian=self.laplacian)
        for potential in self.potentials:
            if not 0 <= potential <= 0.5:
                raise ValueError(
                    f"potentials must be between 0 and 0.5, since q and 1 - q differ by complex conjugation and 1 + q "
                    f"equals q, got {potential:g}"
                )

    def rows(self, graph: Graph) -> Tensor:
        found = self._eigenpairs(graph)
        return torch.cat([part for pairs in found for part in (pairs.vectors.real, pairs.vectors.imag)], 1)

    def eigenpairs(self, graph: Any) -> list[Eigenpairs]:
        """Compute for each potential the complex eigenvectors ``[n, k]`` and eigenvalues ``[graphs, k]``, as LAPE's."""
        return self._eigenpairs(as_graph(graph))

    def _eigenpairs(self, graph: Graph) -> list[Eigenpairs]:
        matrix = LaplacianMatrix(self.laplacian, True, "MagneticLaplacian")
        matrix.check(graph)
        largest = int(graph.sizes.max()) if graph.num_graphs else 0
        what = f"MagneticLaplacian on a graph of {largest} nodes"
        check_memory(self.memory, 9 * 16 * largest**2, what, "raise memory, or use 'walk-profile' on large graphs")
        shapes = [(graph.num_graphs, self.vectors), (graph.num_nodes, self.vectors)]
        found = [
            Eigenpairs(
                torch.full(shapes[0], torch.nan, dtype=torch.float64, device=graph.device),
                torch.zeros(shapes[1], dtype=torch.complex128, device=graph.device),
            )
            for _ in self.potentials
        ]
        for block in blocks(graph.walk("adjacency")):
            there, laplacian = block.matrices != 0, matrix.dense(block.matrices)
            direction = there.double() - there.mT.double()
            for potential, pairs in zip(self.potentials, found, strict=True):
                angle = 2 * math.pi * potential * direction
                turned = torch.complex(laplacian * angle.cos(), laplacian * angle.sin())
                theta, basis = dense_eigenpairs(turned, 0, self.vectors)
                k = theta.shape[1]
                pairs.values[block.graphs, :k] = theta.real
                padded = torch.nn.functional.pad(fix_phases(basis), (0, self.vectors - k))
                scatter_rows(pairs.vectors, block, padded)
        return found
