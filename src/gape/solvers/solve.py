"""``solve``: an automaton walks a graph."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gape.automaton import Automaton
from gape.graph import Graph
from gape.interop import as_graph
from gape.solvers.auto import Auto
from gape.solvers.basis import Basis
from gape.solvers.fixed_point import FixedPoint
from gape.solvers.gradient import BasisSystem, EdgeSystem, stein_solve
from gape.solvers.kronecker import Kronecker
from gape.solvers.krylov import Krylov
from gape.solvers.outcome import NO, STATUSES, UNKNOWN, YES, Outcome, code
from gape.solvers.problem import Problem
from gape.solvers.schur import Schur
from gape.solvers.series import Series
from gape.solvers.settle import Settlement
from gape.solvers.solution import AlgebraicOnlyWarning, Solution, SolveError, Status
from gape.solvers.spectral import Spectral
from gape.threads import map_threads
from gape.typing import OnSingular

AnySolver = Auto | Series | Krylov | Spectral | Schur | Kronecker | FixedPoint


def solve(
    automaton: Automaton,
    graph: Any,
    *,
    solver: AnySolver | None = None,
    matrix: str = "adjacency",
    basis: GraphBasis | None = None,
    on_singular: OnSingular = "raise",
    throw: bool = True,
    dtype: torch.dtype | None = None,
) -> Solution:
    r"""Total weight of the automaton's runs into every node and state: ``P = μᵀPA + αℓ``, equation (1) of the paper.

    Differentiable with respect to the automaton's tensors and the graph's edge weights. Works in float64.

    Args:
        automaton: the machine. One with a single label sees all nodes alike; one with more needs ``graph.labels``.
        graph: a :class:`Graph`, or anything :func:`gape.as_graph` takes.
        solver: its settings; ``None`` for :class:`Auto`.
        matrix: the walk matrix A by name, see :mod:`gape.walk`.
        basis: what :func:`prepare` computed for this graph before, instead of ``solver``.
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
    if on_singular not in ("raise", "least_squares"):
        raise ValueError(f"on_singular must be 'raise' or 'least_squares', got {on_singular!r}")
    graph = as_graph(graph)
    _check_fit(automaton, graph)
    if basis is not None:
        basis.check(graph, matrix)
        pieces: list[tuple[Graph, Basis | None]] = list(zip(basis.graph.parts, basis.parts, strict=True))
    else:
        pieces = [(part, None) for part in graph.parts]
    solver = solver or Auto()
    if torch.is_grad_enabled() and _requires_grad(automaton, graph):
        solved = [_solve_part(automaton, part, solver, matrix, ready) for part, ready in pieces]
        weights = torch.cat([piece.weights for piece in solved]).to(dtype or automaton.dtype)
    else:
        weights = torch.empty(graph.num_nodes, automaton.states, dtype=dtype or automaton.dtype, device=graph.device)
        starts = np.cumsum([0] + [part.num_nodes for part, _ in pieces])

        def solve_piece(i: int) -> _Solved:
            piece = _solve_part(automaton, pieces[i][0], solver, matrix, pieces[i][1], weights.dtype)
            weights[starts[i] : starts[i + 1]] = piece.weights
            piece.weights = piece.outcome.weights = weights[:0]
            return piece

        solved = map_threads(solve_piece, range(len(pieces)))
    solution = _collect(weights, solved, on_singular)
    failed = set(solution.status) - {Status.RUN_SUM, Status.LEAST_SQUARES}
    if throw and failed - {Status.ALGEBRAIC}:
        raise _error(solution)
    if Status.ALGEBRAIC in failed:
        number = solution.status.count(Status.ALGEBRAIC)
        warnings.warn(
            f"{number} of {len(solution.status)} graphs: {Status.ALGEBRAIC}", AlgebraicOnlyWarning, stacklevel=2
        )
    return solution


# ---------------------------------------------------------------------- bases


@dataclass(frozen=True, eq=False)
class GraphBasis:
    """A basis for every part of a graph batch, good for any automaton with these labels."""

    graph: Graph
    matrix: str
    parts: tuple[Basis, ...]

    def check(self, graph: Graph, matrix: str) -> None:
        if matrix != self.matrix:
            raise ValueError(f"the basis is for matrix={self.matrix!r}, the solve asks for {matrix!r}")
        if graph is not self.graph and not (
            torch.equal(graph.ptr, self.graph.ptr) and torch.equal(graph.edge_index, self.graph.edge_index)
        ):
            raise ValueError(f"the basis is for {self.graph!r}, the solve is on {graph!r}: prepare it for this graph")

    def __repr__(self) -> str:
        dimension = max((part.dimension for part in self.parts), default=0)
        return f"GraphBasis({self.parts[0].solver}, matrix={self.matrix}, dimension={dimension}, {self.graph!r})"


