r"""Galerkin solution in a Krylov space: exact far outside the range where the sum over runs converges.

The columns of the solution lie in the space spanned by ℓ, Aᵀℓ, (Aᵀ)²ℓ, …, one such space per label. The Arnoldi process
(Lanczos if A is symmetric) builds an orthonormal basis V of it, Aᵀ V = V H + r v eᵀ, for all graphs and labels at once.
The equation projected on V is small, and :mod:`gape.solvers.schur_form` solves it. A space that stops growing (r = 0)
contains the exact solution.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from gape._internal.validation import positive
from gape.graph.batching import Padding
from gape.linalg.lu import solve_systems
from gape.solvers.base import Result, Solver
from gape.solvers.certificate import (
    MAX_ROUNDING_RESIDUAL,
    NO,
    SINGULAR_GAP,
    UNKNOWN,
    YES,
    RadiusBounds,
    below_one,
    check_tolerance,
    judge,
    radius_bounds_of,
)
from gape.solvers.equation import Equation
from gape.solvers.kernels import MAX_KERNEL_STEPS, directed_galerkin, galerkin
from gape.solvers.projection import Projection
from gape.solvers.schur_form import SchurForm
from gape.solvers.solution import Status

# Relative size below which a new direction is rounding error: the space has stopped growing.
BREAKDOWN_RATIO = 1e-13
# Orthogonalise once more if less than this share of a vector is left (Daniel et al. 1976, 1/√2). Otherwise its error
# grows by the factor by which the vector shrinks, step after step: on a tree a few dozen steps lose every digit.
REORTHOGONALISE_BELOW = 0.7
# Condition number of the eigenvectors of μ up to which the compiled kernel uses them.
MAX_KERNEL_CONDITION = 1e3
# Equations closer to a singular one are left to PyTorch, as in native/krylov.c.
MIN_KERNEL_SEPARATION = 1e-6


@dataclass(frozen=True)
class Krylov(Solver):
    """Batched Arnoldi/Lanczos with full reorthogonalisation.

    Args:
        tolerance: relative residual at which a graph is done.
        max_steps: largest dimension of the space of a graph and label. Memory grows with it.
        give_up: stop after so many steps if half of the graphs have not gained a digit; ``None`` for never. Has an
            effect on undirected graphs only.
    """

    tolerance: float = 1e-12
    max_steps: int = 256
    give_up: int | None = None

    iterative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_tolerance(self.tolerance)
        positive(self.max_steps, "max_steps")
        if self.give_up is not None:
            positive(self.give_up, "give_up, unless None for never,")

    def projection(self, equation: Equation) -> Projection:
        """Build a basis of ``max_steps`` vectors, or until every graph's space stops growing."""
        space = _LabelSpaces(equation, self.max_steps)
        while not space.finished:
            space.step()
        return space.projection()

    def solve(self, equation: Equation) -> Result:
        form = SchurForm.of(equation.transition)
        # Eigenvalues of a real matrix come in conjugate pairs; one of each pair is enough to test convergence.
        poles = form.eigenvalues
        if not equation.transition.is_complex():
            poles = poles[poles.imag >= -1e-12 * poles.abs()]
        space = _LabelSpaces(equation, self.max_steps)
        goal = self.tolerance
        while True:
            stuck = False
            while not (space.finished or stuck):
                space.step()
                if space.converged(poles, goal):
                    break
                stuck = space.process.steps == self.give_up and space.stuck
            result = space.projection().solve(equation, self.tolerance, form)
            if stuck or space.finished or not bool(result.has_status(Status.NOT_CONVERGED).any()):
                return result
            # The test treats μ as normal; where it is not, ask for a smaller residual.
            goal *= 1e-2

    def compiled(
        self,
        equation: Equation,
        chosen: Tensor | None = None,
        *,
        relative: bool = False,
        bounds: RadiusBounds | None = None,
    ) -> Result | None:
        """Solve by the kernels.

        Args:
            chosen: ``[graphs]``, which graphs; all if ``None``.
            relative: divide the matrix of each graph by its spectral radius first, if it is similar to a symmetric one.
            bounds: of ρ(μ)ρ(A), if they are known.
        """
        symmetric = equation.walk.similarity is not None
        if relative and not (symmetric and equation.labels is None and equation.walk.nonnegative):
            return None
        diagonal = _partial_fractions(equation)
        if diagonal is None or not equation.reliable_poles:
            return None
        limit = min(self.max_steps, MAX_KERNEL_STEPS)
        if symmetric:
            found = galerkin(equation, *diagonal, limit, self.tolerance, chosen, relative)
        else:
            found = directed_galerkin(equation, *diagonal, limit, self.tolerance, chosen)
        certified = torch.isfinite(found.residual)
        if not symmetric:
            # The nearer a pole, the smaller the residual has to be.
            certified &= (found.separation >= MIN_KERNEL_SEPARATION) & (
                found.residual <= self.tolerance * found.separation
            )
        graph_radius = torch.where(certified, found.radius, 0.0)
        radius = equation.transition_radius * graph_radius
        size = torch.where(certified, found.size, 0.0)
        if symmetric:
            rounding = equation.rounding(size, graph_radius)
            # The kernel certifies a radius below 1 only where it has a proof, and Ritz values are no larger than ρ(A).
            diverges = equation.transition_bounds[0] * graph_radius * (1.0 - 1e-12) > 1.0 + SINGULAR_GAP
            known = torch.where(diverges, NO, UNKNOWN)
            converges = torch.where(certified & below_one(radius * (1.0 + 1e-10)), YES, known)
        else:
            rounding = equation.rounding(size, equation.walk.two_norm_bounds)
            bounds = radius_bounds_of(equation) if bounds is None else bounds
            # Eigenvalues of a nilpotent matrix are the most sensitive to rounding, and known to be 0.
            radius = torch.where(equation.walk.acyclic_graphs, 0.0, radius)
            converges, radius = bounds.converges, bounds.clamp(radius)
        residual = torch.where(certified, found.residual, torch.inf)
        reliable = residual.masked_fill(rounding > MAX_ROUNDING_RESIDUAL, torch.inf)
        return Result(
            weights=found.weights,
            residual=residual + rounding,
            spectral_radius=radius,
            separation=torch.where(certified, found.separation, torch.nan),
            unique=torch.where(converges == YES, YES, UNKNOWN),
            status=judge(reliable, converges, tolerance=self.tolerance, exhausted=False),
            steps=found.steps,
            radius_kind="estimate",
            weight_bound=float(size.max()),
            solver=[self.name] * equation.num_graphs,
        )


