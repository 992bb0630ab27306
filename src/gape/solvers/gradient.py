r"""The one autodiff rule of all solvers.

The solution of X = F(X) + S is linear in S, so its gradient is one more solve of the same kind: with G = ∂L/∂X,

    Z = F*(Z) + G,      ∂L/∂S = Z,      ∂L/∂μ = Σ_u X_u ⊗ (AZ)_u,      ∂L/∂A_uv = ⟨X_u μ, Z_v⟩,

where F*(Z) = A Z μᴴ is the adjoint of F(X) = Aᵀ X μ. As Z is such a solution itself, differentiating it again gives the
second derivative. A *system* says how to solve and how to apply the two products: on the graph's edges
(:class:`EdgeSystem`) or in the coordinates of a basis (:class:`BasisSystem`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor

from gape.graph.walk_matrix import WalkMatrix
from gape.solvers.basis import Basis
from gape.solvers.fixed_point import FixedPoint
from gape.solvers.kronecker import operator_matrices
from gape.solvers.outcome import SINGULAR_GAP
from gape.solvers.problem import Problem
from gape.solvers.schur import Schur
from gape.solvers.schur_form import SchurForm
from gape.solvers.settle import DENSE_UNKNOWNS
from gape.solvers.spectral import Spectral

# Up to this size an adjoint solve takes the dense road, which converges whatever the spectrum.
ADJOINT_NODES = 256


class System(Protocol):
    def solve(self, transition: Tensor, source: Tensor, adjoint: bool) -> Tensor:
        """X with X = F(X) + S, or with F* for F; ``transition`` is then already μᴴ."""

    def gradients(
        self, transition: Tensor, x: Tensor, z: Tensor, values: Tensor | None, adjoint: bool
    ) -> tuple[Tensor, Tensor | None]:
        """∂/∂(transition) and ∂/∂(values) of ⟨z, F(x)⟩ (or of F*), differentiable."""


class SteinSolve(torch.autograd.Function):
    """X from (transition, source, values): the rule above, applicable to itself."""

    @staticmethod
    def forward(
        ctx: Any,
        transition: Tensor,
        source: Tensor,
        values: Tensor | None,
        system: System,
        adjoint: bool,
        known: Tensor | None,
    ) -> Tensor:
        x = system.solve(transition.detach(), source.detach(), adjoint) if known is None else known.detach()
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
    source: Tensor,
    values: Tensor | None,
    system: System,
    adjoint: bool = False,
    known: Tensor | None = None,
) -> Tensor:
    """The solution, attached to ``transition``, ``source`` and (edge) ``values``; ``known`` if it is at hand."""
    x: Tensor = SteinSolve.apply(transition, source, values, system, adjoint, known)  # type: ignore[no-untyped-call]
    return x


@dataclass(frozen=True, eq=False)
class BasisSystem:
    """Y = H Y μ + S in the coordinates of a basis that does not depend on what is differentiated."""

    basis: Basis

    def _h(self, y: Tensor, adjoint: bool) -> Tensor:
        h = self.basis.h.flatten(0, 1)
        if self.basis.form == "diagonal":
            return h.unsqueeze(-1) * y
        h = h.mH if adjoint else h
        return h.to(torch.promote_types(h.dtype, y.dtype)) @ y.to(torch.promote_types(h.dtype, y.dtype))

    def solve(self, transition: Tensor, source: Tensor, adjoint: bool) -> Tensor:
        basis = self.basis
        if adjoint and basis.form != "diagonal":
            # The transpose of an upper triangle is a lower one: solved as a general matrix.
            basis = replace(basis, h=basis.h.mH, form="dense")
        return basis.solve(transition, SchurForm.of(transition), source)[0]

    def gradients(
        self, transition: Tensor, x: Tensor, z: Tensor, values: Tensor | None, adjoint: bool
    ) -> tuple[Tensor, Tensor | None]:
        moved = self._h(x, adjoint)
        dtype = torch.promote_types(moved.dtype, z.dtype)
        return (moved.to(dtype).mH @ z.to(dtype)).sum(0), None


@dataclass(frozen=True, eq=False)
class EdgeSystem:
    """The equation on the graph itself, with any source.

    Args:
        problem: the equation, without gradients.
    """

    problem: Problem

    def solve(self, transition: Tensor, source: Tensor, adjoint: bool) -> Tensor:
        problem = replace(self.problem, transition=transition.mH if adjoint else transition)
        small = int(problem.adjacency.sizes.max()) <= ADJOINT_NODES
        if small and not problem.typed:
            return _dense_solve(problem, source, adjoint)
        operator = problem.adjoint if adjoint else problem.apply
        x, residual, _, steps = FixedPoint(restart=200).solve(problem, operator, source)
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
        problem = self.problem
        behind, ahead = (z, x) if adjoint else (x, z)
        if problem.edge_type is None:
            pulled = propagate(ahead, values, problem.walk, False)
            pair = (pulled, behind) if adjoint else (behind, pulled)
            to_transition = _outer(*pair, None if not problem.typed else problem.labels, transition)
        else:
            blocks = []
            for kind, walk in enumerate(problem.walks_by_type):
                chosen = None if values is None else values[problem.edge_type == kind]
                pulled = propagate(ahead, chosen, walk, False)
                blocks.append((pulled.mH @ behind) if adjoint else (behind.mH @ pulled))
            to_transition = torch.stack(blocks)
        if values is None:
            return to_transition, None
        # Both ways the edge u → v contributes ⟨(behind_u) μ, ahead_v⟩ with μ as F uses it.
        mu = transition.mH if adjoint else transition
        source, target, _ = problem.walk.entries()
        if problem.edge_type is not None:
            moved = (behind[source].unsqueeze(1) @ mu[problem.edge_type]).squeeze(1)
        elif problem.typed:
            moved = problem.by_label(behind, mu)[source]
        else:
            moved = (behind @ mu)[source]
        return to_transition, (moved.conj() * ahead[target]).sum(1).real


@dataclass(frozen=True, eq=False)
class PseudoSystem(EdgeSystem):
    """The same where the equation is singular: the shortest least-squares solution, by dense pseudo-inverses."""

    @cached_property
    def _inverses(self) -> list[Tensor]:
        largest = int(self.problem.adjacency.sizes.max()) * self.problem.source.shape[1]
        if largest > DENSE_UNKNOWNS:
            raise ValueError(
                f"a graph whose equation is singular has {largest} unknowns (nodes × states), and gradients of a "
                f"least-squares solution are limited to {DENSE_UNKNOWNS}; take fewer states, a lower damping, or leave "
                "such graphs out of what is learned"
            )
        matrices = operator_matrices(self.problem, DENSE_UNKNOWNS)
        systems = [torch.eye(len(f), dtype=f.dtype, device=f.device) - f for f in matrices]
        return [torch.linalg.pinv(system, atol=SINGULAR_GAP) for system in systems]

    def solve(self, transition: Tensor, source: Tensor, adjoint: bool) -> Tensor:
        sources = torch.split(source, self.problem.adjacency.sizes.tolist())
        solved = [
            ((inverse.mH if adjoint else inverse) @ each.reshape(-1)).reshape(each.shape)
            for inverse, each in zip(self._inverses, sources, strict=True)
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


def _dense_solve(problem: Problem, source: Tensor, adjoint: bool) -> Tensor:
    """By a complete basis of the walk matrix: any source, any spectrum without a singularity."""
    symmetric = problem.walk.symmetric
    basis = Spectral().basis(problem) if symmetric else Schur().basis(problem)
    spread = basis.padding.pad(source).unsqueeze(1).to(basis.vectors.dtype if not source.is_complex() else source.dtype)
    coordinates = (basis.vectors.conj().to(spread.dtype) @ spread).flatten(0, 1)
    system = BasisSystem(basis)
    y = system.solve(problem.transition.mH if adjoint else problem.transition, coordinates, adjoint)
    return basis.expand(y, real=not source.is_complex() and not problem.transition.is_complex())


class Propagate(torch.autograd.Function):
    """``Aᵀ x`` (forward) or ``A x`` (backward along the edges), differentiable in ``x`` and in the entries of A."""

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
