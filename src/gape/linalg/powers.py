r"""Diagonals of matrix powers from a few products.

    diag(M^(i+j)) is the row sum of Mⁱ ∘ (Mʲ)ᵀ,

so with the small steps M, …, Mᵇ and the giant steps Mᵇ, M²ᵇ, … every power up to ``length`` has its diagonal, at about
2√length products instead of length - 1: six instead of nineteen for 20.
"""

from __future__ import annotations

import torch
from torch import Tensor

# Below so many nodes a product for each node costs more to call than to compute.
SMALL = 64


def small_steps(length: int) -> int:
    """The b that needs the fewest products: b - 1 for the small steps and ⌈length/b⌉ - 2 for the giant ones."""
    return min(range(1, length + 1), key=lambda b: (b + max(0, -(-length // b) - 2), -b))


class PowerDiagonals:
    """Diagonals of M, M², …, M^length for batches of matrices, in memory that is allocated once.

    Args:
        length: the highest power.
        dtype: of the matrices.

    Example:
        >>> swap = torch.tensor([[[0.0, 1.0], [1.0, 0.0]]])
        >>> PowerDiagonals(4, swap.dtype)(swap)[0, 0]
        tensor([0., 1., 0., 1.])
    """

    def __init__(self, length: int, dtype: torch.dtype) -> None:
        self.length = length
        self.small = small_steps(length)
        self.giant = -(-length // self.small) - 1
        self._dtype = dtype
        self._room: Tensor | None = None

    def __call__(self, matrices: Tensor, *, symmetric: bool = False) -> Tensor:
        """``[B, n, length]`` for ``matrices`` ``[B, n, n]``."""
        read = self._elementwise if matrices.shape[1] < SMALL else self._by_products
        return read(matrices, symmetric)

    def _elementwise(self, matrices: Tensor, symmetric: bool) -> Tensor:
        b = self.small
        room = self._memory((2 * b + 2) * matrices.numel(), matrices.device).view(2 * b + 2, *matrices.shape)
        steps, work, giants = room[:b], room[b : 2 * b], room[2 * b :]
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
        (graphs, n, _), b, g = matrices.shape, self.small, self.giant
        # Row v of all powers side by side, [B, n, powers, n]: all row sums are one small product for each node.
        room = self._memory((b + g) * matrices.numel(), matrices.device)
        steps = room[: b * matrices.numel()].view(graphs, n, b, n)
        giants = room[b * matrices.numel() :].view(graphs, n, g, n)
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

    def _memory(self, needed: int, device: torch.device) -> Tensor:
        # Fresh memory costs the operating system more than a small product costs the processor.
        if self._room is None or len(self._room) < needed:
            self._room = torch.empty(needed, dtype=self._dtype, device=device)
        return self._room[:needed]
