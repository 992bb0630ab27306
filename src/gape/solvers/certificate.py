"""Certificates: from residuals and spectral radii to a :class:`Status`, for every solver and readout.

Also the proofs behind them: bounds of ρ(μ)ρ(A), the sum over runs may stop, the weights are finite.
"""

from __future__ import annotations

from itertools import islice
from numbers import Real
from typing import NamedTuple

import torch
from torch import Tensor

from gape.graph.spectral_radius import MAX_DENSE_RADIUS_NODES, growth_bounds, least_growth, spectral_radius_bounds
from gape.solvers.equation import Equation
from gape.solvers.solution import Status

# A larger relative residual, from a solver that cannot do better, means that there is no solution.
MAX_CONSISTENT_RESIDUAL = 1e-8
# The largest relative residual that rounding explains on an equation that is regular, but nearly singular. With
# rounding added, no solved equation reports more than twice this.
MAX_ROUNDING_RESIDUAL = 5e-6
# Rounding errors below this are not added to residuals.
MIN_ROUNDING_RESIDUAL = 1e-10
# The equation counts as singular if |1 - λδ| is at most this for an eigenvalue λ of μ and δ of A. It is also the margin
# around ρ(μ)ρ(A) = 1 in which convergence is not decided.
SINGULAR_GAP = 1e-10
# The relative residual asked of solvers that do not iterate.
DIRECT_TOLERANCE = 1e-10
# Most products with A spent on walk-count bounds, for graphs with and without a dense fallback.
MAX_PUSHES, MAX_SPARSE_PUSHES = 32, 256

