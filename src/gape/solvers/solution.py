"""What a solve returns: the weights, and per graph how far they can be trusted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from typing import Literal

from torch import Tensor

#: Runs that a solve reads out: into a node, back to where they began, or between all pairs of nodes.
ReadoutName = Literal["node", "closed", "pair"]
#: What to do where the equation has no solution.
OnSingular = Literal["raise", "least_squares"]


class Status(Enum):
    """How a solve ended on one graph; the value says what it means and what to change."""

    RUN_SUM = "the weights are the sum over all runs, by length, which converges"
    ALGEBRAIC = (
        "the weights solve the equation, but the sum over runs diverges (ρ(μ)ρ(A) ≥ 1); lower the damping below "
        "1/ρ(A), or walk on matrix='random_walk', if the run sum is what you want"
    )
    LEAST_SQUARES = (
        "the equation is singular and has no solution; the weights are the shortest ones that come nearest "
        "(on_singular='least_squares' asked for them)"
    )
    SINGULAR = (
        "the equation is singular: an eigenvalue of μ times one of the walk matrix is 1 and the labels excite it, so "
        "there is no solution; lower the damping, walk on another matrix, or ask for on_singular='least_squares'"
    )
    NOT_CONVERGED = (
        "the solver used up its steps; allow more steps, lower the damping, or choose another solver "
        "(Auto, Spectral or Schur)"
    )
    OVERFLOW = "the weights exceed the floating-point range; lower the damping or rescale the edge weights"
    NON_FINITE_INPUT = (
        "the automaton or the edge weights hold NaN or infinity; they were changed after they were checked"
    )

    # Members are compared by identity; Enum would hash their names, slowly, for every one of many graphs.
    __hash__ = object.__hash__

    @property
    def ok(self) -> bool:
        """Whether the weights solve the equation."""
        return self in (Status.RUN_SUM, Status.ALGEBRAIC)

    @property
    def failed(self) -> bool:
        """Whether the weights are not what was asked for."""
        return not self.ok and self is not Status.LEAST_SQUARES

    def __str__(self) -> str:
        return f"{self.name.lower().replace('_', ' ')}: {self.value}"


class SolveError(ArithmeticError):
    """A graph whose equation could not be solved. ``solution`` holds what was computed, for a look at it."""

    def __init__(self, message: str, solution: Solution) -> None:
        super().__init__(message)
        self.solution = solution


class AlgebraicOnlyWarning(UserWarning):
    """The equation has a solution, but it is not the sum over runs."""


class LeastSquaresWarning(UserWarning):
    """The equation has no solution, and what comes nearest is returned without its certificate."""


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """The weights of all nodes and a certificate per graph.

    Args:
        weights: ``[n, k]``, total weight of the runs that end in each node and state (P ∘ τℓ, transposed).
        status: how the solve ended on each graph.
        residual: ``[graphs]``, ‖P - μᵀPA - αℓ‖ / ‖αℓ‖ as the solver knows it, before any rounding to float32. Where
            weights are far larger than αℓ rounding alone makes it large.
        spectral_radius: ``[graphs]``, ρ(μ)·ρ(A); for typed transitions the radius of the whole operator. On graphs of
            more than 512 nodes :class:`Krylov` has that of the part of A that the labels excite, and always
            :class:`FixedPoint`, unless it is a bound, that of the part of the operator that the source excites: it can
            be smaller, and with it ``RUN_SUM`` be said of a sum that diverges far from where runs begin.
        radius_kind: whether that is ``"exact"``, an upper ``"bound"`` or an ``"estimate"``.
        separation: ``[graphs]``, min |1 - λᵢδⱼ| over the eigenvalues that the source excites, as far as the solver can
            tell: over all of them, hence a lower bound, from :class:`Schur`, :class:`Kronecker` and :class:`Series`;
            NaN when not known.
        unique: per graph ``True``, ``False``, or ``None`` when not known.
        solver: the name of the solver that solved each graph.
        steps: products with the walk matrix (or the size of the dense problem), the most of any graph.
    """

    weights: Tensor
    status: list[Status]
    residual: Tensor
    spectral_radius: Tensor
    radius_kind: str
    separation: Tensor
    unique: list[bool | None]
    solver: list[str]
    steps: int

    @property
    def ok(self) -> bool:
        """Whether every graph's equation was solved."""
        return all(status.ok for status in set(self.status))

    @cached_property
    def failed(self) -> list[int]:
        """The graphs whose weights are not what was asked for."""
        if not any(status.failed for status in set(self.status)):
            return []
        return [i for i, status in enumerate(self.status) if status.failed]

    def counts(self) -> dict[Status, int]:
        """How many graphs ended in each status."""
        return dict(Counter(self.status))

    def __repr__(self) -> str:
        counts = ", ".join(f"{status.name.lower()}={number}" for status, number in self.counts().items())
        worst = f"{self.residual.max().item():.1e}" if self.residual.numel() else "none"
        solvers = "/".join(sorted(set(self.solver)))
        return f"Solution(weights={list(self.weights.shape)}, {counts}, residual≤{worst}, solver={solvers})"