def prepare(
    graph: Any,
    *,
    solver: Krylov | Spectral | Schur | None = None,
    matrix: str = "adjacency",
    labels: int | None = None,
) -> GraphBasis:
    """Compute once what a solve needs of the graphs, to solve (or learn) many automata on them.

    Args:
        graph: a :class:`Graph`, or anything :func:`gape.as_graph` takes.
        solver: :class:`Krylov`, :class:`Spectral` or :class:`Schur`; ``None`` for Krylov with 32 steps, which is
            exact for graphs up to that size; on larger ones the certificate of each solve says if it was enough.
        matrix: the walk matrix.
        labels: number of node labels; as many as ``graph.labels`` shows if ``None``.

    Example:
        >>> ring = Graph.from_edges([(0, 1), (1, 2), (2, 0)], undirected=True)
        >>> basis = prepare(ring)
        >>> solve(Automaton.katz(0.25), ring, basis=basis).weights[0].item()
        2.0
    """
    graph = as_graph(graph)
    solver = solver or Krylov(max_steps=32)
    if not isinstance(solver, Krylov | Spectral | Schur):
        raise ValueError(f"a basis comes from Krylov, Spectral or Schur, got {solver!r}")
    if labels is None:
        labels = 1 if graph.labels is None or not graph.labels.numel() else int(graph.labels.max()) + 1
    probe = Automaton(torch.ones(1, labels, dtype=torch.float64), torch.zeros(1, 1, dtype=torch.float64))
    _check_fit(probe, graph)
    parts = tuple(solver.basis(Problem.of(probe, part, matrix)) for part in graph.parts)
    return GraphBasis(graph, matrix, parts)


# ---------------------------------------------------------------------- one part


@dataclass(eq=False)
class _Solved:
    outcome: Outcome
    weights: Tensor
    solver: str


def _solve_part(
    automaton: Automaton,
    part: Graph,
    solver: AnySolver,
    matrix: str,
    basis: Basis | None,
    rounded: torch.dtype | None = None,
) -> _Solved:
    """One part; with gradients unless ``rounded`` says to what the weights will be rounded."""
    differentiate = rounded is None
    problem = Problem.of(automaton, part, matrix, rounded if automaton.final is None else None)
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
    x = x if rounded is None else x.to(rounded)
    _flag_overflow(outcome, x, problem)
    return _Solved(outcome, x, name)


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


def _requires_grad(automaton: Automaton, part: Graph) -> bool:
    tensors = (automaton.initial, automaton.transition, automaton.final, part.edge_weight)
    return any(tensor is not None and tensor.requires_grad for tensor in tensors)


def _without_solving(automaton: Automaton, part: Graph, status: Status, value: float) -> _Solved:
    """The outcome where there is nothing to solve, or nothing that could be."""
    values = torch.full((part.num_graphs,), value, dtype=torch.float64, device=part.device)
    weights = torch.full((part.num_nodes, automaton.states), value, dtype=automaton.dtype, device=part.device)
    unique = torch.full((part.num_graphs,), YES if status.ok else UNKNOWN, device=part.device)
    codes = torch.full((part.num_graphs,), code(status), device=part.device)
    return _Solved(Outcome(weights, values, values, 1.0 - values, unique, codes, 0), weights, "none")


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


# ---------------------------------------------------------------------- all parts


def _collect(weights: Tensor, results: list[_Solved], on_singular: OnSingular) -> Solution:
    outcomes = [result.outcome for result in results]
    codes = torch.cat([outcome.status for outcome in outcomes]).tolist()
    status = [STATUSES[i] for i in codes]
    if on_singular == "least_squares":
        status = [Status.LEAST_SQUARES if s is Status.SINGULAR else s for s in status]
    unique = torch.cat([outcome.unique for outcome in outcomes]).tolist()
    kinds = {outcome.radius_kind for outcome in outcomes}
    return Solution(
        weights=weights,
        status=status,
        residual=torch.cat([outcome.residual for outcome in outcomes]),
        spectral_radius=torch.cat([outcome.spectral_radius for outcome in outcomes]),
        radius_kind=next((kind for kind in ("estimate", "bound") if kind in kinds), "exact"),
        separation=torch.cat([outcome.separation for outcome in outcomes]),
        unique=[None if u not in (YES, NO) else u == YES for u in unique],
        solver=[result.solver for result in results for _ in range(len(result.outcome.residual))],
        steps=max((outcome.steps for outcome in outcomes), default=0),
    )


def _error(solution: Solution) -> SolveError:
    failed = [i for i, s in enumerate(solution.status) if not s.ok and s is not Status.LEAST_SQUARES]
    first = failed[0]
    counts = {s: n for s, n in solution.counts().items() if not s.ok and s is not Status.LEAST_SQUARES}
    summary = ", ".join(f"{n} {s.name.lower().replace('_', ' ')}" for s, n in counts.items())
    return SolveError(
        f"{len(failed)} of {len(solution.status)} graphs failed ({summary}). First, graph {first}: "
        f"{solution.status[first]} (ρ(μ)ρ(A) ≈ {solution.spectral_radius[first].item():.3g}, "
        f"residual {solution.residual[first].item():.1e}, solver {solution.solver[first]})",
        solution,
    )


def _check_fit(automaton: Automaton, graph: Graph) -> None:
    if automaton.labels > 1:
        if graph.labels is None:
            raise ValueError(
                f"the automaton has {automaton.labels} labels and the graph has none; "
                "give them with graph.with_labels(...)"
            )
        top = int(graph.labels.max()) if graph.labels.numel() else 0
        if top >= automaton.labels:
            node = int(graph.labels.argmax())
            raise ValueError(f"node {node} has label {top}; the automaton knows labels 0 … {automaton.labels - 1}")
    if automaton.typed and automaton.transition_by == "edge":
        types = len(automaton.transition)
        if graph.edge_type is None:
            raise ValueError(f"the automaton's transition goes by {types} edge types and the graph has no edge_type")
        top = int(graph.edge_type.max()) if graph.edge_type.numel() else 0
        if top >= types:
            edge = int(graph.edge_type.argmax())
            raise ValueError(f"edge {edge} has type {top}; the automaton knows types 0 … {types - 1}")
