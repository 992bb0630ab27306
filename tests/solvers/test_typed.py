"""Transitions per node label or edge type: the paper's own Definition 2."""

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import gape
from gape.solvers import Equation, FixedPoint, Kronecker, Krylov
from gape.solvers.kronecker import MAX_DENSE_RADIUS_UNKNOWNS, growth_bound
from tests.solvers.oracle import enumerate_runs, graphs, typed_weights

pytestmark = pytest.mark.filterwarnings("ignore::gape.solvers.AlgebraicOnlyWarning")


def typed_automaton(by, types, labels, damping, seed, states=3):
    rng = np.random.default_rng(seed)
    return gape.Automaton(
        rng.standard_normal((states, labels)),
        damping * rng.standard_normal((types, states, states)),
        transition_by=by,
    )


@pytest.mark.parametrize("solver", [None, FixedPoint(restart=7), Kronecker()], ids=str)
@pytest.mark.parametrize("by", ["node", "edge"])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_typed_transitions_get_the_dense_solution(by, solver, data):
    graph = data.draw(graphs(labels=3, max_nodes=6))
    types = data.draw(st.lists(st.integers(0, 2), min_size=graph.num_edges, max_size=graph.num_edges))
    graph = gape.Graph(graph.edge_index, graph.num_nodes, graph.edge_weight, graph.labels, edge_type=types)
    automaton = typed_automaton(by, 3, 3, data.draw(st.sampled_from([0.05, 0.4])), data.draw(st.integers(0, 99)))
    expected = typed_weights(automaton, graph)
    assume(np.abs(expected).max() < 1e4)
    solution = gape.solve(automaton, graph, solver=solver)
    np.testing.assert_allclose(solution.weights, expected, rtol=1e-8, atol=1e-8)


def test_the_label_of_the_node_being_left_chooses_the_transition():
    # 0 → 1 → 2 with labels 0, 1, 1: enumeration reads μ of the node left.
    graph = gape.Graph.from_edges([(0, 1), (1, 2)], labels=[0, 1, 1])
    automaton = typed_automaton("node", 2, 2, 0.7, seed=4, states=2)
    np.testing.assert_allclose(
        gape.solve(automaton, graph).weights, enumerate_runs(automaton, graph, longest=2), atol=1e-12
    )


def test_equal_matrices_for_all_types_are_one_matrix():
    graph = gape.Graph.from_edges([(0, 1), (1, 2), (2, 0), (1, 0)], labels=[0, 1, 1])
    plain = gape.Automaton.random(states=3, damping=0.2, labels=2)
    typed = gape.Automaton(plain.initial, plain.transition.expand(2, 3, 3))
    np.testing.assert_allclose(gape.solve(typed, graph).weights, gape.solve(plain, graph).weights, atol=1e-11)


@pytest.mark.parametrize("seed", range(20))
def test_no_bound_of_the_growth_of_runs_is_below_the_radius(seed):
    rng = np.random.default_rng(seed)
    edges = rng.integers(7, size=(2, 20))
    graph = gape.Graph(edges, 7, rng.standard_normal(20), edge_type=rng.integers(3, size=20))
    equation = Equation.of(typed_automaton("edge", 3, 1, 0.3, seed), graph, "adjacency")
    basis = torch.eye(21, dtype=torch.float64)
    operator = np.stack([equation.apply(column.reshape(7, 3)).flatten().numpy() for column in basis])
    radius = np.abs(np.linalg.eigvals(operator)).max()
    for larger in (equation.row_norms, equation.absolute):
        bound = growth_bound(larger, torch.tensor([np.inf], dtype=torch.float64), 50)
        assert radius * (1 - 1e-9) <= bound.item() < np.inf


def test_nilpotent_transitions_whose_products_grow_are_not_taken_for_convergent():
    # Each μ has radius 0; taken in turn on a 2-cycle their product has radius 25.
    up, down = np.array([[0.0, 5.0], [0.0, 0.0]]), np.array([[0.0, 0.0], [5.0, 0.0]])
    graph = gape.Graph.from_edges([(0, 1), (1, 0)], labels=[0, 1])
    automaton = gape.Automaton(np.ones((2, 2)), np.stack([up, down]))
    solution = gape.solve(automaton, graph)
    assert solution.status == [gape.Status.ALGEBRAIC]
    assert float(solution.spectral_radius) >= 5 - 1e-6
    np.testing.assert_allclose(solution.weights, typed_weights(automaton, graph), atol=1e-10)


def test_wrong_solvers_and_missing_types_are_refused():
    graph = gape.Graph.from_edges([(0, 1)], labels=[0, 1])
    by_edge = typed_automaton("edge", 2, 1, 0.1, seed=0)
    with pytest.raises(ValueError, match="edge_type"):
        gape.solve(by_edge, graph)
    with pytest.raises(ValueError, match="type 5"):
        gape.solve(by_edge, gape.Graph.from_edges([(0, 1)], edge_type=[5]))
    with pytest.raises(ValueError, match="FixedPoint"):
        gape.solve(typed_automaton("node", 2, 2, 0.1, seed=0), graph, solver=Krylov())
    with pytest.raises(ValueError, match="diagonal"):
        gape.solve(by_edge, gape.Graph.from_edges([(0, 1)], edge_type=[0]), matrix="laplacian")


@pytest.mark.parametrize("nodes", [30, 40, 70])
def test_typed_equations_too_large_for_dense_bounds_are_solved_without_them(nodes):
    assert 2 * 30 <= MAX_DENSE_RADIUS_UNKNOWNS < 2 * 40
    ring = np.stack([np.arange(nodes), (np.arange(nodes) + 1) % nodes])
    graph = gape.Graph(ring, nodes, edge_type=np.arange(nodes) % 2)
    automaton = gape.Automaton(
        np.ones((2, 1)), 0.9 * np.array([[[0, 1], [1, 0]], [[1, 1], [0, 1]]]), transition_by="edge"
    )
    solution = gape.solve(automaton, graph)
    np.testing.assert_allclose(solution.weights, typed_weights(automaton, graph), rtol=1e-8, atol=1e-8)
    assert solution.status == [gape.Status.ALGEBRAIC if nodes == 30 else gape.Status.SOLVED]
