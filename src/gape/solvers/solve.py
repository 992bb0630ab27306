"""``solve``: an automaton walks a graph."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gape._internal.threads import map_threads
from gape.automaton import Automaton
from gape.graph.convert import as_graph
from gape.graph.graph import Graph
from gape.solvers.auto import Auto
from gape.solvers.basis import Basis
from gape.solvers.outcome import NO, RADIUS_KINDS, STATUSES, YES
from gape.solvers.part import AnySolver, Solved, solve_part
from gape.solvers.prepare import GraphBasis
from gape.solvers.problem import check_fit, rounded_dtype
from gape.solvers.question import Question, as_rhs
from gape.solvers.solution import OnSingular, Solution, Status
from gape.solvers.verdict import check_on_singular, raise_or_warn


def solve(
    automaton: Automaton,
    graph: Any,
    *,
    solver: AnySolver | None = None,
    matrix: str = "adjacency",
    basis: GraphBasis | None = None,
    rhs: Any = None,
    on_singular: OnSingular = "raise",
    throw: bool = True,
    dtype: torch.dtype | None = None,
) -> Solution:
    r"""Total weight of the automaton's runs into every node and state: ``P = μᵀPA + αℓ``, equation (2) of the paper.

    Differentiable with respect to the automaton's tensors, the graph's edge weights and ``rhs``. Works in float64.

    Args:
        automaton: the machine. One with a single label sees all nodes alike; one with more needs ``graph.labels``.
        graph: a :class:`Graph`, or anything :func:`gape.as_graph` takes.
        solver: its settings; ``None`` for :class:`Auto`.
        matrix: the walk matrix A by name, see :mod:`gape.graph.walk_matrix`.
        basis: what :func:`prepare` computed for this graph before, instead of ``solver``.
        rhs: ``[n, states]``, the right-hand side instead of αℓ: the weights with which runs begin at each node.
        on_singular: ``"raise"``, or ``"least_squares"`` for the shortest least-squares solution, flagged as such.
        throw: whether a failed graph raises :class:`SolveError`; if not, look at ``status``.
        dtype: of the weights; the automaton's own if ``None``.

    Example:
        >>> ring = Graph.from_edges([(0, 1), (1, 2), (2, 0)], undirected=True)
        >>> solution = solve(Automaton.katz(0.25), ring)
        >>> solution.weights.flatten()
        tensor([2.0000, 2.0000, 2.0000], dtype=torch.float64)
        >>> solution.status[0].name
        'RUN_SUM'
    """
    if not isinstance(automaton, Automaton):
        raise ValueError(f"automaton must be a gape.Automaton, got {type(automaton).__name__}")
    if solver is not None and not isinstance(solver, AnySolver):
        raise ValueError(f"solver must be one of gape.solvers with its settings, such as Krylov(), got {solver!r}")
    check_on_singular(on_singular)
    # Not in inference mode, whatever the caller is in: what graphs keep for later has to be fit for training.
    recording = torch.is_grad_enabled()
    with torch.inference_mode(False), torch.set_grad_enabled(recording):
        solution = _solve(automaton, as_graph(graph), solver or Auto(), matrix, basis, rhs, on_singular, dtype)
    raise_or_warn(solution, throw)
    return solution


def _solve(
    automaton: Automaton,
    graph: Graph,
    solver: AnySolver,
    matrix: str,
    basis: GraphBasis | None,
    rhs: Any,
    on_singular: OnSingular,
    dtype: torch.dtype | None,
) -> Solution:
    check_fit(automaton, graph, labels=rhs is None or automaton.final is not None)
    dtype = rounded_dtype(automaton, dtype)
    whole = Question(automaton, graph, matrix, dtype, None if rhs is None else as_rhs(rhs, automaton, graph))
    questions: list[tuple[Question, Basis | None]] = [(question, None) for question in whole.parts]
    if basis is not None:
        if rhs is not None:
            raise ValueError("a basis is computed for labels, not for rhs; leave out basis or rhs")
        basis.check(automaton, graph, matrix)
        questions = list(zip(replace(whole, graph=basis.graph).parts, basis.parts, strict=True))
    if torch.is_grad_enabled() and whole.requires_grad:
        solved = [solve_part(question, solver, ready) for question, ready in questions]
        weights = torch.cat([answer.weights for answer in solved])
    else:
        weights = torch.empty(graph.num_nodes, automaton.states, dtype=dtype, device=graph.device)
        rows = torch.split(weights, [question.graph.num_nodes for question, _ in questions])

        def solve_one(i: int) -> Solved:
            question, ready = questions[i]
            return solve_part(question, solver, ready, out=rows[i])

        solved = map_threads(solve_one, range(len(questions)))
    return _collect(weights, solved, on_singular)


def _collect(weights: Tensor, results: list[Solved], on_singular: OnSingular) -> Solution:
    outcomes = [result.outcome for result in results]
    codes = torch.cat([outcome.status for outcome in outcomes]).tolist()
    status = [STATUSES[i] for i in codes]
    if on_singular == "least_squares":
        status = [Status.LEAST_SQUARES if s is Status.SINGULAR else s for s in status]
    unique = torch.cat([outcome.unique for outcome in outcomes]).tolist()
    return Solution(
        weights=weights,
        status=status,
        residual=torch.cat([outcome.residual for outcome in outcomes]),
        spectral_radius=torch.cat([outcome.spectral_radius for outcome in outcomes]),
        radius_kind=max((outcome.radius_kind for outcome in outcomes), key=RADIUS_KINDS.index),
        separation=torch.cat([outcome.separation for outcome in outcomes]),
        unique=[None if u not in (YES, NO) else u == YES for u in unique],
        solver=[name for result in results for name in result.solver],
        steps=max((outcome.steps for outcome in outcomes), default=0),
    )
