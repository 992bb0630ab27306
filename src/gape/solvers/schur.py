"""Schur forms of both matrices: dense and general (Bartels & Stewart, 1972, for the Stein equation)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.linalg
import torch

from gape._internal.validation import positive
from gape.solvers.base import Result, Solver
from gape.solvers.equation import Equation
from gape.solvers.projection import Projection, check_nodes, whole_space_coordinates


@dataclass(frozen=True)
class Schur(Solver):
    """Complex Schur form of every graph's walk matrix, directed or not.

    Costs about 25 n³ per graph, one graph at a time: for small directed graphs and as a reference.

    Args:
        max_nodes: the largest graph it accepts.
    """

    max_nodes: int = 2048

    groups_by_size: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive(self.max_nodes, "max_nodes")

    def projection(self, equation: Equation) -> Projection:
        walk, adjacency = equation.walk, equation.adjacency
        largest = check_nodes(self.name, self.max_nodes, adjacency, bytes_per_entry=48)
        dense = walk.dense().detach().mT.cpu().numpy()
        upper = np.zeros(dense.shape, dtype=np.complex128)
        vectors = np.zeros(dense.shape, dtype=np.complex128)
        for i, size in enumerate(adjacency.sizes.tolist()):
            upper[i, :size, :size], vectors[i, :size, :size] = (
                scipy.linalg.schur(dense[i, :size, :size], output="complex") if size else (0, 0)
            )
        h = torch.from_numpy(upper).to(walk.ptr.device).unsqueeze(1)
        spectrum = torch.linalg.eigvals(walk.dense(within_components=True).detach()).unsqueeze(1)
        rows = torch.from_numpy(vectors).to(walk.ptr.device).mT.unsqueeze(1)
        return Projection(
            solver="Schur",
            adjacency=adjacency,
            vectors=rows,
            h=h,
            coordinates=whole_space_coordinates(rows, equation, None),
            labels=equation.used_labels,
            form="triangular",
            remainder=torch.zeros(len(h), 1, dtype=torch.float64, device=h.device),
            last=None,
            scale=None,
            radius=spectrum.abs().amax((1, 2)) if largest else h.new_zeros(len(h)).real,
            radius_exact=True,
            complete=True,
            known_spectrum=spectrum,
        )

    def solve(self, equation: Equation) -> Result:
        return self.projection(equation).solve(equation)
