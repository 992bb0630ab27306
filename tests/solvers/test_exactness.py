"""Every solver gives the dense Kronecker solution, alone and in a batch."""

import functools
import warnings

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import gape
from gape.solvers import AlgebraicOnlyWarning, Auto, FixedPoint, Kronecker, Krylov, Schur, Series, Spectral
from tests.solvers.oracle import (
    automata,
    dense_adjacency,
    enumerate_runs,
    graphs,
    kronecker_system,
    kronecker_weights,
)

closed, pair = (functools.partial(gape.solve, readout=name) for name in ("closed", "pair"))

GENERAL = [Krylov(), Schur(), Kronecker(), FixedPoint(), Auto()]
MATRICES = ["adjacency", "random_walk", "random_walk_in", "laplacian"]


def solve_quietly(*args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AlgebraicOnlyWarning)
        return gape.solve(*args, **kwargs)


def well_posed(automaton, matrix):
    """Away from singular equations, where answers are compared with a tolerance."""
    return np.linalg.cond(kronecker_system(automaton, matrix)) < 1e5


def close(solution, expected):
    return np.abs(solution.weights.numpy() - expected).max(initial=0.0) <= 1e-9 * max(
        1.0, np.abs(expected).max(initial=0.0)
    )


@pytest.mark.parametrize("solver", GENERAL, ids=lambda s: type(s).__name__)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_directed_weighted_labelled_graphs_get_the_kronecker_solution(solver, data):
    labels = data.draw(st.integers(1, 3))
    automaton = data.draw(automata(labels=labels, final=True))
    graph = data.draw(graphs(labels=labels))
    assume(well_posed(automaton, dense_adjacency(graph)))
    solution = solve_quietly(automaton, graph, solver=solver)
    assert solution.ok
    assert float(solution.residual.max()) <= 1e-9
    assert close(solution, kronecker_weights(automaton, graph))


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_spectral_solves_symmetric_walk_matrices_with_any_labels(data):
    labels = data.draw(st.integers(1, 4))
    automaton, graph = data.draw(automata(labels=labels)), data.draw(graphs(symmetric=True, labels=labels))
    assume(well_posed(automaton, dense_adjacency(graph)))
    assert close(solve_quietly(automaton, graph, solver=Spectral()), kronecker_weights(automaton, graph))


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_series_sums_the_runs_where_they_converge(data):
    labels = data.draw(st.integers(1, 3))
    automaton, graph = data.draw(automata(labels=labels)), data.draw(graphs(labels=labels))
    radius = np.abs(np.linalg.eigvals(automaton.transition.numpy())).max()
    matrix = dense_adjacency(graph)
    assume(radius * np.abs(np.linalg.eigvals(matrix)).max() < 0.9)
    solution = gape.solve(automaton, graph, solver=Series())
    assert solution.status == [gape.Status.RUN_SUM]
    assert close(solution, kronecker_weights(automaton, graph))


@pytest.mark.parametrize("name", MATRICES)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_every_walk_matrix_is_solved(name, data):
    automaton, graph = data.draw(automata()), data.draw(graphs())
    adjacency = dense_adjacency(graph)
    out_degree, in_degree = adjacency.sum(1), adjacency.sum(0)
    assume((np.abs(out_degree[np.abs(adjacency).sum(1) > 0]) > 0.1).all())
    assume((np.abs(in_degree[np.abs(adjacency).sum(0) > 0]) > 0.1).all())
    inverse_out = np.divide(1, out_degree, out=np.zeros_like(out_degree), where=out_degree != 0)
    inverse_in = np.divide(1, in_degree, out=np.zeros_like(in_degree), where=in_degree != 0)
    matrix = {
        "adjacency": adjacency,
        "random_walk": inverse_out[:, None] * adjacency,
        "random_walk_in": adjacency * inverse_in,
        "laplacian": np.diag(out_degree) - adjacency,
    }[name]
    assume(well_posed(automaton, matrix))
    assert close(solve_quietly(automaton, graph, matrix=name), kronecker_weights(automaton, graph, matrix))


def test_the_paths_of_tiny_graphs_enumerated_one_by_one():
    # Acyclic, so that finitely many runs are all there are; directed and labelled, so that orientation matters.
    graph = gape.Graph.from_edges([(0, 1), (1, 2), (0, 2)], edge_weight=[1.0, 2.0, 0.5], labels=[0, 1, 1])
    rng = np.random.default_rng(0)
    automaton = gape.Automaton(
        rng.standard_normal((2, 2)), rng.standard_normal((2, 2)), final=rng.standard_normal((2, 2))
    )
    expected = enumerate_runs(automaton, graph, longest=2)
    for solver in [Series(), Krylov(), Schur(), Kronecker(), FixedPoint(), None]:
        np.testing.assert_allclose(solve_quietly(automaton, graph, solver=solver).weights, expected, atol=1e-12)


def test_runs_on_a_cycle_enumerated_up_to_a_length_approach_the_solution():
    graph = gape.Graph.from_edges([(0, 1), (1, 0)])
    automaton = gape.Automaton([[1.0], [0.5]], [[0.05, 0.02], [-0.03, 0.04]])
    gap = np.abs(gape.solve(automaton, graph).weights.numpy() - enumerate_runs(automaton, graph, longest=5)).max()
    assert gap < 1e-6


def test_starting_states_restrict_the_runs():
    graph = gape.Graph.from_edges([(0, 1), (1, 2)])
    rng = np.random.default_rng(1)
    alpha, mu = rng.standard_normal((3, 1)), rng.standard_normal((3, 3))
    some = gape.solve(gape.Automaton(alpha, mu, starting=(1,)), graph).weights
    alpha[[0, 2]] = 0
    np.testing.assert_allclose(some, enumerate_runs(gape.Automaton(alpha, mu), graph, longest=2), atol=1e-12)


