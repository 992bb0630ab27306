"""Both back ends of a solver, the compiled kernels and PyTorch, give the same weights and the same certificates."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import gape
from gape import native
from gape.graph.labels import RandomLabels
from gape.graph.scan import scan
from gape.graph.walk_matrix import NAMES
from gape.solvers import Series
from gape.solvers.equation import Equation

pytestmark = pytest.mark.skipif(native.library() is None, reason=native.description())
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
