"""Graphs: what they hold, what they refuse, and that cutting and joining loses nothing."""

import copy
import dataclasses
import pickle
import re
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gape import Graph
from gape.graph.labels import OneLabel
from tests.graphs import drawn_graphs

TRIANGLE = [(0, 1), (1, 2), (2, 0)]


def dense(graph: Graph) -> list[np.ndarray]:
    """Each graph's adjacency matrix, from the edge list by NumPy alone."""
    source, target = graph.edge_index.numpy()
    weights = np.ones(graph.num_edges) if graph.edge_weight is None else graph.edge_weight.detach().numpy()
    whole = np.zeros((graph.num_nodes, graph.num_nodes))
    np.add.at(whole, (source, target), weights)
    return [whole[a:b, a:b] for a, b in pairwise(graph.ptr.tolist())]


def assert_same(one: Graph, other: Graph) -> None:
    assert one.ptr.tolist() == other.ptr.tolist()
    for mine, theirs in zip(dense(one), dense(other), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    for name in ("labels", "edge_type", "edge_weight"):
        assert (getattr(one, name) is None) == (getattr(other, name) is None)
    if one.labels is not None:
        assert one.labels.tolist() == other.labels.tolist()


# ---------------------------------------------------------------------- what it holds


def test_one_graph_unless_boundaries_are_given():
    graph = Graph(torch.tensor([[0, 1], [1, 2]]), 5)
    assert graph.ptr.tolist() == [0, 5]
    assert len(graph) == graph.num_graphs == 1
    assert graph.num_edges == 2
    two = Graph(torch.tensor([[0, 1], [1, 0]]), 5, ptr=[0, 2, 5])
    assert two.sizes.tolist() == [2, 3]
    assert two.batch.tolist() == [0, 0, 1, 1, 1]


@pytest.mark.parametrize(
    "form",
    [
        lambda x: x,
        lambda x: np.array(x),
        lambda x: np.array(x, dtype=np.int32),
        lambda x: np.array(x, dtype=np.uint16),
        lambda x: np.array(x).T.copy().T,
        lambda x: np.flip(np.flip(np.array(x), -1).copy(), -1),
        lambda x: torch.tensor(x),
        lambda x: torch.tensor(x, dtype=torch.int32),
        lambda x: torch.tensor(x).repeat_interleave(2, -1)[..., ::2],
    ],
)
def test_any_integer_array_may_be_the_edges(form):
    graph = Graph(form([[0, 1, 2], [1, 2, 0]]), 3, edge_weight=[1, 2, 3], labels=form([2, 0, 1]), edge_type=[0, 1, 0])
    assert graph.edge_index.dtype == graph.labels.dtype == torch.int64
    assert dense(graph)[0].tolist() == [[0, 1, 0], [0, 0, 2], [3, 0, 0]]
    np.testing.assert_array_equal(graph.walk().dense()[0].numpy(), dense(graph)[0])
    assert graph.labels.tolist() == [2, 0, 1]


def test_reversed_and_read_only_arrays_are_taken_without_a_warning(recwarn):
    backward = np.array([[0, 1], [1, 2]])[:, ::-1]
    locked = np.array([1.0, 2.0])
    locked.flags.writeable = False
    graph = Graph(backward, 3, edge_weight=locked)
    assert graph.edge_index.tolist() == [[1, 0], [2, 1]]
    assert not recwarn.list


@pytest.mark.parametrize("nodes", [0, 1, 2, 5])
def test_graphs_without_edges_are_legal(nodes):
    graph = Graph(torch.empty(2, 0, dtype=torch.int64), nodes)
    assert graph.undirected
    assert graph.walk().dense().shape == (1, nodes, nodes)
    assert graph.parts == (graph,)
    assert repr(graph) == f"Graph(graphs=1, nodes={nodes}, edges=0, undirected)"


def test_graphs_without_nodes_may_stand_anywhere_in_a_batch():
    graph = Graph([[0, 1], [1, 0]], 2, ptr=[0, 0, 2, 2, 2])
    assert graph.sizes.tolist() == [0, 2, 0, 0]
    assert graph.slice(0, 1).num_nodes == 0
    assert graph.slice(1, 2).num_edges == 2
    assert [part.num_nodes for part in (graph.slice(i, i + 1) for i in range(4))] == [0, 2, 0, 0]


def test_repr_says_what_there_is():
    graph = Graph([[0], [1]], 3, edge_weight=[0.5], labels=[0, 4, 1], edge_type=[2], ptr=[0, 2, 3])
    assert repr(graph) == "Graph(graphs=2, nodes=3, edges=1, directed, weighted, labels=5, edge_types=3)"


def test_fields_cannot_be_assigned():
    with pytest.raises(dataclasses.FrozenInstanceError):
        Graph([[0], [1]], 2).num_nodes = 3


# ---------------------------------------------------------------------- from pairs


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(-8, 8))))
def test_undirected_pairs_give_a_symmetric_matrix_with_each_loop_once(triples):
    pairs, weights = [(u, v) for u, v, _ in triples], [w / 4 for _, _, w in triples]
    graph = Graph.from_edges(pairs, num_nodes=6, undirected=True, edge_weight=weights, edge_type=range(len(pairs)))
    expected = np.zeros((6, 6))
    for (u, v), w in zip(pairs, weights, strict=True):
        expected[u, v] += w
        if u != v:
            expected[v, u] += w
    np.testing.assert_array_equal(dense(graph)[0], expected)
    assert graph.undirected
    for (u, v), kind in zip(graph.edge_index.T.tolist(), graph.edge_type.tolist(), strict=True):
        assert pairs[kind] in [(u, v), (v, u)]


