"""Closed and pair readouts against dense Kronecker systems: weights, certificates, singular equations."""

import functools

import numpy as np
import pytest
import torch

import gape
from gape import Automaton, Graph, SolveError, Status
from gape.encodings import GAPE, Pairs, make, sequence_graph
from gape.graph.labels import RandomLabels
from gape.solvers import AlgebraicOnlyWarning
from tests.encodings.samples import random_graph

closed, pair = (functools.partial(gape.solve, readout=name) for name in ("closed", "pair"))

F64 = torch.float64
MATRICES = ["adjacency", "random_walk", "random_walk_in", "symmetric", "laplacian", "normalized_laplacian"]
ignore_algebraic = pytest.mark.filterwarnings("ignore::gape.solvers.AlgebraicOnlyWarning")


def runs_between(machine: Automaton, graph: Graph, matrix: str) -> torch.Tensor:
    """Compute the weights ``[n, n, k]`` of runs between all nodes by one dense Kronecker system per node."""
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
            assert read(machine, graph).status == [Status.SOLVED]


def test_pair_readout_refuses_before_allocating():
    graph = sequence_graph("path", 40_000)
    with pytest.raises(ValueError, match=r"needs .* GiB and memory is limited to 4 GiB"):
        GAPE(32, readout="pair")(graph)
    with pytest.raises(ValueError, match="GiB"):
        GAPE(32, readout="closed")(graph)


@pytest.mark.filterwarnings("ignore::gape.solvers.AlgebraicOnlyWarning")
@pytest.mark.parametrize("undirected", [False, True])
@pytest.mark.parametrize("readout", ["closed", "pair"])
def test_dense_readouts_ask_for_the_memory_of_several_matrices(readout, undirected):
    graph = random_graph(120, 0.05, 0, undirected=undirected)
    machine = Automaton.random(states=1, damping=0.9)  # beyond the sum over runs: no powers of A
    matrix = 8 * 120**2 / 2**30
    with pytest.raises(ValueError, match=r"needs .* GiB"):
        gape.solve(machine, graph, readout=readout, memory=9.5 * matrix)
    gape.solve(machine, graph, readout=readout, memory=40 * matrix)
