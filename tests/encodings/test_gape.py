"""GAPE: variants, readouts, relative damping, certificates."""

import functools

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

import gape
from gape import Automaton, Graph, SolveError, Status
from gape.encodings import GAPE, PRESETS, Pairs, make, sequence_graph, spectral_radius
from gape.encodings.gape import node_softmax
from gape.graph.labels import RandomLabels
from gape.graph.spectral_radius import spectral_radii
from gape.pyg import AddGAPE
from gape.solvers import AlgebraicOnlyWarning, LeastSquaresWarning
from tests.encodings.samples import batch_of, random_graph

closed, pair = (functools.partial(gape.solve, readout=name) for name in ("closed", "pair"))

F64 = torch.float64
MATRICES = ["adjacency", "random_walk", "random_walk_in", "symmetric", "laplacian", "normalized_laplacian"]
ignore_algebraic = pytest.mark.filterwarnings("ignore::gape.solvers.AlgebraicOnlyWarning")


def runs_between(machine: Automaton, graph: Graph, matrix: str) -> torch.Tensor:
    """``[n, n, k]`` by one dense Kronecker system for each node."""
    walk, n, k = graph.walk(matrix).dense()[0], graph.num_nodes, machine.states
    system = torch.eye(n * k, dtype=F64) - torch.kron(walk.T.contiguous(), machine.transition.T.contiguous())
    out = torch.zeros(n, n, k, dtype=F64)
    for u in range(n):
        source = torch.zeros(n, k, dtype=F64)
        source[u] = machine.initial[:, 0 if machine.labels == 1 else graph.labels[u]]
        out[u] = torch.linalg.solve(system, source.flatten()).reshape(n, k)
    return out


MACHINES = {
    "damped": Automaton.random(5, 0.02, seed=1),
    "normal": Automaton.random(5, 0.61, seed=1),
    "not normal": Automaton(Automaton.stochastic(4, seed=2).initial, 0.37 * Automaton.stochastic(4, seed=2).transition),
    "nilpotent": Automaton.shift(6),
    "three labels": Automaton.random(4, 0.43, labels=3),
}


@ignore_algebraic
@pytest.mark.parametrize("machine", MACHINES.values(), ids=MACHINES)
@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("undirected", [True, False])
def test_closed_and_pair_readouts_are_the_kronecker_solve(machine, matrix, undirected):
    for weighted in (False, True):
        graph = random_graph(7, 0.4, 5, undirected=undirected, weighted=weighted)
        graph = graph.with_labels(RandomLabels(3, seed=1))
        exact = runs_between(machine, graph, matrix)
        table = Pairs(pair(machine, graph, matrix=matrix).weights, graph.sizes).matrices()[0]
        torch.testing.assert_close(table, exact, rtol=1e-10, atol=1e-10)
        back = closed(machine, graph, matrix=matrix).weights
        torch.testing.assert_close(back, exact.diagonal().T, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_what_the_paper_says(name):
    encoding = make(name, states=7)
    machine = encoding.automaton
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
        (lambda: gape.encode(dense, damping=0.9), AlgebraicOnlyWarning, "1 of 1 graphs: algebraic"),
        (lambda: gape.encode(dense, damping=0.9, readout="pair"), AlgebraicOnlyWarning, "1 of 1 graphs: algebraic"),
        (lambda: gape.solve(Automaton.katz(0.9), dense), AlgebraicOnlyWarning, "1 of 1 graphs: algebraic"),
        (lambda: AddGAPE(damping=0.9)(dense), AlgebraicOnlyWarning, "1 of 1 graphs: algebraic"),
    ]:
        with pytest.warns(category, match=message) as caught:
            call()
        assert {warning.filename for warning in caught if warning.category is category} == {__file__}


@pytest.mark.parametrize("read", [closed, pair, gape.solve])
def test_labels_that_an_automaton_does_not_know_are_named_with_their_node(read):
    machine, ring = Automaton.random(2, labels=2), sequence_graph("cycle", 3)
    with pytest.raises(ValueError, match="node 1 has label 2; the automaton knows labels 0 … 1"):
        read(machine, ring.with_labels([0, 2, 1]))
    with pytest.raises(ValueError, match="has 2 labels and the graph has none"):
        read(machine, ring)


