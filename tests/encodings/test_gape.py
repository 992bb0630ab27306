"""The encoding GAPE: variants, relative damping, softmax over nodes, warnings."""

import inspect

import networkx as nx
import numpy as np
import pytest
import scipy.linalg
import torch
from torch_geometric.data import Batch, Data

import gape
from gape import Automaton, Graph, SolveError, Status, nn
from gape.encodings import GAPE, PRESETS, Pairs, make, sequence_graph, spectral_radius
from gape.encodings.gape import node_softmax
from gape.pyg import AddGAPE
from gape.solvers import AlgebraicOnlyWarning, LeastSquaresWarning
from tests.encodings.samples import batch_of, random_graph
from tests.solvers.test_readouts import MATRICES, runs_between

F64 = torch.float64
ignore_algebraic = pytest.mark.filterwarnings("ignore::gape.solvers.AlgebraicOnlyWarning")


def test_every_default_is_the_same_informative_one():
    layer, encoding = inspect.signature(nn.GAPE).parameters, make("gape")
    assert GAPE() == AddGAPE().encoding == encoding
    assert (encoding.states, encoding.damping, encoding.relative) == (32, 0.9, True)
    # A layer's damping is relative by construction.
    assert (layer["states"].default, layer["damping"].default) == (encoding.states, encoding.damping)


def test_features_by_default_vary_in_more_directions_than_those_of_the_paper():
    graphs = [random_graph(20, 0.1, seed) for seed in range(30)]

    def directions(name):
        rows = torch.cat(gape.encode(graphs, name, dtype=F64))
        sizes = torch.linalg.svdvals(rows - rows.mean(0))
        return int((sizes > 1e-3 * sizes[0]).sum())

    assert directions("gape-paper") <= 3
    assert directions("gape") >= 6


@pytest.mark.parametrize("name", [name for name in PRESETS if name != "gape"])
def test_presets_are_what_the_paper_says(name):
    encoding = make(name, states=7)
    machine = encoding.automaton
    assert not encoding.relative
    if "star" not in name:
        torch.testing.assert_close(machine.transition @ machine.transition.T, 0.02**2 * torch.eye(7, dtype=F64))
        assert machine == Automaton.random(7, 0.02, seed=0)
        return
    torch.testing.assert_close(machine.transition.sum(1), torch.ones(7, dtype=F64))
    assert bool((machine.transition > 0).all())
    assert encoding.on_singular == "least_squares"
    assert machine.labels == (20 if name.endswith("20") else 200 if name.endswith("max") else 1)
    if "2star" in name:
        torch.testing.assert_close(machine.initial.sum(0), torch.ones(machine.labels, dtype=F64))


@ignore_algebraic
@pytest.mark.parametrize("name", ["gape-paper", "gape-star", "gape-star-20"])
def test_released_equation_is_what_the_authors_code_solves_on_csl(name):
    # TᵀP − PA = TᵀC with T = μᵀ, by SciPy. A transposed is A.
    graph = random_graph(9, 0.3, seed=2)
    right = make(name, states=5)
    solution = make(name, states=5, equation="released", dtype=F64).solve(graph)
    machine, labels = right.automaton, right.labelled(graph).labels
    initial = machine.initial[:, labels] if labels is not None else machine.initial.expand(-1, graph.num_nodes)
    adjacency = np.zeros((graph.num_nodes,) * 2)
    adjacency[tuple(graph.edge_index.numpy())] = 1
    transition = machine.transition.numpy()  # Tᵀ
    expected = scipy.linalg.solve_sylvester(transition, -adjacency, transition @ initial.numpy())
    torch.testing.assert_close(solution.weights, torch.from_numpy(expected.T), rtol=1e-7, atol=1e-9)


def test_released_equation_turns_damping_upside_down():
    graph = random_graph(9, 0.3, seed=2)
    with pytest.warns(AlgebraicOnlyWarning):
        released = GAPE(states=5, damping=0.02, relative=False, equation="released", dtype=F64).compute(graph)
    with pytest.warns(AlgebraicOnlyWarning):
        torch.testing.assert_close(released, GAPE(states=5, damping=50.0, relative=False, dtype=F64).compute(graph))
    with pytest.raises(ValueError, match=r"equation=.released. inverts the transition matrix: .* above 0, got 0"):
        GAPE(damping=0.0, equation="released")


