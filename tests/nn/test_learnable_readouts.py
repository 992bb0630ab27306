"""Learnable automata read what the fixed ones read, and the slow, obvious sums over runs."""

import functools
from itertools import pairwise

import networkx as nx
import pytest
import torch
from learnable_cases import LABELS, MODES, graphs, layer, permuted, within_graphs

import gape
from gape import Graph
from gape.encodings.pairs import Pairs
from gape.graph.spectral_radius import unit_radius
from gape.nn import GAPE
from gape.solvers.basis import enough_vectors, prepare_layer

closed, pair = (functools.partial(gape.solve, readout=name) for name in ("closed", "pair"))


def unit(graph: Graph, matrix: str) -> Graph:
    """The graph whose adjacency is the unit walk matrix, with all that the automaton looks at."""
    found = graph.walk("adjacency") if matrix == "adjacency" else graph.walk(matrix)
    scaled = unit_radius(graph, matrix) if matrix == "adjacency" else None
    weights = scaled.edge_weight if scaled is not None else found.entries()[2]
    return Graph(
        graph.edge_index,
        graph.num_nodes,
        edge_weight=weights,
        labels=graph.labels,
        edge_type=graph.edge_type,
        ptr=graph.ptr,
    )


def many(mode: str) -> Graph:
    return graphs(labels=6 if "many" in mode else LABELS)


def operator(one: GAPE, graph: Graph) -> tuple[torch.Tensor, torch.Tensor]:
    """F as a dense matrix on rows [n · k], and the sources of each node, [n, k]: written edge by edge."""
    scaled, machine, k = unit(graph, one.matrix), one.machine, one.machine.states
    mu, alpha = (weights.detach() for weights in machine.weights())
    n = graph.num_nodes
    if one.labelling == "degree":
        labels = torch.bincount(graph.edge_index[1], minlength=n).clamp(max=machine.labels - 1)
    else:
        labels = graph.labels if machine.labels > 1 else torch.zeros(n, dtype=torch.int64)
    big = torch.zeros(n, k, n, k, dtype=torch.float64)
    for e, (u, v) in enumerate(graph.edge_index.T.tolist()):
        if machine.typed:
            a = int(labels[u]) if machine.by_label > 1 else 0
            matrix = mu[a, int(graph.edge_type[e]) if machine.by_edge > 1 else 0]
        else:
            matrix = mu
        big[u, :, v, :] += float(scaled.edge_weight[e]) * matrix
    return big.reshape(n * k, n * k), alpha.T[labels]


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_is_the_dense_sum_over_runs(mode):
    graph, one = many(mode), layer(mode)
    big, source = operator(one, graph)
    n, k = source.shape
    single = torch.zeros(n, n, k, dtype=torch.float64)
    single[torch.arange(n), torch.arange(n)] = source
    if one.length is None:
        runs = [torch.linalg.solve(torch.eye(n * k) - big.T, single.reshape(n, -1).T).T]
    else:
        runs, term = [], single.reshape(n, -1)
        for _ in range(one.length):
            term = term @ big
            runs.append(term)
    table = torch.stack(runs, 2).reshape(n, n, k, -1).transpose(2, 3)  # from, to, length, state
    if one.readout == "pair":
        expected = torch.einsum("uvtk,htk->huv", table, one.linear.weight.detach().reshape(2, -1, k))
        bias = one.encode(graph)
        for i in range(graph.num_graphs):
            a, b = int(graph.ptr[i]), int(graph.ptr[i + 1])
            torch.testing.assert_close(bias[i, :, : b - a, : b - a], expected[:, a:b, a:b].mT, rtol=1e-6, atol=1e-7)
            assert not bias[i, :, b - a :].any()
        return
    expected = table.sum(0) if one.readout == "node" else table[torch.arange(n), torch.arange(n)]
    torch.testing.assert_close(one.encode(graph), expected.flatten(1), rtol=1e-6, atol=1e-7)


