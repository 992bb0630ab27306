"""The sum over runs by length, through label-conditioned walk counts.

    X = Σ_t W_t C_t,      W_t = (Aᵀ)ᵗ ℓᵀ ``[n, m]``,      C_t = αᵀ μᵗ ``[m, k]``

The graphs enter only through the walk counts W and the automaton only through the small C, so a step carries m columns
over the edges, not k, and one matrix product at the end makes the k features. If the sum stops before step T, the
residual of the equation is exactly W_T C_T: the certificate is free.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gape._internal.validation import positive
from gape.linalg.radius_bounds import EPSILON
from gape.solvers.base import Result, Solver
from gape.solvers.certificate import (
    UNKNOWN,
    YES,
    RadiusBounds,
    below_one,
    check_tolerance,
    code,
    contracting_power,
    judge,
    radius_bounds_of,
    with_rounding,
)
from gape.solvers.equation import Equation
from gape.solvers.kernels import MAX_KERNEL_STEPS, walk_sums
from gape.solvers.solution import Status

Operator = Callable[[Tensor], Tensor]

# A term of this relative size means that some graph diverges; graphs whose residual is this large are given up.
DIVERGED_TERM, DIVERGED_RESIDUAL = 1e290, 1e200
# Small terms in a row after which a sum counts as converged where no norm proves it.
SMALL_TERMS_IN_A_ROW = 64
# Steps kept before they are multiplied out: bounds memory and keeps the matrix product efficient.
BLOCK_STEPS = 32
# Rows multiplied at a time, so that they stay in cache from the counts to the rounding.
BLOCK_ROWS = 4096
# Most terms that a kernel adds up on graphs without a contracting norm, and most walk counts that it keeps for them.
MAX_LONG_SUM, MAX_KEPT_COUNTS = 1024, 2**23
# Walk counts outside this range are rescaled, by a power of two and so exactly.
MIN_COUNT, MAX_COUNT = 2.0**-300, 2.0**300


@dataclass(frozen=True)
class Series(Solver):
    """Add up the runs length by length until the rest is negligible; finite and exact on acyclic graphs.

    Args:
        tolerance: relative residual at which a graph is done.
        max_steps: longest run considered on graphs with cycles.
    """

    tolerance: float = 1e-12
    max_steps: int = 10_000

    iterative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_tolerance(self.tolerance)
        positive(self.max_steps, "max_steps")

    def solve(self, equation: Equation) -> Result:
        runs, residual, contracts = self._add_up(equation)
        # Where terms may cancel, rounding errors can exceed the tolerance: then the residual is computed.
        growth_per_step = max(1.0, equation.transition_norm * float(equation.walk.norm_bounds.max()))
        careful = not EPSILON * growth_per_step * runs.relative_bound(runs.moved) <= self.tolerance
        weights = runs.weights(None if careful else equation.out)
        rounding, done = torch.zeros_like(residual), residual <= self.tolerance
        if careful:
            residual, rounding, done = self._checked(equation, weights, runs.given_up)
            if not bool((done | runs.given_up).all()) and equation.walk.acyclic:
                weights, _ = substitute(equation.apply, equation.rhs)
                residual, rounding, done = self._checked(equation, weights, runs.given_up)
        radius, regular = _radius(equation, runs, done, contracts)
        # That the sum for this right-hand side ends does not make the equation regular: another one's may diverge.
        converges = torch.where(done & runs.ended, YES, regular)
        status = judge(
            residual,
            converges,
            tolerance=self.tolerance,
            exhausted=done,
            rounding=rounding,
            regular=converges == YES,
        )
        if bool(runs.given_up.any()):
            # A finite sum cannot diverge: its terms are too large for the number format.
            status = torch.where(runs.given_up & equation.walk.acyclic_graphs, code(Status.OVERFLOW), status)
        unique = torch.where(regular == YES, YES, UNKNOWN)
        residual = with_rounding(residual, rounding)
        return _result(weights, residual, radius, unique, status, runs.steps, runs.weight_bound())

    def compiled(
        self,
        equation: Equation,
        chosen: Tensor | None = None,
        *,
        relative: bool = False,
        bounds: RadiusBounds | None = None,
    ) -> Result | None:
        """Add up by the kernel, which cannot be ``relative``; ``bounds``: of ρ(μ)ρ(A), if they are known."""
        if relative:
            return None
        norms = equation.walk.two_norm_bounds
        norm = float((norms if chosen is None else norms[chosen]).max())
        in_a_row, steps = contracting_power(norm * equation.transition, MAX_KERNEL_STEPS), MAX_KERNEL_STEPS
        if in_a_row is not None:
            bounds = None
        else:
            # No norm proves that small terms are followed by small ones only. On directed graphs bounds of the radius
            # prove that the sum converges: then the equation has one solution, and the next term is the residual.
            bounds = radius_bounds_of(equation) if bounds is None else bounds
            known = bounds.converges == YES
            chosen = known if chosen is None else chosen & known
            if not bool(chosen.any()):
                return None
            width = int(equation.sizes.max()) * len(equation.used_labels)
            in_a_row, steps = 1, max(MAX_KERNEL_STEPS, min(MAX_LONG_SUM, MAX_KEPT_COUNTS // width))
        coefficients, sizes = _coefficients(equation, norm, self.tolerance, in_a_row, steps)
        if not bool(torch.isfinite(sizes).all()):
            return None
        counts = equation.counts_walks and len(equation.used_labels) == equation.initial.shape[1]
        sums = walk_sums(equation, coefficients, sizes, self.tolerance, in_a_row, counts, chosen)
        slack = equation.relative((equation.sizes * len(equation.used_labels)).to(torch.float64).sqrt())
        # Where terms may cancel, rounding errors can exceed the tolerance.
        rounding = EPSILON * max(1.0, equation.transition_norm * norm) * sums.moved * slack
        certified = (sums.residual <= self.tolerance) & (rounding <= self.tolerance)
        bound = torch.minimum(equation.walk.norm_bounds, sums.growth)
        if not counts:
            bound = torch.where(equation.walk.acyclic_graphs, 0.0, bound)
        status = torch.where(certified, code(Status.RUN_SUM), code(Status.NOT_CONVERGED))
        most = float(sums.moved[certified].max()) * coefficients[0].numel() if bool(certified.any()) else 0.0
        radius, unique = equation.transition_bounds[1] * bound, torch.where(certified, YES, UNKNOWN)
        radius = radius if bounds is None else torch.minimum(radius, bounds.upper)
        result = _result(sums.weights, sums.residual, radius, unique, status, sums.steps, most)
        result.solver = [self.name] * equation.num_graphs
        return result

    def _add_up(self, equation: Equation) -> tuple[WalkSum, Tensor, bool]:
        """The sum, each graph's relative residual, and whether norms of A and μ prove that every sum converges."""
        acyclic = equation.walk.acyclic
        # Consecutive small terms that prove convergence; None without proof.
        power = contracting_power(float(equation.walk.norm_bounds.max()) * equation.transition, self.max_steps)
        runs, small = WalkSum(equation), 0
        while True:
            runs.add_term()
            bound = runs.relative_bound(runs.peak)
            diverged = not bound < DIVERGED_TERM
            # On acyclic graphs the sum ends by itself, after as many steps as the longest path has.
            last = runs.steps >= self.max_steps and not acyclic
            if not (diverged or last or bound <= 1e3 * self.tolerance):
                small = 0
                continue
            residual = runs.residual()
            if diverged:
                runs.give_up(~(residual < DIVERGED_RESIDUAL))
                residual = torch.where(runs.given_up, torch.inf, residual)
            small = small + 1 if bool(((residual <= self.tolerance) | runs.given_up).all()) else 0
            if last or runs.ended or (small >= (power or SMALL_TERMS_IN_A_ROW) and (power or not acyclic)):
                return runs, residual, power is not None

    def _checked(self, equation: Equation, weights: Tensor, given_up: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Each graph's residual from the equation, the part that rounding explains, and whether that is all of it."""
        residual = torch.where(given_up, torch.inf, equation.residual(weights))
        rounding = equation.rounding(equation.norms(weights), equation.walk.norm_bounds)
        return residual, rounding, residual <= (64.0 * rounding).clamp(min=self.tolerance)


def _result(
    weights: Tensor,
    residual: Tensor,
    radius: Tensor,
    unique: Tensor,
    status: Tensor,
    steps: int,
    weight_bound: float,
) -> Result:
    """Sums of either back end; ``radius`` is an upper bound of ρ(μ)ρ(A)."""
    return Result(
        weights=weights,
        residual=residual,
        spectral_radius=radius,
        separation=(1.0 - radius).clamp(min=0.0),
        unique=unique,
        status=status,
        steps=steps,
        radius_kind="bound",
        weight_bound=weight_bound,
    )


def _coefficients(equation: Equation, norm: float, tolerance: float, in_a_row: int, most: int) -> tuple[Tensor, Tensor]:
    """C_t = αᵀ μᵗ ``[steps, labels, k]`` and ‖C_t‖₂, for as many steps as graphs with ‖A‖₂ ≤ ``norm`` can need."""
    found = [equation.initial.T[equation.used_labels]]
    sizes, growth, enough = [_norm(found[0])], 1.0, 0
    while len(found) <= most and enough < in_a_row + 2:
        found.append(found[-1] @ equation.transition)
        sizes.append(_norm(found[-1]))
        growth *= norm
        enough = enough + 1 if growth * sizes[-1] <= 0.01 * tolerance * sizes[0] else 0
    return torch.stack(found), torch.tensor(sizes, dtype=torch.float64)


def _radius(equation: Equation, runs: WalkSum, done: Tensor, contracts: bool) -> tuple[Tensor, Tensor]:
    """Bound each ρ(μ)ρ(A), and decide whether it is below 1; ``contracts``: norms prove it where the sum is done."""
    radius = equation.transition_bounds[1] * runs.radius_bound()
    regular = torch.where((done & contracts) | below_one(radius), YES, UNKNOWN)
    # A small term may be followed by larger ones.
    unsure = done & (regular == UNKNOWN)
    if bool(unsure.any()):
        bounds = radius_bounds_of(equation)
        regular = torch.where(unsure, bounds.converges, regular)
        if not runs.ended:
            radius = torch.where(unsure, torch.minimum(radius, bounds.upper), radius)
    return radius, regular


def substitute(apply: Operator, rhs: Tensor) -> tuple[Tensor, int]:
    """Solve ``X = apply(X) + rhs`` on acyclic graphs by substitution along the edges; return X and the steps taken.

    After t steps the rows of all nodes at the end of paths of at most t edges are final, so no large terms cancel, as
    they may in a sum by length. With nilpotent transitions it is the states that are final, on any graph. Weights that
    overflow stay within their graph.
    """
    x, steps = rhs, 0
    while steps < max(rhs.shape):
        before, x, steps = x, apply(x) + rhs, steps + 1
        if torch.equal(x.nan_to_num(), before.nan_to_num()):
            break
    return x, steps


class WalkSum:
    """Partial sums of X = Σ_t W_t C_t of all graphs together; the next term is the residual of the equation.

    Attributes:
        steps: number of terms added.
        moved: Σ max|W_t| ‖C_t‖₂ over these; no weight is larger than that times the size of C.
        peak: max|W| ‖C‖₂ of the next term.
        ended: whether the next term, and so every later one, is 0.
        given_up: ``[graphs]``, True for graphs that were given up.
    """

    def __init__(self, equation: Equation) -> None:
        self._equation = equation
        walks = equation.indicator
        self._walks = walks.squeeze(1) if walks.shape[1] == 1 else walks
        self._coefficients = equation.initial.T[equation.used_labels]
        self._exponent = 0
        self._blocks = _Blocks()
        self.steps, self.moved = 0, 0.0
        self.given_up = torch.zeros(equation.num_graphs, dtype=torch.bool, device=walks.device)
        self._measure()
        # ‖W C‖ ≤ √(n m) max|W| ‖C‖₂, over the norm of the right-hand side, for every graph.
        rows = (equation.sizes * len(self._coefficients)).to(torch.float64)
        self._slack = _largest(equation.relative(rows.sqrt()))

    def _measure(self) -> None:
        self._largest = _largest(self._walks, self._equation.counts_walks)
        self._size = _norm(self._coefficients)
        self.peak = self._largest * self._size
        self.ended = self._largest == 0 or self._size == 0

    def add_term(self) -> None:
        """Add the next term, and compute the one after it."""
        if self._largest > 0 and not MIN_COUNT < self._largest < MAX_COUNT:
            shift = round(math.log2(self._largest))
            self._walks, self._coefficients = self._walks * 2.0**-shift, self._coefficients * 2.0**shift
            self._exponent += shift
        self._blocks.add(self._walks, self._coefficients)
        self.moved += self.peak
        self._walks = self._equation.walk.push(self._walks)
        self._coefficients = self._coefficients @ self._equation.transition
        self.steps += 1
        self._measure()

    def give_up(self, graphs: Tensor) -> None:
        """Exclude these ``[graphs]`` from the sum, which continues for the others."""
        self.given_up = self.given_up | graphs
        rows = self.given_up[self._equation.adjacency.batch].view(-1, *[1] * (self._walks.dim() - 1))
        self._walks = self._walks.masked_fill(rows, 0.0)
        self._measure()

    def relative_bound(self, peaks: float) -> float:
        """Bound terms of these peaks relative to the right-hand side: all graphs at once, at no cost."""
        return peaks * self._slack

    def residual(self) -> Tensor:
        """``[graphs]``: norm of the next term over that of the right-hand side; infinite for graphs given up."""
        norm = self._equation.norms(self._walks.unsqueeze(1) if self._walks.dim() == 1 else self._walks)
        relative = torch.where(norm > 0, self._equation.relative(norm * self._size), norm)
        return torch.where(self.given_up, torch.inf, relative)

    def weight_bound(self) -> float:
        """Return an upper bound of all weights."""
        return self.moved * self._coefficients.numel()

    def weights(self, out: Tensor | None) -> Tensor:
        """The sum ``[n, k]``, written to ``out`` if it is given and one block holds all steps."""
        return self._blocks.finish(out)

    def radius_bound(self) -> Tensor:
        """``[graphs]``: ρ(A) is at most a norm and, for A ≥ 0, the largest count of T-step walks to the power 1/T.

        The counts have to be of all walks: a given right-hand side, or labels left out, bound nothing. Nor does a
        count so small after rescaling that some of it may be lost.
        """
        equation = self._equation
        bound = equation.walk.norm_bounds
        if equation.counts_walks and len(equation.used_labels) == equation.initial.shape[1]:
            counts = equation.adjacency.segment_max(self._walks if self._walks.dim() == 1 else self._walks.sum(1))
            known = ~self.given_up & (counts >= MIN_COUNT)
            tighter = torch.minimum(bound, (counts ** (1.0 / self.steps)) * 2.0 ** (self._exponent / self.steps))
            bound = torch.where(known, tighter, bound)
            if bool(known.all()):
                return bound
        return torch.where(equation.walk.acyclic_graphs, 0.0, bound)


class _Blocks:
    """Σ W_t C_t, multiplied out one block of steps at a time and rounded while it is written."""

    def __init__(self) -> None:
        self._walks: list[Tensor] = []
        self._coefficients: list[Tensor] = []
        self._sum: Tensor | None = None

    def add(self, walks: Tensor, coefficients: Tensor) -> None:
        if len(self._walks) == BLOCK_STEPS:
            c = torch.cat(self._coefficients)
            w = self._rows(slice(None)).to(c.dtype)
            self._sum = w @ c if self._sum is None else self._sum.addmm_(w, c)
            self._walks, self._coefficients = [], []
        self._walks.append(walks)
        self._coefficients.append(coefficients)

    def _rows(self, chosen: slice) -> Tensor:
        """Return some rows of the walk counts, ``[rows, steps · labels]``."""
        parts = [walks[chosen] for walks in self._walks]
        return torch.stack(parts).T if parts[0].dim() == 1 else torch.cat(parts, 1)

    def finish(self, out: Tensor | None) -> Tensor:
        c = torch.cat(self._coefficients)
        if self._sum is not None:
            return self._sum.addmm_(self._rows(slice(None)).to(c.dtype), c)
        n = len(self._walks[0])
        if out is None:
            out = torch.empty(n, c.shape[1], dtype=c.dtype, device=c.device)
        for start in range(0, n, BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            out[rows] = self._rows(rows).to(c.dtype) @ c
        return out


def _norm(coefficients: Tensor) -> float:
    """The 2-norm of a matrix ``[m, k]``, without over- or underflow."""
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
