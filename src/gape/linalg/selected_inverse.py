"""The diagonal of the inverse of many sparse matrices that share their patterns: Takahashi's selected inversion.

Closed runs of an automaton are the diagonal of (I - M)⁻¹. One factorisation B = LDU of B = I - M has it without the
rest of the inverse Z = B⁻¹: from ZL = U⁻¹D⁻¹ and UZ = D⁻¹L⁻¹ (Takahashi, Fagan & Chin, 1973), for a pivot p and the set
c of its later neighbours in the filled pattern,

    Z[c, p] = -Z[c, c] L[c, p]      Z[p, c] = -U[p, c] Z[c, c]      Z[p, p] = 1/D[p] - U[p, c] Z[c, p],

and Z[c, c] is already known, since c is a clique of the filled pattern. Every entry is a row of *lanes*: matrices of
the same pattern with other values, all of them and all graphs of a batch at once. There is no pivoting: I - M is an
H-matrix where ρ(|M|) < 1, and elimination of these is stable in any order.

The gradient is one more selected inversion. With g = ∂loss/∂diag(Z), ∂loss/∂Bᵀ is -Z diag(g) Z on the pattern, which is
the derivative of Z itself when B changes by diag(g). It is computed exactly, to rounding, with dual numbers: as the
imaginary part of the selected inverse of B + iε diag(g) for an ε so small that its square vanishes.

The arithmetic is that of real or complex numbers, or of integers modulo a prime. Modulo a prime nothing is rounded:
what two computations find different is different.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from gape.linalg.elimination import Level, Schedule

#: The largest prime below 2²⁵: products of two numbers below 2²⁶ are exact in float64.
PRIME = 33_554_393


class Arithmetic:
    """Operations on tensors of real or complex numbers."""

    def multiply(self, a: Tensor, b: Tensor) -> Tensor:
        return a * b

    def reciprocal(self, a: Tensor) -> Tensor:
        return a.reciprocal()

    def normalise(self, a: Tensor) -> Tensor:
        """Bring the result of sums and differences into the form that the other operations take."""
        return a


class ModularArithmetic(Arithmetic):
    """Integers modulo :data:`PRIME` in float64 tensors, several times faster than in int64.

    Results lie between -PRIME and 2 PRIME; :meth:`remainder` gives those from 0 to PRIME - 1. Sums of up to 2²⁶ results
    are exact and have to be normalised before they are multiplied.

    Example:
        >>> modular = ModularArithmetic()
        >>> third = modular.reciprocal(torch.tensor([3.0], dtype=torch.float64))
        >>> modular.remainder(3 * third), modular.remainder(third)
        (tensor([1]), tensor([11184798]))
    """

    def multiply(self, a: Tensor, b: Tensor) -> Tensor:
        return self._reduce(a * b)

    def normalise(self, a: Tensor) -> Tensor:
        return self._reduce(a.clone())

    def remainder(self, a: Tensor) -> Tensor:
        """Integers from 0 to PRIME - 1, as int64."""
        return self.normalise(a).to(torch.int64) % PRIME

    def reciprocal(self, a: Tensor) -> Tensor:
        """a^(p - 2), Fermat's inverse; raises if a number is divisible by the prime and has none."""
        if bool((self.remainder(a) == 0).any()):
            raise ZeroDivisionError("0 has no inverse modulo a prime; draw other random numbers")
        out, power, exponent = torch.ones_like(a), a, PRIME - 2
        while exponent:
            if exponent & 1:
                out = self.multiply(out, power)
            power, exponent = self.multiply(power, power), exponent >> 1
        return out

    @staticmethod
    def _reduce(a: Tensor) -> Tensor:
        """In place. The quotient may be rounded to a neighbour of the right one, which shifts the result by PRIME."""
        return a.sub_((a * (1.0 / PRIME)).floor_(), alpha=PRIME)