@pytest.mark.parametrize("readout", ["closed", "pair"])
def test_singular_closed_and_pair_readouts_are_found(readout):
    # An edge has eigenvalues 1 and -1, and a stochastic transition eigenvalue 1.
    edge = sequence_graph("path", 2)
    with pytest.raises(SolveError, match="singular"):
        make("gape-star", readout=readout, on_singular="raise")(edge)
    solution = make("gape-star", readout=readout).solve(edge)
    assert solution.status == [Status.LEAST_SQUARES]
    assert bool(torch.isfinite(solution.weights).all())


@pytest.mark.parametrize("read", [closed, pair])
def test_an_unknown_way_with_singular_equations_is_refused(read):
    with pytest.raises(ValueError, match="on_singular must be 'raise' or 'least_squares', got 'ignore'"):
        read(Automaton.katz(0.1), sequence_graph("path", 3), on_singular="ignore")


@pytest.mark.parametrize("read", [closed, pair])
def test_readouts_that_leave_the_range_of_their_numbers_say_so(read):
    # 199²⁰/200 walks of 20 steps lead from a node of the complete graph back to it: more than float32 has numbers for.
    complete = Graph((1 - torch.eye(200)).nonzero().T, 200)
    triangle = sequence_graph("cycle", 3)
    with pytest.raises(SolveError, match=r"1 of 2 graphs failed \(1 overflow\)\. First, graph 1: overflow") as error:
        read(Automaton.shift(20), Graph.union([triangle, complete]), dtype=torch.float32)
    assert error.value.solution.status == [Status.RUN_SUM, Status.OVERFLOW]
    assert read(Automaton.shift(20), complete).status == [Status.RUN_SUM]
    assert read(Automaton.katz(0.1), triangle, dtype=torch.complex64).weights.dtype is torch.complex64


@pytest.mark.parametrize("labels", [{}, {"labels": 2, "labelling": "random"}], ids=["one", "two"])
def test_softmax_over_nodes_that_leaves_the_range_of_its_numbers_says_so(labels):
    steep = Graph.from_edges([(0, 1)], edge_weight=[1e90])
    batch = Graph.union([Graph.from_edges([(0, 1)], edge_weight=[1.0]), steep])
    with pytest.raises(SolveError, match=r"1 of 2 graphs failed \(1 overflow\)\. First, graph 1"):
        GAPE(2, initial="softmax_nodes", damping=1.0, **labels).solve(batch)


@ignore_algebraic
@pytest.mark.parametrize("read", [closed, pair])
@pytest.mark.parametrize("damping", [0.02, 0.24, 0.4, 0.9])
@pytest.mark.parametrize("undirected", [True, False])
def test_separation_is_no_more_than_the_distance_from_singular(read, damping, undirected):
    graph, machine = sequence_graph("cycle", 6, directed=not undirected), Automaton.random(4, damping, seed=1)
    products = np.multiply.outer(
        np.linalg.eigvals(machine.transition.numpy()), np.linalg.eigvals(graph.walk().dense()[0].numpy())
    )
    solution, exact = read(machine, graph), np.abs(1 - products).min()
    assert solution.separation.item() <= exact + 1e-12
    if solution.radius_kind == "exact":
        assert solution.separation.item() == pytest.approx(min(exact, 1.0))
    assert solution.unique == [True]


def test_uniqueness_that_a_bound_cannot_tell_is_not_told():
    # Runs begin and stay in state 1; state 0, where 2 · ½ = 1 makes the equation singular, is never seen.
    machine = Automaton(torch.tensor([[0.0], [1.0]]), torch.tensor([[0.5, 0.0], [0.0, 0.0]]))
    solution = closed(machine, sequence_graph("cycle", 6))
    assert (solution.status, solution.unique, solution.separation.item()) == ([Status.RUN_SUM], [None], 0.0)
    assert closed(Automaton.shift(3), sequence_graph("cycle", 6)).unique == [True]


