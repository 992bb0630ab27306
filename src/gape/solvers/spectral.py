"""Eigenvectors of symmetric walk matrices: exact, any number of labels; with few calls on one small graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray

from gape._internal.validation import positive
from gape.automaton import Automaton
from gape.solvers.base import Result, Solver
from gape.solvers.certificate import DIRECT_TOLERANCE, SINGULAR_GAP
from gape.solvers.equation import Equation
from gape.solvers.projection import Projection, check_nodes, whole_space_coordinates
from gape.solvers.schur_form import SchurForm


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
        check_nodes(self.name, self.max_nodes, adjacency, bytes_per_entry=16)
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


@dataclass(frozen=True, eq=False)
class SmallGraphFormula:
    """Solution in closed form for an automaton of one label, for PyG's transforms, which see one graph at a time.

    With A = V θ Vᵀ and a normal μ = W λ Wᴴ the node readout of one label is X = V (Vᵀ1 ⊗ αW / (1 - θλ)) Wᴴ. The
    residual of the equation is computed as for batches; where it is too large, or the sum over runs diverges, the
    caller takes the general path.

    Args:
        initial: α, ``[k]``, and ``norm`` its norm.
        transition: μ, ``[k, k]``.
        poles: λ, ``[k]``.
        turned: αW, ``[k]``.
        back: Wᴴ, ``[k, k]``.
    """

    initial: NDArray[np.float64]
    norm: float
    transition: NDArray[np.float64]
    poles: NDArray[np.complex128]
    turned: NDArray[np.complex128]
    back: NDArray[np.complex128]

    @classmethod
    def of(cls, automaton: Automaton) -> SmallGraphFormula | None:
        """Prepare an automaton; ``None`` if it is not of the kind: one label, real, one normal μ, no τ."""
        if automaton.labels > 1 or automaton.typed or automaton.dtype.is_complex or automaton.final is not None:
            return None
        form = SchurForm.of(automaton.transition.double())
        if not form.normal:
            return None
        initial = automaton.initial[:, 0].double().cpu().numpy()
        vectors = form.vectors.cpu().numpy()
        return cls(
            initial,
            float(np.linalg.norm(initial)),
            automaton.transition.double().cpu().numpy(),
            form.eigenvalues.cpu().numpy(),
            initial @ vectors,
            np.ascontiguousarray(vectors.conj().T),
        )

    def weights(self, adjacency: NDArray[np.float64], *, relative: bool) -> NDArray[np.float64] | None:
        """Solve on a symmetric matrix ``[n, n]``, divided by its spectral radius if ``relative``: ``[n, k]``.

        ``None`` if the sum over runs does not converge, or the residual is too large.

        Example:
            >>> edge = np.array([[0.0, 1.0], [1.0, 0.0]])
            >>> formula = SmallGraphFormula.of(Automaton.katz(0.25))
            >>> formula.weights(edge, relative=False).ravel().round(6).tolist()
            [1.333333, 1.333333]
        """
        theta, vectors = np.linalg.eigh(adjacency)
        radius = max(-float(theta[0]), float(theta[-1]))
        if relative and radius > 0:
            theta, adjacency, radius = theta / radius, adjacency / radius, 1.0
        if not radius * float(np.abs(self.poles).max()) < 1.0 - SINGULAR_GAP:
            return None
        y = (vectors.sum(0)[:, None] * self.turned) / (1.0 - theta[:, None] * self.poles)
        x = vectors @ (y @ self.back).real
        size = self.norm * len(x) ** 0.5
        gap = float(np.linalg.norm(x - adjacency @ (x @ self.transition) - self.initial))
        return x if gap <= DIRECT_TOLERANCE * size or size == 0.0 else None
