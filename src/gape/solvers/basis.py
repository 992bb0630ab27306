"""Bases: the part of a solve that depends on the graphs alone, computed once and used for any automaton."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from gape.graph.adjacency import Adjacency
from gape.graph.batching import Padding
from gape.solvers.contraction import proven_radius
from gape.solvers.outcome import DIRECT_TOLERANCE, NO, SINGULAR_GAP, UNKNOWN, YES, Result, code, judge
from gape.solvers.problem import Problem
from gape.solvers.schur_form import SchurForm, pole_gaps, solve_diagonal, solve_matrix
from gape.solvers.solution import Status

EXCITED = 1e-10


@dataclass(frozen=True, eq=False)
class Basis:
    """Orthonormal vectors V of each graph with Aᵀ V ≈ V H, on one part of a batch.

    Args:
        solver: the name of the solver it belongs to.
        adjacency: whose graphs these are.
        vectors: ``[graphs, channels, J, n_max]``, zero-padded. A Krylov basis has a channel per label, others one.
        h: ``[graphs, channels, J]`` when H is diagonal, else ``[graphs, channels, J, J]``.
        coordinates: ``[graphs, channels, J, labels]``, the label indicators in the basis.
        labels: the labels followed, by number.
        form: what H looks like.
        remainder: ``[graphs, channels]``, the norm of Aᵀ V - V H, which is zero but in its last column.
        last: ``[graphs, channels, J]``, that last column's unit vector in the basis; ``None`` if nothing remains.
        scale: ``[n]`` vector c when the basis is that of diag(1/c) Aᵀ diag(c).
        radius: ``[graphs]``, ρ(A), and ``radius_exact`` whether it is more than an estimate.
        complete: whether V spans the whole space of each graph.
        known_spectrum: ``[graphs, channels, J]``, the eigenvalues of H where they are known better than from H.
    """

    solver: str
    adjacency: Adjacency
    vectors: Tensor
    h: Tensor
    coordinates: Tensor
    labels: Tensor
    form: Literal["diagonal", "triangular", "dense"]
    remainder: Tensor
    last: Tensor | None
    scale: Tensor | None
    radius: Tensor
    radius_exact: bool
    complete: bool
    known_spectrum: Tensor | None = None

    @property
    def dimension(self) -> int:
        return self.vectors.shape[2]

    @cached_property
    def padding(self) -> Padding:
        return Padding(self.adjacency)

    @cached_property
    def spectrum(self) -> Tensor:
        """``[graphs, channels, J]``: the eigenvalues of H."""
        if self.known_spectrum is not None:
            return self.known_spectrum
        if self.form == "diagonal":
            return self.h
        if self.form == "triangular":
            return self.h.diagonal(dim1=-2, dim2=-1)
        eigenvalues: Tensor = torch.linalg.eigvals(self.h)
        return eigenvalues

    @cached_property
    def excited(self) -> Tensor:
        """``[graphs, channels, J]``: whether the labels have a part along an eigenvalue; all if H is not diagonal."""
        if self.form != "diagonal":
            return torch.ones(self.h.shape[:3], dtype=torch.bool, device=self.h.device)
        size = torch.linalg.vector_norm(self.coordinates, dim=-1)
        excited: Tensor = size > EXCITED * torch.linalg.vector_norm(size, dim=(1, 2), keepdim=True)
        return excited

    # ------------------------------------------------------------------ to coordinates and back

    def project(self, initial: Tensor) -> Tensor:
        """The source αℓ in coordinates, ``[graphs · channels, J, k]``."""
        dtype = torch.promote_types(self.coordinates.dtype, initial.dtype)
        return (self.coordinates.to(dtype) @ initial.T[self.labels].to(dtype)).flatten(0, 1)

    def expand(self, y: Tensor, real: bool = True) -> Tensor:
        """``[graphs · channels, J, k]`` in coordinates to ``[n, k]`` on the nodes; real if the automaton is."""
        graphs, channels, dimension, _ = self.vectors.shape
        flat = self.vectors.flatten(1, 2)
        y = y.reshape(graphs, channels * dimension, -1)
        dtype = torch.promote_types(flat.dtype, y.dtype)
        x = flat.to(dtype).mT @ y.to(dtype)
        if real and x.is_complex():
            x = x.real
        x = self.padding.unpad(x)
        return x if self.scale is None else x * self.scale.unsqueeze(1)

    def solve(self, mu: Tensor, form: SchurForm, source: Tensor) -> tuple[Tensor, Tensor]:
        """``Y = H Y μ + S`` in coordinates, and ``[graphs]`` the norm of what no Y could satisfy."""
        graphs = len(self.vectors)
        h = self.h.flatten(0, 1)
        if self.form == "diagonal":
            y, rows = solve_diagonal(h, mu, form, source, pole_gaps(h, form))
        else:
            y = solve_matrix(h, mu, form, source, upper=self.form == "triangular")
            rows = torch.linalg.vector_norm(y - h.to(y.dtype) @ (y @ mu.to(y.dtype)) - source, dim=-1)
        return y, torch.linalg.vector_norm(rows.reshape(graphs, -1), dim=-1)

    # ------------------------------------------------------------------ the whole solve

    def run(
        self, problem: Problem, tolerance: float = DIRECT_TOLERANCE, form: SchurForm | None = None
    ) -> tuple[Result, Tensor]:
        """Solve. Also returns the coordinates Y, from which ``expand`` makes the weights."""
        mu = problem.transition
        form = form or SchurForm.of(mu)
        y, gap = self.solve(mu, form, self.project(problem.initial))
        x = self.expand(y, real=not mu.is_complex() and not problem.initial.is_complex())
        # With Aᵀ V = V H + r v eᵀ the residual of X = VY is r ‖eᵀ Y μ‖ in each channel, exactly.
        if self.last is not None:
            graphs, channels = self.vectors.shape[:2]
            tail = (self.last.flatten(0, 1).unsqueeze(1).to(y.dtype) @ y) @ mu.to(y.dtype)
            gap = gap + (self.remainder * torch.linalg.vector_norm(tail, dim=(1, 2)).reshape(graphs, channels)).sum(1)
        return self._certified(problem, x, y, gap, form, tolerance), y

    def _certified(
        self, problem: Problem, x: Tensor, y: Tensor, gap: Tensor, form: SchurForm, tolerance: float
    ) -> Result:
        """The weights X = VY with what is known of them; ``gap`` is the norm of each graph's residual."""
        distance = pole_gaps(self.spectrum, form)
        everywhere = distance.flatten(1).amin(1)
        separation = torch.where(self.excited, distance, torch.inf).flatten(1).amin(1).clamp(max=1.0)
        radius = problem.transition_radius * self.radius
        if self.complete:
            unique = torch.where(everywhere > SINGULAR_GAP, YES, NO)
        else:
            radius, converges = proven_radius(problem, radius, self._largest_vector)
            unique = torch.where(converges, YES, UNKNOWN)
            unique = torch.where(separation <= SINGULAR_GAP, NO, unique)
        size = torch.linalg.vector_norm(y.reshape(len(gap), -1), dim=1) if self.scale is None else problem.norms(x)
        rounding = problem.rounding(size, self.radius)
        # A complete basis has no such remainder, and labels that are singular one by one may cancel: there the
        # equation is checked outright.
        if self.complete or (self.vectors.shape[1] > 1 and bool((unique == NO).any())):
            residual = problem.residual(x)
        else:
            residual = problem.relative(gap)
        exhausted = (self.remainder <= 1e-12 * self.h.abs().flatten(1).amax(1, keepdim=True)).all(1)
        regular = separation > SINGULAR_GAP
        status = judge(
            residual,
            radius,
            tolerance=tolerance,
            exhausted=exhausted,
            rounding=torch.where(regular, rounding, 0.0),
        )
        status = torch.where(regular & ~torch.isfinite(residual), code(Status.OVERFLOW), status)
        if not self.orthogonal:
            status = torch.where(unique == NO, code(Status.SINGULAR), status)
        residual = residual if self.complete else residual + rounding
        kind = "exact" if self.radius_exact else "estimate"
        return Result(x, residual, radius, separation, unique, status, self.dimension, kind, self.orthogonal)

    @property
    def _largest_vector(self) -> Tensor | None:
        """``[n]``: where the eigenvalue of H that is largest belongs to, all channels together, without signs."""
        if self.form != "diagonal" or not self.dimension:
            return None
        top = self.h.abs().argmax(-1)[..., None, None].expand(-1, -1, 1, self.vectors.shape[-1])
        found = self.padding.unpad(self.vectors.gather(2, top).abs().sum((1, 2)).unsqueeze(-1)).squeeze(-1)
        return found if self.scale is None else found * self.scale

    @property
    def orthogonal(self) -> bool:
        """Whether the equation falls apart into orthogonal ones, so that a singular one is settled by itself.

        A matrix that is not symmetric has no such split: there a suspicion is all that can be had here.
        """
        return self.form == "diagonal" and self.scale is None


def whole_space_coordinates(vectors: Tensor, problem: Problem, scale: Tensor | None) -> Tensor:
    """Label indicators in a complete basis: ``[graphs, 1, J, labels]`` from ``vectors`` ``[graphs, 1, J, n_max]``."""
    indicator = problem.indicator if scale is None else problem.indicator / scale.unsqueeze(1)
    spread = Padding(problem.adjacency).pad(indicator).unsqueeze(1)
    return vectors.conj() @ spread.to(vectors.dtype)