SINGULAR = {
    "edge": sequence_graph("path", 2),
    "path": sequence_graph("path", 5),
    "directed": sequence_graph("cycle", 3, directed=True),
    "directed, more": Graph.from_edges([(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 4), (0, 4)]),
    "two parts": Graph.from_edges([(0, 1), (2, 3), (3, 4)], undirected=True, num_nodes=6),
}


@ignore_algebraic
@pytest.mark.parametrize("graph", SINGULAR.values(), ids=SINGULAR)
@pytest.mark.parametrize("matrix", ["adjacency", "random_walk", "random_walk_in", "symmetric"])
@pytest.mark.parametrize("name", ["gape-star", "gape-star-20"])
def test_least_squares_of_closed_and_pair_readouts_are_numpys(graph, matrix, name):
    settings = {"states": 3, "matrix": matrix, "dtype": "float64"}
    encoding = make(name, readout="pair", **settings)
    machine, n = encoding.automaton, graph.num_nodes
    labels = encoding.labelled(graph).labels if machine.labels > 1 else torch.zeros(n, dtype=torch.int64)
    walk, mu = graph.walk(matrix).dense()[0].numpy(), machine.transition.numpy()
    system = np.eye(3 * n) - np.kron(walk.T, mu.T)
    source = np.einsum("uw,uk->wku", np.eye(n), machine.initial.numpy().T[labels]).reshape(3 * n, n)
    nearest = np.linalg.lstsq(system, source, rcond=1e-11)[0]
    residual = np.linalg.norm(system @ nearest - source) / np.linalg.norm(source)
    exact = nearest.reshape(n, 3, n).transpose(2, 0, 1)
    solution = encoding.solve(graph)
    assert (solution.status[0] is Status.LEAST_SQUARES) == (residual > 1e-8)
    table = Pairs(solution.weights, graph.sizes).matrices()[0]
    np.testing.assert_allclose(table, exact, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(solution.residual[0], residual, rtol=1e-6, atol=1e-9)
    back = make(name, readout="closed", **settings).solve(graph)
    np.testing.assert_allclose(back.weights, np.einsum("vvk->vk", exact), rtol=1e-9, atol=1e-9)
    # What is linear stays linear: over all sources the pairs add up to the node readout.
    node = make(name, **settings).solve(graph)
    torch.testing.assert_close(table.sum(0), node.weights, rtol=1e-9, atol=1e-9)


def test_readouts_of_regular_directed_graphs_need_no_least_squares():
    # Weighted, so that no eigenvalue is 1.
    graph = random_graph(7, 0.4, 3, undirected=False, weighted=True)
    for readout in ("closed", "pair"):
        nearest, exact = (make("gape-star", readout=readout, on_singular=s) for s in ("least_squares", "raise"))
        with pytest.warns(AlgebraicOnlyWarning):
            assert torch.equal(nearest.solve(graph).weights, exact.solve(graph).weights)


def test_singular_equations_too_large_for_least_squares_are_refused_with_the_way_out():
    ring = sequence_graph("cycle", 200, directed=True)
    for readout in ("closed", "pair"):
        with pytest.raises(ValueError, match=r"200 × 32 unknowns are too many .* take fewer states"):
            make("gape-star", readout=readout)(ring)
        with pytest.raises(SolveError, match="singular"):
            make("gape-star", readout=readout, on_singular="raise")(ring)


@ignore_algebraic
@pytest.mark.parametrize("read", [closed, pair])
@pytest.mark.parametrize("damping", [0.02, 0.3, 1.0])
@pytest.mark.parametrize("graph", SINGULAR.values(), ids=SINGULAR)
def test_closed_and_pair_readouts_have_no_gradient_rather_than_half_of_it(read, damping, graph):
    machine = make("gape-star", states=3, damping=damping).automaton
    learned = Automaton(machine.initial.clone().requires_grad_(), machine.transition.clone().requires_grad_())
    for matrix in ("adjacency", "random_walk"):
        found = read(learned, graph, matrix=matrix, on_singular="least_squares").weights
        assert not found.requires_grad
        assert torch.equal(found, read(machine, graph, matrix=matrix, on_singular="least_squares").weights)


@ignore_algebraic
def test_a_singular_equation_that_can_be_solved_is_solved():
    # α without a part along the left null vector of 1 - μ, on a graph with eigenvalue 1.
    machine = Automaton([[1.0], [-1.0]], [[0.95, 0.05], [0.05, 0.95]])
    for graph, matrix in [(SINGULAR["edge"], "adjacency"), (SINGULAR["directed"], "adjacency")]:
        for read in (closed, pair, gape.solve):
            solution = read(machine, graph, matrix=matrix)
            assert solution.ok
            assert float(solution.residual) < 1e-12


@ignore_algebraic
@pytest.mark.parametrize("read", [closed, pair])
def test_a_radius_of_one_is_no_run_sum_whichever_way_it_is_rounded(read):
    for scale in (1.0 - 1e-15, 1.0, 1.0 + 1e-15):
        machine = Automaton([[1.0], [-1.0]], scale * np.array([[0.95, 0.05], [0.05, 0.95]]))
        for graph in (SINGULAR["edge"], SINGULAR["directed"]):
            assert read(machine, graph).status == [Status.ALGEBRAIC]


@pytest.mark.parametrize("matrix", MATRICES)
@pytest.mark.parametrize("undirected", [True, False])
def test_relative_damping_is_a_fraction_of_one_over_the_radius(matrix, undirected):
    for graph in (random_graph(9, 0.5, 2, undirected=undirected), random_graph(6, 0.6, 3, undirected=undirected)):
        radius = np.abs(np.linalg.eigvals(graph.walk(matrix).dense()[0].numpy())).max()
        relative = GAPE(4, damping=0.7, relative=True, matrix=matrix, dtype=F64)
        absolute = GAPE(4, damping=0.7 / radius, matrix=matrix, dtype=F64)
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
    relative, absolute = GAPE(4, damping=0.8, relative=True, dtype=F64), GAPE(4, damping=0.8, dtype=F64)
    torch.testing.assert_close(relative(path), absolute(path))


def test_relative_damping_below_one_sums_all_runs():
    graphs = [random_graph(40, 0.5, seed) for seed in range(3)]
    with pytest.warns(AlgebraicOnlyWarning):
        GAPE(4, damping=0.1)(graphs)
    solution = GAPE(4, damping=0.95, relative=True).solve(graphs)
    assert solution.status == [Status.RUN_SUM] * 3
    torch.testing.assert_close(solution.spectral_radius, torch.full((3,), 0.95, dtype=F64), rtol=1e-9, atol=0)


def test_spectral_radius_of_a_large_directed_graph():
    graph = random_graph(700, 0.01, 1, undirected=False)
    exact = np.abs(np.linalg.eigvals(graph.walk().dense()[0].numpy())).max()
    np.testing.assert_allclose(spectral_radius(graph.walk())[0], exact, rtol=1e-10)


def test_spectral_radius_of_large_graphs_without_a_gap():
    # Arnoldi's method gets nowhere: all eigenvalues of a directed cycle have the same size.
    weight = torch.rand(1000, generator=torch.Generator().manual_seed(0), dtype=F64) + 0.5
    ring = sequence_graph("cycle", 1000, directed=True)
    weighted = Graph(ring.edge_index, 1000, edge_weight=weight)
    mean = float(weight.log().mean().exp())
    several = Graph(
        torch.cat([ring.edge_index, ring.edge_index + 1000], 1), 2000, edge_weight=torch.cat([weight, 2 * weight])
    )
    nodes = torch.arange(900)
    skips = Graph(torch.stack([nodes.repeat(2), torch.cat([nodes + 1, nodes + 3]) % 900]), 900)
    path, cosine = sequence_graph("path", 5000), np.cos(np.pi / 5001)
    for graph, exact in [(ring, 1.0), (weighted, mean), (several, 2 * mean), (skips, 2.0), (path, 2 * cosine)]:
        np.testing.assert_allclose(spectral_radius(graph.walk())[0], exact, rtol=1e-10)
    assert GAPE(4, damping=0.9, relative=True).solve(ring).status == [Status.RUN_SUM]


def test_spectral_radius_that_cannot_be_found_is_not_guessed():
    steep = Graph(sequence_graph("cycle", 700, directed=True).edge_index, 700, edge_weight=np.logspace(-3, 3, 700))
    with pytest.raises(ValueError, match=r"is between .* too different; rescale them, or use an absolute damping"):
        spectral_radius(steep.walk())
    signed = Graph(steep.edge_index, 700, edge_weight=-torch.ones(700))
    with pytest.raises(ValueError, match=r"negative weights cannot be found.*absolute damping"):
        spectral_radius(signed.walk())


def test_softmax_over_nodes_with_one_label_is_one_over_n_whatever_the_seed():
    graphs = batch_of()
    machine = GAPE(5, initial="softmax_nodes", seed=3).automaton
    source = node_softmax(machine, Graph.union(graphs))
    expected = torch.cat([torch.full((g.num_nodes, 5), 1 / max(1, g.num_nodes), dtype=F64) for g in graphs])
    torch.testing.assert_close(source, expected, rtol=1e-15, atol=0)
    settings = {"initial": "softmax_nodes", "states": 5, "damping": 0.1}
    ours = GAPE(**settings, dtype=F64).solve(graphs[2]).weights
    ones = Automaton(torch.ones(5, 1, dtype=F64), GAPE(5, damping=0.1).automaton.transition)
    torch.testing.assert_close(ours, gape.solve(ones, graphs[2]).weights / graphs[2].num_nodes)


@ignore_algebraic
@pytest.mark.parametrize("undirected", [True, False])
@pytest.mark.parametrize("damping", [0.02, 0.31])
def test_softmax_over_nodes_with_labels_is_the_dense_solve(undirected, damping):
    graphs = [g for g in batch_of(undirected=undirected, weighted=True) if g.num_nodes]
    encoding = GAPE(
        5, damping=damping, transition="stochastic", initial="softmax_nodes", labels=4, labelling="random", dtype=F64
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
    settings = {"states": 5, "initial": "softmax_nodes", "labels": 4, "labelling": "random"}
    ring = GAPE(**settings).solve(sequence_graph("cycle", 60))
    assert ring.radius_kind == "bound"
    assert float(ring.spectral_radius) >= 0.04 * (1 - 1e-12)
    empty = GAPE(**settings).solve(Graph(torch.zeros(2, 0, dtype=torch.int64), 0))
    assert empty.status == [Status.RUN_SUM]
    scattered = gape.as_graph(nx.random_geometric_graph(400, 0.08, seed=0))
    assert GAPE(**settings, damping=0.5).solve(scattered).solver == ["Spectral"]
    beside = [sequence_graph("path", 20, directed=True), sequence_graph("cycle", 5)]
    mixed = GAPE(**settings, damping=1.5).solve(beside)
    assert mixed.solver == ["Series", "Spectral"]
    assert mixed.status == [Status.RUN_SUM, Status.ALGEBRAIC]


def test_pair_readout_refuses_before_allocating():
    graph = sequence_graph("path", 40_000)
    with pytest.raises(ValueError, match=r"needs .* GiB and memory is limited to 4 GiB"):
        GAPE(32, readout="pair")(graph)
    with pytest.raises(ValueError, match="GiB"):
        GAPE(32, readout="closed")(graph)


def test_bad_settings_say_what_was_expected():
    for settings, message in [
        ({"states": 0}, "states must be at least 1, got 0"),
        ({"damping": -1.0}, "damping must be a number of at least 0"),
        ({"damping": float("nan")}, "damping"),
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
    encoding = GAPE(4, labels=3, labelling="given", dtype=F64)
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
    assert gape.encode(graph, GAPE(3, damping=0.5, dtype=F64)).requires_grad


def test_relative_damping_does_not_pad_small_graphs_to_a_large_one():
    # Their dense matrices together would have 4·10⁸ entries.
    ring, path = sequence_graph("cycle", 3), sequence_graph("path", 20_000)
    radii = spectral_radii(Graph.union([ring, path, ring]), "adjacency")
    np.testing.assert_allclose(radii, [2.0, 2 * np.cos(np.pi / 20_001), 2.0], rtol=1e-10)
