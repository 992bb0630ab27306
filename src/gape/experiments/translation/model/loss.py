"""Cross-entropy that computes the logits block by block."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

#: Rows of logits computed at once. A row has some thousand classes, so a block of this size stays in a CPU's cache.
BLOCK_ROWS = 256


def cross_entropy(x: Tensor, weight: Tensor, target: Tensor, smoothing: float = 0.0) -> Tensor:
    """Mean cross-entropy of the logits ``x @ weight.T``, with label smoothing (Szegedy et al., 2016).

    Equals :func:`torch.nn.functional.cross_entropy` on those logits, in less time and memory. The logits of a batch
    are larger than everything else in a small model, so they are computed in blocks, and each block is reduced to its
    contribution to the gradient at once.

    Args:
        x: ``[n, width]``.
        weight: ``[classes, width]``.
        target: ``[n]``, the class of each row.
        smoothing: probability mass spread evenly over all classes.

    Example:
        >>> x, weight = torch.eye(2), torch.tensor([[9.0, 0.0], [0.0, 9.0], [0.0, 0.0]])
        >>> round(cross_entropy(x, weight, torch.tensor([0, 1])).item(), 4)
        0.0002
    """
    loss: Tensor = _CrossEntropy.apply(x, weight, target, smoothing)  # type: ignore[no-untyped-call]
    return loss


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, target: Tensor, smoothing: float) -> Tensor:
        # The loss of a row is -(1 - ε) log p(target) - ε mean log p; its gradient with respect to the logits is
        # p - (1 - ε) [target] - ε / classes.
        classes, loss = len(weight), x.new_zeros(())
        x_gradient, weight_gradient = torch.empty_like(x), torch.zeros_like(weight)
        for start in range(0, len(x), BLOCK_ROWS):
            rows, correct = x[start : start + BLOCK_ROWS], target[start : start + BLOCK_ROWS, None]
            block = (rows @ weight.T).log_softmax(-1)
            loss -= (1 - smoothing) * block.gather(1, correct).sum() + smoothing / classes * block.sum()
            block.exp_().sub_(smoothing / classes)
            block.scatter_add_(1, correct, block.new_full(correct.shape, smoothing - 1))
            torch.mm(block, weight, out=x_gradient[start : start + BLOCK_ROWS])
            weight_gradient.addmm_(block.T, rows)
        ctx.save_for_backward(x_gradient, weight_gradient)
        ctx.rows = len(x)
        return loss / len(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        x_gradient, weight_gradient = ctx.saved_tensors
        scale = gradients[0] / ctx.rows
        return x_gradient * scale, weight_gradient * scale, None, None
