"""What the user hears about a solution: an error where graphs failed, a warning where runs do not sum up."""

from __future__ import annotations

from gape._internal.warnings import warn_caller
from gape.solvers.solution import AlgebraicOnlyWarning, Solution, SolveError, Status


def check_on_singular(on_singular: str) -> None:
    """Refuse a way with singular equations that there is not."""
    if on_singular not in ("raise", "least_squares"):
        raise ValueError(f"on_singular must be 'raise' or 'least_squares', got {on_singular!r}")


def raise_or_warn(solution: Solution, throw: bool = True) -> None:
    """Raise for graphs that have no solution, if asked to, and warn of those whose runs do not sum up."""
    if throw and solution.failed:
        raise _error(solution)
    number = solution.status.count(Status.ALGEBRAIC)
    if number:
        warn_caller(f"{number} of {len(solution.status)} graphs: {Status.ALGEBRAIC}", AlgebraicOnlyWarning)


def _error(solution: Solution) -> SolveError:
    first = solution.failed[0]
    counts = {s: n for s, n in solution.counts().items() if s.failed}
    summary = ", ".join(f"{n} {s.name.lower().replace('_', ' ')}" for s, n in counts.items())
    return SolveError(
        f"{len(solution.failed)} of {len(solution.status)} graphs failed ({summary}). First, graph {first}: "
        f"{solution.status[first]} (ρ(μ)ρ(A) ≈ {solution.spectral_radius[first].item():.3g}, "
        f"residual {solution.residual[first].item():.1e}, solver {solution.solver[first]})",
        solution,
    )