# Results hold a status as its index in STATUSES, and uniqueness as one of three numbers.
STATUSES = tuple(Status)
UNKNOWN, NO, YES = -1, 0, 1
# Kinds of ``spectral_radius``, most to least reliable.
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
    """``[graphs]``: True if weights exceed the range of their dtype; ``None`` if none does.

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


class RadiusBounds(NamedTuple):
    """Bounds of ρ(μ)ρ(A), ``[graphs]`` each, that hold in spite of rounding."""

    lower: Tensor
    upper: Tensor

    @property
    def converges(self) -> Tensor:
        """``[graphs]``: YES if the sum over runs provably converges, NO if it provably diverges, else UNKNOWN."""
        known = torch.where(self.lower > 1.0 + SINGULAR_GAP, NO, UNKNOWN)
        return torch.where(below_one(self.upper), YES, known)

    @property
    def kind(self) -> str:
        """``"exact"`` if the bounds coincide up to 1e-7, otherwise ``"estimate"``."""
        tight = self.upper - self.lower <= 1e-7 * self.upper.clamp(min=1.0)
        return "exact" if bool(tight.all()) else "estimate"

    def clamp(self, estimate: Tensor) -> Tensor:
        """Clamp an estimate to the bounds."""
        return torch.minimum(torch.maximum(estimate, self.lower), self.upper)

    def regular(self, separation: Tensor, dimension: int) -> Tensor:
        """``[graphs]``: YES if the equation is provably regular, otherwise UNKNOWN.

        Inaccurate eigenvalues cannot prove that a small separation is not zero.

        Args:
            separation: ``[graphs]``, min |1 - λδ| over all computed eigenvalues λ of μ and δ of A.
            dimension: number of eigenvalues of A.
        """
        sure = separation > SINGULAR_GAP + 2 * dimension * (self.upper - self.lower)
        return torch.where((self.converges == YES) | sure, YES, UNKNOWN)


def judge(
    residual: Tensor,
    converges: Tensor,
    *,
    tolerance: float,
    exhausted: Tensor | bool,
    rounding: Tensor | None = None,
    regular: Tensor | None = None,
) -> Tensor:
    """Decide the status of each graph, as an index of ``STATUSES``.

    Args:
        residual: ``[graphs]``, relative residuals.
        converges: ``[graphs]``, YES, NO or UNKNOWN: whether ρ(μ)ρ(A) < 1.
        tolerance: the residual asked for.
        exhausted: whether the solver's space is the whole space. A residual that stays large then means singular
            rather than not converged, unless ``rounding`` explains it.
        rounding: ``[graphs]``, see :meth:`Equation.rounding`. A nearly singular equation has large solutions.
        regular: ``[graphs]``, whether the equation is known to be regular. If rounding explains a large residual, it is
            then ill-conditioned instead of singular.
    """
    status = run_status(converges)
    exhausted = torch.as_tensor(exhausted, device=residual.device)
    enough = torch.full_like(residual, MAX_CONSISTENT_RESIDUAL)
    if rounding is not None:
        enough = torch.maximum(enough, (64.0 * rounding).clamp(max=MAX_ROUNDING_RESIDUAL))
    solved = (residual <= tolerance) | (exhausted & (residual <= enough))
    failed = torch.where(exhausted, code(Status.SINGULAR), code(Status.NOT_CONVERGED))
    if rounding is not None and regular is not None:
        # A residual below the rounding bound may be small by cancellation.
        explained = ((regular & exhausted) | solved) & (residual <= 64.0 * rounding)
        failed = torch.where(explained, code(Status.ILL_CONDITIONED), failed)
        solved &= ~(rounding > MAX_ROUNDING_RESIDUAL)
    return torch.where(solved, status, failed)


def run_status(converges: Tensor) -> Tensor:
    """The status ``[graphs]`` of solved equations, as an index of ``STATUSES``; ``converges``: YES, NO or UNKNOWN."""
    known = torch.where(converges == NO, code(Status.ALGEBRAIC), code(Status.SOLVED))
    return torch.where(converges == YES, code(Status.RUN_SUM), known)


def with_rounding(residual: Tensor, rounding: Tensor) -> Tensor:
    """Add to a computed residual what rounding may hide, where that is not negligible."""
    return torch.where(rounding > MIN_ROUNDING_RESIDUAL, residual + rounding, residual)


def dense_radius_bounds(equation: Equation) -> RadiusBounds:
    """Bound ρ(μ)ρ(A) by dense eigenvalue problems; for graphs of more than 512 nodes by norms and growth."""
    low, high = equation.transition_bounds
    lower, upper = spectral_radius_bounds(equation.walk, torch.ones_like(equation.sizes, dtype=torch.bool))
    large = equation.sizes > MAX_DENSE_RADIUS_NODES
    if equation.walk.nonnegative and bool(large.any()):
        lower = torch.where(large, torch.maximum(lower, least_growth(equation.walk, MAX_PUSHES)), lower)
    norms = equation.walk.norm_bounds * (1.0 + 1e-14)
    return RadiusBounds(low * lower, high * torch.minimum(upper, norms))


def symmetric_radius_bounds(equation: Equation, radius: Tensor, dimension: int) -> RadiusBounds:
    """Bound ρ(μ)ρ(A) by ``radius`` ``[graphs]``: ρ(A) as computed from all eigenvalues of symmetric matrices.

    Args:
        dimension: number of rows of the largest matrix.
    """
    low, high = equation.transition_bounds
    error = symmetric_error(dimension)
    return RadiusBounds(low * (1.0 - error) * radius, high * (1.0 + error) * radius)


def symmetric_error(dimension: int) -> float:
    """The relative rounding error of the largest eigenvalue of a symmetric matrix with that many rows."""
    return 2.0**-50 * max(dimension, 1)


def radius_bounds_of(equation: Equation, lower: Tensor | None = None, positive: Tensor | None = None) -> RadiusBounds:
    """Bound ρ(μ)ρ(A), each graph until it is decided whether that is below 1.

    In turn, for graphs that are not decided yet: a norm of A; no cycle, in the graph or the transitions; for a
    ``positive`` vector y ``[n]``, max (|A|ᵀy)_v / y_v (Collatz, 1942); weighted walk counts, which bound ρ from above;
    if no weight is negative, the smallest growth of walk counts in a strongly connected component, which bounds ρ from
    below; and dense eigenvalue problems for graphs that are small enough.

    Args:
        lower: ``[graphs]``, a known lower bound of ρ(A).
        positive: a guess of the eigenvector of ρ(A).
    """
    low, high = equation.transition_bounds
    walk = equation.walk
    below = torch.zeros(equation.num_graphs, dtype=torch.float64, device=walk.ptr.device) if lower is None else lower
    bounds = RadiusBounds(low * below, high * walk.norm_bounds * (1.0 + 1e-14))

    def undecided() -> Tensor:
        return bounds.converges == UNKNOWN

    def improve(upper: Tensor) -> RadiusBounds:
        return RadiusBounds(bounds.lower, torch.minimum(bounds.upper, upper))

    if bool(undecided().any()):
        bounds = improve(torch.where(walk.acyclic_graphs, 0.0, torch.inf))
    if positive is not None and bool(undecided().any()):
        ratio = torch.where(positive > 0, walk.absolute.push(positive) / positive, torch.inf)
        isolated = torch.bincount(walk.adjacency.edge_index.flatten(), minlength=walk.num_nodes) == 0
        bounds = improve(high * (1.0 + 1e-14) * walk.adjacency.segment_max(ratio.masked_fill(isolated, 0.0)))
    if bool(undecided().any()):
        bounds = improve(_walk_count_bound(equation, undecided()))
    if walk.nonnegative and bool(undecided().any()):
        bounds = RadiusBounds(torch.maximum(bounds.lower, low * least_growth(walk, MAX_PUSHES)), bounds.upper)
    small = walk.adjacency.sizes <= MAX_DENSE_RADIUS_NODES
    if bool((undecided() & small).any()):
        below, above = spectral_radius_bounds(walk, undecided() & small)
        bounds = RadiusBounds(torch.maximum(bounds.lower, low * below), torch.minimum(bounds.upper, high * above))
    return bounds


def _walk_count_bound(equation: Equation, asked: Tensor) -> Tensor:
    """``[graphs]``: a bound of ρ(μ)ρ(A) from the largest count of t-step walks to the power 1/t, until below 1."""
    walk, high = equation.walk.absolute, equation.transition_bounds[1]
    large = equation.sizes > MAX_DENSE_RADIUS_NODES
    ones = torch.ones(walk.num_nodes, dtype=torch.float64, device=walk.ptr.device)
    best = torch.full((equation.num_graphs,), torch.inf, dtype=torch.float64, device=walk.ptr.device)
    steps = MAX_SPARSE_PUSHES if bool(large[asked].any()) else MAX_PUSHES
    bounds = growth_bounds(lambda counts: walk.push(counts) * high, ones, walk.adjacency)
    for t, bound in enumerate(islice(bounds, steps), start=1):
        # More steps for large graphs only, so that a graph gets the same bound in any batch.
        best = torch.where(large | (t <= MAX_PUSHES), torch.minimum(best, bound), best)
        if bool((below_one(best) | ~asked).all()):
            break
    return best


def contracting_power(matrix: Tensor, most: int) -> int | None:
    """Find a power of two p ≤ ``most`` with ‖matrixᵖ‖₂ ≤ ½; ``None`` if there is none.

    One small term of a sum does not bound the next; after p consecutive small terms all later ones are small. The
    rounding errors of the powers are included.

    Example:
        >>> contracting_power(torch.tensor([[0.0, 1e-13], [1e11, 0.0]]), most=64)
        2
    """
    power, error = 1, torch.zeros_like(matrix.abs())
    while power <= most and bool(torch.isfinite(error).all() & torch.isfinite(matrix).all()):
        if float(torch.linalg.matrix_norm(matrix, 2)) + float(torch.linalg.matrix_norm(error)) <= 0.5:
            return power
        size = matrix.abs()
        error = size @ error + error @ size + error @ error + 2.0**-50 * len(matrix) * (size @ size)
        matrix, power = matrix @ matrix, 2 * power
    return None
