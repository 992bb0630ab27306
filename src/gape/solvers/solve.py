"""``solve``: sum the weights of an automaton's runs on graphs."""

from __future__ import annotations

from collections import deque
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from gape._internal.threads import map_threads, one_torch_thread
from gape._internal.validation import check_at_least
from gape.automaton import Automaton, RootedAutomaton
from gape.graph.convert import as_graph
from gape.graph.graph import Graph
from gape.graph.spectral_radius import unit_radius
from gape.solvers.auto import Auto
from gape.solvers.base import Result, Solver, per_graph
from gape.solvers.basis import Basis
from gape.solvers.certificate import NO, RADIUS_KINDS, UNKNOWN, YES, code, overflowing
from gape.solvers.equation import Equation, as_rhs, check_fit, output_dtype
from gape.solvers.error_bound import bound_errors
from gape.solvers.gradient import attach_gradients
from gape.solvers.kernels import supported
from gape.solvers.readouts import SolveReadout, check_readout, read_out
from gape.solvers.rooted import rooted
from gape.solvers.singular import resolve_singular
from gape.solvers.solution import OnSingular, Solution, Status

T = TypeVar("T")

# Below this, PyTorch's threads cost more by waiting than they save.
MIN_EDGES_FOR_TORCH_THREADS = 100_000


def solve(
    automaton: Automaton | RootedAutomaton,
    graph: Any,
    *,
    readout: SolveReadout = "node",
    solver: Solver | None = None,
    matrix: str = "adjacency",
    basis: Basis | None = None,
    rhs: Any = None,
    on_singular: OnSingular = "raise",
    throw: bool = True,
    dtype: torch.dtype | None = None,
    memory: float = 4.0,
) -> Solution:
    r"""Sum the weights of the automaton's runs: ``P = μᵀPA + αℓ``, equation (2) of the paper.

    Works in float64. ``readout="node"`` is differentiable with respect to the automaton's tensors, the graph's edge
    weights and ``rhs``. The other readouts cost n³ per graph and have no gradient; :class:`gape.nn.GAPE` has readouts
    to learn with.

    Args:
        automaton: the machine. One with a single label sees all nodes alike; one with more needs ``graph.labels``.
        graph: a :class:`Graph`, or anything :func:`gape.as_graph` takes.
        readout: ``"node"``, runs from anywhere into each node, ``[n, k]``; ``"closed"``, runs of each node back to
            itself, ``[n, k]``; ``"pair"``, runs from every node to every node, ``[Σ n², k]`` as in
            :class:`gape.encodings.Pairs`. The latter two are for one real μ and no final weights. ``"rooted"``, for a
            :class:`gape.automaton.RootedAutomaton`: closed runs in each layer around every node.
        solver: its settings; ``None`` for :class:`Auto`. For ``readout="node"``, as are ``basis`` and ``rhs``.
        matrix: the walk matrix A by name, see :mod:`gape.graph.walk_matrix`.
        basis: from :func:`gape.prepare` for this graph, instead of ``solver``.
        rhs: ``[n, states]``, the right-hand side instead of αℓ: the weights with which runs begin at each node.
        on_singular: ``"raise"``, or ``"least_squares"`` for the minimum-norm least-squares solution, flagged as such.
            Closed and pair readouts have it, where the walk matrix is not symmetric, for graphs of up to 4,096 nodes
            times states.
        throw: whether a failed graph raises :class:`SolveError`; if not, look at ``status``.
        dtype: of the weights; the automaton's own if ``None``.
        memory: limit in GiB for the dense matrices of one graph of a closed or pair readout, and all pairs.

    Example:
        >>> ring = Graph.from_edges([(0, 1), (1, 2), (2, 0)], undirected=True)
        >>> solution = solve(Automaton.katz(0.25), ring)
        >>> solution.weights.flatten()
        tensor([2.0000, 2.0000, 2.0000], dtype=torch.float64)
        >>> solution.status[0].name
        'RUN_SUM'
        >>> solve(Automaton.shift(3), ring, readout="closed", matrix="random_walk").weights[0]
        tensor([1.0000, 0.0000, 0.5000, 0.2500], dtype=torch.float64)
        >>> path = Graph.from_edges([(0, 1), (1, 2)])
        >>> solve(Automaton.shift(2), path, readout="pair").weights[2]  # from node 0 to node 2: one walk of 2 steps
        tensor([0., 0., 1.], dtype=torch.float64)
    """
    _check_settings(automaton, readout, solver, on_singular)
    check_readout(readout, automaton, solver=solver, basis=basis, rhs=rhs)
    check_at_least(0, memory=memory)
    recording = torch.is_grad_enabled() and readout in ("node", "rooted")
    # Leave inference mode: graphs cache tensors, which later have to be fit for training.
    with torch.inference_mode(False), torch.set_grad_enabled(recording):
        graph = as_graph(graph)
        if isinstance(automaton, RootedAutomaton):
            if matrix != "adjacency":
                raise ValueError(f"rooted runs walk on matrix='adjacency', got matrix={matrix!r}; leave it out")
            result = rooted(automaton, graph, dtype or automaton.dtype, memory)
            return _collect(result.weights, [result], on_singular).checked(throw)
        check_fit(automaton, graph, labels=rhs is None or automaton.final is not None)
        dtype = output_dtype(automaton, dtype)
        rhs = None if rhs is None else as_rhs(rhs, automaton, graph)
        if basis is not None:
            if rhs is not None:
                raise ValueError("a basis is computed for labels, not for rhs; leave out basis or rhs")
            graph = basis.check(automaton, graph, matrix)
        if readout != "node":
            equations = [Equation.of(automaton, part, matrix, dtype=dtype) for part in graph.parts]
            results = read_out(readout, equations, on_singular, memory)
            weights = results[0].weights if len(results) == 1 else torch.cat([result.weights for result in results])
            return _collect(weights, results, on_singular).checked(throw)
        learned = (automaton.initial, automaton.transition, automaton.final, graph.edge_weight, rhs)
        if recording and any(tensor is not None and tensor.requires_grad for tensor in learned):
            whole = _Part(automaton, graph, matrix, solver or Auto(), rhs, dtype, None)
            results = [_solve_part(part) for part in _parts(whole, basis)]
            weights = torch.cat([result.weights for result in results])
        else:
            weights = torch.empty(graph.num_nodes, automaton.states, dtype=dtype, device=graph.device)
            results = _solve_batch(_Part(automaton, graph, matrix, solver or Auto(), rhs, dtype, weights), basis)
    return _collect(weights, results, on_singular).checked(throw)


