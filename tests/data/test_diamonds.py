"""DIAMONDS: acyclic graphs whose classes differ only in directions and look alike locally; checked with NetworkX."""

from collections import Counter

import networkx as nx
import pytest
import torch

from gape.data import Diamonds, GraphDataset, load
from gape.encodings import make

SIZES = {"train": 60, "val": 20, "test": 20, "seed": 3}


@pytest.fixture(scope="module")
def dataset() -> GraphDataset:
    return Diamonds(**SIZES).build(cache=False)


def directed(dataset: GraphDataset, index: int) -> nx.DiGraph:
    graph = nx.DiGraph(dataset[index].edge_index.t().tolist())
    assert graph.number_of_edges() == dataset[index].edge_index.shape[1]
    return graph


def colours(graph: nx.DiGraph) -> Counter:
    """1-WL with directions, to the end."""
    colour = dict.fromkeys(graph, 0)
    for _ in graph:
        seen = {
            v: (colour[v], *(tuple(sorted(colour[u] for u in near)) for near in (graph.pred[v], graph.succ[v])))
            for v in graph
        }
        colour = {v: hash(seen[v]) for v in graph}
    return Counter(colour.values())


def test_exactly_the_positive_graphs_have_two_paths_of_two_steps_between_the_same_nodes(dataset) -> None:
    for index in range(len(dataset)):
        graph = directed(dataset, index)
        steps = nx.to_numpy_array(graph)
        assert ((steps @ steps).max() > 1) == bool(dataset[index].y)


def test_no_walk_returns_so_that_random_walks_see_nothing(dataset) -> None:
    assert all(nx.is_directed_acyclic_graph(directed(dataset, index)) for index in range(len(dataset)))
    assert not make("rw", length=20)(dataset.batch()).any()


def test_graphs_of_a_pair_are_told_apart_neither_without_directions_nor_by_neighbourhoods(dataset) -> None:
    for index in range(0, 20, 2):
        one, other = directed(dataset, index), directed(dataset, index + 1)
        assert nx.is_isomorphic(one.to_undirected(), other.to_undirected())
        assert colours(one) == colours(other)
        degrees = [Counter((g.in_degree[v], g.out_degree[v]) for v in g) for g in (one, other)]
        assert degrees[0] == degrees[1]


@pytest.mark.parametrize("edges", ["directed", "undirected"])
def test_encodings_with_one_label_are_the_same_for_both_classes(edges: str) -> None:
    dataset = Diamonds(edges=edges, **SIZES).build(cache=False)
    for name in ("rw", "gape"):
        rows = make(name, dtype="float64")(dataset.batch())
        total = torch.zeros(len(dataset), rows.shape[1], dtype=rows.dtype).index_add_(0, dataset.batch().batch, rows)
        torch.testing.assert_close(total[0::2], total[1::2])


def test_types_of_edges_in_both_directions_are_their_directions(dataset) -> None:
    both = Diamonds(edges="both", **SIZES).build(cache=False)
    for index in range(len(dataset)):
        data = both[index]
        along = data.edge_index[:, data.edge_attr == 0]
        assert torch.equal(along, dataset[index].edge_index)
        assert torch.equal(data.edge_index[:, data.edge_attr == 1], along.flip(0))


def test_the_same_seed_gives_the_same_graphs_by_name(dataset) -> None:
    again = load("diamonds", **SIZES)
    assert torch.equal(again.batch().edge_index, dataset.batch().edge_index)
    with pytest.raises(ValueError, match="edges must be one of 'directed', 'both', 'undirected', got 'one'"):
        load("diamonds", edges="one")