@pytest.mark.parametrize("solver", [None, Krylov(), Spectral(), Schur(), Kronecker(), FixedPoint()], ids=str)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_a_batch_gives_what_its_graphs_give_alone(solver, data):
    automaton = data.draw(automata(labels=2))
    singles = data.draw(st.lists(graphs(symmetric=True, labels=2), min_size=1, max_size=4))
    for graph in singles:
        assume(well_posed(automaton, dense_adjacency(graph)))
    singles = [gape.Graph(g.edge_index, g.num_nodes, g.adjacency.weights, g.labels) for g in singles]
    together = solve_quietly(automaton, singles, solver=solver)
    alone = [solve_quietly(automaton, graph, solver=solver) for graph in singles]
    assert torch.allclose(together.weights, torch.cat([a.weights for a in alone]), rtol=1e-9, atol=1e-9)
    assert together.status == [a.status[0] for a in alone]


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_renumbering_the_nodes_renumbers_the_weights(data):
    automaton, graph = data.draw(automata(labels=2)), data.draw(graphs(labels=2))
    assume(well_posed(automaton, dense_adjacency(graph)))
    order = torch.tensor(data.draw(st.permutations(range(graph.num_nodes))))
    moved = gape.Graph(
        order[graph.edge_index], graph.num_nodes, graph.edge_weight, labels=graph.labels[order.argsort()]
    )
    before, after = solve_quietly(automaton, graph), solve_quietly(automaton, moved)
    assert torch.allclose(after.weights[order], before.weights, rtol=1e-9, atol=1e-9)


def test_many_small_graphs_are_cut_into_parts_and_put_together_again(monkeypatch):
    monkeypatch.setattr("gape.graph.batching.MAX_PART_NODES", 50)
    rng = np.random.default_rng(0)
    graphs_ = [
        gape.Graph.from_edges(rng.integers(0, n, (2 * n, 2)), num_nodes=int(n), undirected=True)
        for n in rng.integers(1, 30, 40)
    ]
    batch = gape.Graph.union(graphs_)
    assert len(batch.parts) > 5
    automaton = gape.Automaton.random(states=5, damping=0.02)
    whole = gape.solve(automaton, batch)
    assert whole.weights.shape == (batch.num_nodes, 5)
    assert len(whole.status) == 40
    expected = torch.cat([gape.solve(automaton, graph).weights for graph in graphs_])
    assert torch.allclose(whole.weights, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("nodes", [0, 1, 2])
def test_graphs_of_no_one_and_two_nodes(nodes):
    automaton = gape.Automaton.random(states=3)
    solution = gape.solve(automaton, gape.Graph(torch.zeros(2, 0, dtype=torch.int64), nodes))
    assert torch.equal(solution.weights, automaton.initial.T.expand(nodes, 3))
    assert solution.status == [gape.Status.RUN_SUM]


def test_complex_automata_are_solved():
    rng = np.random.default_rng(3)
    mu = 0.4 * (rng.standard_normal((3, 3)) + 1j * rng.standard_normal((3, 3)))
    automaton = gape.Automaton(rng.standard_normal((3, 1)) + 0j, mu)
    graph = gape.Graph.from_edges([(0, 1), (1, 2), (2, 0), (2, 3), (3, 1)])
    expected = kronecker_weights(automaton, graph)
    for solver in [Krylov(), Schur(), Kronecker(), FixedPoint()]:
        np.testing.assert_allclose(solve_quietly(automaton, graph, solver=solver).weights, expected, atol=1e-10)


def test_float32_weights_are_the_float64_ones_rounded():
    graph = gape.Graph.from_edges([(0, 1), (1, 2), (2, 0)], undirected=True)
    automaton = gape.Automaton.random(states=6, damping=0.1)
    exact = gape.solve(automaton, graph).weights
    rounded = gape.solve(automaton, graph, dtype=torch.float32).weights
    assert rounded.dtype == torch.float32
    assert torch.allclose(rounded.double(), exact, rtol=1e-6, atol=1e-6)


def test_thread_count_changes_no_bit():
    rng = np.random.default_rng(0)
    batch = gape.Graph.union(
        [gape.Graph.from_edges(rng.integers(0, 40, (80, 2)), num_nodes=40, undirected=True) for _ in range(1500)]
    )
    automaton = gape.Automaton.random(states=4, damping=0.02)
    before = torch.get_num_threads()
    results = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            results.append(gape.solve(automaton, gape.Graph(batch.edge_index, batch.num_nodes, ptr=batch.ptr)).weights)
    finally:
        torch.set_num_threads(before)
    assert torch.equal(*results)
    assert torch.get_num_threads() == before


def test_weights_are_rounded_only_to_what_can_hold_them():
    graph = gape.Graph.from_edges([(0, 1), (1, 2), (2, 0)], undirected=True)
    turning = gape.Automaton([[1.0]], [[0.1j]])
    for call in (gape.solve, closed, pair):
        with pytest.raises(ValueError, match=r"must be a floating-point torch.dtype, got torch.int64"):
            call(gape.Automaton.katz(0.1), graph, dtype=torch.int64)
    with pytest.raises(ValueError, match=r"got 'float32'"):
        gape.solve(gape.Automaton.katz(0.1), graph, dtype="float32")
    with pytest.raises(ValueError, match=r"the automaton is torch.complex128, and weights in torch.float32 would lose"):
        gape.solve(turning, graph, dtype=torch.float32)
    rounded = gape.solve(turning, graph, dtype=torch.complex64).weights
    assert rounded.dtype is torch.complex64
    np.testing.assert_allclose(rounded, kronecker_weights(turning, graph), rtol=1e-6)