def _check_settings(
    automaton: Automaton | RootedAutomaton, readout: str, solver: Solver | None, on_singular: str
) -> None:
    if not isinstance(automaton, Automaton | RootedAutomaton):
        raise ValueError(f"automaton must be a gape.Automaton, got {type(automaton).__name__}")
    if (readout == "rooted") != isinstance(automaton, RootedAutomaton):
        raise ValueError(
            f"readout='rooted' is for gape.automaton.RootedAutomaton, and others are for gape.Automaton; "
            f"got readout={readout!r} and {type(automaton).__name__}"
        )
    if solver is not None and not isinstance(solver, Solver):
        raise ValueError(f"solver must be one of gape.solvers with its settings, such as Krylov(), got {solver!r}")
    if on_singular not in ("raise", "least_squares"):
        raise ValueError(f"on_singular must be 'raise' or 'least_squares', got {on_singular!r}")


class _Part(NamedTuple):
    """A batch, or a part of one, and how to solve it; ``out``: rows of the weights, ``None`` if they need gradients."""

    automaton: Automaton
    graph: Graph
    matrix: str
    solver: Solver
    rhs: Tensor | None
    dtype: torch.dtype
    out: Tensor | None


def _parts(whole: _Part, basis: Basis | None = None) -> list[_Part]:
    """Cut a batch into parts; those of a ``basis`` are their own solvers."""
    graphs = whole.graph.parts
    solvers = [whole.solver] * len(graphs) if basis is None else basis.parts
    sizes = [part.num_nodes for part in graphs]
    rights = [None] * len(graphs) if whole.rhs is None else torch.split(whole.rhs, sizes)
    outs = [None] * len(graphs) if whole.out is None else torch.split(whole.out, sizes)
    return [
        whole._replace(graph=part, solver=solver, rhs=right, out=rows)
        for part, solver, right, rows in zip(graphs, solvers, rights, outs, strict=True)
    ]


