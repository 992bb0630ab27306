"""Rooted automata against the formula: NetworkX distances and dense inverses by NumPy, root by root."""

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import torch

import gape
from gape import Graph
from gape.automaton import RootedAutomaton
from gape.encodings import RootedGAPE
from gape.solvers import Status, rooted_balls
from tests.encodings.samples import batch_of, random_graph


def rooted(transition, graph, **settings):
    return gape.solve(RootedAutomaton(transition, **settings), graph, readout="rooted")


def by_the_formula(graph: Graph, transition: np.ndarray, radius=None, length=None) -> np.ndarray:
    """``[n, K (L + 1)]`` (times length) of one graph; distances over edges, ρ of absolute values."""
    n, layers = graph.num_nodes, transition.shape[-1]
    matrix = np.zeros((n, n))
    np.add.at(matrix, tuple(graph.edge_index.numpy()), graph.adjacency.weights.detach().numpy())
    network = nx.DiGraph()
    network.add_nodes_from(range(n))
    network.add_edges_from(graph.edge_index.T.tolist())
    total = np.zeros((n, n))
    np.add.at(total, tuple(graph.edge_index.numpy()), np.abs(graph.adjacency.weights.detach().numpy()))
    size = np.abs(np.linalg.eigvals(total)).max(initial=0.0)
    size = size if size > 1e-9 else 1.0
    out = []
    for root in range(n):
        distance = nx.single_source_shortest_path_length(network, root, cutoff=radius)
        inside = sorted(distance)
        label = np.array([min(distance[v], layers - 1) for v in inside])
        row = []
        for weights in transition:
            m = matrix[np.ix_(inside, inside)] * weights[np.ix_(label, label)] / size
            if length is None:
                closed = np.linalg.inv(np.eye(len(inside)) - m).diagonal()[None]
            else:
                closed = np.stack([np.linalg.matrix_power(m, t + 1).diagonal() for t in range(length)])
            row += [closed[:, label == layer].sum(1) for layer in range(layers)]
        out.append(np.concatenate(row))
    return np.array(out)


