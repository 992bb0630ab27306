"""GraphDataset, Split and Task: storage, views, batches and error messages."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Batch
from torch_geometric.loader import DataLoader

from gape.data import FlatGraphs, GraphDataset, Split, Task


@st.composite
def graph_sets(draw: st.DrawFn) -> GraphDataset:
    generator = np.random.default_rng(draw(st.integers(0, 10_000)))
    level = draw(st.sampled_from(["graph", "node"]))
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=6))
    edges = []
    for size in sizes:
        pairs = np.argwhere(np.triu(generator.random((size, size)) < 0.5, k=generator.integers(2)))
        edges.append(pairs)
    count = sum(sizes) if level == "node" else len(sizes)
    graphs = FlatGraphs.from_edges(
        sizes, edges, y=generator.integers(0, 3, count), x=generator.integers(0, 4, (sum(sizes), 2))
    )
    with_bonds = FlatGraphs(
        graphs.node_ptr, graphs.edge_ptr, graphs.edges, graphs.x, graphs.y, generator.integers(0, 9, len(graphs.edges))
    )
    task = Task("toy", level=level, metric="accuracy", num_classes=3, node_categories=(4, 4))
    return GraphDataset(with_bonds, task, [Split(range(len(sizes)), [], [])], "test")


@given(graph_sets(), st.data())
@settings(max_examples=60, deadline=None)
def test_batch_is_what_pyg_makes_of_the_single_graphs(dataset: GraphDataset, data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.integers(0, len(dataset) - 1), min_size=1, max_size=8))
    ours, theirs = dataset.batch(chosen), Batch.from_data_list([dataset[i] for i in chosen])
    assert ours.num_graphs == theirs.num_graphs
    assert set(ours.keys()) == set(theirs.keys())
    for key in theirs.keys():  # noqa: SIM118 - Batch is not a dict
        assert torch.equal(ours[key], theirs[key]), key
        assert ours[key].dtype == theirs[key].dtype, key


@given(graph_sets())
@settings(max_examples=40, deadline=None)
def test_every_edge_is_there_in_both_directions_and_loops_once(dataset: GraphDataset) -> None:
    for data in dataset:
        edges = data.edge_index.t().tolist()
        assert sorted(edges) == sorted([v, u] for u, v in edges)
        loops = [edge for edge in edges if edge[0] == edge[1]]
        assert len({tuple(edge) for edge in loops}) == len(loops)
        assert len(data.edge_attr) == len(edges)


def small_set(count: int = 6) -> GraphDataset:
    sizes = list(range(2, 2 + count))
    edges = [[(i, i + 1) for i in range(size - 1)] for size in sizes]
    graphs = FlatGraphs.from_edges(sizes, edges, y=np.arange(count) % 2)
    task = Task("paths", level="graph", metric="accuracy", num_classes=2)
    return GraphDataset(graphs, task, [Split([0, 2, 4], [1], [3, 5])], "test")


def test_views_know_their_own_sizes_and_targets() -> None:
    train, val, test = small_set().split()
    assert train.node_counts.tolist() == [2, 4, 6]
    assert val.edge_counts.tolist() == [4]
    assert test.targets.tolist() == [1, 1]
    assert test[1:].batch().ptr.tolist() == [0, 7]
    assert test[torch.tensor([1, 0])].node_counts.tolist() == [7, 5]


@pytest.mark.parametrize("directed", [True, False])
def test_repr_counts_every_edge_once_loops_too(directed: bool) -> None:
    edges = [[(0, 0), (0, 1)], [(0, 1)], [(1, 1)]]
    graphs = FlatGraphs.from_edges([2, 2, 2], edges, y=np.zeros(3, dtype=int))
    dataset = GraphDataset(graphs, small_set().task, [Split([0], [1], [2])], "test", directed=directed)
    assert repr(dataset) == "GraphDataset('paths', graphs=3, nodes=6, edges=4)"
    assert [repr(part)[-8:] for part in dataset.split()] == ["edges=2)", "edges=1)", "edges=1)"]
    assert repr(dataset.with_node_attribute("pe", torch.zeros(6, 1))) == repr(dataset)


def test_features_are_int64_categories_or_float32() -> None:
    data = small_set()[0]
    assert data.x.dtype == torch.float32
    assert data.edge_index.dtype == torch.int64
    assert data.y.dtype == torch.int64


def test_data_loader_takes_a_view() -> None:
    train, _, _ = small_set().split()
    batch = next(iter(DataLoader(train, batch_size=3)))
    assert torch.equal(batch.edge_index, train.batch().edge_index)


def test_node_attributes_travel_with_the_graphs() -> None:
    dataset = small_set()
    values = torch.arange(int(dataset.node_counts.sum())).float()[:, None]
    _, _, test = dataset.with_node_attribute("pe", values).split()
    assert torch.equal(test[0].pe, values[2 + 3 + 4 : 2 + 3 + 4 + 5])
    assert torch.equal(test.batch().pe, torch.cat([test[0].pe, test[1].pe]))
    assert "pe" not in dataset[0]


def test_mistakes_are_named() -> None:
    dataset = small_set()
    with pytest.raises(ValueError, match="27 rows, one per node, got 3"):
        dataset.with_node_attribute("pe", torch.zeros(3, 1))
    with pytest.raises(ValueError, match="'x' is taken"):
        dataset.with_node_attribute("x", torch.zeros(27, 1))
    with pytest.raises(ValueError, match="folds 0 to 0, got fold 5"):
        dataset.split(fold=5)
    with pytest.raises(ValueError, match="this is a view"):
        dataset[:2].split()
    graphs = FlatGraphs.from_edges([2], [[(0, 1)]], y=np.array([0]))
    with pytest.raises(ValueError, match="names graph 4, but there are 1"):
        GraphDataset(graphs, dataset.task, [Split([0], [4], [])], "test")
    with pytest.raises(ValueError, match=r"edge \(0, 2\) leaves graph 0, which has 2 nodes"):
        FlatGraphs.from_edges([2], [[(0, 2)]], y=np.array([0]))
    with pytest.raises(ValueError, match="does not fit 0 classes"):
        Task("odd", level="graph", metric="accuracy", num_classes=0)


def test_large_integers_are_not_cut() -> None:
    graphs = FlatGraphs.from_edges([1], [[]], y=np.array([70_000]))
    task = Task("big", level="graph", metric="accuracy", num_classes=70_001)
    assert GraphDataset(graphs, task, [Split([0], [], [])], "test")[0].y.tolist() == [70_000]


def test_a_share_of_the_training_graphs_is_drawn_from_all_of_them():
    split = Split.contiguous(1_000, 100, 100)  # like PATTERN's: ten kinds of graphs, one kind after the other
    some = split.some_of_train(0.1)
    assert len(some) == 100
    assert len(set((some // 100).tolist())) == 10
    assert bool((some.diff() > 0).all())
    assert torch.equal(some, split.some_of_train(0.1))
    assert torch.equal(split.some_of_train(1.0), split.train)
    assert len(split.some_of_train(1e-9)) == 1
