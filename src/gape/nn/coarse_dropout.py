"""Which entries dropout keeps, drawn quickly: one random number of 64 bits decides four of them.

PyTorch draws a whole random number an entry, which on a processor can take longer than what is computed with it. A
quarter of one fixes the probability to multiples of 2⁻¹⁶.
"""

from __future__ import annotations

import torch
from torch import Tensor

STEPS = 2**16


def dropped_steps(p: float) -> int:
    """The probability ``p`` < 1 in steps of 2⁻¹⁶; never all of them, so that something can be kept."""
    return min(round(p * STEPS), STEPS - 1)


def kept(like: Tensor, dropped: int) -> Tensor:
    """Mask of the shape of ``like``: each entry is False with probability ``dropped`` / 2¹⁶.

    Example:
        >>> bool(kept(torch.zeros(3, 5), dropped_steps(0.0)).all())
        True
    """
    numbers = torch.empty(-(-like.numel() // 4), dtype=torch.int64, device=like.device).random_(-(2**63), None)
    quarters = numbers.view(torch.int16)[: like.numel()].view(like.shape)
    return quarters >= dropped - STEPS // 2


def kept_scale(dropped: int) -> float:
    """What entries that are kept are multiplied by, so that means stay."""
    return STEPS / (STEPS - dropped)
