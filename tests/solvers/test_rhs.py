"""Runs that begin with any weights at the nodes, not with those of labels."""

import networkx as nx
import numpy as np
import pytest
import torch

import gape
from gape.solvers import FixedPoint, Kronecker, Krylov, Schur, Series, Spectral
from tests.solvers.oracle import dense_adjacency, kronecker_system

pytestmark = pytest.mark.filterwarnings("ignore::gape.solvers.AlgebraicOnlyWarning")

UNDIRECTED = gape.as_graph(nx.gnp_random_graph(9, 0.4, seed=1))
DIRECTED = gape.as_graph(nx.gnp_random_graph(9, 0.3, seed=2, directed=True))
RING = gape.as_graph(nx.cycle_graph(60))


def drawn(graph: gape.Graph, states: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((graph.num_nodes, states))


def exact(automaton: gape.Automaton, graph: gape.Graph, rhs: np.ndarray) -> np.ndarray:
    system = kronecker_system(automaton, dense_adjacency(graph))
    return np.linalg.lstsq(system, rhs.reshape(-1), rcond=1e-11)[0].reshape(rhs.shape)


@pytest.mark.parametrize("solver", [None, Krylov(), Schur(), Kronecker(), FixedPoint(), Series(), Spectral()], ids=str)
@pytest.mark.parametrize("damping", [0.05, 0.9])
def test_every_solver_takes_any_rhs(solver, damping):
    for graph in (UNDIRECTED, DIRECTED):
        if (isinstance(solver, Spectral) and graph is DIRECTED) or (isinstance(solver, Series) and damping > 0.5):
            continue
        automaton, rhs = gape.Automaton.random(4, damping, seed=3), drawn(graph, 4)
        solution = gape.solve(automaton, graph, rhs=rhs, solver=solver)
        np.testing.assert_allclose(solution.weights, exact(automaton, graph, rhs), rtol=1e-9, atol=1e-9)
        assert solution.ok


def test_the_rhs_of_labels_gives_what_labels_give():
    graph = UNDIRECTED.with_labels(torch.arange(9) % 3)
    automaton = gape.Automaton.random(4, 0.9, labels=3)
    automaton = gape.Automaton(automaton.initial, automaton.transition, final=drawn(graph, 4)[:3].T)
    by_labels = gape.solve(automaton, graph).weights
    given = gape.solve(automaton, graph, rhs=automaton.initial.T[graph.labels]).weights
    torch.testing.assert_close(given, by_labels, rtol=1e-11, atol=1e-11)


def test_a_bound_of_the_radius_is_one_though_walks_begin_at_few_nodes():
    # Walks from one node of a ring are fewer than all walks; their number bounds nothing.
    rhs = np.zeros((60, 2))
    rhs[0] = 0.01
    solution = gape.solve(gape.Automaton.random(2, 0.02), RING, rhs=rhs)
    assert solution.radius_kind == "bound"
    assert float(solution.spectral_radius) >= 0.04 * (1 - 1e-12)


def test_a_batch_in_parts_with_graphs_of_every_kind_is_solved_as_each_alone(monkeypatch):
    monkeypatch.setattr("gape.graph.batching.MAX_PART_NODES", 30)
    path = gape.as_graph(nx.path_graph(12, create_using=nx.DiGraph))
    empty = gape.Graph(torch.zeros(2, 0, dtype=torch.int64), 0)
    graphs = [DIRECTED, path, empty, UNDIRECTED, path, DIRECTED, gape.Graph(empty.edge_index, 3)]
    batch = gape.Graph.union(graphs)
    automaton, rhs = gape.Automaton.random(4, 1.3), drawn(batch, 4)
    solution = gape.solve(automaton, batch, rhs=rhs)
    assert len(batch.parts) > 1
    assert len(solution.status) == len(graphs)
    for i, graph in enumerate(graphs):
        nodes = slice(int(batch.ptr[i]), int(batch.ptr[i + 1]))
        np.testing.assert_allclose(solution.weights[nodes], exact(automaton, graph, rhs[nodes]), rtol=1e-9, atol=1e-9)
    assert [s.name for s in solution.status[:3]] == ["ALGEBRAIC", "RUN_SUM", "RUN_SUM"]
    assert solution.spectral_radius[[1, 2, 4, 6]].tolist() == [0.0] * 4
    assert [solution.solver[i] for i in (1, 4)] == ["Series", "Series"]


def test_where_krylov_runs_out_of_steps_the_dense_road_is_taken():
    graph = gape.as_graph(nx.random_geometric_graph(400, 0.08, seed=0))
    automaton, rhs = gape.Automaton.random(5, 0.5), drawn(graph, 5)
    solution = gape.solve(automaton, graph, rhs=rhs)
    assert solution.solver == ["Spectral"]
    x = solution.weights.numpy()
    left = x - dense_adjacency(graph).T @ x @ automaton.transition.numpy() - rhs
    assert np.abs(left).max() < 1e-10 * np.abs(x).max()


@pytest.mark.parametrize("graph", [UNDIRECTED, DIRECTED], ids=["undirected", "directed"])
def test_singular_equations_get_the_shortest_least_squares_solution(graph):
    # The edge beside each graph has the eigenvalue 1, as a stochastic transition has.
    graph = gape.Graph(torch.cat([graph.edge_index, torch.tensor([[9, 10], [10, 9]])], 1), 11)
    graphs = [graph, UNDIRECTED, graph]
    batch = gape.Graph.union(graphs)
    automaton, rhs = gape.Automaton.stochastic(3, seed=2), drawn(batch, 3)
    solution = gape.solve(automaton, batch, rhs=rhs, on_singular="least_squares")
    assert [s.name for s in solution.status] == ["LEAST_SQUARES", "ALGEBRAIC", "LEAST_SQUARES"]
    for i, one in enumerate(graphs):
        nodes = slice(int(batch.ptr[i]), int(batch.ptr[i + 1]))
        np.testing.assert_allclose(solution.weights[nodes], exact(automaton, one, rhs[nodes]), rtol=1e-8, atol=1e-8)


def test_overflow_is_told():
    steep = gape.Graph.from_edges([(0, 1), (1, 2)], edge_weight=[1e200, 1e200])
    large = np.full((60, 1), 1e39)  # more than float32 holds
    for graph, rhs in ((steep, np.full((3, 1), 1e10)), (RING, large)):
        solution = gape.solve(gape.Automaton.katz(0.1), graph, rhs=rhs, dtype=torch.float32, throw=False)
        assert solution.status == [gape.Status.OVERFLOW]


@pytest.mark.parametrize("damping", [0.05, 0.9])
def test_gradients_of_rhs_transition_and_edge_weights(damping):
    graph = gape.Graph(DIRECTED.edge_index, 9)
    weight = torch.rand(graph.num_edges, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) + 0.5
    automaton = gape.Automaton.random(2, damping)

    def weights(rhs, mu, edge_weight):
        weighted = gape.Graph(graph.edge_index, 9, edge_weight=edge_weight)
        return gape.solve(gape.Automaton(automaton.initial, mu), weighted, rhs=rhs).weights

    inputs = (torch.from_numpy(drawn(graph, 2)), automaton.transition.clone(), weight)
    assert torch.autograd.gradcheck(weights, [tensor.requires_grad_() for tensor in inputs])


def test_an_rhs_needs_no_labels_unless_something_else_reads_them():
    rhs = drawn(UNDIRECTED, 2)
    labelled = gape.Automaton.random(2, 0.1, labels=3)
    alike = gape.Automaton(labelled.initial[:, :1], labelled.transition)
    assert torch.equal(
        gape.solve(labelled, UNDIRECTED, rhs=rhs).weights, gape.solve(alike, UNDIRECTED, rhs=rhs).weights
    )
    final = gape.Automaton(labelled.initial, labelled.transition, final=np.ones((2, 3)))
    typed = gape.Automaton(labelled.initial, labelled.transition.expand(3, 2, 2))
    for reads in (final, typed):
        with pytest.raises(ValueError, match="the automaton has 3 labels and the graph has none"):
            gape.solve(reads, UNDIRECTED, rhs=rhs)


def test_right_hand_sides_that_do_not_fit_are_quoted():
    automaton = gape.Automaton.random(2, 0.1)
    for rhs, message in [
        (np.ones((9, 3)), r"\[nodes, states\] = \[9, 2\], got shape \[9, 3\]"),
        (np.ones((9, 2)) * 1j, "rhs must be real, got complex128"),
        (np.full((9, 2), np.inf), r"rhs must be finite, got inf at \[0, 0\]"),
    ]:
        with pytest.raises(ValueError, match=message):
            gape.solve(automaton, UNDIRECTED, rhs=rhs)
    with pytest.raises(ValueError, match="leave out basis or rhs"):
        gape.solve(automaton, UNDIRECTED, rhs=np.ones((9, 2)), basis=gape.prepare(UNDIRECTED))
