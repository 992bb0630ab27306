r"""The sum over runs by length, through label-conditioned walk counts.

    X = Σ_t W_t C_t,    W_t = (Aᵀ)ᵗ ℓᵀ  [n, m],    C_t = αᵀ μᵗ  [m, k].

The graphs enter only through the walk counts W and the automaton only through the small C, so a step carries m columns
over the edges, not k, and one matrix product at the end makes the k features. What is left of the equation when the
sum stops before step T is exactly W_T C_T: the certificate is free.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gape.solvers.outcome import UNKNOWN, YES, Outcome, judge
from gape.solvers.problem import Problem

# Steps kept before they are multiplied out: bounds memory, feeds the matrix product well.
BLOCK = 32
# Walk counts beyond this are rescaled (by a power of two, so exactly).
LARGE, SMALL = 2.0**300, 2.0**-300
DIVERGED = 1e200


@dataclass(frozen=True)
class Series:
    """Add up the runs length by length until what is left is negligible; finite and exact on acyclic graphs.

    Args:
        tolerance: relative residual at which a graph is done.
        max_steps: longest run considered.
    """

    tolerance: float = 1e-12
    max_steps: int = 10_000

    def __post_init__(self) -> None:
        if not 0 < self.tolerance < 1:
            raise ValueError(f"tolerance must be in (0, 1), got {self.tolerance}")
        if self.max_steps < 1:
            raise ValueError(f"max_steps must be at least 1, got {self.max_steps}")

    def run(self, problem: Problem) -> Outcome:
        adjacency, mu = problem.adjacency, problem.transition
        walks = problem.indicator
        single = walks.shape[1] == 1
        walks = walks.squeeze(1) if single else walks
        coefficients = problem.initial.T[problem.used_labels]
        kept: list[Tensor] = []
        factors: list[Tensor] = []
        total: Tensor | None = None
        steps, exponent = 0, 0
        residual = problem.relative(problem.source_norm)
        ended = torch.zeros_like(residual, dtype=torch.bool)
        while True:
            kept.append(walks)
            factors.append(coefficients)
            if len(kept) == BLOCK:
                total = _multiply_out(kept, factors, total, single)
                kept, factors = [], []
            walks, coefficients, steps = problem.walk.push(walks), coefficients @ mu, steps + 1
            squares = walks.square() if single else walks.square().sum(1)
            norm = adjacency.segment_sum(squares).sqrt()
            size = torch.linalg.vector_norm(coefficients) if single else torch.linalg.matrix_norm(coefficients, 2)
            residual = problem.relative(norm * size)
            ended = norm == 0
            largest = float(norm.max()) if len(norm) else 0.0
            if bool((residual <= self.tolerance).all()) or steps >= self.max_steps:
                break
            if not bool((residual < DIVERGED).all()):
                break
            if not SMALL < largest < LARGE and largest > 0:
                shift = round(math.log2(largest))
                walks, coefficients = walks * 2.0**-shift, coefficients * 2.0**shift
                exponent += shift
        total = _multiply_out(kept, factors, total, single)
        radius = problem.transition_radius * self._radius_bound(problem, walks, steps, exponent)
        return Outcome(
            weights=total,
            residual=residual,
            spectral_radius=radius,
            separation=torch.where(ended, 1.0, (1.0 - radius).clamp(min=0.0)),
            unique=torch.where(radius < 1, YES, UNKNOWN),
            status=judge(
                residual, radius, tolerance=self.tolerance, exhausted=False, run_sum=residual <= self.tolerance
            ),
            steps=steps,
            radius_kind="bound",
        )

    @staticmethod
    def _radius_bound(problem: Problem, walks: Tensor, steps: int, exponent: int) -> Tensor:
        """ρ(A) is at most its norm and, for A ≥ 0, at most the largest count of T-step walks to the power 1/T."""
        bound = problem.walk.norm_bounds
        if problem.walk.nonnegative and len(problem.used_labels) == problem.initial.shape[1]:
            counts = problem.adjacency.segment_max(walks if walks.dim() == 1 else walks.sum(1))
            bound = torch.minimum(bound, (counts ** (1.0 / steps)) * 2.0 ** (exponent / steps))
        return bound


def _multiply_out(kept: list[Tensor], factors: list[Tensor], total: Tensor | None, single: bool) -> Tensor:
    if not kept:
        assert total is not None
        return total
    w = torch.stack(kept).T if single else torch.cat(kept, 1)
    c = torch.cat(factors)
    w = w.to(c.dtype)
    return w @ c if total is None else total.addmm_(w, c)