@pytest.mark.parametrize("edges", [TRIANGLE, iter(TRIANGLE), np.array(TRIANGLE), torch.tensor(TRIANGLE)])
def test_pairs_may_be_any_iterable(edges):
    graph = Graph.from_edges(edges)
    assert graph.num_nodes == 3
    assert graph.edge_index.tolist() == [[0, 1, 2], [1, 2, 0]]


def test_no_pairs_are_a_graph_without_edges():
    assert Graph.from_edges([]).num_nodes == 0
    assert Graph.from_edges([], num_nodes=3, undirected=True).sizes.tolist() == [3]


def test_ids_far_beyond_the_edges_are_refused_unless_the_nodes_are_counted():
    for pairs in ([(0, 10**13)], torch.tensor([(0, 10**13)]), [(0, 2**63 - 1)]):
        with pytest.raises(ValueError, match=r"node ids run to \d+ with 1 edge;.*number the nodes from 0.*num_nodes="):
            Graph.from_edges(pairs)
    # Nodes without edges, and ids with gaps, are no mistake.
    assert Graph.from_edges([(0, 1)], num_nodes=10**13).num_nodes == 10**13
    assert Graph.from_edges([(0, 10**7)]).num_nodes == 10**7 + 1


def test_more_edges_may_name_more_nodes(monkeypatch):
    monkeypatch.setattr("gape.graph.validate.MAX_INFERRED_NODES", 10)
    monkeypatch.setattr("gape.graph.validate.MAX_NODES_PER_EDGE", 5)
    assert Graph.from_edges([(0, 1), (0, 19)]).num_nodes == 20
    with pytest.raises(ValueError, match="node ids run to 20 with 2 edges"):
        Graph.from_edges([(0, 1), (0, 20)])


def test_weights_of_undirected_pairs_get_the_gradient_of_both_directions():
    weight = torch.tensor([2.0, 3.0], requires_grad=True)
    Graph.from_edges([(0, 1), (1, 1)], undirected=True, edge_weight=weight).walk().entries()[2].sum().backward()
    assert weight.grad.tolist() == [2.0, 1.0]


# ---------------------------------------------------------------------- what it refuses


