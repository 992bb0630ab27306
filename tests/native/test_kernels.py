"""Both back ends of a solver, the compiled kernels and PyTorch, give the same weights and the same certificates."""

import threading
import time
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import torch

import gape
from gape import native
from gape._internal.threads import share_kernel
from gape.encodings import PageRankPowers, RandomWalk
from gape.encodings.random_walk import return_probabilities
from gape.graph import spectral_radius
from gape.graph.labels import RandomLabels
from gape.graph.small_graphs import scan
from gape.graph.spectral_radius import unit_radius
from gape.graph.walk_matrix import NAMES
from gape.solvers import Auto, Krylov, Series, kernels
from gape.solvers.certificate import STATUSES
from gape.solvers.equation import Equation

pytestmark = [
    pytest.mark.skipif(native.library() is None, reason=native.description()),
    pytest.mark.filterwarnings("ignore::gape.solvers.AlgebraicOnlyWarning"),
]
SIZES = [3, 1, 30, 12, 0, 61, 7, 9, 90]


def batch(*, directed: bool, weighted: bool, density: float = 0.1, seed: int = 0, sizes: list[int] = SIZES):
    """Random graphs, sparse or dense, with loops, parallel edges, isolated nodes, and one without nodes."""
    rng, graphs = np.random.default_rng(seed), []
    for size in sizes:
        edges = (
            rng.integers(0, max(size, 1), (int(density * size**2) + (size > 1), 2)) if size else np.zeros((0, 2), int)
        )
        weight = rng.uniform(-1, 1, len(edges)) if weighted else None
        graphs.append(gape.Graph.from_edges(edges, num_nodes=size, undirected=not directed, edge_weight=weight))
    return gape.Graph.union(graphs)


def norm_one(graph: gape.Graph, matrix: str) -> float:
    return 1.0 / max(1.0, float(graph.walk(matrix).two_norm_bounds.max()))


def both(solver: gape.solvers.Solver, equation: Equation):
    """Results of the kernels and of PyTorch."""
    compiled = solver.compiled(replace(equation, out=None))
    assert compiled is not None
    with native.switched_off():
        return compiled, solver.solve(replace(equation, out=None))


def agree(compiled, plain) -> None:
    scale = float(plain.weights.abs().max())
    assert float((compiled.weights - plain.weights).abs().max()) <= 1e-12 * scale
    assert compiled.status.tolist() == plain.status.tolist()
    assert compiled.unique.tolist() == plain.unique.tolist()
    assert bool((compiled.residual <= 1e-12).all())


# Degrees of weights of both signs have no root.
@pytest.mark.parametrize(("matrix", "weighted"), [*((name, False) for name in NAMES), ("adjacency", True)])
@pytest.mark.parametrize("labels", [1, 3])
@pytest.mark.parametrize("directed", [False, True])
def test_series(directed, weighted, labels, matrix):
    for density, states in ((0.05, 1), (0.3, 5), (0.8, 20)):
        graph = batch(directed=directed, weighted=weighted, density=density)
        automaton = gape.Automaton.random(states, 0.5 * norm_one(graph, matrix), labels=labels)
        graph = graph.with_labels(RandomLabels(labels)) if labels > 1 else graph
        equation = Equation.of(automaton, graph, matrix)
        compiled, plain = both(Series(tolerance=1e-14), equation)
        agree(compiled, plain)
        bounds = compiled.spectral_radius, plain.spectral_radius
        # Sums end at steps of their own, and so their bounds of the radius differ.
        assert all(bool((bound <= 0.5 + 1e-12).all()) for bound in bounds)