def _partial_fractions(equation: Equation) -> tuple[Tensor, Tensor] | None:
    """Eigenvalues λ of a real μ, one of each conjugate pair, and αᵀx yᵀ for their eigenvectors: ``[labels, λ, k]``.

    ``None`` if the eigenvectors are so ill-conditioned that a Schur form is needed.
    """
    form = SchurForm.of(equation.transition)
    poles, right, left = form.eigenvalues, form.vectors, form.vectors.mH
    if not form.normal:
        poles, right = torch.linalg.eig(equation.transition)
        if not float(torch.linalg.cond(right)) < MAX_KERNEL_CONDITION:
            return None
        left = torch.linalg.inv(right)
    parts = (equation.initial.T[equation.used_labels].to(right.dtype) @ right).unsqueeze(-1) * left
    real = 1e-12 * float(poles.abs().max())
    kept = poles.imag >= -real
    twice = torch.where(poles.imag > real, 2.0, 1.0)
    return poles[kept], (parts * twice.unsqueeze(-1))[:, kept]


class _LabelSpaces:
    """One Krylov space per graph and label."""

    def __init__(self, equation: Equation, max_steps: int) -> None:
        self.equation = equation
        self.padding = Padding(equation.adjacency)
        self.limit = min(max_steps, self.padding.size)
        # diag(1/c) Aᵀ diag(c) is symmetric for an undirected graph, whatever its degree normalisation.
        similarity = equation.walk.similarity
        self.symmetric = similarity is not None
        self.scale = None if equation.walk.symmetric or similarity is None else similarity.unsqueeze(1)
        self.labels = len(equation.used_labels)
        start = equation.indicator if self.scale is None else equation.indicator / self.scale
        self.process = Arnoldi(self._apply, self._pad(start))
        self._pivot: Tensor | None = None
        self._tail: Tensor | None = None
        self._left: Tensor | None = None

    def _pad(self, x: Tensor) -> Tensor:
        return self.padding.pad(x).transpose(1, 2).reshape(-1, self.padding.size)

    def _apply(self, v: Tensor) -> Tensor:
        x = v.reshape(self.padding.graphs, self.labels, self.padding.size).transpose(1, 2)
        x = self.padding.unpad(x)
        x = x if self.scale is None else x * self.scale
        x = self.equation.walk.push(x[:, 0]).unsqueeze(1) if self.labels == 1 else self.equation.walk.push(x)
        return self._pad(x if self.scale is None else x / self.scale)

    def step(self) -> None:
        self.process.step()

    @property
    def finished(self) -> bool:
        steps = self.process.steps
        return steps >= self.limit or not self.process.growing

    @property
    def stuck(self) -> bool:
        """True if half of the graphs have not gained a digit, as far as known."""
        return self._left is not None and bool(self._left.median() > 0.1)

    def converged(self, poles: Tensor, goal: float) -> bool:
        """True if r |λ| |y_J| is small for every eigenvalue λ of μ, y_J the last entry of (I - λH)⁻¹ e₁.

        For tridiagonal H Gaussian elimination updates y_J in every step: with pivots
        d_j = 1 - λ h_jj - λ² h²_{j,j-1}/d_{j-1} it is Π λ h_{i,i-1} / Π d_i. Otherwise every fifth step solves the
        projected systems.
        """
        h, remainder, j = self.process.h, self.process.remainder, self.process.steps - 1
        if self.symmetric:
            pivot = 1.0 - poles * h[:, j, j].unsqueeze(-1)
            tail = torch.ones_like(pivot)
            if self._pivot is not None and self._tail is not None:
                off_diagonal = poles * h[:, j, j - 1].unsqueeze(-1)
                previous = torch.where(self._pivot == 0, torch.finfo(torch.float64).tiny, self._pivot)
                ratio = off_diagonal / previous
                pivot = pivot - off_diagonal * ratio
                tail = self._tail * ratio
            self._pivot, self._tail = pivot, tail
            self._left = (remainder.unsqueeze(-1) * poles * tail / pivot).abs().amax(-1)
            return bool((self._left <= goal).all())
        if self.process.steps % 5:
            return False
        first = torch.zeros(self.process.steps, 1, dtype=torch.complex128, device=h.device)
        first[0] = 1.0
        eye = torch.eye(self.process.steps, dtype=torch.complex128, device=h.device)
        for pole in poles:
            last = solve_systems(eye - pole * h, first.expand(len(h), -1, -1))[:, -1, 0]
            if bool((~((remainder * pole * last).abs() <= goal)).any()):
                return False
        return True

    def projection(self) -> Projection:
        process, graphs, labels = self.process, self.padding.graphs, self.labels
        h, vectors = process.h, process.vectors
        end = process.end
        last = torch.nn.functional.one_hot(end, process.steps).to(h.dtype)
        along = torch.zeros_like(last)
        along[:, 0] = process.start_norm
        if self.symmetric:
            # Ritz form: with H = Q θ Qᵀ any automaton needs elementwise work only.
            h, q = torch.linalg.eigh((h + h.mT) / 2)
            vectors = q.mT @ vectors
            last = q[torch.arange(len(q), device=q.device), end]
            along = process.start_norm.unsqueeze(1) * q[:, 0]
        spectrum = (h if self.symmetric else torch.linalg.eigvals(h)).abs().reshape(graphs, -1)
        radius = spectrum.amax(1) if spectrum.numel() else spectrum.new_zeros(graphs)
        if not self.symmetric:
            # Eigenvalues of a nilpotent matrix are the most sensitive to rounding, and known to be 0.
            radius = torch.where(self.equation.walk.acyclic_graphs, 0.0, radius)
        each = torch.eye(labels, dtype=along.dtype, device=along.device)
        return Projection(
            solver="Krylov",
            adjacency=self.equation.adjacency,
            vectors=vectors.reshape(graphs, labels, *vectors.shape[1:]),
            h=h.reshape(graphs, labels, *h.shape[1:]),
            coordinates=along.reshape(graphs, labels, -1, 1) * each.unsqueeze(1),
            labels=self.equation.used_labels,
            form="diagonal" if self.symmetric else "dense",
            remainder=(process.remainder + process.dropped).reshape(graphs, labels),
            last=last.reshape(graphs, labels, -1),
            scale=None if self.scale is None else self.scale.squeeze(1),
            radius=radius,
            radius_exact=False,
            complete=False,
        )