@pytest.mark.parametrize(
    ("arguments", "quoted"),
    [
        ({"edge_index": [[0, 1], [1, 5]]}, r"num_nodes=3, but edge 1 is \[1, 5\]"),
        ({"edge_index": [[0, -1], [1, 0]]}, r"edge 1 is \[-1, 0\]"),
        ({"edge_index": [[0], [0]], "num_nodes": 0}, r"num_nodes=0, but edge 0 is \[0, 0\]"),
        ({"edge_index": [0, 1]}, r"edge_index must have shape \[2, edges\], got \[2\]"),
        ({"edge_index": [[0, 1, 2]]}, r"\[2, edges\], got \[1, 3\]"),
        ({"edge_index": [[0.0, 1.0], [1.0, 2.0]]}, "edge_index must be integers, got float64"),
        ({"edge_index": torch.zeros(2, 3, dtype=torch.bool)}, "edge_index must be integers, got bool"),
        ({"edge_index": [["a"], ["b"]]}, "edge_index must be an array of numbers.*'a'"),
        ({"edge_index": [[0, 1], [1]]}, r"edge_index must be an array of numbers.*\[0, 1\], \[1\]"),
        ({"edge_index": None}, "edge_index must be .*None"),
        ({"num_nodes": -1}, "num_nodes must be at least 0, got -1"),
        ({"num_nodes": 3.0}, "num_nodes must be a whole number, got 3.0"),
        ({"num_nodes": None}, "num_nodes must be a whole number, got None"),
        ({"num_nodes": True}, "num_nodes must be a whole number, got True"),
        ({"edge_weight": [1.0]}, r"edge_weight must have one entry per edge, shape \[2\], got \[1\]"),
        ({"edge_weight": [[1.0], [2.0]]}, r"shape \[2\], got \[2, 1\]"),
        ({"edge_weight": [1.0, float("nan")]}, r"edge_weight must be finite, got nan on edge 1 \[1, 2\]"),
        ({"edge_weight": [float("-inf"), 1.0]}, r"edge_weight must be finite, got -inf on edge 0 \[0, 1\]"),
        ({"edge_weight": [1j, 1j]}, "edge_weight must be real, got complex128"),
        ({"edge_weight": ["heavy", 1]}, "edge_weight must be an array of numbers.*'heavy'"),
        ({"labels": [0, 1]}, r"labels must have one entry per node, shape \[3\], got \[2\]"),
        ({"labels": [0, -2, 1]}, "labels must not be negative, got -2 on node 1"),
        ({"labels": [0.0, 1.0, 2.0]}, "labels must be integers, got float64"),
        ({"edge_type": [0]}, r"edge_type must have one entry per edge, shape \[2\], got \[1\]"),
        ({"edge_type": [0, -1]}, "edge_type must not be negative, got -1 on edge 1"),
        ({"edge_type": [0.5, 1.0]}, "edge_type must be integers, got float64"),
        ({"ptr": [0, 2]}, r"num_nodes=3 .*got \[0, 2\]"),
        ({"ptr": [1, 3]}, r"got \[1, 3\]"),
        ({"ptr": [0]}, r"got \[0\]"),
        ({"ptr": [[0, 3]]}, r"got \[0, 3\]"),
        ({"ptr": [0, 3, 2, 3]}, r"ptr must not decrease, got \[0, 3, 2, 3\]"),
        ({"ptr": [0, 2, 3]}, r"edge 1, \[1, 2\], joins graph 0 to graph 1"),
        ({"ptr": [0.0, 3.0]}, "ptr must be integers, got float64"),
    ],
)
def test_bad_input_is_quoted(arguments, quoted):
    with pytest.raises(ValueError, match=quoted):
        Graph(**{"edge_index": [[0, 1], [1, 2]], "num_nodes": 3, **arguments})


@pytest.mark.parametrize(
    ("edges", "settings", "quoted"),
    [
        ([(0, 1, 2)], {}, r"pairs \(source, target\), got shape \[1, 3\]"),
        ([0, 1], {}, r"pairs \(source, target\), got shape \[2\]"),
        (5, {}, r"pairs \(source, target\), got shape \[\]"),
        ([("a", "b")], {}, "edges must be an array of numbers.*'a'"),
        ([(0, 1), (2,)], {}, r"edges must be an array of numbers.*\(2,\)"),
        ([(-3, -2)], {}, r"edge 0 is \[-3, -2\]"),
        ([(0, 4)], {"num_nodes": 3}, r"num_nodes=3, but edge 0 is \[0, 4\]"),
        ([(0, 1)], {"undirected": True, "edge_weight": [1.0, 2.0]}, r"edge_weight must .*shape \[1\], got \[2\]"),
        ([(0, 1)], {"undirected": True, "edge_type": [1, 2, 3]}, r"edge_type must .*shape \[1\], got \[3\]"),
    ],
)
def test_bad_pairs_are_quoted(edges, settings, quoted):
    with pytest.raises(ValueError, match=quoted):
        Graph.from_edges(edges, **settings)