@ignore_algebraic
def test_star_reports_singular_graphs_and_least_squares_solves_them():
    # Propylbenzene: its adjacency matrix has eigenvalue 1, and the source excites it.
    ring = [(i, (i + 1) % 6) for i in range(6)]
    molecule = Graph.from_edges([*ring, (0, 6), (6, 7), (7, 8)], undirected=True)
    solution = make("gape-star").solve([molecule, sequence_graph("path", 3)])
    assert solution.status[0] is Status.LEAST_SQUARES
    assert solution.status[1].ok
    assert solution.counts()[Status.LEAST_SQUARES] == 1
    assert float(solution.weights.abs().max()) < 1e3
    with pytest.raises(SolveError, match="1 of 1 graphs failed"):
        make("gape-star", on_singular="raise")(molecule)


def test_warnings_count_the_graphs_and_point_at_the_callers_line():
    graphs = [sequence_graph("path", 2), sequence_graph("path", 3), sequence_graph("path", 2)]
    dense = Batch.from_data_list([Data(edge_index=sequence_graph("cycle", 9).edge_index, num_nodes=9)])
    for call, category, message in [
        (lambda: gape.encode(graphs, "gape-star"), LeastSquaresWarning, "2 of 3 graphs: least squares"),
        (lambda: gape.encode(graphs, "gape-star", readout="closed"), LeastSquaresWarning, "2 of 3 graphs"),
        (lambda: gape.encode(dense, damping=0.9, relative=False), AlgebraicOnlyWarning, "1 of 1 graphs: algebraic"),
        (lambda: gape.encode(dense, "gape-paper", damping=0.9, readout="pair"), AlgebraicOnlyWarning, "1 of 1 graphs"),
        (lambda: gape.solve(Automaton.katz(0.9), dense), AlgebraicOnlyWarning, "1 of 1 graphs: algebraic"),
        (lambda: AddGAPE(damping=0.9, relative=False)(dense), AlgebraicOnlyWarning, "1 of 1 graphs: algebraic"),
    ]:
        with pytest.warns(category, match=message) as caught:
            call()
        assert {warning.filename for warning in caught if warning.category is category} == {__file__}


@pytest.mark.parametrize("labels", [{}, {"labels": 2, "labelling": "random"}], ids=["one", "two"])
def test_softmax_over_nodes_that_leaves_the_range_of_its_numbers_says_so(labels):
    steep = Graph.from_edges([(0, 1)], edge_weight=[1e90])
    batch = Graph.union([Graph.from_edges([(0, 1)], edge_weight=[1.0]), steep])
    with pytest.raises(SolveError, match=r"1 of 2 graphs failed \(1 overflow\)\. First, graph 1"):
        GAPE(2, initial="softmax_nodes", damping=1.0, **labels).solve(batch)


