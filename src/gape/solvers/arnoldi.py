"""Arnoldi's process for many graphs at once."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

# Relative size below which a new direction is rounding error: the space has stopped growing.
BREAKDOWN = 1e-13

# Share of a vector that must be left for one subtraction to be enough (Daniel et al. 1976, 1/√2). With less, its error
# grows by what the vector shrinks, step after step: on a tree a few dozen steps make it everything.
LEFT = 0.7


class Arnoldi:
    """Orthonormal vectors V with ``F V = V H + r v eᵀ``, growing by one a step, for a batch of operators F.

    Args:
        apply: F on ``[batch, length]``; entry by entry of the batch independent of the others.
        start: ``[batch, length]``, the first vectors; all-zero ones stay zero.

    A space that stops growing gets ``r = 0`` and zero vectors from there on, which change nothing that is computed
    from it, so the rest of the batch can go on. One whose numbers overflow gets the same with ``r = ∞``.
    """

    def __init__(self, apply: Callable[[Tensor], Tensor], start: Tensor) -> None:
        self._apply = apply
        self.start_norm = torch.linalg.vector_norm(start, dim=-1)
        self._vectors = start.new_zeros(len(start), 17, start.shape[1])
        self._vectors[:, 0] = start / _nonzero(self.start_norm).unsqueeze(-1)
        self._h = start.new_zeros(len(start), 17, 17)
        self._largest = torch.zeros_like(self.start_norm)
        self._lost: Tensor | None = None
        self.steps = 0

    @property
    def vectors(self) -> Tensor:
        """``[batch, steps, length]``"""
        return self._vectors[:, : self.steps]

    @property
    def h(self) -> Tensor:
        """``[batch, steps, steps]``, upper Hessenberg; tridiagonal and symmetric where F is symmetric."""
        return self._h[:, : self.steps, : self.steps]

    @property
    def h_extended(self) -> Tensor:
        """``[batch, steps + 1, steps]``: H with the remainders r below."""
        return self._h[:, : self.steps + 1, : self.steps]

    @property
    def remainder(self) -> Tensor:
        """``[batch]``: r."""
        remainder = self._h[:, self.steps, self.steps - 1].real
        return remainder if self._lost is None else torch.where(self._lost, torch.inf, remainder)

    @property
    def growing(self) -> bool:
        """Whether any space is not complete yet."""
        return self.steps == 0 or bool(self._h[:, self.steps, self.steps - 1].any())

    def step(self) -> None:
        j = self.steps
        if j + 2 > self._h.shape[-1]:
            self._grow()
        w = self._apply(self._vectors[:, j])
        size = torch.linalg.vector_norm(w, dim=-1)
        self._largest = torch.maximum(self._largest, size)
        known = self._vectors[:, : j + 1]
        # Gram–Schmidt, and once more where much of w was cancelled and rounding error stands out in what is left.
        for _ in range(2):
            before = size
            along = w.unsqueeze(1) @ known.mH
            w = torch.baddbmm(w.unsqueeze(1), along, known, alpha=-1).squeeze(1)
            self._h[:, : j + 1, j] += along.squeeze(1)
            size = torch.linalg.vector_norm(w, dim=-1)
            if bool((size >= LEFT * before).all()):
                break
        if not bool(torch.isfinite(self._largest.sum())):
            self._lost = ~torch.isfinite(self._largest)
            size, w = torch.where(self._lost, 0.0, size), torch.where(self._lost.unsqueeze(-1), 0.0, w)
            self._h[self._lost] = 0.0
        size = torch.where(size <= BREAKDOWN * self._largest, torch.zeros_like(size), size)
        self._h[:, j + 1, j] = size
        self._vectors[:, j + 1] = w * torch.where(size > 0, 1.0 / _nonzero(size), 0.0).unsqueeze(-1)
        self.steps = j + 1

    def _grow(self) -> None:
        room = self._h.shape[-1]
        self._vectors = torch.cat([self._vectors, torch.zeros_like(self._vectors)], 1)
        h = self._h.new_zeros(len(self._h), 2 * room, 2 * room)
        h[:, :room, :room] = self._h
        self._h = h


def _nonzero(x: Tensor) -> Tensor:
    return torch.where(x > 0, x, torch.ones_like(x))
