"""Equations on which eigenvalues, single terms or plain sums mislead: directed chains, cancellation, hidden parts."""

import functools
import math
from contextlib import nullcontext
from fractions import Fraction

import numpy as np
import pytest
import torch

import gape
from gape import Automaton, Graph, native
from gape.solvers import Auto, Equation, Kronecker, Krylov, Schur, Series, SolveError, Status

closed, pair = (functools.partial(gape.solve, readout=name) for name in ("closed", "pair"))

LEAST = {"on_singular": "least_squares"}


def nearest(machine, graph):
    """The shortest least-squares solution by NumPy, and its relative residual."""
    matrix, mu = graph.walk("adjacency").dense()[0].numpy(), machine.transition.numpy()
    system = np.eye(len(matrix) * len(mu)) - np.kron(matrix.T, mu.T)
    source = np.tile(machine.initial.numpy()[:, 0], len(matrix))
    found = np.linalg.lstsq(system, source, rcond=1e-12)[0]
    residual = np.linalg.norm(system @ found - source) / np.linalg.norm(source)
    return torch.from_numpy(found.reshape(len(matrix), -1)), residual


def chain_of_pairs(pairs):
    """0⇄1→2⇄3→…: the eigenvalue 1 as often as there are pairs, with one eigenvector; in a random order."""
    edges = [edge for p in range(pairs) for edge in ((2 * p, 2 * p + 1), (2 * p + 1, 2 * p))]
    edges += [(2 * p - 1, 2 * p) for p in range(1, pairs)]
    order = np.random.default_rng(pairs).permutation(2 * pairs).tolist()
    return Graph.from_edges([(order[u], order[v]) for u, v in edges], num_nodes=2 * pairs)


def digraph(seed):
    generator = np.random.default_rng(seed)
    nodes = int(generator.integers(6, 20))
    edges = [(int(u), int(v)) for u, v in generator.integers(0, nodes, (int(1.3 * nodes), 2)) if u != v]
    edges += [(v, u) for u, v in edges if generator.random() < 0.3]
    return Graph.from_edges(edges, num_nodes=nodes)


