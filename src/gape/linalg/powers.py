r"""Diagonals of matrix powers by baby steps and giant steps.

    diag(M^(i+j)) is the row sum of Mⁱ ∘ (Mʲ)ᵀ,

so the baby steps M, …, Mᵇ and the giant steps Mᵇ, M²ᵇ, … give the diagonals of all powers up to ``length`` with about
2√length products instead of length - 1: six instead of nineteen for 20.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

# From this many nodes on, one small product per node is faster than elementwise products; below, calls dominate.
MIN_PRODUCT_NODES = 64


@lru_cache(maxsize=64)
def baby_steps(length: int) -> int:
    """Return the b with the fewest products: b - 1 for the baby steps and ⌈length/b⌉ - 2 for the giant steps."""
    return min(range(1, length + 1), key=lambda b: (b + max(0, -(-length // b) - 2), -b))


def power_diagonals(matrix: NDArray[np.floating], length: int, *, symmetric: bool) -> NDArray[np.floating]:
    """Compute the diagonals of M, M², …, M^length of one small matrix, ``[n, length]``, with few calls.

    Example:
        >>> power_diagonals(np.array([[0.0, 1.0], [1.0, 0.0]]), 4, symmetric=True)[0]
        array([0., 1., 0., 1.])
    """
    baby = baby_steps(length)
    steps = np.empty((baby, *matrix.shape), matrix.dtype)
    steps[0] = matrix
    for i in range(1, baby):
        np.matmul(steps[i - 1], matrix, out=steps[i])
    out = np.empty((length, len(matrix)), matrix.dtype)
    out[:baby] = steps.diagonal(axis1=1, axis2=2)
    giant = steps[-1]
    for done in range(baby, length, baby):
        now = min(baby, length - done)
        np.einsum("tij,ij->ti", steps[:now], giant if symmetric else giant.T, out=out[done : done + now])
        if done + now < length:
            giant = giant @ steps[-1]
    return out.T


def matrix_powers(matrices: Tensor, length: int) -> Tensor:
    """Compute I, M, M², …, M^length of ``matrices`` ``[B, n, n]``: ``[B, n, n, length + 1]``, without gradients.

    Each power is contiguous in memory, so a product is written in its place.

    Example:
        >>> matrix_powers(torch.tensor([[[2.0]]]), 3).flatten().tolist()
        [1.0, 2.0, 4.0, 8.0]
    """
    out = matrices.new_empty(length + 1, *matrices.shape)
    out[0] = torch.eye(matrices.shape[1], dtype=matrices.dtype, device=matrices.device)
    for t in range(1, length + 1):
        torch.bmm(out[t - 1], matrices, out=out[t])
    return out.movedim(0, -1)


class PowerDiagonals:
    """Computes the diagonals of M, M², …, M^length for batches of matrices, in a buffer allocated once.

    Args:
        length: highest power.
        dtype: of the matrices.

    Example:
        >>> swap = torch.tensor([[[0.0, 1.0], [1.0, 0.0]]])
        >>> PowerDiagonals(4, swap.dtype)(swap)[0, 0]
        tensor([0., 1., 0., 1.])
    """

    def __init__(self, length: int, dtype: torch.dtype) -> None:
        self.length = length
        self.baby = baby_steps(length)
        self.giant = -(-length // self.baby) - 1
        self._dtype = dtype
        self._buffer: Tensor | None = None

    def __call__(self, matrices: Tensor, *, symmetric: bool = False) -> Tensor:
        """Compute ``[B, n, length]`` from ``matrices`` ``[B, n, n]``."""
        compute = self._elementwise if matrices.shape[1] < MIN_PRODUCT_NODES else self._by_products
        return compute(matrices, symmetric)

    def _elementwise(self, matrices: Tensor, symmetric: bool) -> Tensor:
        b = self.baby
        buffer = self._allocate((2 * b + 2) * matrices.numel(), matrices.device).view(2 * b + 2, *matrices.shape)
        steps, work, giants = buffer[:b], buffer[b : 2 * b], buffer[2 * b :]
        steps[0] = matrices
        for i in range(1, b):
            torch.bmm(steps[i - 1], steps[0], out=steps[i])
        out = matrices.new_empty(self.length, *matrices.shape[:2])
        out[:b] = steps.diagonal(dim1=-2, dim2=-1)
        giant = steps[-1]
        for j, done in enumerate(range(b, self.length, b)):
            now = min(b, self.length - done)
            torch.mul(steps[:now], giant if symmetric else giant.mT, out=work[:now])
            torch.sum(work[:now], -1, out=out[done : done + now])
            if done + now < self.length:
                giant = torch.bmm(giant, steps[-1], out=giants[j % 2])
        return out.permute(1, 2, 0)

    def _by_products(self, matrices: Tensor, symmetric: bool) -> Tensor:
        (graphs, n, _), b, g = matrices.shape, self.baby, self.giant
        # Rows v of all powers are adjacent, [B, n, powers, n]: all row sums of a node are one small product.
        buffer = self._allocate((b + g) * matrices.numel(), matrices.device)
        steps = buffer[: b * matrices.numel()].view(graphs, n, b, n)
        giants = buffer[b * matrices.numel() :].view(graphs, n, g, n)
        steps[:, :, 0] = matrices
        for i in range(1, b):
            torch.bmm(steps[:, :, i - 1], steps[:, :, 0], out=steps[:, :, i])
        out = matrices.new_empty(graphs, n, self.length)
        out[..., :b] = steps.diagonal(dim1=1, dim2=3).mT
        if g:
            giants[:, :, 0] = steps[:, :, b - 1] if symmetric else steps[:, :, b - 1].mT
            for j in range(1, g):
                torch.bmm(giants[:, :, j - 1], giants[:, :, 0], out=giants[:, :, j])
            sums = torch.bmm(giants.flatten(0, 1), steps.flatten(0, 1).mT)
            out[..., b:] = sums.view(graphs, n, -1)[..., : self.length - b]
        return out

    def _allocate(self, needed: int, device: torch.device) -> Tensor:
        # Allocating fresh memory takes longer than a small product.
        if self._buffer is None or len(self._buffer) < needed:
            self._buffer = torch.empty(needed, dtype=self._dtype, device=device)
        return self._buffer[:needed]