def solve_relative(
    automaton: Automaton, graph: Graph, *, matrix: str, on_singular: OnSingular, dtype: torch.dtype
) -> Solution:
    """Sum the runs on walk matrices divided by their spectral radius, or by 1 where that is 0: ``[n, k]``.

    The same as :func:`solve` on :func:`unit_radius` of the graph, but kernels find the radius in the space in which
    they solve. Without gradients.
    """
    with torch.inference_mode(False), torch.no_grad():
        check_fit(automaton, graph)
        weights = torch.empty(graph.num_nodes, automaton.states, dtype=dtype, device=graph.device)
        whole = _Part(automaton, graph, matrix, Auto(), None, dtype, weights)
        with one_torch_thread():
            compiled = _solve_compiled(whole, relative=True)
        if compiled is not None:
            results = [compiled]
        else:
            with _torch_threads(graph):
                results = _solve_batch(whole._replace(graph=unit_radius(graph, matrix), matrix="adjacency"))
    return _collect(weights, results, on_singular).checked()


def _solve_batch(whole: _Part, basis: Basis | None = None) -> list[Result]:
    """Solve without gradients, into ``whole.out``: by compiled kernels, or part by part by PyTorch."""
    with one_torch_thread():
        compiled = _solve_compiled(whole) if basis is None else None
    if compiled is not None:
        return [compiled]
    with _torch_threads(whole.graph):
        return map_threads(_solve_part, _parts(whole, basis))


def _torch_threads(graph: Graph) -> AbstractContextManager[None]:
    """Let PyTorch use several threads on large graphs only."""
    return nullcontext() if graph.num_edges >= MIN_EDGES_FOR_TORCH_THREADS else one_torch_thread()


def _solve_compiled(whole: _Part, relative: bool = False) -> Result | None:
    """Solve all graphs by compiled kernels, and those that they do not certify by PyTorch; ``None`` if that is all."""
    equation = Equation.of(whole.automaton, whole.graph, whole.matrix, rhs=whole.rhs, dtype=whole.dtype, out=whole.out)
    if not whole.graph.num_nodes or not supported(equation) or not equation.finite:
        return None
    whole.solver.check(equation)
    result = whole.solver.compiled(equation, relative=relative)
    left = None if result is None else result.has_status(Status.NOT_CONVERGED).nonzero().flatten()
    if result is None or left is None or len(left) == equation.num_graphs:
        return None
    result = _finish(result, equation)
    assert whole.out is not None
    if result.weights is not whole.out:
        whole.out.copy_(result.weights)
    if len(left):
        some, rows, matrix = whole.graph.select(left), whole.graph.nodes_of(left), whole.matrix
        if relative:
            some, matrix = unit_radius(some, matrix), "adjacency"
        out = whole.out.new_empty(len(rows), whole.out.shape[1])
        parts = _parts(whole._replace(graph=some, matrix=matrix, rhs=None, out=out))
        found, graphs = map_threads(_solve_part, parts), [part.graph.num_graphs for part in parts]
        for chosen, part in zip(torch.split(left, graphs), found, strict=True):
            result.update(chosen, part)
        whole.out[rows] = out
    return result


