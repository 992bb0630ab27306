"""Cross-entropy of scores that are never held all at once."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

#: Rows of scores at a time: some thousand pieces each, so that a block stays in a processor's cache.
BLOCK = 256


def cross_entropy(x: Tensor, weight: Tensor, expected: Tensor, smoothing: float = 0.0) -> Tensor:
    """Mean cross-entropy of the scores ``x @ weight.T``, with label smoothing (Szegedy et al., 2016).

    What :func:`torch.nn.functional.cross_entropy` gives, in less time and memory: scores of a batch are larger than
    everything else in a small model, so they are made in blocks, each turned into its part of the gradient at once.

    Args:
        x: ``[n, width]``.
        weight: ``[classes, width]``.
        expected: ``[n]``, the right class of each row.
        smoothing: share of probability spread evenly over all classes.

    Example:
        >>> x, weight = torch.eye(2), torch.tensor([[9.0, 0.0], [0.0, 9.0], [0.0, 0.0]])
        >>> round(cross_entropy(x, weight, torch.tensor([0, 1])).item(), 4)
        0.0002
    """
    loss: Tensor = _CrossEntropy.apply(x, weight, expected, smoothing)  # type: ignore[no-untyped-call]
    return loss


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, expected: Tensor, smoothing: float) -> Tensor:
        # The loss of a row is -(1 - ε) log p(right) - ε mean log p; its gradient by the scores is
        # p - (1 - ε) [right] - ε / classes.
        classes, loss = len(weight), x.new_zeros(())
        by_x, by_weight = torch.empty_like(x), torch.zeros_like(weight)
        for start in range(0, len(x), BLOCK):
            rows, right = x[start : start + BLOCK], expected[start : start + BLOCK, None]
            block = (rows @ weight.T).log_softmax(-1)
            loss -= (1 - smoothing) * block.gather(1, right).sum() + smoothing / classes * block.sum()
            block.exp_().sub_(smoothing / classes)
            block.scatter_add_(1, right, block.new_full(right.shape, smoothing - 1))
            torch.mm(block, weight, out=by_x[start : start + BLOCK])
            by_weight.addmm_(block.T, rows)
        ctx.save_for_backward(by_x, by_weight)
        ctx.rows = len(x)
        return loss / len(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        by_x, by_weight = ctx.saved_tensors
        scale = gradients[0] / ctx.rows
        return by_x * scale, by_weight * scale, None, None
