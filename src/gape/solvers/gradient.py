r"""Gradients of all solvers, by one rule.

The solution of X = F(X) + S is linear in S, so its gradient is one more solve of the same kind: with G = ∂L/∂X,

    Z = F*(Z) + G,      ∂L/∂S = Z,      ∂L/∂μ = Σ_u X_u ⊗ (AZ)_u,      ∂L/∂A_uv = ⟨X_u μ, Z_v⟩,

where F*(Z) = A Z μᴴ is the adjoint of F(X) = Aᵀ X μ. As Z is such a solution itself, differentiating it again gives the
second derivative. A *system* solves and applies the two products: on the graph's edges (:class:`EdgeSystem`) or in the
coordinates of a basis (:class:`BasisSystem`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor

from gape.graph.walk_matrix import WalkMatrix
from gape.solvers.base import Result
from gape.solvers.certificate import NO, SINGULAR_GAP
from gape.solvers.equation import Equation
from gape.solvers.fixed_point import FixedPoint
from gape.solvers.kronecker import operator_matrices
from gape.solvers.projection import Projection
from gape.solvers.schur import Schur
from gape.solvers.schur_form import SchurForm
from gape.solvers.singular import MAX_DENSE_UNKNOWNS
from gape.solvers.spectral import Spectral

# The largest graph whose adjoint equation is solved by dense matrices, which converge whatever the spectrum.
MAX_DENSE_ADJOINT_NODES = 256


class System(Protocol):
    def solve(self, transition: Tensor, rhs: Tensor, adjoint: bool) -> Tensor:
        """Solve X = F(X) + S, or with F* for F if ``adjoint``; ``transition`` is then already μᴴ."""

    def gradients(
        self, transition: Tensor, x: Tensor, z: Tensor, values: Tensor | None, adjoint: bool
    ) -> tuple[Tensor, Tensor | None]:
        """∂/∂(transition) and ∂/∂(values) of ⟨z, F(x)⟩ (or of F*), differentiable."""


class SteinSolve(torch.autograd.Function):
    """X as a function of (transition, rhs, values), with the gradient above, to any order."""

    @staticmethod
    def forward(
        ctx: Any,
        transition: Tensor,
        rhs: Tensor,
        values: Tensor | None,
        system: System,
        adjoint: bool,
        known: Tensor | None,
    ) -> Tensor:
        x = system.solve(transition.detach(), rhs.detach(), adjoint) if known is None else known.detach()
        ctx.system, ctx.adjoint = system, adjoint
        ctx.save_for_backward(transition, values, x)
        return x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        transition, values, x = ctx.saved_tensors
        z = stein_solve(transition.mH, grad, values, ctx.system, not ctx.adjoint)
        to_transition, to_values = ctx.system.gradients(transition, x, z, values, ctx.adjoint)
        if not transition.is_complex() and to_transition.is_complex():
            to_transition = to_transition.real
        return to_transition, z, to_values, None, None, None


def stein_solve(
    transition: Tensor,
    rhs: Tensor,
    values: Tensor | None,
    system: System,
    adjoint: bool = False,
    known: Tensor | None = None,
) -> Tensor:
    """Solve, attached to ``transition``, ``rhs`` and edge ``values``; ``known``: the solution, if it was computed."""
    x: Tensor = SteinSolve.apply(transition, rhs, values, system, adjoint, known)  # type: ignore[no-untyped-call]
    return x


def attach_gradients(equation: Equation, result: Result) -> Tensor:
    """Return the weights of ``result``, attached to the tensors of ``equation`` that require gradients."""
    singular = (result.unique == NO).nonzero().flatten()
    projection, known = result.projection, result.coordinates
    # A projection is for fixed edge weights and for the right-hand side of labels.
    if projection is not None and known is not None and not equation.learns_edges and equation.given_rhs is None:
        if not projection.orthogonal:
            known = known.reshape(equation.num_graphs, -1).index_fill(0, singular, 0.0).reshape(known.shape)
        rhs = projection.project(equation.initial)
        y = stein_solve(equation.transition, rhs, None, BasisSystem(projection), known=known)
        x = projection.expand(y, real=not equation.initial.is_complex())
        if projection.orthogonal:
            return x
    else:
        x = _attach_on_edges(equation, EdgeSystem(equation.detached), result.weights)
    if not len(singular):
        return x
    # Where the equation is singular the least-squares weights stay, and gradients go through the pseudo-inverse.
    alone, rows = equation.select(singular), equation.nodes_of(singular)
    again = _attach_on_edges(alone, PseudoSystem(alone.detached), result.weights[rows])
    return x.index_copy(0, rows, again)


def _attach_on_edges(equation: Equation, system: EdgeSystem, known: Tensor) -> Tensor:
    values = equation.walk.entries()[2] if equation.learns_edges else None
    return stein_solve(equation.transition, equation.rhs, values, system, known=known)


@dataclass(frozen=True, eq=False)
class BasisSystem:
    """Y = H Y μ + S in the coordinates of a basis, which has no gradient itself."""

    projection: Projection

    def _h(self, y: Tensor, adjoint: bool) -> Tensor:
        h = self.projection.h.flatten(0, 1)
        if self.projection.form == "diagonal":
            return h.unsqueeze(-1) * y
        h = h.mH if adjoint else h
        return h.to(torch.promote_types(h.dtype, y.dtype)) @ y.to(torch.promote_types(h.dtype, y.dtype))

    def solve(self, transition: Tensor, rhs: Tensor, adjoint: bool) -> Tensor:
        projection = self.projection
        if adjoint and projection.form != "diagonal":
            # The transpose is lower triangular: solve it as a general matrix.
            projection = replace(projection, h=projection.h.mH, form="dense")
        return projection.solve_coordinates(transition, SchurForm.of(transition), rhs)[0]

    def gradients(
        self, transition: Tensor, x: Tensor, z: Tensor, values: Tensor | None, adjoint: bool
    ) -> tuple[Tensor, Tensor | None]:
        moved = self._h(x, adjoint)
        dtype = torch.promote_types(moved.dtype, z.dtype)
        return (moved.to(dtype).mH @ z.to(dtype)).sum(0), None


@dataclass(frozen=True, eq=False)
class EdgeSystem:
    """The equation on the edges of the graph, with any right-hand side.

    Args:
        equation: the equation, without gradients.
    """

    equation: Equation

    def solve(self, transition: Tensor, rhs: Tensor, adjoint: bool) -> Tensor:
        equation = replace(self.equation, transition=transition.mH if adjoint else transition)
        small = int(equation.adjacency.sizes.max()) <= MAX_DENSE_ADJOINT_NODES
        if small and not equation.typed:
            return _dense_solve(equation, rhs, adjoint)
        operator = equation.adjoint if adjoint else equation.apply
        x, residual, _, steps = FixedPoint(restart=200).solve_operator(equation, operator, rhs)
        if not bool((residual <= 1e-8).all()):
            raise ArithmeticError(
                f"the equation of {'the gradient' if adjoint else 'the weights'} did not converge: residual "
                f"{float(residual.max()):.1e} after {steps} steps; lower the damping: the nearer it lies to 1/ρ(A) "
                "(to 1 where it is relative to that, as in gape.nn), the more steps it takes"
            )
        return x

    def gradients(
        self, transition: Tensor, x: Tensor, z: Tensor, values: Tensor | None, adjoint: bool
    ) -> tuple[Tensor, Tensor | None]:
        # ⟨z, F(x)⟩ pairs x at the source of an edge with z at its target; ⟨z, F*(x)⟩ the other way round.
        equation = self.equation
        behind, ahead = (z, x) if adjoint else (x, z)
        if equation.edge_type is None:
            pulled = propagate(ahead, values, equation.walk, False)
            pair = (pulled, behind) if adjoint else (behind, pulled)
            to_transition = _outer(*pair, None if not equation.typed else equation.labels, transition)
        else:
            blocks = []
            for kind, walk in enumerate(equation.walks_by_type):
                chosen = None if values is None else values[equation.edge_type == kind]
                pulled = propagate(ahead, chosen, walk, False)
                blocks.append((pulled.mH @ behind) if adjoint else (behind.mH @ pulled))
            to_transition = torch.stack(blocks)
        if values is None:
            return to_transition, None
        # Both ways the edge u → v contributes ⟨(behind_u) μ, ahead_v⟩ with μ as F uses it.
        mu = transition.mH if adjoint else transition
        source, target, _ = equation.walk.entries()
        if equation.edge_type is not None:
            moved = (behind[source].unsqueeze(1) @ mu[equation.edge_type]).squeeze(1)
        elif equation.typed:
            moved = equation.by_label(behind, mu)[source]
        else:
            moved = (behind @ mu)[source]
        return to_transition, (moved.conj() * ahead[target]).sum(1).real


@dataclass(frozen=True, eq=False)
class PseudoSystem(EdgeSystem):
    """Singular equations: minimum-norm least squares, by dense pseudo-inverses."""

    @cached_property
    def _inverses(self) -> list[Tensor]:
        largest = int(self.equation.adjacency.sizes.max()) * self.equation.rhs.shape[1]
        if largest > MAX_DENSE_UNKNOWNS:
            raise ValueError(
                f"a graph whose equation is singular has {largest} unknowns (nodes × states), and gradients of a "
                f"least-squares solution are limited to {MAX_DENSE_UNKNOWNS}; take fewer states, a lower damping, or "
                "leave such graphs out of the training"
            )
        matrices = operator_matrices(self.equation, MAX_DENSE_UNKNOWNS)
        systems = [torch.eye(len(f), dtype=f.dtype, device=f.device) - f for f in matrices]
        return [torch.linalg.pinv(system, atol=SINGULAR_GAP) for system in systems]

    def solve(self, transition: Tensor, rhs: Tensor, adjoint: bool) -> Tensor:
        pieces = torch.split(rhs, self.equation.adjacency.sizes.tolist())
        solved = [
            ((inverse.mH if adjoint else inverse) @ each.reshape(-1)).reshape(each.shape)
            for inverse, each in zip(self._inverses, pieces, strict=True)
        ]
        return torch.cat(solved)


def _outer(left: Tensor, right: Tensor, labels: Tensor | None, like: Tensor) -> Tensor:
    """leftᴴ right summed over nodes, or over the nodes of each label."""
    if like.dim() == 2:
        return left.mH @ right
    if labels is None:
        return (left.mH @ right).unsqueeze(0)
    rows = [(labels == label).nonzero().flatten() for label in range(len(like))]
    return torch.stack([left[r].mH @ right[r] for r in rows])


def _dense_solve(equation: Equation, rhs: Tensor, adjoint: bool) -> Tensor:
    """Solve by a complete basis of the walk matrix: any right-hand side, any regular equation."""
    symmetric = equation.walk.symmetric
    projection = Spectral().projection(equation) if symmetric else Schur().projection(equation)
    dtype = rhs.dtype if rhs.is_complex() else projection.vectors.dtype
    padded = projection.padding.pad(rhs).unsqueeze(1).to(dtype)
    coordinates = (projection.vectors.conj().to(padded.dtype) @ padded).flatten(0, 1)
    system = BasisSystem(projection)
    y = system.solve(equation.transition.mH if adjoint else equation.transition, coordinates, adjoint)
    return projection.expand(y, real=not rhs.is_complex() and not equation.transition.is_complex())


class Propagate(torch.autograd.Function):
    """``Aᵀ x`` (forward along the edges) or ``A x`` (backward), differentiable in ``x`` and the entries of A."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, values: Tensor | None, walk: WalkMatrix, forward: bool) -> Tensor:
        ctx.walk, ctx.forward_ = walk, forward
        ctx.save_for_backward(x, values)
        return walk.push(x) if forward else walk.pull(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, values = ctx.saved_tensors
        to_x = propagate(grad, values, ctx.walk, not ctx.forward_)
        to_values = None
        if values is not None and ctx.needs_input_grad[1]:
            source, target, _ = ctx.walk.entries()
            ends = (source, target) if ctx.forward_ else (target, source)
            to_values = (x[ends[0]].conj() * grad[ends[1]]).sum(1).real
        return to_x, to_values, None, None


def propagate(x: Tensor, values: Tensor | None, walk: WalkMatrix, forward: bool) -> Tensor:
    out: Tensor = Propagate.apply(x, values, walk, forward)  # type: ignore[no-untyped-call]
    return out