@pytest.mark.filterwarnings("ignore::gape.solvers.AlgebraicOnlyWarning")
@pytest.mark.parametrize("solver", [None, Kronecker(), Schur()], ids=["auto", "kronecker", "schur"])
@pytest.mark.parametrize("graph", [chain_of_pairs(3), chain_of_pairs(12), *map(digraph, range(12))], ids=str)
def test_directed_graphs_get_a_solution_or_the_shortest_that_comes_nearest(graph, solver):
    machine = Automaton.stochastic(3, seed=graph.num_nodes)
    expected, residual = nearest(machine, graph)
    chosen = {} if solver is None else {"solver": solver}
    solution = gape.solve(machine, graph, throw=False, **LEAST, **chosen)
    assert solution.status[0].ok == (residual < 1e-10)
    if solution.status[0].ok and not solution.unique[0]:  # any of many solutions
        left = solution.weights - graph.walk("adjacency").push(solution.weights @ machine.transition)
        expected, found = machine.initial.T.expand_as(left), left
    else:
        found = solution.weights
    torch.testing.assert_close(found, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.filterwarnings("ignore::gape.solvers.AlgebraicOnlyWarning")
@pytest.mark.parametrize("readout", [pair, closed])
def test_readouts_find_singular_directed_graphs_too(readout):
    graph, machine = chain_of_pairs(3), Automaton.katz(1.0)
    with pytest.raises(SolveError, match="singular"):
        readout(machine, graph)
    solution = readout(machine, graph, **LEAST)
    matrix = graph.walk("adjacency").dense()[0].numpy()
    runs = np.linalg.lstsq(np.eye(6) - matrix.T, np.eye(6), rcond=1e-12)[0].T
    expected = torch.from_numpy(runs if readout is pair else runs.diagonal().copy())
    torch.testing.assert_close(solution.weights.reshape(expected.shape), expected)
    assert solution.unique == [False]
    assert solution.residual.item() == pytest.approx(
        np.linalg.norm(runs - runs @ matrix - np.eye(6)) / math.sqrt(6), rel=1e-8
    )


def test_readouts_say_what_rounding_costs_near_a_singular_equation():
    path, damping = Graph.from_edges([(0, 1), (1, 2)], undirected=True), (1 - 3e-10) / math.sqrt(2)
    solution = pair(Automaton.katz(damping), path)
    runs = solution.weights.reshape(3, 3)
    left = runs - damping * runs @ path.walk("adjacency").dense()[0] - torch.eye(3)
    assert float(left.norm()) / math.sqrt(3) <= solution.residual.item() < 1e-5


def test_large_weights_of_a_regular_equation_are_not_called_singular():
    edges = [(u, v) for u in range(40) for v in range(u + 1, 40)] + [(39, 38)]
    graph, machine = Graph.from_edges(edges, num_nodes=40), Automaton.random(4, damping=0.9)
    solution, exact = gape.solve(machine, graph), gape.solve(machine, graph, solver=Series())
    assert (solution.status, solution.unique) == ([Status.RUN_SUM], [True])
    assert float(exact.weights.abs().max()) > 1e8
    torch.testing.assert_close(solution.weights, exact.weights, rtol=1e-10, atol=0)


@pytest.mark.filterwarnings("ignore::gape.solvers.AlgebraicOnlyWarning")
@pytest.mark.parametrize("damping", [1.3, 2.0])
def test_weights_that_pile_up_from_component_to_component_are_not_called_singular(damping):
    edges = [(u, u + step) for u in range(30) for step in range(1, 5) if u + step < 30] + [(29, 28), (1, 0)]
    graph, machine = Graph.from_edges(edges, num_nodes=30), Automaton.katz(damping)
    expected = np.linalg.inv(np.eye(30) - damping * graph.walk("adjacency").dense()[0].numpy())
    for found, exact in (
        (gape.solve(machine, graph), expected.sum(0)),
        (pair(machine, graph), expected.ravel()),
        (closed(machine, graph), expected.diagonal().copy()),
    ):
        assert found.status == [Status.ALGEBRAIC]
        assert found.unique[0] is not False
        torch.testing.assert_close(found.weights.flatten(), torch.from_numpy(exact), rtol=1e-9, atol=1e-6)


def test_a_transition_that_lacks_eigenvectors_is_found_singular():
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))[0]
    jordan = torch.from_numpy(turn @ (np.eye(4) + np.diag(np.ones(3), 1)) @ turn.T)
    machine = Automaton(torch.ones(4, 1, dtype=torch.float64), jordan)
    edge = Graph.from_edges([(0, 1)], undirected=True)
    expected, residual = nearest(machine, edge)
    solution = gape.solve(machine, edge, **LEAST)
    assert (solution.status, solution.unique) == ([Status.LEAST_SQUARES], [False])
    torch.testing.assert_close(solution.weights, expected, rtol=1e-8, atol=1e-8)
    assert solution.residual.item() == pytest.approx(residual)
    assert pair(machine, edge, **LEAST).unique == [False]


@pytest.mark.parametrize("typed", [False, True])
def test_terms_that_cancel_do_not_spoil_sums_without_cycles(typed):
    nodes = 60
    edges = [(u, v) for u in range(nodes) for v in range(u + 1, nodes)]
    graph = Graph.from_edges(edges, num_nodes=nodes, labels=torch.arange(nodes) % 2)
    machine = Automaton.katz(-0.9)
    if typed:
        both = machine.transition.expand(2, 1, 1)
        machine = Automaton(torch.ones(1, 2, dtype=torch.float64), both, transition_by="node")
    solution = gape.solve(machine, graph)
    expected = 0.1 ** torch.arange(nodes, dtype=torch.float64).unsqueeze(1)
    torch.testing.assert_close(solution.weights, expected, rtol=0, atol=1e-14)
    assert solution.status == [Status.RUN_SUM]


