r"""Galerkin solution in a Krylov space: exact far outside the range where the sum over runs converges.

The solution's rows lie in the space spanned by ℓ, Aᵀℓ, (Aᵀ)²ℓ, …, one such space for each label. Arnoldi's process
(which is Lanczos's when A is symmetric) builds an orthonormal basis V of it, Aᵀ V = V H + r v eᵀ, for all graphs of a
part and all labels at once; the equation projected on V is small and :mod:`gape.solvers.schur_form` solves it. A space
that stops growing (r = 0) contains the exact solution.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gape._internal.validation import positive
from gape.graph.batching import Padding
from gape.solvers.arnoldi import Arnoldi
from gape.solvers.basis import Basis
from gape.solvers.outcome import Result, check_tolerance, code
from gape.solvers.problem import Problem
from gape.solvers.schur_form import SchurForm
from gape.solvers.solution import Status


@dataclass(frozen=True)
class Krylov:
    """Batched Arnoldi/Lanczos with full reorthogonalisation.

    Args:
        tolerance: relative residual at which a graph is done.
        max_steps: largest dimension of a graph's space for each label. Memory grows with it.
        give_up: after so many steps stop if half of the graphs have not gained a digit; if ``None`` never. Undirected
            graphs only.
    """

    tolerance: float = 1e-12
    max_steps: int = 256
    give_up: int | None = None

    def __post_init__(self) -> None:
        check_tolerance(self.tolerance)
        positive(self.max_steps, "max_steps")
        if self.give_up is not None:
            positive(self.give_up, "give_up, unless None for never,")

    def basis(self, problem: Problem) -> Basis:
        """A basis as large as ``max_steps`` allows, or until every graph's space stops growing."""
        space = _LabelSpaces(problem, self.max_steps)
        while not space.finished:
            space.step()
        return space.basis()

    def run(self, problem: Problem) -> Result:
        return self.run_with_basis(problem)[0]

    def run_with_basis(self, problem: Problem) -> tuple[Result, Tensor, Basis]:
        """The solution, also in coordinates, and the basis that turned out large enough for it."""
        form = SchurForm.of(problem.transition)
        # A real matrix has its eigenvalues in conjugate pairs; one of each tells when to stop.
        poles = form.eigenvalues
        if not problem.transition.is_complex():
            poles = poles[poles.imag >= -1e-12 * poles.abs()]
        space = _LabelSpaces(problem, self.max_steps)
        goal = self.tolerance
        while True:
            stuck = False
            while not (space.finished or stuck):
                space.step()
                if space.converged(poles, goal):
                    break
                stuck = space.process.steps == self.give_up and space.stuck
            basis = space.basis()
            outcome, y = basis.run(problem, self.tolerance, form)
            if stuck or space.finished or not bool((outcome.status == code(Status.NOT_CONVERGED)).any()):
                return outcome, y, basis
            # The estimate treats μ as normal; where it is not, ask for more.
            goal *= 1e-2