def test_a_layer_starts_as_the_fixed_encoding_of_its_seed():
    graph = graphs()
    fixed = gape.encodings.GAPE(states=8, damping=0.9, relative=True, seed=3)
    one = GAPE(states=8, damping=0.9, seed=3, scaling="none").double()
    # Its parameters are float32.
    torch.testing.assert_close(one.encode(graph).float(), fixed(graph), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("matrix", ["adjacency", "random_walk", "symmetric"])
def test_closed_and_pair_are_the_readouts_of_the_encodings(matrix):
    graph = graphs()
    machine = layer("closed-labels", matrix=matrix).machine.automaton
    scaled = unit(graph, matrix)
    back = layer("closed-labels", matrix=matrix).encode(graph)
    torch.testing.assert_close(back, closed(machine, scaled).weights, rtol=1e-9, atol=1e-10)
    across = layer("pair-walk-labels", matrix=matrix)
    table = Pairs(pair(machine, scaled).weights, graph.sizes).padded() @ across.linear.weight.detach().T
    torch.testing.assert_close(across.encode(graph), table.permute(0, 3, 2, 1), rtol=1e-9, atol=1e-10)


def test_untyped_closed_runs_by_length_are_random_walk_features_times_numbers():
    graph = graphs()
    one = layer("closed", length=6, matrix="random_walk")
    returns = gape.encodings.RandomWalk(length=6, dtype=torch.float64)(graph)
    mu, alpha = (weights.detach() for weights in one.machine.weights())
    numbers = torch.stack([alpha[:, 0] @ torch.linalg.matrix_power(mu, t) for t in range(1, 7)])
    torch.testing.assert_close(one.encode(graph), (returns.unsqueeze(-1) * numbers).flatten(1))


@pytest.mark.parametrize("mode", MODES)
def test_renumbering_nodes_renumbers_encodings(mode):
    graph, one = many(mode), layer(mode)
    order = within_graphs(graph)
    before, after = one.encode(graph), one.encode(permuted(graph, order))
    if one.readout == "pair":
        local = order - graph.ptr[graph.batch]
        for i in range(graph.num_graphs):
            at = local[graph.ptr[i] : graph.ptr[i + 1]]
            size = len(at)
            torch.testing.assert_close(after[i, :, :size, :size], before[i][:, at][:, :, at])
    else:
        torch.testing.assert_close(after, before[order])


@pytest.mark.parametrize("mode", MODES)
def test_a_batch_is_what_its_graphs_are_one_by_one(mode):
    graph, one = many(mode), layer(mode)
    together = one.encode(graph)
    for i in range(graph.num_graphs):
        alone = one.encode(graph.slice(i, i + 1))
        a, b = int(graph.ptr[i]), int(graph.ptr[i + 1])
        found = together[i : i + 1, :, : b - a, : b - a] if one.readout == "pair" else together[a:b]
        torch.testing.assert_close(found, alone, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("sizes", [(0,), (1,), (2,), (0, 1, 2, 0)])
def test_graphs_of_none_one_and_two_nodes(mode, sizes):
    graph = graphs(sizes)
    one = layer(mode, scaling="batch", out_channels=2)
    out = one.encode(graph)
    n = max(sizes)
    shape = [len(sizes), 2, n, n] if one.readout == "pair" else [sum(sizes), 2]
    assert list(out.shape) == shape
    assert bool(torch.isfinite(out).all())
    out.sum().backward()


@pytest.mark.parametrize("mode", ["node", "node-labels", "node-length", "typed-closed", "closed-length", "pair-length"])
def test_directed_graphs_follow_their_edges(mode):
    graph = graphs()
    keep = torch.rand(graph.num_edges, generator=torch.Generator().manual_seed(5)) < 0.7
    directed = Graph(
        graph.edge_index[:, keep], graph.num_nodes, labels=graph.labels, edge_type=graph.edge_type[keep], ptr=graph.ptr
    )
    one = layer(mode)
    big, source = operator(one, directed)
    if mode in ("node", "node-labels"):
        expected = torch.linalg.solve(torch.eye(len(big)) - big.T, source.flatten()).reshape(source.shape)
        torch.testing.assert_close(one.encode(directed), expected, rtol=1e-6, atol=1e-7)
        return
    single = torch.zeros(len(source), *source.shape, dtype=torch.float64)
    single[torch.arange(len(source)), torch.arange(len(source))] = source
    last = (single.reshape(len(source), -1) @ torch.linalg.matrix_power(big, one.length)).reshape(single.shape)
    found = one.encode(directed)
    if one.readout == "node":
        torch.testing.assert_close(found[:, -one.machine.states :], last.sum(0))
    elif one.readout == "closed":
        torch.testing.assert_close(found[:, -one.machine.states :], last.diagonal(dim1=0, dim2=1).T)
    else:
        powers = [torch.linalg.matrix_power(big, t) for t in range(1, one.length + 1)]
        runs = torch.stack([(single.flatten(1) @ power).reshape(single.shape) for power in powers], 2)  # u, v, T, k
        bias = runs.flatten(2) @ one.linear.weight.T
        for i, (a, b) in enumerate(pairwise(directed.ptr.tolist())):
            torch.testing.assert_close(found[i, :, : b - a, : b - a], bias[a:b, a:b].permute(2, 1, 0))


def test_closed_runs_of_all_lengths_on_directed_graphs_ask_for_a_length():
    with pytest.raises(ValueError, match="give a length"):
        layer("closed").encode(Graph.from_edges([(0, 1), (1, 2)]))


def tree(spine: int, leaves: int) -> Graph:
    edges = [(i, i + 1) for i in range(spine - 1)] + [(i % spine, spine + i) for i in range(leaves)]
    return Graph.from_edges(edges, undirected=True)


LONG = [tree(200, 0), tree(30, 300), tree(60, 400), gape.as_graph(nx.random_labeled_tree(100, seed=1))]


@pytest.mark.parametrize("graph", [*LONG, gape.as_graph(nx.grid_2d_graph(15, 15))], ids=str)
@pytest.mark.parametrize(("matrix", "damping"), [("adjacency", 0.9), ("random_walk", 0.9), ("random_walk", 0.99)])
def test_enough_vectors_keep_their_promise_on_paths_trees_and_grids(graph, matrix, damping):
    one = layer("node", damping=damping, matrix=matrix)
    exact = one.encode(graph, prepare_layer(graph, matrix, complete=True))
    error = (one.encode(graph) - exact).norm() / exact.norm()
    assert enough_vectors(damping) < graph.num_nodes or damping == 0.99
    assert error < 1e-6


def layers_of(depth: int, width: int) -> Graph:
    """Acyclic, each layer joined to all of the next: runs grow with their length until they end."""
    edges = [(i * width + a, (i + 1) * width + b) for i in range(depth - 1) for a in range(width) for b in range(width)]
    return Graph.from_edges(edges)


@pytest.mark.parametrize(
    "graph",
    [layers_of(30, 3), layers_of(80, 2), layers_of(150, 2), gape.as_graph(nx.path_graph(400, create_using=nx.DiGraph))],
    ids=str,
)
def test_runs_on_deep_directed_graphs_are_exact(graph):
    one = layer("node")
    mu, alpha = (weights.detach() for weights in one.machine.weights())
    step, total = alpha.T.expand(graph.num_nodes, -1), 0.0
    matrix = graph.walk().dense()[0].T
    for _ in range(graph.num_nodes):  # nilpotent, and so are all its powers from here on
        total = total + step
        step = matrix @ step @ mu
    found = one.encode(graph).detach()
    assert float(((found - total).norm(dim=1) / total.norm(dim=1)).max()) < 1e-9


def test_what_a_graph_gets_does_not_depend_on_the_signs_of_its_neighbours():
    one = layer("node-walk")
    first = Graph.from_edges([(0, 1), (1, 2), (2, 0), (2, 3)])
    signed = Graph.from_edges([(0, 1), (1, 2), (0, 2)], edge_weight=torch.tensor([1.0, -0.5, 1.0]), undirected=True)
    weighted = Graph(first.edge_index, first.num_nodes, edge_weight=torch.ones(first.num_edges))
    together = one.encode(Graph.union([weighted, signed]))
    torch.testing.assert_close(together, torch.cat([one.encode(first), one.encode(signed)]))