def test_a_small_term_does_not_end_a_sum_whose_later_terms_are_large():
    weights = torch.tensor([1e-13, 1e13], dtype=torch.float64)
    path = Graph.from_edges([(0, 1), (1, 2)], num_nodes=3, edge_weight=weights, labels=torch.tensor([0, 1, 1]))
    first = Automaton(torch.tensor([[1.0, 0.0]], dtype=torch.float64), torch.ones(1, 1, dtype=torch.float64))
    assert gape.solve(first, path).weights.flatten().tolist() == pytest.approx([1.0, 1e-13, 1.0])
    edge = Graph.from_edges([(0, 1)], undirected=True)
    slow = torch.tensor([[0, 1e-13, 0], [0, 0.7, 1e13], [0, 0, 0.7]], dtype=torch.float64)
    machine = Automaton(torch.tensor([[1.0], [0.0], [0.0]], dtype=torch.float64), slow)
    assert gape.solve(machine, edge).weights[0].tolist() == pytest.approx([1.0, 1e-13 / 0.3, 1 / 0.09])
    for small, large in ((1e-13, 1e11), (1e-18, 1e16)):
        there_and_back = torch.tensor([[0.0, small], [large, 0.0]], dtype=torch.float64)
        machine = Automaton(torch.tensor([[1.0], [0.0]], dtype=torch.float64), there_and_back)
        assert gape.solve(machine, edge).weights[0, 0].item() == pytest.approx(1 / 0.99)
        assert closed(machine, edge).weights[0, 0].item() == pytest.approx(1 / 0.99)


@pytest.mark.filterwarnings("ignore::gape.solvers.AlgebraicOnlyWarning")
@pytest.mark.parametrize("solver", [None, Krylov(), Series(), Schur()], ids=["auto", "krylov", "series", "schur"])
def test_runs_that_diverge_far_from_where_they_begin_are_seen(solver):
    clique = [(25 + u, 25 + v) for u in range(16) for v in range(u + 1, 16)]
    edges = [(u, u + 1) for u in range(25)] + clique
    graph = Graph.from_edges(edges, undirected=True, labels=torch.tensor([0] + [1] * 40))
    machine = Automaton.random(4, damping=0.2, labels=2, initial_labels=(0,))
    solution = gape.solve(machine, graph, throw=False, **({} if solver is None else {"solver": solver}))
    assert solution.status == [Status.NOT_CONVERGED if isinstance(solver, Series) else Status.ALGEBRAIC]
    assert solution.spectral_radius.item() == pytest.approx(3.0, rel=0.1)


@pytest.mark.parametrize("weight", [1e-310, 1e308])
@pytest.mark.parametrize("name", ["rw", "ppr", "pprp", "lape", "sa"])
def test_degrees_out_of_the_range_of_float64_are_refused(name, weight):
    weights = torch.full((3,), weight, dtype=torch.float64)
    graph = Graph.from_edges([(0, 1), (1, 2), (2, 0)], undirected=True, edge_weight=weights)
    with pytest.raises(ValueError, match=r"node 0 has (out-)?degree .*; divide the edge weights by the largest"):
        gape.encode(graph, name)