class _LabelSpaces:
    """One Krylov space per graph and label."""

    def __init__(self, problem: Problem, max_steps: int) -> None:
        self.problem = problem
        self.padding = Padding(problem.adjacency)
        self.limit = min(max_steps, self.padding.size)
        # diag(1/c) Aᵀ diag(c) is symmetric for an undirected graph, whatever its degree normalisation.
        similarity = problem.walk.similarity
        self.symmetric = similarity is not None
        self.scale = None if problem.walk.symmetric or similarity is None else similarity.unsqueeze(1)
        self.labels = len(problem.used_labels)
        start = problem.indicator if self.scale is None else problem.indicator / self.scale
        self.process = Arnoldi(self._apply, self._spread(start))
        self._pivot: Tensor | None = None
        self._tail: Tensor | None = None
        self._left: Tensor | None = None

    def _spread(self, x: Tensor) -> Tensor:
        return self.padding.pad(x).transpose(1, 2).reshape(-1, self.padding.size)

    def _apply(self, v: Tensor) -> Tensor:
        x = v.reshape(self.padding.graphs, self.labels, self.padding.size).transpose(1, 2)
        x = self.padding.unpad(x)
        x = x if self.scale is None else x * self.scale
        x = self.problem.walk.push(x[:, 0]).unsqueeze(1) if self.labels == 1 else self.problem.walk.push(x)
        return self._spread(x if self.scale is None else x / self.scale)

    def step(self) -> None:
        self.process.step()

    @property
    def finished(self) -> bool:
        steps = self.process.steps
        return steps >= self.limit or not self.process.growing

    @property
    def stuck(self) -> bool:
        """Whether half of the graphs have not gained a digit, as far as is known."""
        return self._left is not None and bool(self._left.median() > 0.1)

    def converged(self, poles: Tensor, goal: float) -> bool:
        """Whether r |λ| |y_J| is small for every eigenvalue λ of μ, y_J the last entry of (I - λH)⁻¹ e₁.

        For tridiagonal H elimination gives y_J as it goes: with pivots d_j = 1 - λ h_jj - λ² h²_{j,j-1}/d_{j-1} it is
        Π λ h_{i,i-1} / Π d_i, one update a step. Otherwise every fifth step solves the projected systems.
        """
        h, remainder, j = self.process.h, self.process.remainder, self.process.steps - 1
        if self.symmetric:
            pivot = 1.0 - poles * h[:, j, j].unsqueeze(-1)
            tail = torch.ones_like(pivot)
            if self._pivot is not None and self._tail is not None:
                beside = poles * h[:, j, j - 1].unsqueeze(-1)
                previous = torch.where(self._pivot == 0, torch.finfo(torch.float64).tiny, self._pivot)
                ratio = beside / previous
                pivot = pivot - beside * ratio
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
            last = torch.linalg.solve_ex(eye - pole * h, first.expand(len(h), -1, -1))[0][:, -1, 0]
            if bool((~((remainder * pole * last).abs() <= goal)).any()):
                return False
        return True

    def basis(self) -> Basis:
        process, graphs, labels = self.process, self.padding.graphs, self.labels
        h, vectors = process.h, process.vectors
        last = torch.zeros_like(h[:, 0])
        last[:, -1] = 1.0
        along = torch.zeros_like(last)
        along[:, 0] = process.start_norm
        if self.symmetric:
            # Ritz form: with H = Q θ Qᵀ any automaton needs elementwise work only.
            h, q = torch.linalg.eigh((h + h.mT) / 2)
            vectors = q.mT @ vectors
            last, along = q[:, -1], process.start_norm.unsqueeze(1) * q[:, 0]
        spectrum = (h if self.symmetric else torch.linalg.eigvals(h)).abs().reshape(graphs, -1)
        radius = spectrum.amax(1) if spectrum.numel() else spectrum.new_zeros(graphs)
        if not self.symmetric:
            # The eigenvalues of a nilpotent matrix are lost to rounding soonest, and known best.
            radius = torch.where(self.problem.walk.acyclic_graphs, 0.0, radius)
        each = torch.eye(labels, dtype=along.dtype, device=along.device)
        return Basis(
            solver="Krylov",
            adjacency=self.problem.adjacency,
            vectors=vectors.reshape(graphs, labels, *vectors.shape[1:]),
            h=h.reshape(graphs, labels, *h.shape[1:]),
            coordinates=along.reshape(graphs, labels, -1, 1) * each.unsqueeze(1),
            labels=self.problem.used_labels,
            form="diagonal" if self.symmetric else "dense",
            remainder=process.remainder.reshape(graphs, labels),
            last=last.reshape(graphs, labels, -1),
            scale=None if self.scale is None else self.scale.squeeze(1),
            radius=radius,
            radius_exact=False,
            complete=False,
        )
