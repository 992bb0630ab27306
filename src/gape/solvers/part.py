"""One part of a batch: choose, run, settle what looks singular, attach gradients."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gape.automaton import Automaton
from gape.graph import Graph
from gape.solvers.auto import Auto
from gape.solvers.basis import Basis
from gape.solvers.fixed_point import FixedPoint
from gape.solvers.gradient import BasisSystem, EdgeSystem, stein_solve
from gape.solvers.kronecker import Kronecker
from gape.solvers.krylov import Krylov
from gape.solvers.outcome import UNKNOWN, YES, Outcome, code
from gape.solvers.problem import Problem
from gape.solvers.schur import Schur
from gape.solvers.series import Series
from gape.solvers.settle import Settlement
from gape.solvers.solution import Status
from gape.solvers.spectral import Spectral

AnySolver = Auto | Series | Krylov | Spectral | Schur | Kronecker | FixedPoint


@dataclass(eq=False)
class Solved:
    """The outcome on a part, the weights (attached to what requires gradients) and the solver's name."""

    outcome: Outcome
    weights: Tensor
    solver: str


def solve_part(
    automaton: Automaton,
    part: Graph,
    solver: AnySolver,
    matrix: str,
    basis: Basis | None,
    out: Tensor | None = None,
) -> Solved:
    """One part: without gradients and rounded into ``out``, or with gradients if there is no ``out``."""
    differentiate = out is None
    problem = Problem.of(automaton, part, matrix, out if automaton.final is None else None)
    if part.num_nodes == 0:
        return _without_solving(automaton, part, Status.RUN_SUM, 0.0)
    if not _finite(problem):
        return _without_solving(automaton, part, Status.NON_FINITE_INPUT, torch.nan)
    known = None
    with torch.no_grad():
        if isinstance(solver, Auto) and basis is None:
            solver = solver.pick(problem)
        if problem.typed and not isinstance(solver, FixedPoint | Kronecker):
            raise ValueError(f"transitions by type need FixedPoint, Kronecker or Auto, got {solver!r}")
        name = basis.solver if basis is not None else type(solver).__name__
        by_edges = part.edge_weight is not None and part.edge_weight.requires_grad
        if basis is not None:
            _check_basis(basis, part)
            outcome, known = basis.run(problem, tolerance=1e-10)
        elif differentiate and not by_edges and isinstance(solver, Krylov | Spectral | Schur):
            # μ and α alone: differentiate the small projected equation.
            outcome, known, basis = _run_for_basis(solver, problem)
        else:
            outcome = solver.run(problem)  # type: ignore[union-attr]
        Settlement(automaton, matrix).settle(outcome, part)
    x = outcome.weights
    if differentiate:
        x = _differentiable(automaton, part, problem, outcome, basis, known)
    if automaton.final is not None:
        final = automaton.final.to(part.device)
        x = x * (final.T[part.labels] if automaton.labels > 1 else final[:, 0])
    if out is not None and x is not out:
        x = out.copy_(x)
    _flag_overflow(outcome, x, problem)
    return Solved(outcome, x, name)


def _run_for_basis(solver: Krylov | Spectral | Schur, problem: Problem) -> tuple[Outcome, Tensor, Basis]:
    if isinstance(solver, Krylov):
        return solver.run_with_basis(problem)
    basis = solver.basis(problem)
    return *basis.run(problem, tolerance=1e-10), basis


def _check_basis(basis: Basis, part: Graph) -> None:
    if part.edge_weight is not None and part.edge_weight.requires_grad:
        raise ValueError("edge_weight requires gradients, and a basis was computed for fixed weights; leave basis out")


def _differentiable(
    automaton: Automaton, part: Graph, problem: Problem, outcome: Outcome, basis: Basis | None, known: Tensor | None
) -> Tensor:
    """The same weights, attached to the automaton's tensors and the edge weights."""
    dtype = problem.initial.dtype
    initial = automaton.initial.to(part.device, dtype)
    transition = automaton.transition.to(part.device, dtype)
    if basis is not None:
        real = not dtype.is_complex
        y = stein_solve(transition, basis.project(initial), None, BasisSystem(basis), known=known)
        return basis.expand(y, real=real)
    values = None
    if part.edge_weight is not None and part.edge_weight.requires_grad:
        values = problem.walk.entries()[2]
    source = initial.T[part.labels] if automaton.labels > 1 else initial[:, 0].expand(part.num_nodes, -1)
    return stein_solve(transition, source, values, EdgeSystem(problem), known=outcome.weights)


def requires_grad(automaton: Automaton, part: Graph) -> bool:
    tensors = (automaton.initial, automaton.transition, automaton.final, part.edge_weight)
    return any(tensor is not None and tensor.requires_grad for tensor in tensors)


def _without_solving(automaton: Automaton, part: Graph, status: Status, value: float) -> Solved:
    """The outcome where there is nothing to solve, or nothing that could be."""
    values = torch.full((part.num_graphs,), value, dtype=torch.float64, device=part.device)
    weights = torch.full((part.num_nodes, automaton.states), value, dtype=automaton.dtype, device=part.device)
    unique = torch.full((part.num_graphs,), YES if status.ok else UNKNOWN, device=part.device)
    codes = torch.full((part.num_graphs,), code(status), device=part.device)
    return Solved(Outcome(weights, values, values, 1.0 - values, unique, codes, 0), weights, "none")


def _finite(problem: Problem) -> bool:
    tensors = [problem.initial, problem.transition]
    if problem.adjacency.edge_weight is not None:
        tensors.append(problem.adjacency.edge_weight.detach())
    return all(bool(torch.isfinite(tensor).all()) for tensor in tensors)


def _flag_overflow(outcome: Outcome, weights: Tensor, problem: Problem) -> None:
    """Weights that left the range of their number format, though everything that went in was in it."""
    weights = weights.detach()
    if weights.is_complex():
        sound = bool(torch.isfinite(weights).all())
    else:
        sound = all(bool(torch.isfinite(end)) for end in weights.aminmax())
    if not sound:
        bad = problem.adjacency.segment_sum((~torch.isfinite(weights)).any(1).to(torch.float64)) > 0
        outcome.status[bad] = code(Status.OVERFLOW)
