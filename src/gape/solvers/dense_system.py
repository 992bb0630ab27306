"""One graph's whole equation as a dense system: solved component by component, or by least squares if singular."""

from __future__ import annotations

import math

import scipy.linalg
import torch
from torch import Tensor

from gape.solvers.outcome import SINGULAR_GAP


def solve_or_nearest(operator: Tensor, source: Tensor, component: Tensor, contracts: bool) -> tuple[Tensor, bool]:
    """(I - F)⁻¹ s, or the shortest least-squares solution where that does not exist; and whether it exists.

    Runs never come back to a strongly connected component that they left, so the system is block triangular: singular
    exactly if one of the diagonal blocks is, and solved block by block. Large weights that pile up from one component
    to the next say nothing about that, and cancel nothing.

    Args:
        operator: F, ``[n k, n k]``.
        source: ``[n k]`` or ``[n k, columns]``.
        component: ``[n]``, that of each node.
        contracts: whether runs are known to sum up, so that there is a solution.
    """
    inside = within(operator, component)
    eye = torch.eye(len(operator), dtype=operator.dtype, device=operator.device)
    blocks = eye - inside
    factors, pivots, info = torch.linalg.lu_factor_ex(blocks)
    if int(info) or not (contracts or _smallest(blocks, factors) > SINGULAR_GAP):
        return shortest_least_squares(eye - operator, source), False
    columns = source.reshape(len(source), -1)
    between = operator - inside
    x = torch.linalg.lu_solve(factors, pivots, columns)
    # After t rounds all components behind at most t others are right, and stay as they are.
    for _ in range(len(torch.unique(component)) if bool(between.any()) else 0):
        before, x = x, torch.linalg.lu_solve(factors, pivots, columns + between @ x)
        if torch.equal(before, x):
            break
    return x.reshape(source.shape), True


def within(operator: Tensor, component: Tensor) -> Tensor:
    """The operator of a graph without what it does between strongly connected components ``[n]``."""
    component = component.repeat_interleave(len(operator) // len(component))
    return torch.where(component.unsqueeze(1) == component, operator, 0.0)


def _smallest(system: Tensor, factors: Tensor) -> float:
    """About the smallest singular value of a matrix, from its LU factors."""
    lu = factors.resolve_conj().cpu().numpy()
    (condition,) = scipy.linalg.get_lapack_funcs(("gecon",), (lu,))
    norm = float(torch.linalg.matrix_norm(system, 1))
    reciprocal, _ = condition(lu, norm)
    # ‖M⁻¹‖₁ is at most √n times as large as the 2-norm.
    return float(reciprocal) * norm * math.sqrt(len(lu))


def shortest_least_squares(system: Tensor, source: Tensor) -> Tensor:
    """The solution of least norm among those of least residual; singular values below 1e-10 count as zero."""
    # QR with column pivoting: a tenth of the time of singular values. (PyTorch's own is not the same twice.)
    norms = (torch.linalg.matrix_norm(system, 1), torch.linalg.matrix_norm(system, torch.inf))
    norm = math.sqrt(float(norms[0] * norms[1]))  # at least the 2-norm
    if norm <= SINGULAR_GAP:
        return torch.zeros_like(source)
    solved = scipy.linalg.lstsq(
        system.cpu().numpy(),
        source.resolve_conj().cpu().numpy(),
        cond=SINGULAR_GAP / norm,
        lapack_driver="gelsy",
        check_finite=False,
    )
    return torch.from_numpy(solved[0]).to(system.device)
