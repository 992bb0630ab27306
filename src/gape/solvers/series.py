"""The sum over runs by length, through label-conditioned walk counts: X = Σ_t W_t C_t.

The graphs enter only through the walk counts W and the automaton only through the small C, so a step carries m columns
over the edges, not k, and one matrix product at the end makes the k features. What is left of the equation when the
sum stops before step T is exactly W_T C_T: the certificate is free.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gape._internal.validation import positive
from gape.graph.spectral_radius import MAX_DENSE_RADIUS_NODES, spectral_radius
from gape.solvers.contraction import contracting_power, substituted
from gape.solvers.outcome import UNKNOWN, YES, Result, below_one, check_tolerance, code, judge
from gape.solvers.problem import Problem
from gape.solvers.solution import Status
from gape.solvers.walk_sum import WalkSum

DIVERGED, HOPELESS = 1e290, 1e200
# Small terms in a row after which a sum is taken to have converged where nothing shows that it does.
MANY = 64


@dataclass(frozen=True)
class Series:
    """Add up the runs length by length until what is left is negligible; finite and exact on acyclic graphs.

    Args:
        tolerance: relative residual at which a graph is done.
        max_steps: longest run considered, where there are cycles.
    """

    tolerance: float = 1e-12
    max_steps: int = 10_000

    def __post_init__(self) -> None:
        check_tolerance(self.tolerance)
        positive(self.max_steps, "max_steps")

    def run(self, problem: Problem) -> Result:
        runs, residual, whole = self._add_up(problem)
        # What rounding may have cost where terms cancel: then the equation is checked outright.
        careful = not 2.0**-52 * runs.relative_bound(runs.moved) <= self.tolerance
        weights = runs.weights(None if careful else problem.out)
        rounding, done = torch.zeros_like(residual), residual <= self.tolerance
        if careful:
            residual, rounding, done = self._checked(problem, weights, runs.lost)
            if not bool((done | runs.lost).all()) and problem.walk.acyclic:
                weights, _ = substituted(problem.apply, problem.source)
                residual, rounding, done = self._checked(problem, weights, runs.lost)
        radius, known = _radius(problem, runs, done, done if whole else done & problem.walk.acyclic_graphs)
        status = judge(
            residual,
            radius,
            tolerance=self.tolerance,
            exhausted=done,
            run_sum=known,
            rounding=rounding,
            regular=known | below_one(radius),
        )
        if bool(runs.lost.any()):
            # A finite sum cannot diverge: its terms are too large for the number format.
            status = torch.where(runs.lost & problem.walk.acyclic_graphs, code(Status.OVERFLOW), status)
        return Result(
            weights=weights,
            residual=residual,
            spectral_radius=radius,
            separation=(1.0 - radius).clamp(min=0.0),
            unique=torch.where(below_one(radius), YES, UNKNOWN),
            status=status,
            steps=runs.steps,
            radius_kind="bound",
            largest=runs.weight_bound(),
        )

    def _add_up(self, problem: Problem) -> tuple[WalkSum, Tensor, bool]:
        """The sum, what is left of each graph's equation, and whether all that follows is known to be negligible."""
        acyclic = problem.walk.acyclic
        # So many small terms in a row are followed by none that is large. Where nothing contracts it is not known.
        power = contracting_power(float(problem.walk.norm_bounds.max()) * problem.transition, self.max_steps)
        runs, small = WalkSum(problem), 0
        while True:
            runs.add_term()
            bound = runs.relative_bound(runs.peak)
            diverged = not bound < DIVERGED
            # Without cycles the sum ends by itself, after as many steps as the longest path has.
            last = runs.steps >= self.max_steps and not acyclic
            if not (diverged or last or bound <= 1e3 * self.tolerance):
                small = 0
                continue
            residual = runs.residual()
            if diverged:
                runs.give_up(~(residual < HOPELESS))
                residual = torch.where(runs.lost, torch.inf, residual)
            small = small + 1 if bool(((residual <= self.tolerance) | runs.lost).all()) else 0
            if last or runs.ended or (small >= (power or MANY) and (power or not acyclic)):
                return runs, residual, power is not None or runs.ended

    def _checked(self, problem: Problem, weights: Tensor, lost: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What is left of each graph's equation, what of that rounding explains, and whether that is all."""
        residual = torch.where(lost, torch.inf, problem.residual(weights))
        rounding = problem.rounding(problem.norms(weights), problem.walk.norm_bounds)
        return residual, rounding, residual <= (64.0 * rounding).clamp(min=self.tolerance)


def _radius(problem: Problem, runs: WalkSum, done: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
    """A bound of each ρ(μ)ρ(A); and where the sum is known to be whole or, on large graphs, at least seen to be."""
    radius = problem.transition_radius * runs.radius_bound()
    # A term that is small may be followed by larger ones: these graphs' bounds do not show that it converges.
    unsure = done & ~known & ~below_one(radius)
    if not bool(unsure.any()):
        return radius, known
    small_enough = unsure & (problem.adjacency.sizes <= MAX_DENSE_RADIUS_NODES)
    exact = problem.transition_radius * spectral_radius(problem.walk, small_enough)
    return torch.where(small_enough, exact, radius), known | (unsure & ~small_enough)
