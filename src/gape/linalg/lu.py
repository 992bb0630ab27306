"""Batches of dense systems by LU factorisation, where PyTorch's own are not reliable.

With several threads and matrices of about 150 rows or more, PyTorch's batched LU raises, hangs or is wrong
(pytorch/pytorch#142815); with one thread it is not.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gape._internal.threads import one_torch_thread


def solve_systems(matrices: Tensor, rhs: Tensor) -> Tensor:
    """``X`` with ``matrices @ X = rhs`` for ``[..., n, n]`` and ``[..., n, columns]``; meaningless where singular.

    Example:
        >>> solve_systems(2.0 * torch.eye(2).expand(3, 2, 2), torch.ones(3, 2, 1)).unique()
        tensor([0.5000])
    """
    with one_torch_thread():
        found: Tensor = torch.linalg.solve_ex(matrices, rhs)[0]
    return found


def inverses(matrices: Tensor) -> Tensor:
    """The inverses of ``[..., n, n]``; meaningless where singular. Has gradients.

    Example:
        >>> inverses(2.0 * torch.eye(2).expand(3, 2, 2)).unique()
        tensor([0.0000, 0.5000])
    """
    with one_torch_thread():
        found: Tensor = torch.linalg.inv_ex(matrices)[0]
    return found
