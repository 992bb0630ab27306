"""Labels of nodes: what they depend on, and on nothing else."""

from itertools import chain

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gape import Graph, as_graph
from gape.graph.labels import DegreeLabels, IndexLabels, OneLabel, RandomLabels
from gape.linalg.integers import mix, uniform_integers
from tests.graphs import drawn_graphs

ALL = [OneLabel(), RandomLabels(7, seed=3), IndexLabels(9), DegreeLabels(4)]


def splitmix(x: int) -> int:
    """SplitMix64's finaliser with Python's unbounded integers."""
    word = 2**64 - 1
    x = (x + 0x9E3779B97F4A7C15) & word
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & word
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & word
    return x ^ (x >> 31)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_mix_is_splitmix64(values):
    assert [x % 2**64 for x in mix(torch.tensor(values)).tolist()] == [splitmix(x % 2**64) for x in values]


def test_known_outputs_of_splitmix64():
    # The first outputs of the published generator for the seed 1234567.
    gamma, seed = 0x9E3779B97F4A7C15, 1234567
    states = [(seed + i * gamma) % 2**64 for i in range(3)]
    signed = torch.tensor([s - 2**64 if s >= 2**63 else s for s in states])
    assert [x % 2**64 for x in mix(signed).tolist()] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


@given(st.integers(1, 2**31 - 1))
def test_uniform_integers_stay_below(below):
    drawn = uniform_integers(torch.arange(1000), below)
    assert int(drawn.min()) >= 0
    assert int(drawn.max()) < below


def test_random_labels_are_uniform_and_independent_of_their_neighbours():
    graph = Graph(torch.empty(2, 0, dtype=torch.int64), 100_000)
    labels = RandomLabels(20, seed=0)(graph).numpy()
    expected = len(labels) / 20
    counts = np.bincount(labels, minlength=20)
    # Chi-square with 19 and 399 degrees of freedom: beyond these once in a million.
    assert ((counts - expected) ** 2 / expected).sum() < 64
    pairs = np.bincount(labels[:-1] * 20 + labels[1:], minlength=400)
    assert ((pairs - expected / 20) ** 2 / (expected / 20)).sum() < 545


@given(drawn_graphs(max_graphs=5), st.integers(0, 2**32), st.integers(-(2**63), 2**63 - 1))
def test_labels_are_the_same_alone_and_in_any_batch_and_order_of_edges(drawn, order, seed):
    labellings = [*ALL, RandomLabels(1000, seed=seed)]
    batch = drawn.batch(np.random.default_rng(order))
    for labels in labellings:
        alone = [labels(drawn.graph(i)).tolist() for i in range(len(drawn.sizes))]
        together = list(chain.from_iterable(alone))
        assert labels(batch).tolist() == together
        twice = Graph.union([drawn.graph(len(drawn.sizes) - 1), batch])
        assert labels(twice).tolist() == alone[-1] + together


def test_random_labels_depend_on_seed_size_edges_directions_and_weights():
    index = [[0, 1], [1, 2]]
    graphs = {
        "base": (Graph(index, 40), 0),
        "seed": (Graph(index, 40), 1),
        "edge": (Graph([[0, 1], [1, 3]], 40), 0),
        "reversed": (Graph([[1, 2], [0, 1]], 40), 0),
        "doubled": (Graph([[0, 1, 1], [1, 2, 2]], 40), 0),
        "weighted": (Graph(index, 40, edge_weight=[1.0, 1.5]), 0),
        "size": (Graph(index, 41), 0),
    }
    labels = {name: tuple(RandomLabels(1000, seed)(graph).tolist()[:40]) for name, (graph, seed) in graphs.items()}
    assert len(set(labels.values())) == len(graphs)
    ones = Graph(index, 40, edge_weight=torch.ones(2, requires_grad=True))
    assert RandomLabels(1000)(ones).tolist() == list(labels["base"])


def test_random_labels_leave_the_global_generator_alone():
    state = torch.get_rng_state()
    RandomLabels(5)(Graph([[0], [1]], 2))
    assert torch.equal(torch.get_rng_state(), state)


@given(st.integers(1, 30), st.integers(0, 2**32))
def test_only_random_and_index_labels_break_permutation_equivariance(nodes, seed):
    graph = nx.gnp_random_graph(nodes, 0.3, seed=seed, directed=True)
    order = np.random.default_rng(seed).permutation(nodes)
    moved = nx.relabel_nodes(graph, dict(enumerate(order.tolist())))
    permuted = nx.DiGraph()
    permuted.add_nodes_from(range(nodes))
    permuted.add_edges_from(moved.edges)
    for labels in (OneLabel(), DegreeLabels(5)):
        assert labels(as_graph(permuted))[order].tolist() == labels(as_graph(graph)).tolist()


def test_labellings_that_break_equivariance_say_so():
    for labels in ALL:
        breaks = isinstance(labels, RandomLabels | IndexLabels)
        assert ("Breaks permutation equivariance" in type(labels).__doc__) == breaks
    path = Graph.from_edges([(0, 1), (1, 2)], undirected=True)
    turned = Graph.from_edges([(1, 0), (0, 2)], undirected=True)  # nodes 0 and 1 swapped
    for labels in (RandomLabels(1000), IndexLabels(3)):
        assert labels(turned)[[1, 0, 2]].tolist() != labels(path).tolist()


def test_degree_labels_count_incoming_edges_up_to_the_last_label():
    star = Graph.from_edges([(i, 0) for i in range(1, 6)])
    assert DegreeLabels(8)(star).tolist() == [5, 0, 0, 0, 0, 0]
    assert DegreeLabels(3)(star).tolist() == [2, 0, 0, 0, 0, 0]
    graph = nx.gnp_random_graph(20, 0.3, seed=1, directed=True)
    assert DegreeLabels(50)(as_graph(graph)).tolist() == [d for _, d in graph.in_degree]


def test_all_labels_are_below_count_and_attach_to_the_graph():
    graph = Graph([[0, 1, 4], [1, 2, 5]], 6, ptr=[0, 3, 3, 6])
    for labels in ALL:
        attached = graph.with_labels(labels)
        assert attached.labels.dtype == torch.int64
        assert attached.labels.shape == (6,)
        assert int(attached.labels.max()) < labels.count
    empty = Graph([[], []], 0)
    for labels in ALL:
        assert labels(empty).shape == (0,)


def test_labels_of_the_user_are_taken_as_they_are():
    atoms = np.array([6, 8, 6], dtype=np.int32)
    assert Graph([[0, 1], [1, 2]], 3).with_labels(atoms).labels.tolist() == [6, 8, 6]


@pytest.mark.parametrize(
    ("make", "quoted"),
    [
        (lambda: OneLabel(0), "count must be at least 1, got 0"),
        (lambda: RandomLabels(0), "count must be at least 1, got 0"),
        (lambda: RandomLabels(2**31), f"count must be at most {2**31 - 1}, got {2**31}"),
        (lambda: RandomLabels(2.0), "count must be a whole number, got 2.0"),
        (lambda: RandomLabels(2, seed=0.5), "seed must be a whole number, got 0.5"),
        (lambda: RandomLabels(2, seed=2**63), f"seed must be at most .* got {2**63}"),
        (lambda: IndexLabels(-1), "count must be at least 1, got -1"),
        (lambda: DegreeLabels("8"), "count must be a whole number, got '8'"),
        (lambda: IndexLabels(2)(Graph([[0], [1]], 3)), "has 3 nodes and there are only 2 index labels"),
    ],
)
def test_bad_settings_are_quoted(make, quoted):
    with pytest.raises(ValueError, match=quoted):
        make()
