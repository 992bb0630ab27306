r"""Runs from single nodes over a directed graph, through the Schur forms of both matrices.

For the source s_u = e_u α[:, ℓ(u)]ᵀ the equation X = AᵀXμ + s_u turns, with Aᵀ = U R Uᴴ and μ = W T Wᴴ, into triangular
systems, one per state, for as many source nodes u at a time as memory allows: never more than ``block`` columns.
"""

from __future__ import annotations

from collections.abc import Iterator

import scipy.linalg
import torch
from torch import Tensor

from gape.solvers.schur_form import SchurForm

# Complex numbers held at a time.
ROOM = 1 << 22


def schur(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """R and U of the transpose of ``matrix`` ``[n, n]``."""
    upper, vectors = scipy.linalg.schur(matrix.mT.cpu().numpy(), output="complex")
    return torch.from_numpy(upper).to(matrix.device), torch.from_numpy(vectors).to(matrix.device)


def runs_from_each(upper: Tensor, vectors: Tensor, form: SchurForm, initial: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield source nodes ``[b]`` and ``[k, n, b]``, the runs from them in the coordinates of U and W.

    Args:
        upper, vectors: R and U, ``[n, n]``.
        form: the Schur form of μ.
        initial: ``[n, k]``, what each node's runs begin with, (αℓ)ᵀ.
    """
    n, k = initial.shape
    turned = initial.to(torch.complex128) @ form.vectors
    eye = torch.eye(n, dtype=torch.complex128, device=upper.device)
    step = max(1, ROOM // (n * k))
    for first in range(0, n, step):
        sources = torch.arange(first, min(n, first + step), device=upper.device)
        start = vectors[sources].conj().T
        columns = torch.zeros(k, n, len(sources), dtype=torch.complex128, device=upper.device)
        for j in range(k):
            right = start * turned[sources, j]
            if j and not form.normal:
                right = right + upper @ torch.tensordot(form.upper[:j, j], columns[:j], dims=1)
            columns[j] = torch.linalg.solve_triangular(eye - form.upper[j, j] * upper, right, upper=True)
        yield sources, columns
