"""Shortest paths, degrees and the pairs that hold them."""

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
import scipy.sparse.csgraph
import torch
from hypothesis import given
from hypothesis import strategies as st

from gape import Graph
from gape.encodings import Degree, Pairs, ShortestPath, sequence_graph
from gape.graph.batching import MIN_TABLE_ELEMENTS, padding_bounds
from gape.linalg.hops import hop_distances
from tests.encodings.samples import batch_of, random_graph
from tests.graphs import drawn_graphs


@given(drawn_graphs(max_nodes=9, max_edges=20))
def test_distances_are_networkx_distances(drawn):
    batch = drawn.batch(order=np.random.default_rng(0))
    for matrix, size, edges in zip(ShortestPath(cap=99)(batch).matrices(), drawn.sizes, drawn.edges, strict=True):
        other = nx.DiGraph([edge[:2] for edge in edges])
        other.add_nodes_from(range(size))
        expected = np.full((size, size), 99)
        for u, reached in nx.all_pairs_shortest_path_length(other):
            for v, steps in reached.items():
                expected[u, v] = steps
        assert np.array_equal(matrix.numpy(), expected)


@pytest.mark.parametrize("cap", [2, 3, 255, 256, 257, 400, 5000])
def test_far_nodes_count_as_cap_minus_one_and_unreachable_ones_as_cap(cap):
    path = sequence_graph("path", 300, directed=True)
    distances = ShortestPath(cap)(path).matrices()[0].long()
    places = torch.arange(300)
    steps = places - places[:, None]
    assert torch.equal(distances, torch.where(steps < 0, cap, steps.clamp(max=cap - 1)))


@pytest.mark.parametrize("cap", [2**31 - 1, 2**31, 2**40, 2**63 - 1])
def test_caps_may_be_as_large_as_their_type(cap):
    # Long enough to be followed pair by pair, and beside it a node that nothing reaches.
    path = Graph.from_edges([(i, i + 1) for i in range(99)], num_nodes=101)
    steps = torch.arange(101) - torch.arange(101)[:, None]
    steps[steps < 0] = cap
    steps[100, :100] = steps[:100, 100] = cap
    assert torch.equal(ShortestPath(cap, dtype="int64")(path).matrices()[0], steps)
    two = Graph.from_edges([(0, 1)])
    assert ShortestPath(cap, dtype="int64")(two).values.tolist() == [0, 1, cap, 0]


def test_columns_are_worked_on_piece_by_piece(monkeypatch):
    graph = random_graph(300, 0.01, 3, undirected=False)
    whole = ShortestPath()(graph).values
    monkeypatch.setattr("gape.linalg.hops.GATHERED_WORDS", 64)
    monkeypatch.setattr("gape.linalg.hops.MAX_TABLE_NODES", 10)
    assert torch.equal(ShortestPath()(graph).values, whole)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=60))