def modular_inverse(matrices: Tensor) -> Tensor:
    """Inverses of float64 matrices of integers ``[B, n, n]`` modulo :data:`PRIME`, as int64 from 0 to PRIME - 1.

    Gauss-Jordan elimination without pivoting: a pivot that vanishes raises ``ZeroDivisionError``. For matrices with
    random entries that is improbable.
    """
    modular = ModularArithmetic()
    work = modular.normalise(matrices)
    for p in range(work.shape[-1]):
        inverse = modular.reciprocal(work[:, p, p])[:, None]
        row, column = modular.multiply(work[:, p], inverse), work[:, :, p].clone()
        work = modular.normalise(work - modular.multiply(column[:, :, None], row[:, None, :]))
        work[:, :, p] = modular.multiply(column, -inverse)
        work[:, p] = row
        work[:, p, p] = inverse[:, 0]
    return modular.remainder(work)


# ε² is far below rounding, ε far above the smallest numbers.
DUAL_STEP = 2.0**-100
REAL_ARITHMETIC = Arithmetic()


@dataclass(frozen=True, eq=False)
class SparseMatrices:
    """Values of matrices on the filled pattern of a schedule, in its order; the last dimension is the lanes.

    Args:
        diagonal: ``[n, lanes]``.
        lower: ``[entries, lanes]``, entry (target, pivot).
        upper: ``[entries, lanes]``, entry (pivot, target); ``None`` for symmetric matrices.
    """

    diagonal: Tensor
    lower: Tensor
    upper: Tensor | None = None

    def product_diagonal(self, other: SparseMatrices, schedule: Schedule) -> Tensor:
        """The diagonal of ``self @ other`` where ``other`` has no entries outside the pattern, ``[n, lanes]``."""
        mine = self.lower if self.upper is None else self.upper
        theirs = other.lower if other.upper is None else other.upper
        out = self.diagonal * other.diagonal
        forth = mine * other.lower
        back = forth if self.upper is None and other.upper is None else self.lower * theirs
        return out.index_add_(0, schedule.pivot, forth).index_add_(0, schedule.target, back)


def inverse_diagonal(schedule: Schedule, matrices: SparseMatrices) -> tuple[Tensor, Tensor]:
    """The diagonal of the inverse Z of every matrix B, ``[n, lanes]``, and the residual max |diag(ZB) - 1|, ``[n]``.

    Rows are in the order of the schedule; the maximum is over lanes. The diagonal is differentiable once. The residual
    costs two products per entry, since the entries of Z that it needs are known.

    Args:
        schedule: of the elimination.
        matrices: values in float64, such that no pivot vanishes; sure for I - M with ρ(|M|) < 1.

    Example:
        >>> import numpy as np
        >>> from gape.linalg.elimination import eliminate
        >>> schedule = eliminate(np.array([[0], [1]]), np.array([2])).schedule(0, 1)
        >>> half = torch.full((1, 1), -0.5, dtype=torch.float64)
        >>> diagonal, residual = inverse_diagonal(schedule, SparseMatrices(torch.ones_like(half).expand(2, 1), half))
        >>> diagonal.flatten()
        tensor([1.3333, 1.3333], dtype=torch.float64)
    """
    found: tuple[Tensor, Tensor] = _InverseDiagonal.apply(  # type: ignore[no-untyped-call]
        schedule, matrices.diagonal, matrices.lower, matrices.upper
    )
    return found


def selected_inverse(
    schedule: Schedule, matrices: SparseMatrices, arithmetic: Arithmetic = REAL_ARITHMETIC
) -> SparseMatrices:
    """The inverses on the filled pattern; without gradients. Also of integers modulo a prime."""
    return _takahashi(schedule, _factorise(schedule, matrices, arithmetic), arithmetic)