class Arnoldi:
    """The Arnoldi process for a batch of operators F: orthonormal V with ``F V = V H + r v eᵀ``, one vector per step.

    A space that stops growing gets ``r = 0`` and zero vectors from then on, which do not change results, so that the
    rest of the batch can go on; what was left of r there is ``dropped``. A space whose numbers overflow gets the same
    with ``r = ∞``.

    Args:
        apply: F on ``[batch, length]``, each entry of the batch independent of the others.
        start: ``[batch, length]``, the first vectors; zero vectors stay zero.
    """

    def __init__(self, apply: Callable[[Tensor], Tensor], start: Tensor) -> None:
        self._apply = apply
        self.start_norm = torch.linalg.vector_norm(start, dim=-1)
        self._vectors = start.new_zeros(len(start), 17, start.shape[1])
        self._vectors[:, 0] = start / _nonzero(self.start_norm).unsqueeze(-1)
        self._h = start.new_zeros(len(start), 17, 17)
        self._largest = torch.zeros_like(self.start_norm)
        self._overflowed: Tensor | None = None
        self.dropped = torch.zeros_like(self.start_norm)
        self.steps = 0

    @property
    def end(self) -> Tensor:
        """``[batch]``: index of the last vector that is not zero, of the first one if all are."""
        alive = self.vectors.abs().amax(-1) > 0
        return (alive.sum(1) - 1).clamp(min=0)

    @property
    def vectors(self) -> Tensor:
        """``[batch, steps, length]``"""
        return self._vectors[:, : self.steps]

    @property
    def h(self) -> Tensor:
        """``[batch, steps, steps]``, upper Hessenberg; tridiagonal and symmetric where F is symmetric."""
        return self._h[:, : self.steps, : self.steps]

    @property
    def h_extended(self) -> Tensor:
        """``[batch, steps + 1, steps]``: H with the remainders r below."""
        return self._h[:, : self.steps + 1, : self.steps]

    @property
    def remainder(self) -> Tensor:
        """``[batch]``: r."""
        remainder = self._h[:, self.steps, self.steps - 1].real
        return remainder if self._overflowed is None else torch.where(self._overflowed, torch.inf, remainder)

    @property
    def growing(self) -> bool:
        """True if any space is not complete yet."""
        return self.steps == 0 or bool(self._h[:, self.steps, self.steps - 1].any())

    def step(self) -> None:
        j = self.steps
        if j + 2 > self._h.shape[-1]:
            self._grow()
        w = self._apply(self._vectors[:, j])
        size = torch.linalg.vector_norm(w, dim=-1)
        # Squares of numbers far from 1 over- or underflow: scale by powers of two, which is exact.
        unit = None if bool(((size > 1e-140) & (size < 1e140)).all()) else _power_of_two(w)
        if unit is not None:
            w = w * unit.unsqueeze(-1)
            size = torch.linalg.vector_norm(w, dim=-1)
        self._largest = torch.maximum(self._largest, size if unit is None else size / unit)
        known = self._vectors[:, : j + 1]
        # Gram–Schmidt, repeated if much of w cancels, which makes rounding errors large relative to the rest.
        for _ in range(2):
            before = size
            along = w.unsqueeze(1) @ known.mH
            w = torch.baddbmm(w.unsqueeze(1), along, known, alpha=-1).squeeze(1)
            self._h[:, : j + 1, j] += (along if unit is None else along / unit.view(-1, 1, 1)).squeeze(1)
            size = torch.linalg.vector_norm(w, dim=-1)
            if bool((size >= REORTHOGONALISE_BELOW * before).all()):
                break
        if unit is not None:
            w, size = w / unit.unsqueeze(-1), size / unit
        if not bool(torch.isfinite(self._largest.sum())):
            self._overflowed = ~torch.isfinite(self._largest)
            size, w = torch.where(self._overflowed, 0.0, size), torch.where(self._overflowed.unsqueeze(-1), 0.0, w)
            self._h[self._overflowed] = 0.0
        ended = size <= BREAKDOWN_RATIO * self._largest
        self.dropped = torch.where(ended, torch.maximum(self.dropped, size), self.dropped)
        size = torch.where(ended, 0.0, size)
        self._h[:, j + 1, j] = size
        self._vectors[:, j + 1] = w * torch.where(size > 0, 1.0 / _nonzero(size), 0.0).unsqueeze(-1)
        self.steps = j + 1

    def _grow(self) -> None:
        size = self._h.shape[-1]
        self._vectors = torch.cat([self._vectors, torch.zeros_like(self._vectors)], 1)
        h = self._h.new_zeros(len(self._h), 2 * size, 2 * size)
        h[:, :size, :size] = self._h
        self._h = h


def _power_of_two(w: Tensor) -> Tensor:
    """``[batch]``: powers of two that bring the largest entries of ``w`` near 1; 1 for those that are not finite."""
    peak = w.abs().amax(-1)
    exponent = torch.frexp(torch.where(torch.isfinite(peak), peak, 1.0)).exponent
    return torch.ldexp(torch.ones_like(peak), -exponent.clamp(-1020, 1020))


def _nonzero(x: Tensor) -> Tensor:
    return torch.where(x > 0, x, torch.ones_like(x))
