"""A feed-forward network that is much wider than its input, computed in slices that stay in the cache.

Spectral attention maps 8 channels to 2,048 and back at each node and eigenpair. For a batch of 25 graphs the hidden
layer would take 200 MB, read and written by every operation. Computed in slices, and recomputed in the backward pass,
it never leaves the cache. Drawing one random number per entry for dropout of 50 million values would cost more than
everything else, so the probability is rounded to a multiple of 2⁻¹⁶ and one 64-bit number decides four entries.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

# Elements of one slice of the hidden layer: 1 MB of float32.
SLICE_ELEMENTS = 1 << 18
# Probabilities of coarse dropout are multiples of 1 / DROPOUT_STEPS.
DROPOUT_STEPS = 2**16


class WideFeedForward(nn.Module):
    """Linear, ReLU, dropout, linear; in the precision of its weights, also under autocast.

    Args:
        channels: input and output width.
        wide: width of the hidden layer.
        dropout: dropout of the hidden layer, rounded to a multiple of 2⁻¹⁶.

    Example:
        >>> WideFeedForward(8, 2048)(torch.randn(5, 20, 8)).shape
        torch.Size([5, 20, 8])
    """

    def __init__(self, channels: int, wide: int = 2048, dropout: float = 0.1) -> None:
        super().__init__()
        if not 0 <= dropout < 1:
            raise ValueError(f"dropout must be at least 0 and less than 1, got {dropout}")
        self.widen, self.narrow = nn.Linear(channels, wide), nn.Linear(wide, channels)
        self.dropout = dropout

    def forward(self, x: Tensor) -> Tensor:
        """Map ``[..., channels]`` to ``[..., channels]``."""
        dropped = dropped_steps(self.dropout) if self.training else 0
        # The backward pass recomputes the hidden layer and sums over many slices, which half precision does not allow.
        with torch.autocast(x.device.type, enabled=False):
            output: Tensor = _WideFeedForward.apply(  # type: ignore[no-untyped-call]
                x.reshape(-1, x.shape[-1]).to(self.widen.weight.dtype),
                self.widen.weight,
                self.widen.bias,
                self.narrow.weight,
                self.narrow.bias,
                dropped,
            )
        return output.view(x.shape)


class _WideFeedForward(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, widen: Tensor, widen_bias: Tensor, narrow: Tensor, narrow_bias: Tensor, dropped: int
    ) -> Tensor:
        ctx.rows, ctx.scale = max(SLICE_ELEMENTS // len(widen), 1), keep_scale(dropped)
        masks, output = [], torch.empty_like(x)
        for first in range(0, len(x), ctx.rows):
            middle = torch.addmm(widen_bias, x[first : first + ctx.rows], widen.T).relu_()
            if dropped:
                masks.append(keep_mask(middle, dropped))
                middle *= masks[-1]
            output[first : first + ctx.rows] = torch.addmm(narrow_bias, middle, narrow.T, alpha=ctx.scale)
        ctx.save_for_backward(x, widen, widen_bias, narrow, *masks)
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, None]:
        with torch.autocast(gradients[0].device.type, enabled=False):  # it may be on where backward() is called
            return _gradients(ctx, gradients[0])


def _gradients(ctx: Any, by_output: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, None]:
    x, widen, widen_bias, narrow, *masks = ctx.saved_tensors
    by_x, by_widen, by_narrow = torch.empty_like(x), torch.zeros_like(widen), torch.zeros_like(narrow)
    by_widen_bias = torch.zeros_like(widen_bias)
    for i, first in enumerate(range(0, len(x), ctx.rows)):
        part = slice(first, first + ctx.rows)
        gradient = by_output[part] * ctx.scale
        middle = torch.addmm(widen_bias, x[part], widen.T).relu_()
        if masks:
            middle *= masks[i]
        by_narrow.addmm_(gradient.T, middle)
        # Where the hidden value is 0, ReLU or dropout blocks the gradient.
        by_middle = torch.ops.aten.threshold_backward(gradient @ narrow, middle, 0)
        by_widen.addmm_(by_middle.T, x[part])
        by_widen_bias += by_middle.sum(0)
        by_x[part] = by_middle @ widen
    return by_x, by_widen, by_widen_bias, by_narrow, by_output.sum(0), None


def dropped_steps(p: float) -> int:
    """Round a dropout probability ``p`` < 1 to a multiple of 2⁻¹⁶ below 1, returned as an integer."""
    return min(round(p * DROPOUT_STEPS), DROPOUT_STEPS - 1)


def keep_mask(like: Tensor, dropped: int) -> Tensor:
    """Draw a mask of the shape of ``like`` whose entries are False with probability ``dropped`` / 2¹⁶.

    Example:
        >>> bool(keep_mask(torch.zeros(3, 5), dropped_steps(0.0)).all())
        True
    """
    numbers = torch.empty(-(-like.numel() // 4), dtype=torch.int64, device=like.device).random_(-(2**63), None)
    quarters = numbers.view(torch.int16)[: like.numel()].view(like.shape)
    return quarters >= dropped - DROPOUT_STEPS // 2


def keep_scale(dropped: int) -> float:
    """Return the factor on kept entries that preserves the mean."""
    return DROPOUT_STEPS / (DROPOUT_STEPS - dropped)
