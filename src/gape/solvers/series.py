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

from gape.radius import DENSE_NODES, spectral_radius
from gape.solvers.contraction import contracting_power, substituted
from gape.solvers.outcome import UNKNOWN, YES, Outcome, below_one, code, judge
from gape.solvers.problem import Problem
from gape.solvers.solution import Status

# Steps kept before they are multiplied out: bounds memory, feeds the matrix product well.
BLOCK = 32
ROWS = 4096
# Walk counts beyond this are rescaled (by a power of two, so exactly).
LARGE, SMALL = 2.0**300, 2.0**-300
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
        if not 0 < self.tolerance < 1:
            raise ValueError(f"tolerance must be in (0, 1), got {self.tolerance}")
        if self.max_steps < 1:
            raise ValueError(f"max_steps must be at least 1, got {self.max_steps}")

    def run(self, problem: Problem) -> Outcome:
        mu = problem.transition
        walks = problem.indicator
        single = walks.shape[1] == 1
        walks = walks.squeeze(1) if single else walks
        coefficients = problem.initial.T[problem.used_labels]
        total = _Total()
        steps, exponent, ended = 0, 0, False
        # So many small terms in a row are followed by none that is large. Where nothing contracts it is not known.
        power, small = contracting_power(float(problem.walk.norm_bounds.max()) * mu, self.max_steps), 0
        enough = power or MANY
        # Of any weight: Σ_t max|W_t| Σ|C_t|, the first term here.
        bound = _largest(walks, problem.counts_walks) * float(coefficients.abs().sum())
        lost = torch.zeros(problem.num_graphs, dtype=torch.bool, device=walks.device)
        # ‖W_t C_t‖ ≤ √(n m) max|W_t| ‖C_t‖: a check of all graphs at once, made exact when it gets close.
        slack = _largest(problem.relative((problem.adjacency.sizes * len(coefficients)).to(torch.float64).sqrt()))
        moved = _largest(walks, problem.counts_walks) * _norm(coefficients)
        while True:
            total.add(walks, coefficients)
            walks, coefficients, steps = problem.walk.push(walks), coefficients @ mu, steps + 1
            size = _norm(coefficients)
            largest = _largest(walks, problem.counts_walks)
            bound += largest * size * coefficients.numel()
            moved += largest * size
            diverged = not largest * size * slack < DIVERGED
            # Without cycles the sum ends by itself, after as many steps as the longest path has.
            last = steps >= self.max_steps and not problem.walk.acyclic
            if diverged or last or largest * size * slack <= 1e3 * self.tolerance:
                norm = problem.norms(walks.unsqueeze(1) if single else walks)
                residual = torch.where(norm > 0, problem.relative(norm * size), norm)
                if diverged:
                    # Set the graphs that did it aside, so that the others can go on.
                    lost = lost | ~(residual < HOPELESS)
                    walks = walks.masked_fill(lost[problem.adjacency.batch].view(-1, *[1] * (walks.dim() - 1)), 0.0)
                    largest = _largest(walks)
                residual = torch.where(lost, torch.inf, residual)
                small = small + 1 if bool(((residual <= self.tolerance) | lost).all()) else 0
                ended = largest == 0 or size == 0
                if last or ended or (small >= enough and (power or not problem.walk.acyclic)):
                    break
            else:
                small = 0
            if not SMALL < largest < LARGE and largest > 0:
                shift = round(math.log2(largest))
                walks, coefficients = walks * 2.0**-shift, coefficients * 2.0**shift
                exponent += shift
        radius = problem.transition_radius * self._radius_bound(problem, walks, steps, exponent, lost)
        # What rounding may have cost where terms cancel: then the equation is checked outright.
        careful = not 2.0**-52 * slack * moved <= self.tolerance
        weights, rounding = total.finish(None if careful else problem.out), torch.zeros_like(residual)
        if careful:
            residual, rounding, done = self._checked(problem, weights, lost)
            if not bool((done | lost).all()) and problem.walk.acyclic:
                weights, _ = substituted(problem.apply, problem.source)
                residual, rounding, done = self._checked(problem, weights, lost)
        else:
            done = residual <= self.tolerance
        known = done if power or ended else done & problem.walk.acyclic_graphs
        # A term that is small may be followed by larger ones: these graphs' bounds do not show that it converges.
        unsure = done & ~known & ~below_one(radius)
        if bool(unsure.any()):
            small_enough = unsure & (problem.adjacency.sizes <= DENSE_NODES)
            exact = problem.transition_radius * spectral_radius(problem.walk, small_enough)
            radius = torch.where(small_enough, exact, radius)
            # The others are only seen to have converged.
            known = known | (unsure & ~small_enough)
        status = judge(
            residual,
            radius,
            tolerance=self.tolerance,
            exhausted=done,
            run_sum=known,
            rounding=rounding,
            regular=known | below_one(radius),
        )
        if bool(lost.any()):
            # A finite sum cannot diverge: its terms are too large for the number format.
            status = torch.where(lost & problem.walk.acyclic_graphs, code(Status.OVERFLOW), status)
        return Outcome(
            weights=weights,
            residual=residual,
            spectral_radius=radius,
            separation=(1.0 - radius).clamp(min=0.0),
            unique=torch.where(below_one(radius), YES, UNKNOWN),
            status=status,
            steps=steps,
            radius_kind="bound",
            largest=bound,
        )

    def _checked(self, problem: Problem, weights: Tensor, lost: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """What is left of each graph's equation, what of that rounding explains, and whether that is all."""
        residual = torch.where(lost, torch.inf, problem.residual(weights))
        rounding = problem.rounding(problem.norms(weights), problem.walk.norm_bounds)
        return residual, rounding, residual <= (64.0 * rounding).clamp(min=self.tolerance)

    @staticmethod
    def _radius_bound(problem: Problem, walks: Tensor, steps: int, exponent: int, lost: Tensor) -> Tensor:
        """ρ(A) is at most its norm and, for A ≥ 0, at most the largest count of T-step walks to the power 1/T.

        The counts have to be those of all walks; a source of its own or labels left out say nothing about the others.
        Nor does a count that rescaling has made so small that some of it may be lost.
        """
        bound = problem.walk.norm_bounds
        if problem.counts_walks and len(problem.used_labels) == problem.initial.shape[1]:
            counts = problem.adjacency.segment_max(walks if walks.dim() == 1 else walks.sum(1))
            known = ~lost & (counts >= SMALL)
            tighter = torch.minimum(bound, (counts ** (1.0 / steps)) * 2.0 ** (exponent / steps))
            bound = torch.where(known, tighter, bound)
            if bool(known.all()):
                return bound
        return torch.where(problem.walk.acyclic_graphs, 0.0, bound)


def _norm(coefficients: Tensor) -> float:
    """The 2-norm of a matrix ``[m, k]``, whatever the size of its entries."""
    peak = float(coefficients.abs().amax())
    if not math.isfinite(peak):
        return math.inf
    unit = coefficients / peak if peak > 0 else coefficients
    return peak * float(torch.linalg.vector_norm(unit) if len(unit) == 1 else torch.linalg.matrix_norm(unit, 2))


def _largest(x: Tensor, nonnegative: bool = False) -> float:
    if x.numel() == 0:
        return 0.0
    if nonnegative:
        return float(x.amax())
    low, high = x.aminmax()
    return max(-float(low), float(high))


class _Total:
    """Σ W_t C_t, multiplied out a block of steps at a time and rounded on the way out."""

    def __init__(self) -> None:
        self._walks: list[Tensor] = []
        self._coefficients: list[Tensor] = []
        self._sum: Tensor | None = None

    def add(self, walks: Tensor, coefficients: Tensor) -> None:
        if len(self._walks) == BLOCK:
            c = torch.cat(self._coefficients)
            w = self._rows(slice(None)).to(c.dtype)
            self._sum = w @ c if self._sum is None else self._sum.addmm_(w, c)
            self._walks, self._coefficients = [], []
        self._walks.append(walks)
        self._coefficients.append(coefficients)

    def _rows(self, chosen: slice) -> Tensor:
        """Some rows of the walk counts, ``[rows, steps · labels]``."""
        parts = [walks[chosen] for walks in self._walks]
        return torch.stack(parts).T if parts[0].dim() == 1 else torch.cat(parts, 1)

    def finish(self, out: Tensor | None) -> Tensor:
        """The sum, written to ``out`` if that is given and it can be."""
        c = torch.cat(self._coefficients)
        if self._sum is not None:
            return self._sum.addmm_(self._rows(slice(None)).to(c.dtype), c)
        n = len(self._walks[0])
        if out is None:
            out = torch.empty(n, c.shape[1], dtype=c.dtype, device=c.device)
        # Rows by the thousand, so that they are in cache from the counts to the rounding.
        for start in range(0, n, ROWS):
            rows = slice(start, start + ROWS)
            out[rows] = self._rows(rows).to(c.dtype) @ c
        return out
