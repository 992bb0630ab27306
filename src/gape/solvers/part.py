"""One part of a batch: choose, run, settle what looks singular, attach gradients."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gape.graph.batching import group_by_size
from gape.solvers.auto import Auto
from gape.solvers.basis import Basis
from gape.solvers.fixed_point import FixedPoint
from gape.solvers.gradient import BasisSystem, EdgeSystem, PseudoSystem, stein_solve
from gape.solvers.kronecker import Kronecker
from gape.solvers.krylov import Krylov
from gape.solvers.outcome import NO, UNKNOWN, YES, Result, code, lost_rows
from gape.solvers.problem import Problem
from gape.solvers.question import Question
from gape.solvers.schur import Schur
from gape.solvers.series import Series
from gape.solvers.settle import settle
from gape.solvers.solution import Status
from gape.solvers.spectral import Spectral

Solver = Series | Krylov | Spectral | Schur | Kronecker | FixedPoint
AnySolver = Auto | Solver


@dataclass(eq=False)
class Solved:
    """The outcome on a part, the weights (attached to what requires gradients) and each graph's solver."""

    outcome: Result
    weights: Tensor
    solver: list[str]


def solve_part(question: Question, solver: AnySolver, basis: Basis | None, out: Tensor | None = None) -> Solved:
    """One part: without gradients and rounded into ``out``, or with gradients if there is no ``out``."""
    if question.graph.num_nodes == 0:
        return _without_solving(question, Status.RUN_SUM, 0.0)
    room = out if question.automaton.final is None else None
    problem = question.problem(room, every_label=out is None and question.automaton.initial.requires_grad)
    if not _finite(problem):
        return _without_solving(question, Status.NON_FINITE_INPUT, torch.nan, out)
    if basis is not None:
        return _solve_by(basis, question, problem, out)
    if isinstance(solver, Auto):
        return _solve_as_suits(solver, question, problem, out)
    return _solve_in_sizes(solver, question, problem, out)


def _solve_as_suits(auto: Auto, question: Question, problem: Problem, out: Tensor | None) -> Solved:
    """By what Auto picks; where iterations ran out of steps, once more by dense matrices."""
    apart = auto.apart(problem)
    if apart is not None:
        return _solve_groups([apart.nonzero().flatten(), (~apart).nonzero().flatten()], question, auto, out)
    picked = auto.pick(problem)
    solved = _solve_in_sizes(picked, question, problem, out)
    if isinstance(picked, Krylov | Series):
        failed = solved.outcome.status == code(Status.NOT_CONVERGED)
        failed &= problem.adjacency.sizes <= auto.dense_nodes
        if bool(failed.any()):
            return _solve_again(solved, failed.nonzero().flatten(), question, auto.dense(problem), out)
    return solved


def _solve_in_sizes(solver: Solver, question: Question, problem: Problem, out: Tensor | None) -> Solved:
    """All graphs at once, or those of about the same size where the largest sets the price."""
    if isinstance(solver, Spectral | Schur):
        groups = group_by_size(problem.adjacency.sizes)
        if len(groups) > 1:
            return _solve_groups(groups, question, solver, out)
    return _solve_by(solver, question, problem, out)


def _solve_by(method: Solver | Basis, question: Question, problem: Problem, out: Tensor | None) -> Solved:
    """Run, settle what looks singular, attach gradients, read out by τ, round."""
    automaton, part = question.automaton, question.graph
    if problem.typed and not isinstance(method, FixedPoint | Kronecker):
        raise ValueError(f"transitions by type need FixedPoint, Kronecker or Auto, got {method!r}")
    with torch.no_grad():
        # Gradients of μ and α alone can go through a small projected equation.
        small = out is None and not question.learns_edges and question.source is None
        outcome, known, basis = _run(method, problem, small)
        settle(outcome, question)
        # Without a source there is nothing to sum.
        outcome.status[problem.source_norm == 0] = code(Status.RUN_SUM)
    x = outcome.weights if out is not None else _differentiable(question, problem, outcome, basis, known)
    if automaton.final is not None:
        final = automaton.final.to(part.device)
        x = x * (final.T[part.labels] if automaton.labels > 1 else final[:, 0])
    if out is None:
        x = x.to(question.dtype)
    elif x is not out:
        x = out.copy_(x)
    # Weights known to be far below the largest number are not looked at.
    if automaton.final is not None or not outcome.largest < torch.finfo(x.dtype).max / 2:
        _flag_overflow(outcome, x, problem)
    name = method.solver if isinstance(method, Basis) else type(method).__name__
    return Solved(outcome, x, [name] * part.num_graphs)