def close(ours, expected):
    torch.testing.assert_close(ours, torch.as_tensor(expected), rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("undirected", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize(
    ("radius", "length"), [(None, None), (0, None), (2, None), (3, None), (5, None), (None, 5), (1, 4), (3, 4)]
)
def test_formula(undirected, weighted, radius, length):
    encoding = RootedGAPE(3, 2, radius=radius, length=length, seed=5, dtype="float64")
    path = Graph.from_edges([(v, v + 1) for v in range(9)], undirected=undirected)  # distances beyond every radius
    if weighted:
        path = replace(path, edge_weight=torch.full((path.num_edges,), 0.75))
    graphs = [*batch_of(undirected=undirected, weighted=weighted), path]
    solution = encoding.solve(Graph.union(graphs))
    expected = [by_the_formula(one, encoding.transition.numpy(), radius, length) for one in graphs if one.num_nodes]
    close(solution.weights, np.concatenate(expected))
    assert set(solution.status) == {Status.RUN_SUM}
    assert float(solution.residual.max()) < 1e-12
    assert float(solution.spectral_radius.max()) < 0.97


@pytest.mark.parametrize("undirected", [True, False])
@pytest.mark.parametrize("probability", [0.02, 0.3])
@pytest.mark.parametrize("radius", [1, 3])
def test_balls_of_large_graphs(undirected, probability, radius):
    graph = random_graph(90, probability, 1, undirected=undirected, weighted=True, loops=True)
    encoding = RootedGAPE(2, 2, radius=radius, dtype="float64")
    solution = encoding.solve(graph)
    close(solution.weights, by_the_formula(graph, encoding.transition.numpy(), radius))
    together = encoding.solve(Graph.union([batch_of(weighted=True, undirected=undirected)[2], graph]))
    assert torch.equal(together.weights[12:], solution.weights)
    assert len(together.residual) == 2


def test_sparse_dense_and_ball_parts_agree(monkeypatch):
    graph = Graph.union([random_graph(40, 0.06, 2), random_graph(60, 0.05, 3, loops=True)])
    encoding = RootedGAPE(3, 3, radius=2, dtype="float64")
    sparse = encoding(graph)
    monkeypatch.setattr(rooted_balls, "PART_ELEMENTS", 1)
    close(encoding(graph), sparse)
    monkeypatch.setattr(rooted_balls, "MAX_SPARSE_EDGE_SHARE", 1e-9)
    close(encoding(graph), sparse)
    monkeypatch.undo()
    monkeypatch.setattr("gape.solvers.rooted.MAX_SHARED_PATTERN_NODES", 0)
    monkeypatch.setattr(rooted_balls, "MAX_SEARCH_BATCH_NODES", 7)
    close(encoding(graph), sparse)


def test_negative_and_parallel_edges():
    edges = torch.tensor([[0, 1, 0, 1, 1, 2, 2, 2], [1, 0, 1, 0, 2, 1, 2, 2]])
    graph = Graph(edges, 4, edge_weight=torch.tensor([1.0, 1.0, -0.25, -0.25, -2.0, -2.0, 0.5, 0.25]))
    encoding = RootedGAPE(2, 1, dtype="float64")
    close(encoding(graph), by_the_formula(graph, encoding.transition.numpy()))


def test_lengths_add_up_to_the_sum_over_all():
    graph = random_graph(12, 0.3, 7)
    settings = {"machines": 2, "layers": 2, "damping": 0.6, "dtype": "float64"}
    summed = RootedGAPE(**settings)(graph).view(12, 6)
    apart = RootedGAPE(length=80, **settings)(graph).view(12, 6, 80).sum(-1)
    layer_sizes = RootedGAPE(**{**settings, "damping": 0.0, "damping_min": 0.0})(graph)
    close(apart + layer_sizes, summed)


def test_gradients_of_transition_weights():
    graph = Graph.union([random_graph(7, 0.3, 1), random_graph(5, 1.0, 1), random_graph(6, 0.3, 2, undirected=False)])
    weights = RootedGAPE(2, 2).transition.requires_grad_()

    def runs(weights):
        return rooted((weights + weights.mT) / 2, graph).weights

    assert torch.autograd.gradcheck(runs, weights)
    assert torch.equal(runs(weights).detach(), runs(weights.detach()))


def test_machines_are_drawn_by_seed_and_damped_evenly():
    first, other = RootedGAPE(), RootedGAPE(seed=1)
    assert torch.equal(first.transition, RootedGAPE().transition)
    assert not torch.equal(first.transition, other.transition)
    assert float(first.transition.max()) < 0.97
    assert float(first.transition[0].max()) <= 0.5
    assert torch.equal(first.transition, first.transition.mT)
    assert RootedGAPE(machines=1, layers=0).transition.shape == (1, 1, 1)


def test_width_is_machines_times_layers_times_length():
    graph = random_graph(6, 0.5, 0)
    assert RootedGAPE()(graph).shape == (6, 48)
    assert RootedGAPE(machines=2, layers=1, length=5)(graph).shape == (6, 20)
    assert RootedGAPE(machines=2)(Graph(torch.zeros(2, 0, dtype=torch.int64), 0)).shape == (0, 8)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"machines": 0}, "machines must be at least 1, got 0"),
        ({"layers": -1}, "layers must be at least 0, got -1"),
        ({"damping": 1.0}, "damping must be at least damping_min and below 1"),
        ({"damping": 0.3}, "damping_min=0.5"),
        ({"radius": -1}, "radius must be at least 0"),
        ({"length": 0}, "length must be at least 1"),
    ],
)
def test_settings_are_checked(settings, message):
    with pytest.raises(ValueError, match=message):
        RootedGAPE(**settings)


