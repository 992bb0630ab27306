"""Projections: the equation in coordinates of a few vectors of each graph, on one part of a batch."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Literal

import torch
from torch import Tensor

from gape.graph.adjacency import Adjacency
from gape.graph.batching import Padding
from gape.solvers.base import Result, Solver
from gape.solvers.certificate import (
    DIRECT_TOLERANCE,
    NO,
    SINGULAR_GAP,
    UNKNOWN,
    YES,
    RadiusBounds,
    code,
    dense_radius_bounds,
    judge,
    radius_bounds_of,
    symmetric_error,
    symmetric_radius_bounds,
    with_rounding,
)
from gape.solvers.equation import Equation
from gape.solvers.schur_form import SchurForm, pole_gaps, solve_diagonal, solve_matrix
from gape.solvers.solution import Status

# The labels excite an eigenvalue if their part along it is larger than this, relative to all of them.
EXCITED_RATIO = 1e-10
# A space is exhausted if Aᵀ V - V H is smaller than this, relative to H.
MAX_EXHAUSTED_REMAINDER = 1e-12
# Above this relative rounding error of an orthogonal basis, recompute the residual from the equation.
MAX_TRUSTED_ROUNDING = 1e-7


@dataclass(frozen=True, eq=False)
class Projection(Solver):
    """Orthonormal vectors V of each graph with Aᵀ V ≈ V H, on one part of a batch.

    It is a solver itself: one whose work on the graphs is done. Each part of a batch is padded, and solved in a thread,
    by itself, so a :class:`Basis` has one of these per part.

    Args:
        solver: the name of the solver that made it.
        adjacency: of the graphs.
        vectors: ``[graphs, channels, J, n_max]``, zero-padded. A Krylov basis has a channel per label, others one.
        h: ``[graphs, channels, J]`` if H is diagonal, else ``[graphs, channels, J, J]``.
        coordinates: ``[graphs, channels, J, labels]``, the label indicators in the basis.
        labels: the labels followed, by number.
        form: the structure of H.
        remainder: ``[graphs, channels]``, the norm of Aᵀ V - V H, which is zero but in its last column.
        last: ``[graphs, channels, J]``, that last column's unit vector in the basis; ``None`` if nothing remains.
        scale: ``[n]`` vector c if the basis is that of diag(1/c) Aᵀ diag(c).
        radius: ``[graphs]``, ρ(A); ``radius_exact`` tells whether it is more than an estimate.
        complete: whether V spans the whole space of each graph.
        known_spectrum: ``[graphs, channels, J]``, the eigenvalues of H if they are known better than from H.
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

    @classmethod
    def from_rows(
        cls, adjacency: Adjacency, vectors: Tensor, h: Tensor, scale: Tensor | None, *, complete: bool
    ) -> Projection:
        """Build a basis from unpadded rows, as :meth:`rows` returns them and PyG batches them; in double precision.

        Args:
            adjacency: of the graphs; its edges are not used.
            vectors: ``[n, J]``, columns of V.
            h: ``[graphs, J]``, or ``[graphs, J, J]`` if H is triangular.
            scale: ``[n]`` vector c.
            complete: whether V spans the whole space of each graph.
        """
        dtype = torch.complex128 if vectors.is_complex() else torch.float64
        padded = Padding(adjacency).pad(vectors.to(dtype)).mT.unsqueeze(1)
        h = h.to(dtype).unsqueeze(1)
        ones = torch.ones(adjacency.num_nodes, 1, dtype=torch.float64, device=h.device)
        scale = None if scale is None else scale.to(torch.float64)
        zero = torch.zeros(len(h), 1, dtype=torch.float64, device=h.device)
        return cls(
            solver="rows",
            adjacency=adjacency,
            vectors=padded,
            h=h,
            coordinates=indicator_coordinates(padded, ones, adjacency, scale),
            labels=torch.zeros(1, dtype=torch.int64, device=h.device),
            form="diagonal" if h.dim() == 3 else "triangular",
            remainder=zero,
            last=None,
            scale=scale,
            radius=zero[:, 0] + 1.0,
            radius_exact=False,
            complete=complete,
        )

    def rows(self) -> tuple[Tensor, Tensor, Tensor | None]:
        """Vectors ``[n, J]``, H ``[graphs, …]`` and scale ``[n]`` without padding, of a basis with one channel."""
        return self.padding.unpad(self.vectors[:, 0].mT), self.h[:, 0], self.scale

    def with_labels(self, labels: Tensor, count: int) -> Projection:
        """Project other node labels, ``[n]`` integers below ``count``, on the same basis, which has to be complete."""
        indicator = torch.nn.functional.one_hot(labels, count).to(torch.float64)
        coordinates = indicator_coordinates(self.vectors, indicator, self.adjacency, self.scale)
        return replace(self, coordinates=coordinates, labels=torch.arange(count, device=labels.device))

    def to(self, device: torch.device | str, non_blocking: bool = False) -> Projection:
        """Move all tensors to a device."""
        moved = {name: value.to(device, non_blocking=non_blocking) for name, value in _tensors(self).items()}
        adjacency = replace(
            self.adjacency,
            **{name: value.to(device, non_blocking=non_blocking) for name, value in _tensors(self.adjacency).items()},
        )
        return replace(self, adjacency=adjacency, **moved)

    @property
    def name(self) -> str:
        return self.solver

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
        """``[graphs, channels, J]``: True if the labels excite an eigenvalue; all True if H is not diagonal."""
        if self.form != "diagonal":
            return torch.ones(self.h.shape[:3], dtype=torch.bool, device=self.h.device)
        size = torch.linalg.vector_norm(self.coordinates, dim=-1)
        excited: Tensor = size > EXCITED_RATIO * torch.linalg.vector_norm(size, dim=(1, 2), keepdim=True)
        return excited

    @property
    def exhausted(self) -> Tensor:
        """``[graphs]``: True if A maps the space of V to itself but for rounding: more vectors would not help."""
        size = self.h.abs().flatten(1).amax(1, keepdim=True)
        return (self.remainder <= MAX_EXHAUSTED_REMAINDER * size).all(1)

    @property
    def orthogonal(self) -> bool:
        """True if the equation splits into orthogonal ones, so that least squares of each solve the whole.

        A matrix that is not symmetric has no such split: a singular status is then only a suspicion.
        """
        return self.form == "diagonal" and self.scale is None

    # ------------------------------------------------------------------ to coordinates and back

    def project(self, initial: Tensor) -> Tensor:
        """The right-hand side αℓ in coordinates, ``[graphs · channels, J, k]``."""
        dtype = torch.promote_types(self.coordinates.dtype, initial.dtype)
        return (self.coordinates.to(dtype) @ initial.T[self.labels].to(dtype)).flatten(0, 1)

    def expand(self, y: Tensor, real: bool = True) -> Tensor:
        """Expand coordinates ``[graphs · channels, J, k]`` to weights ``[n, k]``; real if the automaton is."""
        graphs, channels, dimension, _ = self.vectors.shape
        flat = self.vectors.flatten(1, 2)
        y = y.reshape(graphs, channels * dimension, -1)
        dtype = torch.promote_types(flat.dtype, y.dtype)
        x = flat.to(dtype).mT @ y.to(dtype)
        if real and x.is_complex():
            x = x.real
        x = self.padding.unpad(x)
        return x if self.scale is None else x * self.scale.unsqueeze(1)

    def solve_coordinates(self, mu: Tensor, form: SchurForm, rhs: Tensor) -> tuple[Tensor, Tensor]:
        """Solve ``Y = H Y μ + S`` in coordinates; also the norm of each graph's residual, ``[graphs]``."""
        graphs = len(self.vectors)
        h = self.h.flatten(0, 1)
        if self.form == "diagonal":
            y, rows = solve_diagonal(h, mu, form, rhs, pole_gaps(h, form))
        else:
            y = solve_matrix(h, mu, form, rhs, upper=self.form == "triangular")
            rows = torch.linalg.vector_norm(y - h.to(y.dtype) @ (y @ mu.to(y.dtype)) - rhs, dim=-1)
        return y, torch.linalg.vector_norm(rows.reshape(graphs, -1), dim=-1)

    # ------------------------------------------------------------------ the whole solve

    def solve(self, equation: Equation, tolerance: float = DIRECT_TOLERANCE, form: SchurForm | None = None) -> Result:
        """Solve by the projected equation; ``form``: the Schur form of μ, if it is known."""
        mu = equation.transition
        form = form or SchurForm.of(mu)
        y, gap = self.solve_coordinates(mu, form, self.project(equation.initial))
        x = self.expand(y, real=not mu.is_complex() and not equation.initial.is_complex())
        outside = torch.zeros_like(gap)
        # With Aᵀ V = V H + r v eᵀ the residual of X = VY is r ‖eᵀ Y μ‖ in each channel, exactly.
        if self.last is not None:
            graphs, channels = self.vectors.shape[:2]
            tail = (self.last.flatten(0, 1).unsqueeze(1).to(y.dtype) @ y) @ mu.to(y.dtype)
            outside = (self.remainder * torch.linalg.vector_norm(tail, dim=(1, 2)).reshape(graphs, channels)).sum(1)
        return self._certified(equation, x, y, gap, outside, form, tolerance)

    def _certified(
        self,
        equation: Equation,
        x: Tensor,
        y: Tensor,
        inside: Tensor,
        outside: Tensor,
        form: SchurForm,
        tolerance: float,
    ) -> Result:
        """The weights X = VY with their certificate.

        ``inside`` and ``outside`` are the norms of each graph's residual in the space of V and orthogonal to it.
        """
        gaps = pole_gaps(self.spectrum, form)
        smallest = gaps.flatten(1).amin(1)
        separation = torch.where(self.excited, gaps, torch.inf).flatten(1).amin(1).clamp(max=1.0)
        bounds = self.radius_bounds(equation)
        converges = bounds.converges
        if self.complete:
            unique = torch.where(smallest > SINGULAR_GAP, bounds.regular(smallest, self.dimension), NO)
        else:
            unique = torch.where(converges == YES, YES, UNKNOWN)
            unique = torch.where(separation <= SINGULAR_GAP, NO, unique)
        size = torch.linalg.vector_norm(y.reshape(len(inside), -1), dim=1) if self.scale is None else equation.norms(x)
        # A symmetric matrix is no larger than its radius.
        rounding = equation.rounding(size, self.radius if self.orthogonal else equation.walk.two_norm_bounds)
        # Recompute the residual from the equation if (1) the basis is complete, because coordinates do not show errors
        # of the basis itself; (2) several labels are singular, which may cancel; (3) the rounding bound is too coarse.
        residual = equation.relative(inside + outside)
        cancels = self.vectors.shape[1] > 1 and bool((unique == NO).any())
        coarse = (rounding > (MAX_TRUSTED_ROUNDING if self.orthogonal else tolerance)) & torch.isfinite(residual)
        if self.complete or cancels:
            residual = equation.residual(x)
        elif bool(coarse.any()):
            residual = torch.where(coarse, equation.residual(x), residual)
            rounding = torch.where(coarse, torch.minimum(rounding, equation.rounding_of(x)), rounding)
        exhausted = self.exhausted
        # More vectors do not help where the remaining residual is rounding error.
        exhausted |= (equation.relative(outside) <= tolerance) & (residual <= 64.0 * rounding)
        regular = separation > SINGULAR_GAP
        status = judge(
            residual,
            converges,
            tolerance=tolerance,
            exhausted=exhausted,
            rounding=torch.where(regular, rounding, 0.0),
            regular=regular,
        )
        status = torch.where(regular & ~torch.isfinite(residual), code(Status.OVERFLOW), status)
        if not self.orthogonal:
            status = torch.where(unique == NO, code(Status.SINGULAR), status)
        return Result(
            weights=x,
            residual=with_rounding(residual, rounding) if self.complete else residual + rounding,
            spectral_radius=bounds.clamp(equation.transition_radius * self.radius),
            separation=separation,
            unique=unique,
            status=status,
            steps=self.dimension,
            radius_kind=bounds.kind if self.radius_exact else "estimate",
            confirmed=self.orthogonal and equation.reliable_poles,
            projection=self,
            coordinates=y,
        )

    def radius_bounds(self, equation: Equation) -> RadiusBounds:
        """Bounds of ρ(μ)ρ(A) of each graph."""
        if self.complete and self.form != "diagonal":
            return dense_radius_bounds(equation)
        if self.form != "diagonal":
            return radius_bounds_of(equation)
        # Ritz values of a symmetric matrix are no larger than ρ; those of all its eigenvectors are it.
        if self.complete:
            return symmetric_radius_bounds(equation, self.radius, self.dimension)
        lower = self.radius * (1.0 - symmetric_error(self.dimension))
        return radius_bounds_of(equation, lower, self._largest_vector)

    @property
    def _largest_vector(self) -> Tensor | None:
        """``[n]``: absolute values of the eigenvectors of the largest eigenvalue of H, summed over the channels."""
        if self.form != "diagonal" or not self.dimension:
            return None
        top = self.h.abs().argmax(-1)[..., None, None].expand(-1, -1, 1, self.vectors.shape[-1])
        found = self.padding.unpad(self.vectors.gather(2, top).abs().sum((1, 2)).unsqueeze(-1)).squeeze(-1)
        return found if self.scale is None else found * self.scale