def citations(layers: int, width: int) -> Graph:
    """Every node cites six of the layer before, one per layer itself: weights grow from layer to layer."""
    rng = np.random.default_rng(0)
    source = rng.integers(width, layers * width, layers * width * 6)
    target = (source // width - 1) * width + rng.integers(0, width, len(source))
    loops = np.arange(0, layers * width, width)
    edges = np.unique(np.concatenate([np.stack([source, target], 1), np.stack([loops, loops], 1)]), axis=0)
    return Graph.from_edges(edges, num_nodes=layers * width)


@pytest.mark.parametrize("solver", [Auto(), Krylov(), Krylov(tolerance=1e-14)], ids=str)
def test_a_space_does_not_grow_where_only_rounding_is_left(solver):
    graph, machine = citations(8, 20), Automaton.random(states=4, damping=0.9, seed=1)
    solution = gape.solve(machine, graph, solver=solver)
    assert solution.steps <= 40
    assert 1e-12 < solution.residual[0] < 1e-8
    expected, _ = nearest(machine, graph)
    torch.testing.assert_close(solution.weights, expected, rtol=1e-8, atol=1e-8 * float(expected.abs().max()))


def nearly_regular(directed: bool, noise: float) -> Graph:
    """A ring whose weights are 1 but for noise: its space all but ends after one vector."""
    rng = np.random.default_rng(0)
    edges = [(v, (v + step) % 40) for step in (1, 2, 3) for v in range(40)]
    weights = 1.0 + noise * rng.standard_normal(len(edges))
    return Graph.from_edges(edges, num_nodes=40, undirected=not directed, edge_weight=weights)


@pytest.mark.filterwarnings("ignore::gape.solvers.AlgebraicOnlyWarning")
@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("noise", [1e-15, 1e-14, 3e-14, 1e-13])
@pytest.mark.parametrize("gap", [1e-1, 1e-2, 1e-4, 1e-5])
def test_residuals_include_what_is_left_where_a_space_ends(compiled, directed, noise, gap):
    graph = nearly_regular(directed, noise)
    automaton = Automaton.katz((1 + gap) / (3 if directed else 6))
    with nullcontext() if compiled else native.switched_off():
        solution = gape.solve(automaton, graph, solver=Krylov(), throw=False)
    equation = Equation.of(automaton, graph)
    true = float(equation.residual(solution.weights))
    assert true <= 2 * float(solution.residual) + 4 * float(equation.rounding_of(solution.weights))


def test_residuals_include_what_rounding_hides():
    # x = γx + 1: solutions are so large that the residual in float64 may be 0 by chance.
    for digits in (7, 8, 9):
        graph = Graph.from_edges([(0, 0), (0, 1), (1, 0)], num_nodes=2, edge_weight=[1.0 - 10.0**-digits, 1e-7, 1e-7])
        solution = gape.solve(Automaton.katz(1.0), graph, solver=Krylov(), throw=False)
        a, x = (
            graph.walk("adjacency").dense()[0].tolist(),
            [Fraction(value) for value in solution.weights.flatten().tolist()],
        )
        left = [x[v] - sum(Fraction(a[u][v]) * x[u] for u in range(2)) - 1 for v in range(2)]
        exact = math.sqrt(sum(value**2 for value in left)) / math.sqrt(2)
        assert exact <= 10 * solution.residual[0]


@pytest.mark.parametrize("damping", [1.03, 1.1, 1.2])
def test_long_directed_cycles_beyond_convergence_are_not_singular(damping):
    # Pivots grow by the damping from node to node: partial pivoting loses every digit, or overflows.
    nodes, rng = 600, np.random.default_rng(0)
    ring = Graph.from_edges([(i, (i + 1) % nodes) for i in range(nodes)], labels=rng.integers(0, 2, nodes))
    turn = np.linalg.qr(rng.normal(size=(2, 2)))[0]
    machine = Automaton(torch.from_numpy(rng.normal(size=(2, 2))), torch.from_numpy(damping * turn))
    with pytest.warns(gape.solvers.AlgebraicOnlyWarning):
        solution = gape.solve(machine, ring, solver=Kronecker())
    assert solution.status[0] is Status.ALGEBRAIC
    assert solution.unique[0]
    # Backwards, weights shrink: x_u = (x_{u+1} - s_{u+1}) μ⁻¹, from anything, a few times round.
    starts, back = machine.initial.T[ring.labels].numpy(), np.linalg.inv(damping * turn)
    expected, x = np.zeros((nodes, 2)), np.zeros(2)
    for u in list(range(nodes - 1, -1, -1)) * 4:
        expected[u] = x = (x - starts[(u + 1) % nodes]) @ back
    np.testing.assert_allclose(solution.weights, expected, atol=1e-6)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize(("weight", "damping"), [(1e155, 1e-155), (1e155, 1e-156), (1e-170, 1e169), (1e-155, 1e154)])
@pytest.mark.parametrize("solver", [None, Krylov()], ids=["auto", "krylov"])
@pytest.mark.filterwarnings("ignore::gape.solvers.AlgebraicOnlyWarning")
def test_weights_whose_squares_overflow_or_vanish_give_no_wrong_answer(solver, weight, damping, undirected, compiled):
    edges = [(0, 1), (1, 2), (2, 3)] if undirected else [(0, 1), (1, 2), (2, 3), (3, 0)]
    weights = [weight * (i + 1) for i in range(len(edges))]
    graph = Graph.from_edges(edges, undirected=undirected, edge_weight=weights)
    expected = np.linalg.solve(np.eye(4) - damping * graph.walk().dense()[0].mT.numpy(), np.ones(4))
    with nullcontext() if compiled else native.switched_off():
        solution = gape.solve(Automaton.katz(damping), graph, solver=solver)
    np.testing.assert_allclose(solution.weights[:, 0], expected, rtol=1e-9)