def _run(method: Solver | Basis, problem: Problem, small: bool) -> tuple[Result, Tensor | None, Basis | None]:
    """The outcome; of a basis, which solvers make if ``small``, also the coordinates in it, and the basis."""
    if small and isinstance(method, Krylov):
        return method.run_with_basis(problem)
    if small and isinstance(method, Spectral | Schur):
        method = method.basis(problem)
    if isinstance(method, Basis):
        return *method.run(problem), method
    return method.run(problem), None, None


def _solve_groups(groups: list[Tensor], question: Question, solver: AnySolver, out: Tensor | None) -> Solved:
    """Groups of graphs, which are all there are, one after the other."""
    solved = _without_solving(question, Status.RUN_SUM, 0.0, out)
    for graphs in groups:
        solved = _solve_again(solved, graphs, question, solver, out)
    return solved


def _solve_again(solved: Solved, graphs: Tensor, question: Question, solver: AnySolver, out: Tensor | None) -> Solved:
    """What was solved, with other answers for some of its graphs."""
    rows = question.graph.nodes_of(graphs)
    room = None if out is None else out.new_empty(len(rows), out.shape[1])
    again = solve_part(question.select(graphs), solver, None, room)
    solved.outcome.take(graphs, again.outcome)
    for graph, name in zip(graphs.tolist(), again.solver, strict=True):
        solved.solver[graph] = name
    if out is None:
        weights = solved.weights.index_copy(0, rows, again.weights)
        return Solved(solved.outcome, weights, solved.solver)
    out[rows] = again.weights
    return solved


def _differentiable(
    question: Question, problem: Problem, outcome: Result, basis: Basis | None, known: Tensor | None
) -> Tensor:
    """The same weights, attached to the automaton's tensors and the edge weights."""
    automaton, part, dtype = question.automaton, question.graph, problem.initial.dtype
    singular = (outcome.unique == NO).nonzero().flatten()
    if basis is not None:
        if not basis.orthogonal and known is not None:
            known = known.reshape(part.num_graphs, -1).index_fill(0, singular, 0.0).reshape(known.shape)
        initial = automaton.initial.to(part.device, dtype)
        transition = automaton.transition.to(part.device, dtype)
        y = stein_solve(transition, basis.project(initial), None, BasisSystem(basis), known=known)
        x = basis.expand(y, real=not dtype.is_complex)
        if basis.orthogonal:
            return x
    else:
        x = _on_edges(question, EdgeSystem(problem), outcome.weights)
    if not len(singular):
        return x
    # Where the equation is singular the settled weights stand, and gradients go through the pseudo-inverse.
    alone, rows = question.select(singular), part.nodes_of(singular)
    again = _on_edges(alone, PseudoSystem(alone.problem()), outcome.weights[rows])
    return x.index_copy(0, rows, again)


def _on_edges(question: Question, system: EdgeSystem, known: Tensor) -> Tensor:
    mu = system.problem.transition
    transition = question.automaton.transition.to(mu.device, mu.dtype)
    values = system.problem.walk.entries()[2] if question.learns_edges else None
    return stein_solve(transition, question.begin(transition.dtype), values, system, known=known)


def _without_solving(question: Question, status: Status, value: float, out: Tensor | None = None) -> Solved:
    """The outcome where there is nothing to solve, or nothing that could be."""
    automaton, part = question.automaton, question.graph
    values = torch.full((3, part.num_graphs), value, dtype=torch.float64, device=part.device)
    if out is None:
        out = torch.empty(part.num_nodes, automaton.states, dtype=question.dtype, device=part.device)
    weights = out
    weights.fill_(value)
    unique = torch.full((part.num_graphs,), YES if status.ok else UNKNOWN, device=part.device)
    codes = torch.full((part.num_graphs,), code(status), device=part.device)
    outcome = Result(weights, values[0], values[1], 1.0 - values[2], unique, codes, 0)
    return Solved(outcome, weights, ["none"] * part.num_graphs)


def _finite(problem: Problem) -> bool:
    tensors = (problem.initial, problem.transition, problem.adjacency.edge_weight)
    return all(bool(torch.isfinite(tensor.detach()).all()) for tensor in tensors if tensor is not None)


def _flag_overflow(outcome: Result, weights: Tensor, problem: Problem) -> None:
    """Weights that left the range of their number format, though everything that went in was in it."""
    lost = lost_rows(weights.detach())
    if lost is not None:
        bad = problem.adjacency.segment_sum(lost.to(torch.float64)) > 0
        outcome.status[bad & (outcome.status != code(Status.NOT_CONVERGED))] = code(Status.OVERFLOW)