def test_an_unknown_walk_matrix_is_quoted_with_those_there_are():
    with pytest.raises(ValueError, match=r"matrix must be one of 'adjacency', 'random_walk', .* got 'adjacent'"):
        Graph.from_edges(TRIANGLE).walk("adjacent")


@pytest.mark.parametrize("bounds", [(0, 3), (-1, 1), (1, 1), (2, 1)])
def test_slices_beyond_the_batch_are_quoted(bounds):
    with pytest.raises(ValueError, match=f"got {bounds[0]} and {bounds[1]}"):
        Graph([[0], [1]], 3, ptr=[0, 2, 3]).slice(*bounds)


@pytest.mark.parametrize("numbers", [[1, 1], [0, 2], [-1]])
def test_selected_graphs_that_are_not_there_or_there_twice_are_quoted(numbers):
    with pytest.raises(ValueError, match=rf"different numbers from 0 to 1, got {re.escape(str(numbers))}"):
        Graph([[0], [1]], 3, ptr=[0, 2, 3]).select(torch.tensor(numbers))
    with pytest.raises(ValueError, match=rf"different numbers from 0 to 1, got {re.escape(str(numbers))}"):
        Graph([[0], [1]], 3, ptr=[0, 2, 3]).select(numbers)


def test_graphs_are_selected_by_number_and_not_by_a_mask():
    batch = Graph([[0], [1]], 3, ptr=[0, 2, 3])
    assert batch.select([1]).num_nodes == 1
    with pytest.raises(ValueError, match="graphs must be integers, got bool"):
        batch.select(torch.tensor([True, False]))


# ---------------------------------------------------------------------- other forms


@given(drawn_graphs(max_graphs=6), st.integers(0, 2**32))
def test_selected_graphs_are_the_graphs_in_the_order_of_the_batch(drawn, seed):
    rng = np.random.default_rng(seed)
    numbers = rng.permutation(len(drawn.sizes))[: rng.integers(1, len(drawn.sizes) + 1)]
    alone = [drawn.graph(i) for i in sorted(numbers.tolist())]
    assert_same(drawn.batch(rng).select(torch.from_numpy(numbers)), Graph.union(alone))


@given(drawn_graphs(max_graphs=6), st.integers(0, 2**32))
def test_a_batch_cut_anywhere_and_joined_is_the_batch(drawn, seed):
    rng = np.random.default_rng(seed)
    batch = drawn.batch(rng).with_labels(rng.integers(0, 3, sum(drawn.sizes)))
    cuts = sorted({0, batch.num_graphs, *rng.integers(0, batch.num_graphs + 1, 2).tolist()})
    parts = [batch.slice(a, b) for a, b in pairwise(cuts)]
    assert_same(Graph.union(parts), batch)


@given(drawn_graphs(max_graphs=6), st.integers(0, 2**32))
def test_a_slice_of_a_batch_is_the_graph_itself_in_any_order_of_edges(drawn, seed):
    batch = drawn.batch(np.random.default_rng(seed))
    for i in range(len(drawn.sizes)):
        assert_same(batch.slice(i, i + 1), drawn.graph(i))


@given(drawn_graphs(max_graphs=8), st.integers(0, 2**32), st.integers(1, 6), st.integers(1, 8))
def test_parts_are_whole_graphs_in_order(drawn, seed, part_nodes, part_edges):
    limits = {"MAX_PART_NODES": part_nodes, "MAX_PART_EDGES": part_edges}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in limits.items():
            patch.setattr(f"gape.graph.batching.{name}", value)
        batch = drawn.batch(np.random.default_rng(seed))
        parts = batch.parts
    assert_same(Graph.union(parts), batch)
    for part in parts:
        # A part is larger than asked for only when it is a single graph (or has no nodes to share out).
        assert part.num_graphs == 1 or batch.num_nodes == 0 or part.num_nodes <= part_nodes
        assert part.num_graphs == 1 or batch.num_nodes == 0 or part.num_edges <= part_edges