def test_runs_of_graphs_are_whole_and_not_mostly_padding(sizes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gape.graph.batching.MIN_TABLE_ELEMENTS", 20)
        bounds = padding_bounds(sizes)
    assert [bounds[0], bounds[-1]] == [0, len(sizes)]
    for first, last in pairwise(bounds):
        run = sizes[first:last]
        assert run
        assert sum(run) * max(run) <= 2 * sum(n * n for n in run) + 20


def test_a_large_graph_among_small_ones_does_not_widen_their_tables(monkeypatch):
    small, large = sequence_graph("cycle", 8), random_graph(1500, 0.003, 2, undirected=False)
    graphs = [small] * 300 + [large] + [small] * 300
    tables = []

    def noted(edges, sizes, unreachable):
        tables.append(sizes.sum() * sizes.max())
        return hop_distances(edges, sizes, unreachable)

    monkeypatch.setattr("gape.encodings.shortest_path.hop_distances", noted)
    found = ShortestPath()(Graph.union(graphs))
    assert sum(tables) < 2 * len(found.values) + 2 * MIN_TABLE_ELEMENTS
    near, far = ShortestPath()(small).matrices()[0], ShortestPath()(large).matrices()[0]
    for matrix, graph in zip(found.matrices(), graphs, strict=True):
        assert torch.equal(matrix, far if graph is large else near)


def test_distances_refuse_before_allocating():
    with pytest.raises(ValueError, match=r"ShortestPath between 10000000000 pairs of nodes needs .* GiB"):
        ShortestPath()(sequence_graph("path", 100_000))
    with pytest.raises(ValueError, match="does not fit into"):
        ShortestPath(cap=40_000, dtype="int16")


def test_distances_feed_the_attention_bias():
    from gape.nn import AttentionPattern
    from gape.nn.encoders import DegreeAndDistance

    graph = Graph.union([random_graph(4, 0.5, 0), random_graph(6, 0.5, 1)])
    distances = ShortestPath(dtype="int64")(graph).padded()
    pattern = AttentionPattern(graph.edge_index, num_nodes=10, heads=8, full=True, batch=graph.batch)
    assert DegreeAndDistance().bias(distances, pattern).shape == (2, 8, 6, 6)


def test_degrees_count_edges():
    graph = Graph(torch.tensor([[0, 0, 0, 1, 2], [1, 1, 2, 0, 2]]), 4, edge_weight=torch.full((5,), 0.5))
    assert Degree()(graph).tolist() == [[1, 3], [2, 1], [2, 1], [0, 0]]
    assert Degree(cap=2)(graph).tolist() == [[1, 2], [2, 1], [2, 1], [0, 0]]


@pytest.mark.parametrize("undirected", [True, False])
def test_degrees_that_do_not_fit_their_type_are_refused(undirected):
    star = Graph.from_edges([(0, i) for i in range(1, 40_000)], undirected=undirected)
    with pytest.raises(ValueError, match=r"a degree of 39999 does not fit into int16.*cap=32767, or dtype='int64'"):
        Degree(dtype="int16")(star)
    with pytest.raises(ValueError, match="a degree of 36000 does not fit into int16"):
        Degree(cap=36_000, dtype="int16")(star)
    assert Degree(cap=32_767, dtype="int16")(star)[0, 1] == 32_767
    assert Degree(dtype="int32")(star)[0, 1] == 39_999


def test_pairs_pad_and_come_apart():
    graphs = batch_of(undirected=False)
    pairs = ShortestPath()(Graph.union(graphs))
    padded, mask = pairs.padded(fill=-1), pairs.mask()
    assert padded.shape == mask.shape == (8, 20, 20)
    assert bool((padded[~mask] == -1).all())
    assert torch.equal(padded[mask], pairs.values)
    for i, matrix in enumerate(pairs.matrices()):
        assert torch.equal(padded[i, : len(matrix), : len(matrix)], matrix)
    assert pairs.to(torch.float32).values.dtype == torch.float32
    assert repr(pairs) == "Pairs(graphs=8, each=[n, n], dtype=torch.int32)"
    with pytest.raises(ValueError, match="have 4 pairs, got 3 values"):
        Pairs(torch.zeros(3), torch.tensor([2]))


def test_shortest_paths_of_a_long_path_take_no_cubic_time():
    # Floyd–Warshall would take 8·10⁹ steps here.
    distances = ShortestPath(cap=5000)(sequence_graph("path", 2000)).matrices()[0]
    places = torch.arange(2000)
    assert torch.equal(distances.long(), (places[:, None] - places).abs())
    graph = random_graph(700, 0.002, 1, undirected=False)
    weights = np.zeros((700, 700))
    weights[tuple(graph.edge_index.numpy())] = 1
    other = scipy.sparse.csgraph.shortest_path(weights, unweighted=True)
    ours = ShortestPath(cap=300)(graph).matrices()[0].numpy()
    assert np.array_equal(ours, np.where(np.isinf(other), 300, other))
