"""A solve says how far its answer can be trusted, and a failing solve always says that it failed."""

import warnings

import networkx as nx
import numpy as np
import pytest
import torch

import gape
from gape.solvers import AlgebraicOnlyWarning, FixedPoint, Kronecker, Krylov, Schur, Series, Spectral
from gape.solvers.certificate import UNKNOWN, YES, contracting_power, radius_bounds_of
from gape.solvers.equation import Equation
from gape.solvers.projection import Projection
from tests.solvers.oracle import dense_adjacency, kronecker_system

SOLVERS = [None, Krylov(), Spectral(), Schur(), Kronecker(), FixedPoint()]
RING = gape.Graph.from_edges([(i, (i + 1) % 6) for i in range(6)], undirected=True)


def molecule_like(seed: int) -> gape.Graph:
    """A six-ring with a random tree hanging on: eigenvalue 1 is common."""
    rng = np.random.default_rng(seed)
    graph = nx.cycle_graph(6)
    for new in range(6, 6 + int(rng.integers(0, 6))):
        graph.add_edge(new, int(rng.integers(0, new)))
    return gape.as_graph(graph)


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_row_stochastic_automaton_with_labels_is_singular_on_the_six_ring(solver):
    automaton = gape.Automaton.stochastic(states=5, labels=2, seed=3)
    graph = RING.with_labels([0, 1, 1, 0, 1, 0])
    with pytest.raises(gape.SolveError, match="singular"):
        gape.solve(automaton, graph, solver=solver)
    flagged = gape.solve(automaton, graph, solver=solver, on_singular="least_squares")
    assert flagged.status == [gape.Status.LEAST_SQUARES]
    assert flagged.unique == [False]
    source = automaton.initial.numpy()[:, graph.labels.numpy()].T.reshape(-1)
    shortest = np.linalg.pinv(kronecker_system(automaton, dense_adjacency(graph)), rcond=1e-12) @ source
    np.testing.assert_allclose(flagged.weights.reshape(-1), shortest, atol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_a_singular_operator_that_the_source_does_not_excite_is_solved(solver):
    # With one label the source is constant on the ring and never meets the eigenvector of eigenvalue 1.
    automaton = gape.Automaton.stochastic(states=4, seed=0)
    with pytest.warns(AlgebraicOnlyWarning):
        solution = gape.solve(automaton, RING, solver=solver)
    assert solution.status == [gape.Status.ALGEBRAIC]
    assert solution.unique[0] is not True
    assert float(solution.residual) <= 1e-10
    # Constant on the ring: x = 2xμ + α.
    expected = np.linalg.solve(np.eye(4) - 2 * automaton.transition.numpy().T, automaton.initial.numpy())
    np.testing.assert_allclose(solution.weights, np.repeat(expected.T, 6, 0), atol=1e-9)


def test_every_solve_that_fails_says_so_and_no_other_does():
    # 300 equations of which many are singular; the judge is the dense matrix's own least-squares residual.
    failed = counted = 0
    for seed in range(150):
        graph = molecule_like(seed)
        for labels in (1, 2):
            automaton = gape.Automaton.stochastic(states=3, labels=labels, seed=seed)
            labelled = graph.with_labels(np.random.default_rng(seed).integers(0, labels, graph.num_nodes))
            solution = gape.solve(automaton, labelled, throw=False)
            source = automaton.initial.numpy()[:, labelled.labels.numpy() if labels > 1 else [0] * graph.num_nodes]
            source = source.T.reshape(-1)
            system = kronecker_system(automaton, dense_adjacency(graph))
            best = np.linalg.lstsq(system, source, rcond=1e-10)[0]
            unsolvable = np.linalg.norm(system @ best - source) > 1e-7 * np.linalg.norm(source)
            says = solution.status[0] is gape.Status.SINGULAR
            assert says == unsolvable, (seed, labels, solution)
            failed, counted = failed + says, counted + unsolvable
    assert failed == counted
    assert counted > 30


@pytest.mark.parametrize("solver", [Series(), None], ids=str)
def test_the_run_sum_is_told_from_the_algebraic_solution(solver):
    ok = gape.solve(gape.Automaton.katz(0.3), RING, solver=solver)
    assert ok.status == [gape.Status.RUN_SUM]
    assert ok.unique == [True]
    assert float(ok.spectral_radius) == pytest.approx(0.6)


def test_outside_the_convergent_range_the_answer_is_exact_and_the_warning_comes_once():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        solution = gape.solve(gape.Automaton.katz(0.7), [RING, RING, RING])
    assert [w.category for w in caught] == [AlgebraicOnlyWarning]
    assert "3 of 3" in str(caught[0].message)
    np.testing.assert_allclose(solution.weights, 1 / (1 - 1.4), atol=1e-12)
    assert float(solution.separation[0]) == pytest.approx(0.4)


def test_series_outside_its_range_does_not_pretend():
    solution = gape.solve(gape.Automaton.katz(0.7), RING, solver=Series(max_steps=500), throw=False)
    assert solution.status == [gape.Status.NOT_CONVERGED]
    with pytest.raises(gape.SolveError, match="not converged"):
        gape.solve(gape.Automaton.katz(0.7), RING, solver=Series(max_steps=500))


def test_krylov_with_too_few_steps_does_not_pretend():
    graph = gape.as_graph(nx.gnp_random_graph(60, 0.2, seed=1))
    with pytest.raises(gape.SolveError, match="not converged"):
        gape.solve(gape.Automaton.random(states=8, damping=0.3), graph, solver=Krylov(max_steps=3))


def test_separation_of_dense_solvers_is_the_distance_to_the_nearest_pole():
    graph = gape.as_graph(nx.gnp_random_graph(9, 0.4, seed=2))
    automaton = gape.Automaton.random(states=3, damping=0.37, seed=1).to(dtype=torch.float64)
    delta = np.linalg.eigvalsh(dense_adjacency(graph))
    poles = np.linalg.eigvals(automaton.transition.numpy())
    expected = np.abs(1 - poles[:, None] * delta).min()
    graph = graph.with_labels(range(9))
    automaton = gape.Automaton(np.eye(3, 9) + 1, automaton.transition)
    for solver in (Spectral(), Kronecker()):
        solution = gape.solve(automaton, graph, solver=solver, throw=False)
        assert float(solution.separation) == pytest.approx(expected, rel=1e-8)
        assert solution.radius_kind == "exact"


def test_residuals_reported_are_at_least_the_ones_computed_outright():
    graph = gape.as_graph(nx.gnp_random_graph(40, 0.2, seed=5))
    automaton = gape.Automaton.random(states=6, damping=0.3, seed=2)
    matrix, mu = dense_adjacency(graph), automaton.transition.numpy()
    for solver in (Krylov(tolerance=1e-6), Spectral(), Schur()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AlgebraicOnlyWarning)
            solution = gape.solve(automaton, graph, solver=solver)
        x = solution.weights.numpy()
        source = np.repeat(automaton.initial.numpy().T, 40, 0)
        actual = np.linalg.norm(x - matrix.T @ x @ mu - source) / np.linalg.norm(source)
        assert actual <= float(solution.residual) * (1 + 1e-6) + 1e-13


def test_products_beyond_the_number_format_do_not_contract():
    for entries in ([[torch.inf, 0.0], [0.0, 0.1]], [[torch.nan, 0.0], [0.0, 0.1]], [[1e200, 1e200], [1e200, 0.1]]):
        assert contracting_power(torch.tensor(entries, dtype=torch.float64), most=64) is None
    assert contracting_power(torch.tensor([[0.1]], dtype=torch.float64), most=64) == 1


def test_overflow_and_bad_input_are_not_called_singular():
    big = gape.Graph.from_edges([(0, 1), (1, 2)], edge_weight=[1e200, 1e200])
    solution = gape.solve(gape.Automaton.katz(1.0), big, throw=False)
    assert solution.status == [gape.Status.OVERFLOW]
    large = gape.Graph.from_edges([(0, 1)], edge_weight=[1e60])
    assert gape.solve(gape.Automaton.katz(1.0), large).ok
    assert gape.solve(gape.Automaton.katz(1.0), large, dtype=torch.float32, throw=False).status == [
        gape.Status.OVERFLOW
    ]
    automaton = gape.Automaton.katz(0.1)
    automaton.transition.fill_(torch.nan)
    with pytest.raises(gape.SolveError, match="non finite input"):
        gape.solve(automaton, RING)


def test_acyclic_graphs_are_summed_exactly_whatever_the_damping():
    path = gape.Graph.from_edges([(i, i + 1) for i in range(50)])
    solution = gape.solve(gape.Automaton.random(states=8, damping=1.0), path)
    assert solution.solver == ["Series"]
    assert solution.status == [gape.Status.RUN_SUM]
    assert float(solution.residual) == 0.0
    assert float(solution.spectral_radius) == 0.0


def test_a_large_singular_equation_is_settled_without_a_dense_matrix():
    # Directed: a long path into a cycle whose eigenvalue is 1/λ, too large for the dense system.
    edges = [(i, i + 1) for i in range(3000)] + [(3000, 2990)]
    graph = gape.Graph.from_edges(edges)
    solution = gape.solve(gape.Automaton.stochastic(states=2, seed=0), graph, throw=False)
    assert solution.status == [gape.Status.SINGULAR]


def test_statuses_say_what_to_change():
    for status in gape.Status:
        assert len(str(status)) > 40
    assert "damping" in str(gape.Status.ALGEBRAIC)
    assert "least_squares" in str(gape.Status.SINGULAR)


def test_a_guess_of_the_largest_eigenvector_proves_convergence_where_norms_and_walk_counts_do_not():
    graph = gape.as_graph(nx.barabasi_albert_graph(600, 2, seed=0))
    values, vectors = np.linalg.eigh(dense_adjacency(graph))
    automaton = gape.Automaton(torch.ones(1, 1, dtype=torch.float64), torch.tensor([[0.999 / values[-1]]]))
    equation = Equation.of(automaton, graph)
    assert radius_bounds_of(equation).converges == UNKNOWN
    bounds = radius_bounds_of(equation, positive=torch.from_numpy(vectors[:, -1]).abs())
    assert bounds.converges == YES
    torch.testing.assert_close(bounds.upper, torch.tensor([0.999]).double(), rtol=1e-6, atol=0)


def test_a_basis_from_rows_is_that_of_a_walk_of_radius_one():
    graph = gape.as_graph([nx.path_graph(4), nx.star_graph(4)])
    (part,) = gape.prepare(graph, matrix="random_walk", solver=Spectral()).parts
    again = Projection.from_rows(part.adjacency, *part.rows(), complete=True)
    torch.testing.assert_close(again.radius, part.radius)
    torch.testing.assert_close(again.radius, torch.ones(2).double())
