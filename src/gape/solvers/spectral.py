"""Eigenvectors of symmetric walk matrices: exact, any number of labels."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from gape._internal.validation import positive
from gape.solvers.basis import Basis, whole_space_coordinates
from gape.solvers.outcome import Result
from gape.solvers.problem import Problem


@dataclass(frozen=True)
class Spectral:
    """Diagonalise every graph's walk matrix, all graphs of a part in one batched ``eigh``.

    For matrices that are symmetric or, like D⁻¹A of an undirected graph, similar to a symmetric one. Costs n³ per
    graph and never fails; the separation it reports is exact.

    Args:
        max_nodes: the largest graph it accepts (memory grows with the square).
    """

    max_nodes: int = 4096

    def __post_init__(self) -> None:
        positive(self.max_nodes, "max_nodes")

    def basis(self, problem: Problem) -> Basis:
        walk, adjacency = problem.walk, problem.adjacency
        scale = walk.similarity
        if scale is None:
            raise ValueError(
                f"Spectral needs a symmetric walk matrix, and {walk.name!r} of this directed graph is not; "
                "use Krylov, Schur or Auto, or add the reverse edges"
            )
        largest = int(adjacency.sizes.max())
        if largest > self.max_nodes:
            raise ValueError(
                f"a graph has {largest} nodes; Spectral is set to at most {self.max_nodes} (it needs "
                f"{largest**2 * 16 / 1e9:.1f} GB for it); raise max_nodes, or use Krylov or Series"
            )
        dense = walk.dense().detach()
        if walk.symmetric:
            scale = None
        else:
            spread = dense.new_ones(dense.shape[:2])
            spread[adjacency.batch, adjacency.local] = scale
            dense = spread.unsqueeze(2) * dense / spread.unsqueeze(1)
        theta, vectors = torch.linalg.eigh((dense + dense.mT) / 2)
        vectors = vectors.mT.unsqueeze(1)
        return Basis(
            solver="Spectral",
            adjacency=adjacency,
            vectors=vectors,
            h=theta.unsqueeze(1),
            coordinates=whole_space_coordinates(vectors, problem, scale),
            labels=problem.used_labels,
            form="diagonal",
            remainder=theta.new_zeros(len(theta), 1),
            last=None,
            scale=scale,
            radius=theta.abs().amax(1) if theta.shape[1] else theta.new_zeros(len(theta)),
            radius_exact=True,
            complete=True,
        )

    def run(self, problem: Problem) -> Result:
        return self.basis(problem).run(problem)[0]