def test_weights_are_checked():
    graph = random_graph(5, 0.5, 0)
    with pytest.raises(ValueError, match=r"below 1 in absolute value, got 1.5"):
        rooted(torch.full((1, 2, 2), 1.5), graph)
    with pytest.raises(ValueError, match="symmetric"):
        rooted(torch.tensor([[[0.1, 0.2], [0.3, 0.4]]]), graph)
    with pytest.raises(ValueError, match=r"\[machines, layers, layers\], got \[2, 3\]"):
        rooted(torch.ones(2, 3), graph)


def test_memory_error_says_how_large_the_ball_is_and_what_to_do():
    star = Graph.from_edges([(0, i) for i in range(1, 400)], undirected=True)
    with pytest.raises(ValueError, match=r"ball of radius 2 around node 0, of 400 nodes, needs .* smaller radius"):
        RootedGAPE(radius=2, memory=1e-4)(star)
    with pytest.raises(ValueError, match=r"graph of 400 nodes, all of them in the ball of each, needs .* set radius"):
        RootedGAPE(memory=1e-4)(star)


def test_memory_error_names_the_largest_ball_not_that_of_the_busiest_node():
    """A star of 60 leaves beside a tree whose nodes have 40 children: two steps from its root are 1 + 40 + 1600."""
    tree = nx.balanced_tree(40, 2)
    graph = gape.as_graph(nx.disjoint_union(nx.star_graph(60), tree))
    for memory in (1e-5, 2e-3):  # too little for both balls, and for the larger one only
        with pytest.raises(ValueError, match=r"the ball of radius 2 around node 61, of 1641 nodes, needs"):
            RootedGAPE(radius=2, memory=memory)(graph)


@pytest.mark.parametrize("undirected", [True, False])
@pytest.mark.parametrize("radius", [0, 1, 2, 3])
def test_the_largest_ball_is_found(undirected, radius):
    for seed in range(5):
        graph = random_graph(90, 0.03, seed, undirected=undirected)
        network = nx.DiGraph(graph.edge_index.T.tolist())
        network.add_nodes_from(range(90))
        sizes = [len(nx.single_source_shortest_path_length(network, root, cutoff=radius)) for root in range(90)]
        found = rooted_balls.largest_ball(rooted_balls.RootedGraphs.of(graph, np.ones(1)), radius)
        assert sizes[found] == max(sizes)


def test_graphs_that_would_take_hours_are_refused_with_the_way_out():
    graph = Graph.from_edges([(i, (i * k + k) % 3000) for i in range(3000) for k in (1, 7, 61)], undirected=True)
    with pytest.raises(ValueError, match=r"3000 nodes in the ball of each node would take .* minutes.*radius=2"):
        RootedGAPE()(graph)
    assert RootedGAPE(radius=1, machines=1)(graph).shape == (3000, 4)


def test_the_rooted_readout_of_solve_says_what_it_takes():
    ring = Graph.from_edges([(0, 1), (1, 2), (2, 0)], undirected=True)
    machine = RootedAutomaton(torch.full((1, 2, 2), 0.9))
    solution = gape.solve(machine, ring, readout="rooted")
    assert solution.status == [Status.RUN_SUM]
    assert solution.unique == [True]
    torch.testing.assert_close(solution.weights[0], torch.tensor([3.7931, 7.5862]), rtol=1e-4, atol=0)
    with pytest.raises(ValueError, match="readout='node' and RootedAutomaton"):
        gape.solve(machine, ring)
    with pytest.raises(ValueError, match="readout='rooted' and Automaton"):
        gape.solve(gape.Automaton.katz(0.1), ring, readout="rooted")
    with pytest.raises(ValueError, match="rooted runs walk on matrix='adjacency', got matrix='random_walk'"):
        gape.solve(machine, ring, readout="rooted", matrix="random_walk")
    with pytest.raises(ValueError, match="solver goes with readout='node'"):
        gape.solve(machine, ring, readout="rooted", solver=gape.solvers.Krylov())
