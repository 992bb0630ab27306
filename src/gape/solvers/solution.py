"""The result of a solve: weights, a certificate per graph, and the errors and warnings about them."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Literal

from torch import Tensor

from gape._internal.warnings import warn_caller

#: Action if the equation has no solution.
OnSingular = Literal["raise", "least_squares"]


class Status(Enum):
    """Status of the solution of one graph; the value explains it and says what to change."""

    RUN_SUM = "the weights are the sum over all runs, by length, which converges"
    ALGEBRAIC = (
        "the weights solve the equation, but the sum over runs diverges (ρ(μ)ρ(A) ≥ 1); lower the damping below "
        "1/ρ(A), or walk on matrix='random_walk', if the run sum is what you want"
    )
    SOLVED = (
        "the weights solve the equation, but whether they are also the sum over runs is not known: ρ(μ)ρ(A) is only "
        "estimated, or closer to 1 than rounding can tell; lower the damping if you need the run sum"
    )
    LEAST_SQUARES = (
        "the equation is singular and has no solution; the weights are its minimum-norm least-squares solution "
        "(on_singular='least_squares' asked for it)"
    )
    SINGULAR = (
        "the equation is singular: an eigenvalue of μ times one of the walk matrix is 1 and the labels excite it, so "
        "there is no solution; lower the damping, walk on another matrix, or ask for on_singular='least_squares'"
    )
    ILL_CONDITIONED = (
        "solved, but so ill-conditioned that rounding errors may have grown to the relative error in error_bound; "
        "lower the damping, or take a transition with better-conditioned eigenvectors"
    )
    NOT_CONVERGED = (
        "the solver used up its steps; allow more steps, lower the damping, or choose another solver "
        "(Auto, Spectral or Schur)"
    )
    OVERFLOW = "the weights exceed the floating-point range; lower the damping or rescale the edge weights"
    NON_FINITE_INPUT = (
        "the automaton or the edge weights hold NaN or infinity; they were changed after they were checked"
    )

    # Members are compared by identity. Enum hashes their names, which is slow for a list of many graphs.
    __hash__ = object.__hash__

    @property
    def ok(self) -> bool:
        """True if the weights solve the equation."""
        return self in (Status.RUN_SUM, Status.ALGEBRAIC, Status.SOLVED)

    @property
    def failed(self) -> bool:
        """True if the weights neither solve the equation nor are the least-squares solution asked for."""
        return not self.ok and self is not Status.LEAST_SQUARES

    def __str__(self) -> str:
        return f"{self.name.lower().replace('_', ' ')}: {self.value}"


class SolveError(ArithmeticError):
    """The equation of some graph could not be solved. ``solution`` holds the weights and certificates."""

    def __init__(self, message: str, solution: Solution) -> None:
        super().__init__(message)
        self.solution = solution


class AlgebraicOnlyWarning(UserWarning):
    """The equation has a solution, but it is not, or not known to be, the sum over runs."""


class LeastSquaresWarning(UserWarning):
    """The equation has no solution, and a least-squares solution is returned without its certificate."""


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """The weights and a certificate per graph.

    Args:
        weights: ``[n, k]``, total weight of the runs that end in each node and state (P ∘ τℓ, transposed); for
            ``readout="closed"`` of those that also began there. For ``readout="pair"`` ``[Σ n², k]``, the pairs of
            each graph row by row: from, then to.
        status: how the solve ended on each graph.
        residual: ``[graphs]``, ‖P - μᵀPA - αℓ‖ / ‖αℓ‖ in float64, before rounding to ``dtype``. Where the weights are
            far larger than αℓ, rounding alone makes it large; what rounding may add is included where
            it exceeds 1e-10, unless ``error_bound`` says more.
        spectral_radius: ``[graphs]``, ρ(μ)·ρ(A); for typed transitions the radius of the whole operator.
            :class:`Krylov` and :class:`FixedPoint` only see the part of the operator that the right-hand side excites:
            an estimate can be too small. Statuses do not rest on estimates, but on bounds that hold in spite of
            rounding; where these do not tell, the status is ``SOLVED``.
        radius_kind: ``"exact"``, an upper ``"bound"`` or an ``"estimate"``.
        separation: ``[graphs]``, min |1 - λᵢδⱼ| over the eigenvalues that the right-hand side excites.
            :class:`Schur`, :class:`Kronecker`, :class:`Series` and the readouts "closed" and "pair" take it over all
            eigenvalues, which is a lower bound. NaN if not known.
        unique: per graph ``True``, ``False``, or ``None`` if not known.
        error_bound: ``[graphs]``, a bound of ‖P - P*‖ / ‖P‖, P* the exact solution, where rounding errors grow so much
            that it was computed; infinite if none was found, NaN if none was needed.
        solver: the name of the solver of each graph.
        steps: products with the walk matrix, or the size of the dense problem; the maximum over all graphs.
    """

    weights: Tensor
    status: list[Status]
    residual: Tensor
    spectral_radius: Tensor
    radius_kind: str
    separation: Tensor
    unique: list[bool | None]
    error_bound: Tensor
    solver: list[str]
    steps: int

    @property
    def ok(self) -> bool:
        """True if every graph's equation was solved."""
        return all(status.ok for status in self._kinds)

    @cached_property
    def _kinds(self) -> set[Status]:
        """The different statuses."""
        return set(self.status)

    @cached_property
    def failed(self) -> list[int]:
        """The graphs with a failed status."""
        if not any(status.failed for status in self._kinds):
            return []
        return [i for i, status in enumerate(self.status) if status.failed]

    def counts(self) -> dict[Status, int]:
        """Count the graphs of each status."""
        return dict(Counter(self.status))

    def checked(self, throw: bool = True) -> Solution:
        """Raise :class:`SolveError` for failed graphs if ``throw``; warn of graphs whose run sum diverges."""
        if throw and self.failed:
            raise SolveError(self._failure(), self)
        for status in (Status.ALGEBRAIC, Status.SOLVED):
            if status in self._kinds:
                number = self.status.count(status)
                warn_caller(f"{number} of {len(self.status)} graphs: {status}", AlgebraicOnlyWarning)
        return self

    def _failure(self) -> str:
        first = self.failed[0]
        counts = {s: n for s, n in self.counts().items() if s.failed}
        error = self.error_bound[first].item()
        bound = "" if math.isnan(error) else f", error bound {error:.1e}"
        summary = ", ".join(f"{n} {s.name.lower().replace('_', ' ')}" for s, n in counts.items())
        return (
            f"{len(self.failed)} of {len(self.status)} graphs failed ({summary}). First, graph {first}: "
            f"{self.status[first]} (ρ(μ)ρ(A) ≈ {self.spectral_radius[first].item():.3g}, "
            f"residual {self.residual[first].item():.1e}{bound}, solver {self.solver[first]})"
        )

    def __repr__(self) -> str:
        counts = ", ".join(f"{status.name.lower()}={number}" for status, number in self.counts().items())
        worst = f"{self.residual.max().item():.1e}" if self.residual.numel() else "none"
        solvers = "/".join(sorted(set(self.solver)))
        return f"Solution(weights={list(self.weights.shape)}, {counts}, residual≤{worst}, solver={solvers})"