def _factorise(schedule: Schedule, matrices: SparseMatrices, arithmetic: Arithmetic) -> SparseMatrices:
    """1/D, L and U, each with ones on its diagonal left out."""
    times, normal = arithmetic.multiply, arithmetic.normalise
    diagonal, lower = matrices.diagonal.clone(), matrices.lower.clone()
    upper = None if matrices.upper is None else matrices.upper.clone()
    for level in schedule.levels:
        rows, entries, pairs = level.rows, level.entries, level.pairs
        diagonal[rows] = arithmetic.reciprocal(normal(diagonal[rows]))
        if entries.start == entries.stop:
            continue
        inverse = diagonal.index_select(0, schedule.pivot[entries])
        below = normal(lower[entries])
        row = below if upper is None else normal(upper[entries])
        column = times(inverse, below)
        diagonal.index_add_(0, schedule.target[entries], times(column, row), alpha=-1)
        if pairs.start != pairs.stop:
            first, second, joint = _pairs(schedule, level)
            lower.index_add_(0, joint, times(_rows(column, second), _rows(row, first)), alpha=-1)
            if upper is not None:
                upper.index_add_(0, joint, times(_rows(column, first), _rows(row, second)), alpha=-1)
        lower[entries] = column
        if upper is not None:
            upper[entries] = times(row, inverse)
    return SparseMatrices(diagonal, lower, upper)


def _takahashi(schedule: Schedule, factors: SparseMatrices, arithmetic: Arithmetic) -> SparseMatrices:
    """The inverse on the pattern from the factors, whose diagonal it takes over."""
    times, normal = arithmetic.multiply, arithmetic.normalise
    diagonal, lower = factors.diagonal, torch.empty_like(factors.lower)
    upper = None if factors.upper is None else torch.empty_like(factors.upper)
    for level in reversed(schedule.levels):
        rows, entries, pairs = level.rows, level.entries, level.pairs
        if entries.start == entries.stop:
            continue
        column = factors.lower[entries]
        row = column if factors.upper is None else factors.upper[entries]
        known = diagonal.index_select(0, schedule.target[entries])
        below = times(known, column)
        product = below if upper is None else times(known, row)
        if pairs.start != pairs.stop:
            first, second, joint = _pairs(schedule, level)
            late = _rows(lower, joint)
            early = late if upper is None else _rows(upper, joint)
            below.index_add_(0, first, times(early, _rows(column, second)))
            below.index_add_(0, second, times(late, _rows(column, first)))
            if upper is not None:
                product.index_add_(0, first, times(late, _rows(row, second)))
                product.index_add_(0, second, times(early, _rows(row, first)))
        below = normal(below)
        diagonal.index_add_(0, schedule.pivot[entries], times(row, below))
        diagonal[rows] = normal(diagonal[rows])
        lower[entries] = normal(-below)
        if upper is not None:
            upper[entries] = normal(-product)
    return SparseMatrices(diagonal, lower, upper)


def _pairs(schedule: Schedule, level: Level) -> tuple[Tensor, Tensor, Tensor]:
    """Entries of the level's pairs, counted from its first entry, and the entries that they join."""
    begin = level.entries.start
    return schedule.first[level.pairs] - begin, schedule.second[level.pairs] - begin, schedule.joint[level.pairs]


def _rows(values: Tensor, which: Tensor) -> Tensor:
    return values.index_select(0, which)


class _InverseDiagonal(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, schedule: Schedule, diagonal: Tensor, lower: Tensor, upper: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        matrices = SparseMatrices(diagonal, lower, upper)
        inverse = selected_inverse(schedule, matrices)
        residual = inverse.product_diagonal(matrices, schedule).sub_(1.0).abs_().amax(1)
        ctx.schedule = schedule
        ctx.save_for_backward(diagonal, lower, upper)
        ctx.mark_non_differentiable(residual)
        return inverse.diagonal, residual

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor, _: Tensor) -> tuple[None, Tensor, Tensor, Tensor | None]:
        diagonal, lower, upper = ctx.saved_tensors
        largest = grad.abs().amax()
        scale = torch.where(largest > 0, largest, 1.0)
        moved = SparseMatrices(
            torch.complex(diagonal, grad / scale * DUAL_STEP),
            lower.to(torch.complex128),
            None if upper is None else upper.to(torch.complex128),
        )
        inverse = selected_inverse(ctx.schedule, moved)
        of_diagonal, of_lower = (part.imag / DUAL_STEP * scale for part in (inverse.diagonal, inverse.lower))
        if inverse.upper is None:  # each stored entry stands for two
            return None, of_diagonal, 2.0 * of_lower, None
        return None, of_diagonal, inverse.upper.imag / DUAL_STEP * scale, of_lower
