"""TYPED-WALKS: classes differ only in the types of edges, and by one word; checked with NetworkX and by enumeration."""

import networkx as nx
import numpy as np
import pytest
import torch

from gape.data import GraphDataset, TypedWalks, load
from gape.data.typed_walks import MAX_NODES, MIN_NODES, TYPES, draw_pair
from gape.encodings import make

SIZES = {"train": 60, "val": 20, "test": 20, "seed": 3}


@pytest.fixture(scope="module")
def dataset() -> GraphDataset:
    return TypedWalks(**SIZES).build(cache=False)


def typed(dataset: GraphDataset, index: int) -> nx.Graph:
    data, graph = dataset[index], nx.Graph()
    for (u, v), kind in zip(data.edge_index.t().tolist(), data.edge_attr.tolist(), strict=True):
        assert graph.get_edge_data(u, v, {"kind": kind})["kind"] == kind  # the same in both directions
        graph.add_edge(u, v, kind=kind)
    return graph


def closed_walks(graph: nx.Graph, word: str) -> int:
    """Number of closed walks that spell the word, by products of the adjacency matrices of its types."""
    nodes = sorted(graph)
    of_type = [
        nx.to_numpy_array(nx.Graph((u, v) for u, v, kind in graph.edges.data("kind") if kind == i), nodelist=nodes)
        for i in range(len(TYPES))
    ]
    return int(np.trace(np.linalg.multi_dot([of_type[TYPES.index(letter)] for letter in word])))


@pytest.mark.parametrize("word", ["abacbc", "abab", "abcacb"])
def test_exactly_the_positive_graphs_spell_the_word(word: str) -> None:
    dataset = TypedWalks(word=word, **SIZES).build(cache=False)
    for index in range(40):
        assert (closed_walks(typed(dataset, index), word) > 0) == bool(dataset[index].y)


def test_every_node_has_one_edge_of_each_type_so_that_counting_tells_nothing(dataset) -> None:
    for index in range(len(dataset)):
        data = dataset[index]
        assert MIN_NODES <= data.num_nodes <= MAX_NODES
        ends = data.edge_index[0] * len(TYPES) + data.edge_attr
        assert torch.bincount(ends, minlength=data.num_nodes * len(TYPES)).eq(1).all()


def test_graphs_of_a_pair_are_isomorphic_without_types_and_not_with_them(dataset) -> None:
    same_type = nx.algorithms.isomorphism.categorical_edge_match("kind", None)
    for index in range(0, 20, 2):
        one, other = typed(dataset, index), typed(dataset, index + 1)
        assert nx.is_isomorphic(one, other)
        assert not nx.is_isomorphic(one, other, edge_match=same_type)


def test_before_shuffling_a_pair_has_the_same_edges_and_closed_walks() -> None:
    generator = np.random.default_rng(0)
    for _ in range(20):
        matrices = []
        for neighbours in draw_pair(generator, "abacbc"):
            matrix = np.zeros((neighbours.shape[1],) * 2, dtype=np.int64)
            for row in neighbours:
                matrix[np.arange(len(row)), row] += 1
            matrices.append(matrix)
        assert np.array_equal(*matrices)
        assert matrices[0].max() == 1  # and so all powers, degrees and untyped closed walks are equal


@pytest.mark.parametrize("name", ["rw", "gape", "gape-rooted"])
def test_encodings_that_do_not_read_types_are_the_same_for_both_classes(dataset, name: str) -> None:
    rows = make(name, dtype="float64")(dataset.batch())
    total = torch.zeros(len(dataset), rows.shape[1], dtype=rows.dtype).index_add_(0, dataset.batch().batch, rows)
    torch.testing.assert_close(total[0::2], total[1::2])


def test_the_same_seed_gives_the_same_graphs_from_the_cache(dataset) -> None:
    for again in (load("typed-walks", **SIZES), load("typed-walks", **SIZES)):
        assert torch.equal(again.batch().edge_index, dataset.batch().edge_index)
        assert torch.equal(again.batch().edge_attr, dataset.batch().edge_attr)


@pytest.mark.parametrize("word", ["", "aba", "abba", "abxy"])
def test_words_that_need_no_cycle_or_other_letters_are_refused(word: str) -> None:
    with pytest.raises(ValueError, match=f"word must .*{word!r}"):
        TypedWalks(word=word)