@pytest.mark.parametrize("labels", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_series_of_directed_graphs_rests_on_bounds_of_the_radius(weighted, labels):
    # No norm of these matrices is below 1, but their radius is.
    for density, states in ((0.05, 1), (0.3, 5), (0.8, 20)):
        graph = unit_radius(batch(directed=True, weighted=weighted, density=density), "adjacency")
        assert float(graph.walk("adjacency").norm_bounds.max()) > 1.0
        automaton = gape.Automaton.random(states, 0.9, labels=labels)
        graph = graph.with_labels(RandomLabels(labels)) if labels > 1 else graph
        equation = Equation.of(automaton, graph, "adjacency")
        compiled = Auto(tolerance=1e-13).compiled(replace(equation, out=None))
        assert compiled is not None
        # What rounding may have touched is left to PyTorch.
        done = compiled.status == STATUSES.index(gape.Status.RUN_SUM)
        assert float(done.double().mean()) > 0.8
        assert bool((compiled.spectral_radius[done] < 1.0).all())
        rows = done[graph.batch]
        with native.switched_off():
            plain = Krylov(tolerance=1e-14).solve(replace(equation, out=None))
        assert {plain.status_list()[i].name for i in done.nonzero().flatten().tolist()} == {"RUN_SUM"}
        scale = float(plain.weights.abs().max())
        assert float((compiled.weights - plain.weights)[rows].abs().max()) <= 1e-12 * scale
        assert bool((compiled.residual[done] <= 1e-12).all())


def test_series_of_directed_graphs_leaves_diverging_sums_to_pytorch():
    ring = gape.Graph.from_edges([(0, 1), (1, 2), (2, 0)])
    tail = gape.Graph.from_edges([(0, 1), (1, 0), (1, 2), (1, 2), (2, 3)])
    equation = Equation.of(gape.Automaton.katz(1.0), gape.Graph.union([ring, tail]))
    assert Series().compiled(equation) is None
    equation = Equation.of(gape.Automaton.katz(0.7), gape.Graph.union([ring, tail]))
    assert {status.name for status in Series().compiled(equation).status_list()} == {"RUN_SUM"}


def test_series_ends_by_itself_on_acyclic_graphs():
    edges = [(u, v) for u in range(20) for v in range(u + 1, 20)]
    graph = gape.Graph.union([gape.Graph.from_edges(edges), gape.Graph.from_edges([(0, 1)], num_nodes=3)])
    compiled, plain = both(Series(tolerance=1e-11), Equation.of(gape.Automaton.random(4, 0.1), graph))
    agree(compiled, plain)
    assert compiled.spectral_radius.tolist() == [0.0, 0.0]


def test_series_leaves_out_what_it_cannot_certify():
    ring = gape.Graph.from_edges([(0, 1), (1, 2), (2, 0)], undirected=True)
    path = gape.Graph.from_edges([(0, 1), (1, 2)])
    result = Series().compiled(Equation.of(gape.Automaton.katz(0.6), gape.Graph.union([ring, path])))
    assert [status.name for status in result.status_list()] == ["NOT_CONVERGED", "RUN_SUM"]
    # Large terms that cancel: no certificate, although the next term is 0.
    chain = gape.Graph.from_edges([(0, 1), (1, 2), (0, 2)], edge_weight=[1e9, 1e9, -1e18])
    result = Series().compiled(Equation.of(gape.Automaton.katz(1.0), chain))
    assert result.status_list()[0].name == "NOT_CONVERGED"


@pytest.mark.parametrize(("matrix", "weighted"), [*((name, False) for name in NAMES), ("adjacency", True)])
@pytest.mark.parametrize("labels", [1, 3])
def test_krylov(labels, weighted, matrix):
    for density, states, damping in ((0.02, 2, 0.4), (0.3, 5, 0.9), (0.8, 20, 1.7)):
        graph = batch(directed=False, weighted=weighted, density=density, seed=states)
        automaton = gape.Automaton.random(states, damping * norm_one(graph, matrix), labels=labels, seed=3)
        graph = graph.with_labels(RandomLabels(labels)) if labels > 1 else graph
        equation = Equation.of(automaton, graph, matrix)
        compiled, plain = both(Krylov(tolerance=1e-13), equation)
        done = compiled.status != STATUSES.index(gape.Status.NOT_CONVERGED)
        # Where entries are negative, or a radius is close to 1, PyTorch has more ways to prove that it is below.
        assert int(done.sum()) >= (7 if equation.walk.nonnegative else 5)
        rows = done[graph.batch]
        scale = float(plain.weights.abs().max())
        assert float((compiled.weights - plain.weights)[rows].abs().max()) <= 1e-12 * scale
        assert torch.equal(compiled.status[done], plain.status[done])
        assert torch.equal(compiled.unique[done], plain.unique[done])
        assert bool((equation.residual(compiled.weights)[done] <= 1e-12).all())
        # Estimates both, from spaces of different dimensions.
        torch.testing.assert_close(compiled.spectral_radius[done], plain.spectral_radius[done], rtol=0.05, atol=1e-3)


@pytest.mark.parametrize(("matrix", "weighted"), [*((name, False) for name in NAMES), ("adjacency", True)])
@pytest.mark.parametrize("labels", [1, 3])
def test_krylov_of_directed_graphs(labels, weighted, matrix):
    for density, states, damping in ((0.02, 2, 0.4), (0.3, 5, 2.0), (0.8, 20, 1.7)):
        graph = batch(directed=True, weighted=weighted, density=density, seed=states)
        automaton = gape.Automaton.random(states, damping * norm_one(graph, matrix), labels=labels, seed=3)
        graph = graph.with_labels(RandomLabels(labels)) if labels > 1 else graph
        equation = Equation.of(automaton, graph, matrix)
        assert equation.walk.similarity is None
        compiled = Krylov(tolerance=1e-12).compiled(equation)
        with native.switched_off():
            plain = Krylov(tolerance=1e-14).solve(equation)
        done = compiled.status != STATUSES.index(gape.Status.NOT_CONVERGED)
        # Near a pole the kernel has to reach more digits than rounding leaves.
        assert int(done.sum()) >= (7 if equation.walk.nonnegative else 5)
        difference = (compiled.weights - plain.weights)[done[graph.batch]]
        assert float(difference.abs().max()) <= 1e-12 * float(plain.weights.abs().max())
        assert torch.equal(compiled.status[done], plain.status[done])
        assert bool((equation.residual(compiled.weights)[done] <= 1e-12).all())
        # Estimates both, from spaces of different dimensions.
        torch.testing.assert_close(compiled.spectral_radius[done], plain.spectral_radius[done], rtol=0.05, atol=0.01)


def test_separations_of_directed_graphs_are_those_of_all_eigenvalues():
    graph = batch(directed=True, weighted=False, density=0.3, sizes=[3, 10, 25, 0, 1, 40], seed=5)
    automaton = gape.Automaton.random(6, 1.3 * norm_one(graph, "adjacency"), seed=2)
    found = Krylov(tolerance=1e-12).compiled(Equation.of(automaton, graph))
    poles = np.linalg.eigvals(automaton.transition.numpy())
    for i, matrix in enumerate(graph.walk().dense().numpy()):
        values = np.linalg.eigvals(matrix[: int(graph.sizes[i]), : int(graph.sizes[i])])
        least = min(1.0, np.abs(1 - np.multiply.outer(values, poles)).min(initial=1.0))
        # A space that ends early, or is small enough, has some of the eigenvalues only, the largest among them.
        assert least - 1e-4 <= float(found.separation[i]) <= 1.0


def test_krylov_leaves_nearly_singular_directed_graphs_to_pytorch():
    graph = gape.Graph.union([batch(directed=True, weighted=False, sizes=[40], seed=seed) for seed in range(3)])
    radius = np.abs(np.linalg.eigvals(graph.walk("adjacency").dense().numpy())).max(-1)
    for gap, certified in ((1e-9, False), (1e-2, True)):
        automaton = gape.Automaton.katz((1.0 - gap) / radius[1])
        result = Krylov(tolerance=1e-10).compiled(Equation.of(automaton, graph))
        assert [status is not gape.Status.NOT_CONVERGED for status in result.status_list()] == [True, certified, True]
        solution = gape.solve(automaton, graph, solver=Krylov(), throw=False)  # may be called ill-conditioned
        operators = np.eye(40) - float(automaton.transition) * graph.walk().dense().mT.numpy()
        exact = [np.linalg.solve(operator, np.ones(40)) for operator in operators]
        np.testing.assert_allclose(solution.weights[:, 0], np.concatenate(exact), rtol=1e-5 if gap < 1e-8 else 1e-9)


def test_spaces_of_directed_graphs_end_by_themselves():
    """Rings from one label: the first vector is an eigenvector; a path: nilpotent; two rings: two spaces in one."""
    ring = gape.Graph.from_edges([(0, 1), (1, 2), (2, 0)])
    path = gape.Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    chord = gape.Graph.from_edges([(0, 1), (1, 2), (2, 0), (0, 2)])
    graph = gape.Graph.union([ring, path, chord])
    automaton = gape.Automaton.random(5, 1.7, seed=4)
    compiled, plain = both(Krylov(tolerance=1e-12), Equation.of(automaton, graph))
    torch.testing.assert_close(compiled.weights, plain.weights, rtol=1e-12, atol=1e-12)
    assert float(compiled.spectral_radius[1]) == 0.0


@pytest.mark.parametrize("memory", [1, 1 << 24])
def test_directed_graphs_are_solved_in_as_many_groups_as_memory_asks_for(memory, monkeypatch):
    monkeypatch.setattr(kernels, "MAX_HESSENBERG_NUMBERS", memory)
    graph = batch(directed=True, weighted=False, density=0.3, sizes=[7, 0, 30, 12, 1])
    automaton = gape.Automaton.random(5, 1.5, seed=1)
    found = Krylov(tolerance=1e-12).compiled(Equation.of(automaton, graph))
    monkeypatch.undo()
    expected = Krylov(tolerance=1e-12).compiled(Equation.of(automaton, graph))
    for name in ("weights", "residual", "separation", "spectral_radius"):
        assert torch.equal(getattr(found, name), getattr(expected, name))


def test_memory_of_directed_spaces_does_not_grow_with_graphs_that_are_not_chosen(monkeypatch):
    """The first and the last of 200 graphs are for the Arnoldi process, paths between are not."""
    path = gape.Graph.from_edges([(v, v + 1) for v in range(29)])
    hard = batch(directed=True, weighted=False, density=0.3, sizes=[30])
    graph = gape.Graph.union([hard, *[path] * 198, hard])
    chosen = torch.zeros(200, dtype=torch.bool).index_fill(0, torch.tensor([0, 199]), True)
    zeros, sizes = torch.zeros, []

    def spy(*shape, **settings):
        sizes.append(shape)
        return zeros(*shape, **settings)

    monkeypatch.setattr(torch, "zeros", spy)
    found = Krylov().compiled(Equation.of(gape.Automaton.random(5, 1.5, seed=1), graph), chosen)
    monkeypatch.undo()
    assert (2, 1, 30, 30) in sizes
    for number in (0, 199):
        alone = Krylov().compiled(Equation.of(gape.Automaton.random(5, 1.5, seed=1), hard))
        assert torch.equal(found.weights[graph.batch == number], alone.weights)
        assert torch.equal(found.separation[number], alone.separation[0])


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_graphs_of_different_solvers_share_the_memory_of_the_result(dtype, directed):
    graph = gape.Graph.union([batch(directed=directed, weighted=False, density=density) for density in (0.02, 0.7)])
    automaton = gape.Automaton.random(8, 0.04)
    solution = gape.solve(automaton, graph, dtype=dtype)
    assert {"Series", "Krylov"} <= set(solution.solver)
    with native.switched_off():
        plain = gape.solve(automaton, graph).weights
    torch.testing.assert_close(solution.weights.double(), plain, rtol=0, atol=0.01 * float(plain.abs().max()))


@pytest.mark.parametrize("matrix", ["adjacency", "laplacian", "symmetric", "random_walk"])
@pytest.mark.parametrize("damping", [0.3, 0.9, 0.97, 1.4])
def test_krylov_finds_the_radius_in_the_space_in_which_it_solves(damping, matrix):
    """Against PyTorch on the graph whose matrix is divided by dense eigenvalues."""
    automaton = gape.Automaton.random(5, damping, seed=1)
    for density in (0.02, 0.3):
        graph = batch(directed=False, weighted=False, density=density, seed=2)
        equation = Equation.of(automaton, graph, matrix)
        compiled = Krylov(tolerance=1e-13).compiled(equation, relative=True)
        if not equation.walk.nonnegative:
            assert compiled is None
            continue
        with native.switched_off():
            scaled = unit_radius(graph, matrix)
            plain = Krylov(tolerance=1e-13).solve(Equation.of(automaton, scaled))
        done = compiled.status != STATUSES.index(gape.Status.NOT_CONVERGED)
        assert int(done.sum()) >= 7
        difference = (compiled.weights - plain.weights)[done[graph.batch]]
        assert float(difference.abs().max()) <= 1e-11 * float(plain.weights.abs().max())
        assert torch.equal(compiled.status[done], plain.status[done])
        assert bool((Equation.of(automaton, scaled).residual(compiled.weights)[done] <= 1e-12).all())
        expected = plain.spectral_radius[done]
        torch.testing.assert_close(compiled.spectral_radius[done], expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("nodes", [100, 200])
@pytest.mark.parametrize("probability", [0.1, 0.5])
def test_krylov_finds_the_radius_of_larger_graphs_long_before_the_space_is_whole(nodes, probability):
    networks = [nx.gnp_random_graph(nodes, probability, seed=seed) for seed in range(10)]
    graph = gape.Graph.union([gape.as_graph(network) for network in networks])
    compiled = Krylov(1e-10).compiled(Equation.of(gape.Automaton.random(8, 0.9), graph), relative=True)
    assert not bool((compiled.status == STATUSES.index(gape.Status.NOT_CONVERGED)).any())
    assert compiled.steps < nodes / 2
    radius = spectral_radius._compiled_radius(graph.walk(), torch.ones(10, dtype=torch.bool))
    exact = [np.linalg.eigvalsh(nx.to_numpy_array(network)).max() for network in networks]
    np.testing.assert_allclose(radius, exact, rtol=1e-12)


@pytest.mark.parametrize("states", [2, 9])
def test_separations_are_those_of_all_eigenvalues(states):
    """Of the two ends of the spectrum where these decide, of Ritz values in between where they may be nearer."""
    graph = batch(directed=False, weighted=False, density=0.3, seed=5)
    for damping in (0.5, 0.9, 1.3):
        automaton = gape.Automaton.random(states, damping * norm_one(graph, "adjacency"), seed=2)
        found = Krylov(tolerance=1e-14).compiled(Equation.of(automaton, graph))
        poles = np.linalg.eigvals(automaton.transition.numpy())
        for i, matrix in enumerate(graph.walk().dense().numpy()):
            size = int(graph.sizes[i])
            if not size or not np.isfinite(float(found.residual[i])):
                continue
            values, vectors = np.linalg.eigh(matrix[:size, :size])
            # Eigenvalues that are not the only ones of their size share one excited direction.
            excited = values[np.abs(vectors.sum(0)) > 1e-8]
            least = np.abs(1 - np.multiply.outer(excited, poles)).min() if len(excited) else 1.0
            assert float(found.separation[i]) == pytest.approx(min(1.0, least), abs=1e-4)


def test_krylov_leaves_nearly_singular_equations_to_pytorch():
    graph = gape.Graph.union([batch(directed=False, weighted=False, sizes=[80], seed=seed) for seed in range(3)])
    eigenvalues = np.linalg.eigvalsh(graph.walk("adjacency").dense().numpy())[:, -1]
    # Without fused multiply-adds rounding keeps the kernel from 1e-12 here.
    tolerance = 1e-12 if "avx2" in native.description() else 1e-11
    for gap, certified in ((1e-9, False), (1e-4, True)):
        automaton = gape.Automaton.katz((1.0 - gap) / eigenvalues[1])
        result = Krylov(tolerance=tolerance).compiled(Equation.of(automaton, graph))
        assert [status is not gape.Status.NOT_CONVERGED for status in result.status_list()] == [True, certified, True]
        solution = gape.solve(automaton, graph, solver=Krylov(), throw=False)  # may be called ill-conditioned
        operators = np.eye(80) - float(automaton.transition) * graph.walk().dense().mT.numpy()
        exact = [np.linalg.solve(operator, np.ones(80)) for operator in operators]
        np.testing.assert_allclose(solution.weights[:, 0], np.concatenate(exact), rtol=1e-5 if gap < 1e-8 else 1e-9)


@pytest.mark.parametrize("transition", [[[0.1, 1.0], [0.0, 0.1]], [[0.3, 0.0], [1.0, -0.2]]], ids=["defective", "skew"])
def test_krylov_takes_transitions_without_orthogonal_eigenvectors(transition):
    graph = batch(directed=False, weighted=False, density=0.05)
    automaton = gape.Automaton([[1.0], [2.0]], transition)
    found = gape.solve(automaton, graph, solver=Krylov(tolerance=1e-13)).weights
    with native.switched_off():
        plain = gape.solve(automaton, graph, solver=Krylov(tolerance=1e-13)).weights
    torch.testing.assert_close(found, plain, rtol=1e-9, atol=1e-9 * float(plain.abs().max()))


def test_auto_solves_each_graph_of_a_mixed_batch_by_its_own_rule():
    graph = gape.Graph.union([batch(directed=False, weighted=False, density=density) for density in (0.02, 0.7)])
    automaton = gape.Automaton.random(8, 0.04)
    solution = gape.solve(automaton, graph)
    assert {"Series", "Krylov"} <= set(solution.solver)
    with native.switched_off():
        plain = gape.solve(automaton, graph)
    assert solution.status == plain.status
    largest = float(plain.weights.abs().max())
    torch.testing.assert_close(solution.weights, plain.weights, rtol=1e-9, atol=1e-10 * largest)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("states", [1, 3, 4, 7, 8, 20, 33])
def test_weights_go_where_they_belong(dtype, states):
    graph = batch(directed=True, weighted=False, sizes=[5, 2, 8, 1])
    automaton = gape.Automaton.random(states, 0.02)
    out = gape.solve(automaton, graph, dtype=dtype, solver=Series(tolerance=1e-14)).weights
    with native.switched_off():
        plain = gape.solve(automaton, graph, dtype=dtype, solver=Series(tolerance=1e-14)).weights
    torch.testing.assert_close(out, plain, rtol=1e-6 if dtype == torch.float32 else 1e-12, atol=0)


def test_every_number_of_threads_gives_the_same_numbers():
    graph = batch(directed=False, weighted=False, sizes=[40] * 600)
    automaton = gape.Automaton.random(8, 0.01)
    threads, found = torch.get_num_threads(), []
    try:
        for number in (1, 3):
            torch.set_num_threads(number)
            fresh = gape.Graph(graph.edge_index, graph.num_nodes, ptr=graph.ptr)
            found.append(gape.solve(automaton, fresh))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(found[0].weights, found[1].weights)
    assert torch.equal(found[0].residual, found[1].residual)


@pytest.mark.parametrize("directed", [False, True])
def test_the_scan_finds_what_pytorch_finds(directed):
    graph = batch(directed=directed, weighted=False)
    found = graph.scan
    with native.switched_off():
        plain = gape.Graph(graph.edge_index, graph.num_nodes, ptr=graph.ptr)
        assert plain.scan is None
        alone = [plain.slice(i, i + 1) for i in range(plain.num_graphs)]
        assert found.edge_ptr.tolist() == plain.edge_ptr.tolist()
        assert found.symmetric.tolist() == [one.adjacency.symmetric for one in alone]
        assert found.sorted_by_source.tolist() == [one.adjacency.source_sorted for one in alone]
        assert found.most_out.tolist() == [
            float(one.adjacency.out_degree.max()) if len(one.sizes) and one.num_nodes else 0.0 for one in alone
        ]
        assert found.most_in.tolist() == [
            float(one.adjacency.in_degree.max()) if one.num_nodes else 0.0 for one in alone
        ]


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([[0, 3], [1, 4]], None),
        ([[3, 0], [4, 1]], "mixed"),
        ([[0, 2], [1, 3]], "joins graph 0 to graph 1"),
        ([[0, 3], [1, 6]], "below num_nodes=6"),
        ([[0, -1], [1, 4]], "below num_nodes=6"),
    ],
)
def test_edges_out_of_place_are_found(edges, message):
    index, ptr = torch.tensor(edges), torch.tensor([0, 3, 6])
    assert (scan(index, ptr) is None) == (message is not None)
    if message in (None, "mixed"):
        gape.Graph(index, 6, ptr=ptr)
    else:
        with pytest.raises(ValueError, match=message):
            gape.Graph(index, 6, ptr=ptr)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_return_probabilities(directed, weighted):
    for density in (0.02, 0.1, 0.3, 0.8):
        graph = batch(directed=directed, weighted=weighted, density=density)
        if weighted:
            graph = replace(graph, edge_weight=graph.edge_weight.abs())
        for length in (1, 2, 5, 20, 33):
            compiled = RandomWalk(length, dtype=torch.float64)(graph)
            with native.switched_off():
                plain = RandomWalk(length, dtype=torch.float64)(replace(graph))
            assert float((compiled - plain).abs().max()) <= 1e-12