def _solve_part(part: _Part) -> Result:
    """Assign the graphs of one part to solvers, solve them, and merge the results."""
    equation = Equation.of(part.automaton, part.graph, part.matrix, rhs=part.rhs, dtype=part.dtype, out=part.out)
    if part.graph.num_nodes == 0:
        return Result.constant(equation, Status.RUN_SUM, 0.0)
    if equation.finite:
        result, work = None, deque(part.solver.assign(equation))
        while work:
            assigned = work.popleft()
            found = _solve_together(assigned.solver, assigned.equation)
            result = _merge(result, equation, assigned.graphs, found)
            if assigned.fallback is not None:
                failed = found.has_status(Status.NOT_CONVERGED) & (assigned.equation.sizes <= assigned.fallback_nodes)
                if bool(failed.any()):
                    some = failed.nonzero().flatten()
                    graphs = some if assigned.graphs is None else assigned.graphs[some]
                    work.extend(again.among(graphs) for again in assigned.fallback.assign(equation.select(graphs)))
    else:
        result = Result.constant(equation, Status.NON_FINITE_INPUT, torch.nan)
    assert result is not None
    if part.out is not None and result.weights is not part.out:
        part.out.copy_(result.weights)
    return result


def _solve_together(solver: Solver, equation: Equation) -> Result:
    """Solve the equation of all graphs by one solver; resolve singular graphs."""
    solver.check(equation)
    if equation.walk.num_nodes == 0:  # graphs without nodes, apart from the larger ones of their batch
        return Result.constant(equation, Status.RUN_SUM, 0.0)
    plain = equation.detached
    with torch.no_grad():
        result = solver.solve(plain)
        resolve_singular(result, plain)
        bound_errors(result, plain)
    result.solver = [solver.name] * equation.num_graphs
    return _finish(result, equation)


def _finish(result: Result, equation: Equation) -> Result:
    """Attach gradients, apply τ and round."""
    # If the right-hand side is zero there is nothing to sum.
    result.status[equation.detached.rhs_norm == 0] = code(Status.RUN_SUM)
    x = attach_gradients(equation, result) if equation.requires_grad else result.weights
    if equation.final is not None:
        x = x * (equation.final[:, 0] if equation.labels is None else equation.final.T[equation.labels])
    if equation.out is None:
        x = x.to(equation.dtype)
    elif x is not equation.out:
        x = equation.out.copy_(x)
    if equation.final is not None or not result.weight_bound < torch.finfo(x.dtype).max / 2:
        overflowed = overflowing(x.detach(), equation.sizes)
        if overflowed is not None:
            result.status[overflowed & ~result.has_status(Status.NOT_CONVERGED)] = code(Status.OVERFLOW)
    result.weights, result.projection, result.coordinates = x, None, None
    return result


def _merge(result: Result | None, equation: Equation, graphs: Tensor | None, found: Result) -> Result:
    """Write the result ``found`` for some ``graphs`` (``None``: all) into the one of the whole part."""
    if graphs is None:
        return found
    rows = equation.nodes_of(graphs)
    result = result or Result.constant(equation, Status.RUN_SUM, 0.0)
    result.update(graphs, found)
    if equation.requires_grad:
        result.weights = result.weights.index_copy(0, rows, found.weights)
    else:
        result.weights[rows] = found.weights
    return result


def _collect(weights: Tensor, results: list[Result], on_singular: OnSingular) -> Solution:
    """Join the results of all parts."""
    status = _joined([result.status_list() for result in results])
    if on_singular == "least_squares" and Status.SINGULAR in status:
        status = [Status.LEAST_SQUARES if s is Status.SINGULAR else s for s in status]
    unique = per_graph(torch.cat([result.unique for result in results]), {YES: True, NO: False, UNKNOWN: None})
    return Solution(
        weights=weights,
        status=status,
        residual=torch.cat([result.residual for result in results]),
        spectral_radius=torch.cat([result.spectral_radius for result in results]),
        radius_kind=max((result.radius_kind for result in results), key=RADIUS_KINDS.index),
        separation=torch.cat([result.separation for result in results]),
        unique=unique,
        error_bound=torch.cat([result.error_bound for result in results]),
        solver=_joined([result.solver for result in results]),
        steps=max((result.steps for result in results), default=0),
    )


def _joined(lists: list[list[T]]) -> list[T]:
    return lists[0] if len(lists) == 1 else list(chain.from_iterable(lists))