@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("undirected", [True, False])
def test_relative_damping_is_a_fraction_of_one_over_the_radius(matrix, undirected):
    for graph in (random_graph(9, 0.5, 2, undirected=undirected), random_graph(6, 0.6, 3, undirected=undirected)):
        radius = np.abs(np.linalg.eigvals(graph.walk(matrix).dense()[0].numpy())).max()
        relative = GAPE(4, damping=0.7, relative=True, matrix=matrix, dtype=F64)
        absolute = GAPE(4, damping=0.7 / radius, relative=False, matrix=matrix, dtype=F64)
        torch.testing.assert_close(relative(graph), absolute(graph), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("matrix", ["random_walk", "random_walk_in", "symmetric"])
def test_relative_damping_leaves_walks_on_undirected_graphs_similar_to_symmetric(matrix):
    graph = Graph.union([random_graph(9, 0.5, 2, weighted=True), Graph(torch.zeros(2, 0, dtype=torch.int64), 2)])
    encoding = GAPE(4, damping=0.9, relative=True, matrix=matrix, readout="pair", dtype=F64)
    solution = encoding.solve(graph)
    assert solution.solver == ["Spectral", "Spectral"]
    exact = runs_between(encoding.automaton, graph.slice(0, 1), matrix)
    table = Pairs(solution.weights, graph.sizes).matrices()[0]
    torch.testing.assert_close(table, exact, rtol=1e-10, atol=1e-10)


def test_relative_damping_does_not_depend_on_the_batch():
    graphs = batch_of(undirected=False, weighted=True)
    encoding = GAPE(5, damping=0.9, relative=True, dtype=F64)
    together = gape.encode(graphs, encoding)
    for graph, rows in zip(graphs, together, strict=True):
        torch.testing.assert_close(rows, encoding(graph), rtol=1e-10, atol=1e-10)


def test_relative_damping_on_a_graph_without_cycles_is_the_damping():
    path = sequence_graph("path", 60, directed=True)
    assert float(spectral_radius(path.walk())) == 0.0
    relative, absolute = GAPE(4, damping=0.8, relative=True, dtype=F64), GAPE(4, damping=0.8, relative=False, dtype=F64)
    torch.testing.assert_close(relative(path), absolute(path))


def test_relative_damping_below_one_sums_all_runs():
    graphs = [random_graph(40, 0.5, seed) for seed in range(3)]
    with pytest.warns(AlgebraicOnlyWarning):
        GAPE(4, damping=0.1, relative=False)(graphs)
    solution = GAPE(4, damping=0.95, relative=True).solve(graphs)
    assert solution.status == [Status.RUN_SUM] * 3
    torch.testing.assert_close(solution.spectral_radius, torch.full((3,), 0.95, dtype=F64), rtol=1e-9, atol=0)


def test_softmax_over_nodes_with_one_label_is_one_over_n_whatever_the_seed():
    graphs = batch_of()
    machine = GAPE(5, initial="softmax_nodes", seed=3).automaton
    source = node_softmax(machine, Graph.union(graphs))
    expected = torch.cat([torch.full((g.num_nodes, 5), 1 / max(1, g.num_nodes), dtype=F64) for g in graphs])
    torch.testing.assert_close(source, expected, rtol=1e-15, atol=0)
    settings = {"initial": "softmax_nodes", "states": 5, "damping": 0.1, "relative": False}
    ours = GAPE(**settings, dtype=F64).solve(graphs[2]).weights
    ones = Automaton(torch.ones(5, 1, dtype=F64), GAPE(5, damping=0.1).automaton.transition)
    torch.testing.assert_close(ours, gape.solve(ones, graphs[2]).weights / graphs[2].num_nodes)


@ignore_algebraic
@pytest.mark.parametrize("undirected", [True, False])
@pytest.mark.parametrize("damping", [0.02, 0.31])
def test_softmax_over_nodes_with_labels_is_the_dense_solve(undirected, damping):
    graphs = [g for g in batch_of(undirected=undirected, weighted=True) if g.num_nodes]
    encoding = GAPE(
        5,
        damping=damping,
        relative=False,
        transition="stochastic",
        initial="softmax_nodes",
        labels=4,
        labelling="random",
        dtype=F64,
    )
    solution = encoding.solve(graphs)
    assert solution.ok
    machine = encoding.automaton
    for graph, rows in zip(graphs, solution.weights.split([g.num_nodes for g in graphs]), strict=True):
        labelled = encoding.labelled(graph)
        source = torch.softmax(machine.initial[:, labelled.labels], 1).T
        system = torch.eye(graph.num_nodes * 5, dtype=F64) - torch.kron(
            graph.walk().dense()[0].T.contiguous(), machine.transition.T.contiguous()
        )
        exact = torch.linalg.solve(system, source.flatten()).reshape(-1, 5)
        torch.testing.assert_close(rows, exact, rtol=1e-9, atol=1e-9)


@ignore_algebraic
def test_softmax_over_nodes_counts_singular_graphs():
    graphs = [sequence_graph("path", 2), sequence_graph("path", 3), random_graph(6, 0.5, 1, undirected=False)]
    encoding = make("gape-2star-20", initial="softmax_nodes", states=5)
    counts = encoding.solve(graphs).counts()
    assert counts[Status.LEAST_SQUARES] >= 1
    assert sum(counts.values()) == 3


@ignore_algebraic
def test_softmax_over_nodes_settles_large_singular_graphs():
    # 202 nodes times 32 states; two of the nodes are a component with eigenvalue 1.
    large = random_graph(200, 0.02, 0, undirected=False)
    graph = Graph(torch.cat([large.edge_index, torch.tensor([[200, 201], [201, 200]])], 1), 202)
    solution = make("gape-2star-20", initial="softmax_nodes").solve(graph)
    assert solution.status == [Status.LEAST_SQUARES]
    assert bool(torch.isfinite(solution.weights).all())


@ignore_algebraic
def test_softmax_over_nodes_is_certified_as_every_solve_is():
    settings = {"states": 5, "initial": "softmax_nodes", "labels": 4, "labelling": "random", "relative": False}
    ring = GAPE(**settings, damping=0.02).solve(sequence_graph("cycle", 60))
    assert ring.radius_kind == "bound"
    assert float(ring.spectral_radius) >= 0.04 * (1 - 1e-12)
    empty = GAPE(**settings, damping=0.02).solve(Graph(torch.zeros(2, 0, dtype=torch.int64), 0))
    assert empty.status == [Status.RUN_SUM]
    scattered = gape.as_graph(nx.random_geometric_graph(400, 0.08, seed=0))
    assert GAPE(**settings, damping=0.5).solve(scattered).solver == ["Spectral"]
    beside = [sequence_graph("path", 20, directed=True), sequence_graph("cycle", 5)]
    mixed = GAPE(**settings, damping=1.5).solve(beside)
    assert mixed.solver == ["Series", "Spectral"]
    assert mixed.status == [Status.RUN_SUM, Status.ALGEBRAIC]


def test_bad_settings_say_what_was_expected():
    for settings, message in [
        ({"states": 0}, "states must be at least 1, got 0"),
        ({"damping": -1.0}, "damping must be a number of at least 0"),
        ({"damping": float("inf")}, "damping must be a number of at least 0, got inf"),
        ({"damping": float("nan")}, "damping must be a number of at least 0, got nan"),
        ({"matrix": "incidence"}, "matrix must be one of 'adjacency'"),
        ({"labels": 3}, "labelling='one'"),
        ({"initial": "softmax_nodes", "readout": "closed"}, "readout='node'"),
        ({"dtype": "int8"}, "dtype must be one of float32, float64"),
    ]:
        with pytest.raises(ValueError, match=message):
            GAPE(**settings)


def test_graphs_with_more_nodes_than_index_labels_say_how_many_are_needed():
    graph = sequence_graph("path", 204)
    with pytest.raises(ValueError, match=r"a graph has 204 nodes .* got labels=200; set labels=204 or more"):
        gape.encode([sequence_graph("path", 3), graph], "gape-2star-max")
    assert make("gape-2star-max", labels=204).solve(graph).weights.shape == (204, 32)


def test_labels_given_with_the_graph_are_used():
    graph = random_graph(8, 0.4, 0).with_labels(torch.arange(8) % 3)
    encoding = make("gape-paper", states=4, labels=3, labelling="given", dtype=F64)
    torch.testing.assert_close(encoding(graph), gape.solve(encoding.automaton, graph).weights)
    with pytest.raises(ValueError, match="the graph has none"):
        encoding(random_graph(8, 0.4, 0))


def test_relative_damping_has_no_gradient_of_edge_weights_rather_than_half_of_it():
    # That of the radius would be missing.
    weight = torch.rand(8, dtype=F64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    graph = Graph([[0, 1, 1, 2, 2, 3, 3, 0], [1, 0, 2, 1, 3, 2, 0, 3]], 4, edge_weight=weight)
    encoding = GAPE(3, damping=0.5, relative=True, dtype=F64)
    with pytest.warns(UserWarning, match="gradient"):
        assert not gape.encode(graph, encoding).requires_grad
    assert gape.encode(graph, GAPE(3, damping=0.5, relative=False, dtype=F64)).requires_grad


@pytest.mark.parametrize("name", ["gape", "gape-rooted"])
@pytest.mark.parametrize("nodes", [3, 40, 600])
def test_relative_damping_does_not_depend_on_the_scale_of_the_weights(name, nodes):
    star = gape.as_graph(nx.star_graph(nodes - 1))
    settings = {"gape": {"states": 2}, "gape-rooted": {"machines": 2, "radius": 1}}[name]
    expected = gape.encode(star, name, dtype="float64", **settings)
    for weight in (1e-300, 1e-160, 1e-155, 1e-100, 1e100, 1e160, 1e300):
        weights = torch.full((star.num_edges,), weight, dtype=torch.float64)
        scaled = gape.Graph(star.edge_index, nodes, edge_weight=weights)
        found = gape.encode(scaled, name, dtype="float64", **settings)
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