def test_one_large_graph_does_not_pad_many_small_ones():
    sizes = [10] * 500 + [2000] + [10] * 500
    ptr = np.cumsum([0, *sizes])
    graph = Graph(np.zeros((2, 0), dtype=np.int64), int(ptr[-1]), ptr=ptr)
    assert sum(part.num_graphs * int(part.sizes.max()) for part in graph.parts) < 6 * graph.num_nodes


@given(drawn_graphs(max_graphs=5))
def test_union_is_the_batch(drawn):
    alone = [drawn.graph(i) for i in range(len(drawn.sizes))]
    assert_same(Graph.union(alone), drawn.batch())
    assert_same(Graph.union(graph for graph in alone), drawn.batch())


def test_union_takes_unweighted_graphs_among_weighted_ones():
    weighted = Graph([[0], [1]], 2, edge_weight=[0.5])
    joined = Graph.union([weighted, Graph([[0], [1]], 2), weighted])
    assert joined.edge_weight.tolist() == [0.5, 1.0, 0.5]
    assert joined.ptr.tolist() == [0, 2, 4, 6]


@pytest.mark.parametrize("name", ["labels", "edge_type"])
def test_union_refuses_labels_on_some_graphs_only(name):
    bare = Graph([[0], [0]], 1)
    with pytest.raises(ValueError, match=f"graph 1 has no {name}"):
        Graph.union([dataclasses.replace(bare, **{name: [0]}), bare])
    with pytest.raises(ValueError, match="empty list"):
        Graph.union([])
    with pytest.raises(ValueError, match="empty"):
        Graph.union(graph for graph in ())


def test_labels_can_be_changed_and_share_the_matrices():
    graph = Graph.from_edges(TRIANGLE)
    walk = graph.walk("random_walk")
    labelled = graph.with_labels([0, 1, 2])
    assert labelled.labels.tolist() == [0, 1, 2]
    assert graph.labels is None
    assert labelled.walk("random_walk") is walk
    assert graph.with_labels(OneLabel()).labels.tolist() == [0, 0, 0]
    assert labelled.with_labels(None).labels is None
    with pytest.raises(ValueError, match=r"shape \[3\], got \[2\]"):
        graph.with_labels([0, 1])


def test_replacing_the_edges_forgets_the_old_matrices():
    graph = Graph.from_edges(TRIANGLE, edge_weight=[1.0, 1.0, 1.0])
    graph.walk("random_walk")
    part = Graph.union([graph, graph]).slice(0, 1)
    for old in (graph, part):
        heavy = dataclasses.replace(old, edge_weight=torch.tensor([2.0, 3.0, 4.0]))
        assert heavy.walk().dense().sum() == 9
        with pytest.raises(ValueError, match="edge_weight must be finite, got nan"):
            dataclasses.replace(old, edge_weight=torch.full((3,), torch.nan))
    unsorted = dataclasses.replace(part, edge_index=torch.tensor([[2, 0, 1], [0, 1, 2]]))
    assert unsorted.walk().pull(torch.tensor([1.0, 10.0, 100.0])).tolist() == [10.0, 100.0, 1.0]


def test_a_used_graph_can_be_copied_and_pickled():
    graph = Graph([[0, 1], [1, 2]], 3, edge_weight=[1.0, 2.0], labels=[0, 1, 0], ptr=[0, 3, 3])
    graph.walk("laplacian").push(torch.ones(3))
    assert graph.parts
    for same in (copy.copy(graph), copy.deepcopy(graph), pickle.loads(pickle.dumps(graph))):
        assert_same(same, graph)
        assert same.walk("laplacian").push(torch.ones(3)).tolist() == [1.0, 1.0, -2.0]
    assert len(pickle.dumps(graph)) < 2500


def test_to_the_same_device_is_the_same_graph():
    graph = Graph.from_edges(TRIANGLE)
    assert graph.to("cpu") is graph
    assert graph.to("meta").device.type == "meta"
