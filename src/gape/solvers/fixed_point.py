"""Fixed-point iteration and restarted GMRES for X = F(X) + S, also with transitions per node label or edge type.

With several transitions this is not a Sylvester equation, but still a sparse fixed point: summed directly if a norm
proves that F contracts fast, by substitution if all runs end (no cycle in the graphs, or in the transitions), and by
GMRES (Saad & Schultz, 1986) otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gape._internal.validation import positive
from gape.graph.batching import Padding
from gape.solvers.base import Result, Solver
from gape.solvers.certificate import (
    MAX_ROUNDING_RESIDUAL,
    UNKNOWN,
    YES,
    below_one,
    check_tolerance,
    code,
    judge,
    with_rounding,
)
from gape.solvers.equation import Equation
from gape.solvers.kronecker import operator_radius_bounds
from gape.solvers.krylov import Arnoldi
from gape.solvers.series import Operator, substitute
from gape.solvers.solution import Status


@dataclass(frozen=True)
class FixedPoint(Solver):
    """Sum the runs if they contract fast, use restarted GMRES otherwise; carries all k columns.

    Args:
        tolerance: relative residual at which a graph is done.
        restart: dimension at which GMRES restarts; memory grows with it.
        max_steps: maximum number of products with F.
    """

    tolerance: float = 1e-12
    restart: int = 100
    max_steps: int = 5000

    typed: ClassVar[bool] = True
    iterative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_tolerance(self.tolerance)
        positive(self.restart, "restart")
        positive(self.max_steps, "max_steps")

    def solve(self, equation: Equation) -> Result:
        bound = equation.radius_bound
        x, residual, radius, steps = self.solve_operator(equation, equation.apply, equation.rhs, estimate=True)
        bounds = operator_radius_bounds(equation)
        converges = bounds.converges
        known = below_one(bound)
        radius = torch.where(known, bounds.upper, bounds.clamp(radius))
        status = judge(residual, converges, tolerance=self.tolerance, exhausted=False)
        # The residual of large weights is a small difference of large numbers, and may be 0 by chance.
        rounding = equation.rounding(equation.norms(x), equation.walk.two_norm_bounds)
        ends = equation.finite_runs
        # Stagnation, or weights too large to be accurate: resolve_singular() decides by the dense system.
        suspect = (status == code(Status.NOT_CONVERGED)) | (rounding > MAX_ROUNDING_RESIDUAL)
        status = torch.where(suspect, torch.where(ends, code(Status.ILL_CONDITIONED), code(Status.SINGULAR)), status)
        return Result(
            weights=x,
            residual=torch.where(ends, with_rounding(residual, rounding), residual + rounding),
            spectral_radius=radius,
            separation=torch.where(known, 1.0 - bound, torch.nan),
            unique=torch.where(converges == YES, YES, UNKNOWN),
            status=status,
            steps=steps,
            radius_kind="bound" if bool(known.all()) else "estimate",
            confirmed=False,
        )

    def solve_operator(
        self, equation: Equation, apply: Operator, rhs: Tensor, estimate: bool = False
    ) -> tuple[Tensor, Tensor, Tensor, int]:
        """Solve ``X = apply(X) + rhs`` for any ``rhs`` ``[n, k]``.

        Returns X, the relative residual, the operator's radius and the number of steps. The radius is a bound where
        one is free, an estimate from GMRES if ``estimate``, and 0 otherwise.
        """
        contracts = bool((equation.transition_norm * equation.walk.two_norm_bounds < 0.8).all())
        if contracts and not equation.nilpotent:
            return self._sum(equation, apply, rhs)
        if equation.walk.acyclic or equation.nilpotent:
            x, steps = substitute(apply, rhs)
            # The residual is zero, unless the weights overflow.
            left = equation.norms(apply(x) + rhs - x)
            residual = _ratio(left, equation.norms(rhs)).nan_to_num(nan=torch.inf)
            return x, residual, equation.radius_bound, steps
        return self._gmres(equation, apply, rhs, estimate)

    def _sum(self, equation: Equation, apply: Operator, rhs: Tensor) -> tuple[Tensor, Tensor, Tensor, int]:
        size = equation.norms(rhs)
        total, term, steps = rhs.clone(), rhs, 0
        while True:
            term, steps = apply(term), steps + 1
            # The residual is exactly the first term not yet added.
            residual = _ratio(equation.norms(term), size)
            if steps >= self.max_steps or not bool((residual > self.tolerance).any()):
                return total, residual, equation.radius_bound, steps
            total = total + term

    def _gmres(
        self, equation: Equation, apply: Operator, rhs: Tensor, estimate: bool
    ) -> tuple[Tensor, Tensor, Tensor, int]:
        padding = Padding(equation.adjacency)
        columns = rhs.shape[1]

        def on_vectors(v: Tensor) -> Tensor:
            x = padding.unpad(v.reshape(padding.graphs, padding.size, columns))
            return padding.pad(apply(x)).reshape(padding.graphs, -1)

        size = equation.norms(rhs)
        x = torch.zeros_like(rhs)
        left, steps = rhs.contiguous(), 0
        previous = torch.full_like(size, torch.inf)
        radius = torch.zeros_like(size)
        while True:
            process = Arnoldi(on_vectors, padding.pad(left).reshape(padding.graphs, -1))
            y = self._cycle(process, size)
            steps += process.steps
            if estimate:
                radius = torch.maximum(radius, torch.linalg.eigvals(process.h).abs().amax(1))
            update = (y.unsqueeze(1) @ process.vectors).squeeze(1)
            x = x + padding.unpad(update.reshape(padding.graphs, padding.size, columns))
            left = rhs + apply(x) - x
            residual = _ratio(equation.norms(left), size)
            waiting = residual > self.tolerance
            stuck = waiting & (residual > 0.9 * previous)
            if not bool(waiting.any()) or bool((stuck == waiting).all()) or steps >= self.max_steps:
                return x, residual, radius, steps
            previous = residual

    def _cycle(self, process: Arnoldi, size: Tensor) -> Tensor:
        """Run one GMRES cycle; return the coefficients ``[batch, steps]`` of the Arnoldi vectors."""
        while True:
            process.step()
            done = process.steps >= self.restart or not process.growing
            if process.steps % 10 and not done:
                continue
            h = process.h_extended
            system = torch.eye(h.shape[1], h.shape[2], dtype=h.dtype, device=h.device) - h
            right = torch.zeros(*h.shape[:2], 1, dtype=h.dtype, device=h.device)
            right[:, 0, 0] = process.start_norm.to(h.dtype)
            # The residual of the least-squares problem is along the last column of a complete Q.
            gap = (torch.linalg.qr(system, mode="complete").Q[:, :1, -1].abs() * right[:, 0].abs()).squeeze(1)
            if done or bool((gap <= 0.5 * self.tolerance * size).all()):
                return _least_squares(system, right).squeeze(-1)


def _least_squares(system: Tensor, right: Tensor) -> Tensor:
    """Minimum-norm least squares: if the operator is singular, the system may be rank-deficient, too."""
    if system.device.type == "cpu":  # the only device whose lstsq determines the rank
        found: Tensor = torch.linalg.lstsq(system, right, rcond=1e-13, driver="gelsd").solution
    else:
        found = torch.linalg.pinv(system, rtol=1e-13) @ right
    return found


def _ratio(norm: Tensor, size: Tensor) -> Tensor:
    return torch.where(size > 0, norm / size, torch.zeros_like(norm))