def check_nodes(solver: str, max_nodes: int, adjacency: Adjacency, *, bytes_per_entry: int) -> int:
    """Return the size of the largest graph; raise if it is larger than a solver with dense matrices is set to."""
    largest = int(adjacency.sizes.max())
    if largest > max_nodes:
        raise ValueError(
            f"a graph has {largest} nodes; {solver} is set to at most {max_nodes} (it needs "
            f"{largest**2 * bytes_per_entry / 1e9:.1f} GB for it); raise max_nodes, or use Krylov or Series"
        )
    return largest


def whole_space_coordinates(vectors: Tensor, equation: Equation, scale: Tensor | None) -> Tensor:
    """Label indicators in a complete basis: ``[graphs, 1, J, labels]`` from ``vectors`` ``[graphs, 1, J, n_max]``."""
    return indicator_coordinates(vectors, equation.indicator, equation.adjacency, scale)


def indicator_coordinates(vectors: Tensor, indicator: Tensor, adjacency: Adjacency, scale: Tensor | None) -> Tensor:
    """``Vᴴ diag(1/c)`` times ``indicator`` ``[n, labels]``, as above."""
    indicator = indicator if scale is None else indicator / scale.unsqueeze(1)
    padded = Padding(adjacency).pad(indicator).unsqueeze(1)
    return vectors.conj() @ padded.to(vectors.dtype)


def _tensors(owner: Projection | Adjacency) -> dict[str, Any]:
    """The fields that are tensors, by name."""
    values = {each.name: getattr(owner, each.name) for each in fields(owner)}
    return {name: value for name, value in values.items() if isinstance(value, Tensor)}
