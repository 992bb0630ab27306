"""Eigenvectors of symmetric walk matrices: exact, any number of labels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch

from gape._internal.validation import positive
from gape.solvers.base import Result, Solver
from gape.solvers.equation import Equation
from gape.solvers.projection import Projection, whole_space_coordinates


@dataclass(frozen=True)
class Spectral(Solver):
    """Diagonalise every graph's walk matrix, all graphs of similar size in one batched ``eigh``.

    For matrices that are symmetric or, like D⁻¹A of an undirected graph, similar to a symmetric one. Costs n³ per
    graph and never fails; the separation it reports is exact.

    Args:
        max_nodes: the largest graph it accepts (memory grows with the square).
    """

    max_nodes: int = 4096

    needs_symmetry: ClassVar[bool] = True
    groups_by_size: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive(self.max_nodes, "max_nodes")

    def projection(self, equation: Equation) -> Projection:
        self.check(equation)
        walk, adjacency = equation.walk, equation.adjacency
        largest = int(adjacency.sizes.max())
        if largest > self.max_nodes:
            raise ValueError(
                f"a graph has {largest} nodes; Spectral is set to at most {self.max_nodes} (it needs "
                f"{largest**2 * 16 / 1e9:.1f} GB for it); raise max_nodes, or use Krylov or Series"
            )
        dense, scale = walk.dense().detach(), None
        if not walk.symmetric:
            assert walk.similarity is not None
            scale = walk.similarity
            padded = dense.new_ones(dense.shape[:2])
            padded[adjacency.batch, adjacency.local] = scale
            dense = padded.unsqueeze(2) * dense / padded.unsqueeze(1)
        theta, vectors = torch.linalg.eigh((dense + dense.mT) / 2)
        vectors = vectors.mT.unsqueeze(1)
        return Projection(
            solver="Spectral",
            adjacency=adjacency,
            vectors=vectors,
            h=theta.unsqueeze(1),
            coordinates=whole_space_coordinates(vectors, equation, scale),
            labels=equation.used_labels,
            form="diagonal",
            remainder=theta.new_zeros(len(theta), 1),
            last=None,
            scale=scale,
            radius=theta.abs().amax(1) if theta.shape[1] else theta.new_zeros(len(theta)),
            radius_exact=True,
            complete=True,
        )

    def solve(self, equation: Equation) -> Result:
        return self.projection(equation).solve(equation)
