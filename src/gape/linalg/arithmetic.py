"""Arithmetic that elimination is written in: real (and complex) numbers, or integers modulo a prime.

Modulo a prime nothing is rounded: what two computations find different is different.
"""

from __future__ import annotations

import torch
from torch import Tensor

#: A Mersenne prime: products of remainders fit into 64 bits, and reducing them takes a shift and a sum.
PRIME = 2**31 - 1


class Arithmetic:
    """Operations on tensors of real or complex numbers."""

    def multiply(self, a: Tensor, b: Tensor) -> Tensor:
        return a * b

    def reciprocal(self, a: Tensor) -> Tensor:
        return a.reciprocal()

    def normalise(self, a: Tensor) -> Tensor:
        """Bring the result of sums and differences into standard form."""
        return a


class ModularArithmetic(Arithmetic):
    """Integers modulo :data:`PRIME` in int64 tensors; sums of up to 2³⁰ terms need not be normalised before.

    Example:
        >>> modular = ModularArithmetic()
        >>> third = modular.reciprocal(torch.tensor([3]))
        >>> modular.multiply(third, torch.tensor([3])), modular.normalise(torch.tensor([-1]))
        (tensor([1]), tensor([2147483646]))
    """

    def multiply(self, a: Tensor, b: Tensor) -> Tensor:
        return self._fold(a * b)

    def subtract(self, a: Tensor, b: Tensor) -> Tensor:
        """a - b of remainders."""
        return _add_prime_if_negative(a - b)

    def normalise(self, a: Tensor) -> Tensor:
        return self._fold(_add_prime_if_negative(self._fold(a)))

    @staticmethod
    def _fold(a: Tensor) -> Tensor:
        # a = 2³¹ q + r ≡ q + r, since 2³¹ ≡ 1; a remainder if a is a product of two.
        return _add_prime_if_negative((a & PRIME).add_(a >> 31).sub_(PRIME))

    def reciprocal(self, a: Tensor) -> Tensor:
        """a^(p - 2), Fermat's inverse; raises if a remainder is 0, which has none."""
        if bool((a == 0).any()):
            raise ZeroDivisionError("0 has no inverse modulo a prime; draw other random numbers")
        out, power, exponent = torch.ones_like(a), a, PRIME - 2
        while exponent:
            if exponent & 1:
                out = self.multiply(out, power)
            power, exponent = self.multiply(power, power), exponent >> 1
        return out


def _add_prime_if_negative(a: Tensor) -> Tensor:
    """In place."""
    return a.add_((a >> 63).bitwise_and_(PRIME))


def modular_inverse(matrices: Tensor) -> Tensor:
    """Inverses of integer matrices ``[B, n, n]`` modulo :data:`PRIME`, by Gauss-Jordan elimination without pivoting.

    A pivot that vanishes raises ``ZeroDivisionError``; for matrices with random entries that is as good as impossible.
    """
    modular = ModularArithmetic()
    work = modular.normalise(matrices)
    for p in range(work.shape[-1]):
        inverse = modular.reciprocal(work[:, p, p])[:, None]
        row = modular.multiply(work[:, p], inverse)
        column = work[:, :, p].clone()
        work = modular.subtract(work, modular.multiply(column[:, :, None], row[:, None, :]))
        work[:, :, p] = modular.normalise(-modular.multiply(column, inverse))
        work[:, p] = row
        work[:, p, p] = inverse[:, 0]
    return work
