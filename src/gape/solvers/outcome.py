"""What one solver says about one part of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import ClassVar

import torch
from torch import Tensor

from gape.solvers.solution import Status

# A relative residual above this, from a solver that cannot do better, means that there is no solution.
CONSISTENT = 1e-8
# What rounding may add to that on equations that are regular, but only just.
NEARLY_SINGULAR = 1e-5
# Two eigenvalues whose product is this close to 1 are taken to be singular.
SINGULAR_GAP = 1e-10
# The relative residual that is asked of solvers that do not iterate.
DIRECT_TOLERANCE = 1e-10

STATUSES = tuple(Status)
UNKNOWN, NO, YES = -1, 0, 1
# From the best to the least known.
RADIUS_KINDS = ("exact", "bound", "estimate")


@dataclass(eq=False)
class Result:
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
    # No weight is larger than this, if the solver knows.
    largest: float = float("inf")

    PER_GRAPH: ClassVar[tuple[str, ...]] = ("residual", "spectral_radius", "separation", "unique", "status")

    def take(self, graphs: Tensor, other: Result) -> None:
        """The certificates of ``other``, which is about just these ``graphs``, in the place of theirs."""
        for name in self.PER_GRAPH:
            getattr(self, name)[graphs] = getattr(other, name)
        self.steps = max(self.steps, other.steps)
        kinds = [other.radius_kind] if len(graphs) == len(self.status) else [self.radius_kind, other.radius_kind]
        self.radius_kind = max(kinds, key=RADIUS_KINDS.index)


def check_tolerance(tolerance: float) -> None:
    """Refuse what cannot be asked of a relative residual."""
    if not (isinstance(tolerance, Real) and 0 < tolerance < 1):
        raise ValueError(f"tolerance must be in (0, 1), got {tolerance!r}")


def code(status: Status) -> int:
    return STATUSES.index(status)


def lost_rows(weights: Tensor) -> Tensor | None:
    """``[n]``: rows with a weight that left the range of its number format; ``None`` if there are none."""
    if weights.is_complex():
        sound = bool(torch.isfinite(weights).all())
    else:
        sound = not weights.numel() or all(bool(torch.isfinite(end)) for end in weights.aminmax())
    return None if sound else ~torch.isfinite(weights).all(1)


def below_one(radius: Tensor) -> Tensor:
    """Where ρ(μ)ρ(A) is less than 1 by more than rounding, so that the runs sum up and the equation is regular."""
    return radius < 1.0 - SINGULAR_GAP


def judge(
    residual: Tensor,
    radius: Tensor,
    *,
    tolerance: float,
    exhausted: Tensor | bool,
    run_sum: Tensor | None = None,
    rounding: Tensor | None = None,
    regular: Tensor | None = None,
) -> Tensor:
    """The status of each graph from its residual and ρ(μ)ρ(A).

    ``exhausted``: the solver's space is all there is, so a residual that stays large means singular rather than not
    converged, unless ``rounding`` (see :meth:`Problem.rounding`) explains it: a nearly singular equation has large
    solutions. ``regular``: graphs whose solution is right however large it is. ``run_sum``: graphs known to sum their
    runs whatever the radius says.
    """
    summed = below_one(radius) if run_sum is None else run_sum | below_one(radius)
    status = torch.where(summed, code(Status.RUN_SUM), code(Status.ALGEBRAIC))
    exhausted = torch.as_tensor(exhausted, device=residual.device)
    enough = torch.full_like(residual, CONSISTENT)
    if rounding is not None:
        most = NEARLY_SINGULAR if regular is None else torch.where(regular, torch.inf, NEARLY_SINGULAR)
        enough = torch.maximum(enough, (64.0 * rounding).clamp(max=torch.as_tensor(most)))
    bad = ~((residual <= tolerance) | (exhausted & (residual <= enough)))
    failed = torch.where(exhausted, code(Status.SINGULAR), code(Status.NOT_CONVERGED))
    return torch.where(bad, failed, status)
