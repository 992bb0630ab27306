"""What one solver says about one part of a batch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gape.solvers.solution import Status

# A relative residual above this, from a solver that cannot do better, means that there is no solution.
CONSISTENT = 1e-8
# Two eigenvalues whose product is this close to 1 are taken to be singular.
SINGULAR_GAP = 1e-10

STATUSES = tuple(Status)
UNKNOWN, NO, YES = -1, 0, 1


@dataclass(eq=False)
class Outcome:
    """Weights and certificates of one part; all but ``weights`` are ``[graphs]``.

    ``unique`` holds YES, NO or UNKNOWN; ``status`` indexes ``STATUSES``. ``settled``: a singular status is final and
    the weights are the least-squares ones; otherwise singular is a suspicion, for the dense system to settle.
    """

    weights: Tensor
    residual: Tensor
    spectral_radius: Tensor
    separation: Tensor
    unique: Tensor
    status: Tensor
    steps: int
    radius_kind: str = "exact"
    settled: bool = True


def code(status: Status) -> int:
    return STATUSES.index(status)


def judge(
    residual: Tensor, radius: Tensor, *, tolerance: float, exhausted: Tensor | bool, run_sum: Tensor | None = None
) -> Tensor:
    """The status of each graph from its residual and ρ(μ)ρ(A).

    ``exhausted``: the solver's space is all there is, so a residual that stays large means singular rather than not
    converged. ``run_sum``: graphs known to sum their runs whatever the radius says.
    """
    summed = radius < 1 if run_sum is None else run_sum | (radius < 1)
    status = torch.where(summed, code(Status.RUN_SUM), code(Status.ALGEBRAIC))
    exhausted = torch.as_tensor(exhausted, device=residual.device)
    bad = ~((residual <= tolerance) | (exhausted & (residual <= CONSISTENT)))
    failed = torch.where(exhausted, code(Status.SINGULAR), code(Status.NOT_CONVERGED))
    return torch.where(bad, failed, status)
