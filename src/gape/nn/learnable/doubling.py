r"""Squared Smith iteration: the equation Y = Θ Y μ + S with a diagonal Θ, in real products alone.

    Y = Σ_t Θᵗ S μᵗ,      and with Y_p the first 2ᵖ terms of it      Y_{p+1} = Y_p + Θ^{2ᵖ} Y_p μ^{2ᵖ}

(Smith, 1968). With |θ| ≤ 1 and ‖μ‖₂ ≤ γ what is missing of Y_p is below γ^{2ᵖ}, so for γ = 0.9 nine steps give every
digit of float64. A learnable automaton on a unit walk matrix keeps both bounds; in general they do not hold, and
:mod:`gape.solvers.schur_form` serves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from gape.solvers.gradient import BasisSystem


def doublings(damping: float, accuracy: float = 1e-15) -> int:
    """Steps after which the rest is below ``accuracy``.

    Example:
        >>> doublings(0.9), doublings(0.5)
        (9, 6)
    """
    return max(1, math.ceil(math.log2(math.log(accuracy) / math.log(damping))))


@dataclass(frozen=True, eq=False)
class Doubling(BasisSystem):
    """The coordinates of a basis whose H is diagonal with entries of at most 1.

    Args:
        damping: bound of ‖μ‖₂, below 1.
    """

    damping: float

    def solve(self, transition: Tensor, source: Tensor, adjoint: bool) -> Tensor:
        y, power, mu = source, self.basis.h.flatten(0, 1).unsqueeze(-1), transition
        steps = doublings(self.damping)
        for step in range(steps):
            y = y.addcmul(power, y @ mu)
            if step + 1 < steps:
                power, mu = power.square(), mu @ mu
        return y
