"""Certificates: from residuals and spectral radii to a :class:`Status`, for every solver and readout.

Also the proofs behind them: ρ(μ)ρ(A) < 1, the sum over runs may stop, the weights are finite.
"""

from __future__ import annotations

from numbers import Real

import torch
from torch import Tensor

from gape.graph.spectral_radius import MAX_DENSE_RADIUS_NODES, spectral_radius
from gape.solvers.equation import Equation
from gape.solvers.solution import Status

# A larger relative residual, from a solver that cannot do better, means that there is no solution.
MAX_CONSISTENT_RESIDUAL = 1e-8
# The largest relative residual that rounding explains on an equation that is regular, but nearly singular.
MAX_ROUNDING_RESIDUAL = 1e-5
# The equation counts as singular if |1 - λδ| is at most this for an eigenvalue λ of μ and δ of A.
SINGULAR_GAP = 1e-10
# The relative residual asked of solvers that do not iterate.
DIRECT_TOLERANCE = 1e-10
# Products with A that cost less than all of its eigenvalues.
MAX_PUSHES = 32

# Results hold a status as its index in STATUSES, and uniqueness as one of three numbers.
STATUSES = tuple(Status)
UNKNOWN, NO, YES = -1, 0, 1
# From the best known to the least known.
RADIUS_KINDS = ("exact", "bound", "estimate")


def code(status: Status) -> int:
    """The index of ``status`` in ``STATUSES``."""
    return STATUSES.index(status)


def check_tolerance(tolerance: float) -> None:
    """Validate ``tolerance``, a relative residual."""
    if not (isinstance(tolerance, Real) and 0 < tolerance < 1):
        raise ValueError(f"tolerance must be in (0, 1), got {tolerance!r}")


def lost_rows(weights: Tensor) -> Tensor | None:
    """``[n]``: rows with an infinite or undefined weight; ``None`` if there are none."""
    if weights.is_complex():
        finite = bool(torch.isfinite(weights).all())
    else:
        finite = not weights.numel() or all(bool(torch.isfinite(end)) for end in weights.aminmax())
    return None if finite else ~torch.isfinite(weights).all(1)


def overflowing(weights: Tensor, rows: Tensor) -> Tensor | None:
    """``[graphs]``: whether weights exceed the range of their dtype; ``None`` if none does.

    Args:
        weights: all graphs' weights, row by row.
        rows: ``[graphs]``, number of rows of each graph.
    """
    lost = lost_rows(weights)
    if lost is None:
        return None
    graph = torch.repeat_interleave(torch.arange(len(rows), device=rows.device), rows)
    return torch.zeros(len(rows), dtype=torch.bool, device=rows.device).index_fill(0, graph[lost], True)


def below_one(radius: Tensor) -> Tensor:
    """Test ρ(μ)ρ(A) < 1 by more than rounding; then the runs sum up and the equation is regular."""
    return radius < 1.0 - SINGULAR_GAP


def judge(
    residual: Tensor,
    radius: Tensor,
    *,
    tolerance: float,
    exhausted: Tensor | bool,
    run_sum: Tensor | bool = False,
    rounding: Tensor | None = None,
    regular: Tensor | None = None,
) -> Tensor:
    """Decide the status of each graph, as an index of ``STATUSES``.

    Args:
        residual: ``[graphs]``, relative residuals.
        radius: ``[graphs]``, ρ(μ)ρ(A) or an upper bound of it.
        tolerance: the residual asked for.
        exhausted: whether the solver's space is the whole space. A residual that stays large then means singular
            rather than not converged, unless ``rounding`` explains it.
        run_sum: graphs known to sum their runs whatever the radius.
        rounding: ``[graphs]``, see :meth:`Equation.rounding`. A nearly singular equation has large solutions.
        regular: ``[graphs]``, whether the equation is known to be regular, however large its solution.
    """
    status = torch.where(below_one(radius) | run_sum, code(Status.RUN_SUM), code(Status.ALGEBRAIC))
    exhausted = torch.as_tensor(exhausted, device=residual.device)
    enough = torch.full_like(residual, MAX_CONSISTENT_RESIDUAL)
    if rounding is not None:
        most = MAX_ROUNDING_RESIDUAL if regular is None else torch.where(regular, torch.inf, MAX_ROUNDING_RESIDUAL)
        enough = torch.maximum(enough, (64.0 * rounding).clamp(max=torch.as_tensor(most)))
    bad = ~((residual <= tolerance) | (exhausted & (residual <= enough)))
    failed = torch.where(exhausted, code(Status.SINGULAR), code(Status.NOT_CONVERGED))
    return torch.where(bad, failed, status)


def proven_radius(equation: Equation, estimate: Tensor, positive: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """ρ(μ)ρ(A) ``[graphs]``, and where it is proven to be below 1.

    An ``estimate`` may be too low. Where it is below 1, these are tried in turn: a norm of A; if no weight is negative,
    max (Aᵀy)_v / y_v for a ``positive`` vector y ``[n]`` (Collatz, 1942); likewise, weighted walk counts that shrink;
    and the eigenvalues of graphs that are small enough for them, which replace the estimate.
    """
    mu, walk = equation.transition_radius, equation.walk
    sure = below_one(mu * walk.norm_bounds)
    unsure = below_one(estimate) & ~sure
    if positive is not None and walk.nonnegative and bool(unsure.any()):
        ratio = torch.where(positive > 0, walk.push(positive) / positive, torch.inf)
        isolated = torch.bincount(walk.adjacency.edge_index.flatten(), minlength=walk.num_nodes) == 0
        sure = sure | below_one(mu * walk.adjacency.segment_max(ratio.masked_fill(isolated, 0.0)))
        unsure &= ~sure
    if walk.nonnegative and bool(unsure.any()):
        sure = sure | _walks_shrink(equation, unsure)
        unsure &= ~sure
    unsure &= walk.adjacency.sizes <= MAX_DENSE_RADIUS_NODES
    if not bool(unsure.any()):
        return estimate, sure
    radius = torch.where(unsure, mu * spectral_radius(walk, unsure), estimate)
    return radius, sure | (unsure & below_one(radius))


def _walks_shrink(equation: Equation, asked: Tensor) -> Tensor:
    """``[graphs]``: whether (ρ(μ)Aᵀ)ᵗ maps ones to less than one for some t, which implies ρ(μ)ρ(A) < 1."""
    walk, mu = equation.walk, equation.transition_radius
    y = torch.ones(walk.num_nodes, dtype=torch.float64, device=walk.ptr.device)
    found = torch.zeros_like(asked)
    for _ in range(MAX_PUSHES):
        y = walk.push(y) * mu
        found = found | below_one(walk.adjacency.segment_max(y))
        if bool((found | ~asked).all()):
            break
    return found


def contracting_power(matrix: Tensor, most: int) -> int | None:
    """Find a power of two p ≤ ``most`` with ‖matrixᵖ‖₂ ≤ ½; ``None`` if there is none.

    One small term of a sum says nothing about the next; p small terms in a row are followed by small ones only.

    Example:
        >>> contracting_power(torch.tensor([[0.0, 1e-13], [1e11, 0.0]]), most=64)
        2
    """
    power = 1
    while not float(torch.linalg.matrix_norm(matrix, 2)) <= 0.5:
        matrix, power = matrix @ matrix, 2 * power
        if power > most or not bool(torch.isfinite(matrix).all()):
            return None
    return power
