"""Arithmetic that elimination is written in: real (and complex) numbers, or integers modulo a prime.

Modulo a prime nothing is rounded: what two computations find different is different.
"""

from __future__ import annotations

import torch
from torch import Tensor

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