def test_return_probabilities_of_unsorted_edges_and_parallel_ones():
    graph = batch(directed=False, weighted=False, density=0.05)
    index = torch.cat([graph.slice(i, i + 1).edge_index.flip(1) + graph.ptr[i] for i in range(len(graph))], 1)
    unsorted = gape.Graph(index, graph.num_nodes, ptr=graph.ptr)
    assert not unsorted.scan.all_sorted
    assert torch.equal(RandomWalk()(unsorted), RandomWalk()(graph))
    twice = gape.Graph.from_edges([(0, 1), (0, 1), (0, 2)], undirected=True)
    heavy = gape.Graph.from_edges([(0, 1), (0, 2)], undirected=True, edge_weight=[2.0, 1.0])
    torch.testing.assert_close(RandomWalk()(twice), RandomWalk()(heavy))


def test_return_probabilities_leave_the_unusual_to_pytorch():
    usual = batch(directed=False, weighted=True, sizes=[20])
    usual = replace(usual, edge_weight=usual.edge_weight.abs())
    negative = replace(usual, edge_weight=-usual.edge_weight)
    tiny = replace(usual, edge_weight=usual.edge_weight * 1e-100)
    dense = batch(directed=False, weighted=False, density=0.3, sizes=[300])
    graph = gape.Graph.union([usual, negative, tiny, usual, dense])
    _, left = return_probabilities(graph, 8, torch.float64)
    assert left.tolist() == [1, 2, 4]
    # A factor of all weights, -1 included, cancels.
    rows = RandomWalk(8, dtype=torch.float64)(graph)
    for i in (1, 2, 3):
        torch.testing.assert_close(rows[20 * i : 20 * i + 20], rows[:20], rtol=1e-12, atol=1e-14)
    with native.switched_off():
        torch.testing.assert_close(rows[80:], RandomWalk(8, dtype=torch.float64)(dense), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("directed", [False, True])
def test_return_probabilities_of_a_graph_do_not_depend_on_its_batch(directed, dtype):
    sizes = [*SIZES, 40, 40, 16]
    graph = gape.Graph.union([batch(directed=directed, weighted=False, density=d, sizes=sizes) for d in (0.05, 0.4)])
    rows = RandomWalk(dtype=dtype)(graph)
    alone = [RandomWalk(dtype=dtype)(graph.slice(i, i + 1)) for i in range(len(graph))]
    assert torch.equal(rows, torch.cat(alone))
    weighted = replace(graph, edge_weight=torch.ones(graph.num_edges))
    assert torch.equal(rows, RandomWalk(dtype=dtype)(weighted))


@pytest.mark.parametrize("beta", [0.999, 0.95, 1.0])
@pytest.mark.parametrize("directed", [False, True])
def test_powers_of_pagerank_are_sums_of_return_probabilities(directed, beta):
    graph = batch(directed=directed, weighted=False, density=0.05, sizes=SIZES * 20)  # several parts
    encoding = PageRankPowers(7, beta, scale=False, dtype=torch.float64)
    assert encoding._sums(graph)
    compiled = encoding(graph)
    with native.switched_off():
        plain = encoding(replace(graph))
    assert float((compiled - plain).abs().max()) <= 1e-14


def test_powers_of_pagerank_are_left_to_pytorch_where_the_sum_is_long():
    graph = batch(directed=False, weighted=False, density=0.05)
    assert not PageRankPowers(20, 0.15)._sums(graph)
    assert not PageRankPowers()._sums(batch(directed=False, weighted=False, density=0.5))


@pytest.mark.parametrize("density", [0.05, 0.9], ids=["sparse", "dense"])
@pytest.mark.parametrize("what", ["series", "krylov", "arnoldi", "radius", "returns"])
def test_edges_that_were_changed_after_the_scan_are_found(what, density):
    """Kernels would read and write beyond their graphs."""
    graph = batch(directed=what == "arnoldi", weighted=False, density=density, sizes=[30, 40])
    assert graph.scan is not None
    graph.edge_index[1, 5] = 10**9
    solver = Series() if what == "series" else Krylov()
    calls = {
        "returns": lambda: return_probabilities(graph, 5, torch.float64),
        "radius": lambda: spectral_radius._compiled_radius(graph.walk(), torch.ones(2, dtype=torch.bool)),
    }
    solve = calls.get(what, lambda: solver.compiled(Equation.of(gape.Automaton.random(3, 0.001), graph)))
    with pytest.raises(IndexError, match="was changed after the graph was made"):
        solve()


def test_kernels_end_before_an_interrupt_is_raised():
    """They have pointers to tensors that would be freed."""
    started, running = threading.Event(), []

    def kernel(number: int) -> int:
        if number == 0:  # in whichever thread takes it
            running.append(True)
            started.set()
            time.sleep(0.5)
            running.clear()
        else:
            started.wait(5)
            raise KeyboardInterrupt
        return 0

    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with pytest.raises(KeyboardInterrupt):
            share_kernel(kernel, [0, 1])
    finally:
        torch.set_num_threads(threads)
    assert not running
