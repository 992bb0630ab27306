"""Where each of many things begins, when they lie behind each other."""

import torch
from torch import Tensor


def pointers(counts: Tensor) -> Tensor:
    """``[things + 1]``: where each begins, and where the last one ends, from how many entries each has, ``[things]``.

    Example:
        >>> pointers(torch.tensor([3, 0, 2]))
        tensor([0, 3, 3, 5])
    """
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])
