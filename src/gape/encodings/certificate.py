"""Certificates of the closed and pair readouts, one per graph."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from gape.solvers import Solution, Status
from gape.solvers.certificate import MAX_CONSISTENT_RESIDUAL, MAX_ROUNDING_RESIDUAL, SINGULAR_GAP, below_one, lost_rows
from gape.solvers.schur_form import SchurForm, pole_gaps
from gape.solvers.solution import OnSingular


@dataclass(eq=False)
class Certificate:
    """What is known of the equations of one part of a batch, filled in block by block.

    Args:
        graphs: how many there are.
        device: of the tensors.
        solver: which method reads the weights out.
        run_sum: the runs were summed by length, so they converge whatever the radius.
        steps: powers summed, or the size of the largest dense matrix.

    Beside these, ``[graphs]``: ``radius`` ρ(μ)ρ(A), ``separation``, ``gap``, the relative residual, ``rounding``, what
    float64 alone may have added to it, ``suspect``, whether weights came out so large that nothing can be said of
    them, and ``overflow``, whether they left the range of their number format.
    """

    graphs: int
    device: torch.device
    solver: str
    run_sum: bool
    steps: int
    radius: Tensor = field(init=False)
    separation: Tensor = field(init=False)
    gap: Tensor = field(init=False)
    rounding: Tensor = field(init=False)
    suspect: Tensor = field(init=False)
    overflow: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.radius, self.gap, self.rounding = torch.zeros(3, self.graphs, dtype=torch.float64, device=self.device)
        self.separation = torch.ones(self.graphs, dtype=torch.float64, device=self.device)
        self.suspect, self.overflow = torch.zeros(2, self.graphs, dtype=torch.bool, device=self.device)

    def add_bound(self, radius: Tensor) -> None:
        """An upper bound ``[graphs]`` of the radii, which is all that is known without eigenvalues."""
        self.radius, self.separation = radius, (1.0 - radius).clamp(min=0.0)

    def add_spectrum(self, graphs: Tensor, theta: Tensor, form: SchurForm) -> None:
        """Eigenvalues ``[B, J]`` of the walk matrices of ``graphs``, and the Schur form of μ."""
        self.radius[graphs] = theta.abs().amax(-1) * float(form.eigenvalues.abs().max())
        self.separation[graphs] = pole_gaps(theta, form).amin(1).clamp(max=1.0)

    def add_weights(self, weights: Tensor, rows: Tensor) -> None:
        """The weights as they are returned, rounded, ``rows[i]`` of them for each graph."""
        lost = lost_rows(weights)
        if lost is not None:
            graph = torch.repeat_interleave(torch.arange(self.graphs, device=self.device), rows)
            self.overflow[graph[lost]] = True

    @property
    def unique(self) -> list[bool | None]:
        """Whether each equation has one solution, ``None`` where a bound of the radius cannot tell."""
        return [False if s and self.solver != "Series" else None if s else True for s in self.singular.tolist()]

    @property
    def singular(self) -> Tensor:
        """``[graphs]``: whether the equation has many solutions or none."""
        return (self.separation <= SINGULAR_GAP) | self.suspect

    def add_rounding(self, graphs: Tensor, size: Tensor, norm: Tensor | float) -> None:
        """That of weights of norm ``size``, relative to what the runs begin with, under an operator of that norm."""
        self.rounding[graphs] = 2.0**-52 * (1.0 + norm) * size

    def suspect_large(self, graph: Tensor) -> None:
        """Weights so large that rounding may have left nothing of them are for the dense system to settle."""
        self.suspect[graph] = self.rounding[graph] > MAX_ROUNDING_RESIDUAL

    def settle(self, graph: Tensor, residual: Tensor, regular: bool) -> None:
        """What the dense system says of a graph: of a regular one, all that is left is rounding."""
        self.suspect[graph] = False
        self.rounding[graph], self.gap[graph] = (residual, 0.0) if regular else (0.0, residual)
        if not regular:
            self.separation[graph] = 0.0

    def status(self, on_singular: OnSingular) -> list[Status]:
        failed = Status.LEAST_SQUARES if on_singular == "least_squares" else Status.SINGULAR
        algebraic = ~below_one(self.radius) & (not self.run_sum)
        unsolved = self.gap > MAX_CONSISTENT_RESIDUAL
        tests = (self.overflow, self.suspect, unsolved, algebraic)
        names = (Status.OVERFLOW, Status.NOT_CONVERGED, failed, Status.ALGEBRAIC)
        return [
            next((name for name, found in zip(names, each, strict=True) if found), Status.RUN_SUM)
            for each in zip(*(test.tolist() for test in tests), strict=True)
        ]


def certified(weights: Tensor, parts: list[Certificate], on_singular: OnSingular) -> Solution:
    """The weights of all parts with their certificates; raises and warns as :func:`gape.solve` does."""
    status = [status for part in parts for status in part.status(on_singular)]
    solution = Solution(
        weights=weights,
        status=status,
        residual=torch.cat([part.gap + part.rounding for part in parts]),
        spectral_radius=torch.cat([part.radius for part in parts]),
        radius_kind="bound" if any(part.solver == "Series" for part in parts) else "exact",
        separation=torch.cat([part.separation for part in parts]),
        unique=[unique for part in parts for unique in part.unique],
        solver=[part.solver for part in parts for _ in range(part.graphs)],
        steps=max(part.steps for part in parts),
    )
    solution.raise_or_warn()
    return solution
