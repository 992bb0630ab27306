"""DIRECTED-CYCLES: classes differ only in the directions of edges on cycles; checked with NetworkX."""

from collections import Counter

import networkx as nx
import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from gape.data import DirectedCycles, GraphDataset, load
from gape.data.directed_cycles import CYCLE_NODES, MAX_NODES, MIN_NODES
from gape.encodings import make
from gape.graph.convert import as_graph

SIZES = {"train": 1000, "val": 200, "test": 1000, "seed": 4}


@pytest.fixture(scope="module")
def dataset() -> GraphDataset:
    return DirectedCycles(**SIZES).build(cache=False)


@pytest.fixture(scope="module")
def symmetrized() -> GraphDataset:
    return DirectedCycles(symmetrized=True, **SIZES).build(cache=False)


def directed(dataset: GraphDataset, index: int) -> nx.DiGraph:
    return nx.DiGraph(dataset[index].edge_index.t().tolist())


def degrees(graph: nx.DiGraph) -> Counter:
    return Counter((graph.in_degree[node], graph.out_degree[node]) for node in graph)


def test_positive_graphs_hold_a_directed_four_cycle_and_the_others_cycles_of_other_lengths(dataset) -> None:
    for index in range(400):
        lengths = [len(cycle) for cycle in nx.simple_cycles(directed(dataset, index))]
        assert len(lengths) == 2
        assert (CYCLE_NODES in lengths) == bool(dataset[index].y)


def test_graphs_of_a_pair_differ_in_directions_only_and_no_node_shows_it(dataset) -> None:
    for index in range(0, 200, 2):
        one, other = directed(dataset, index), directed(dataset, index + 1)
        assert MIN_NODES <= len(one) <= MAX_NODES
        assert nx.is_isomorphic(one.to_undirected(), other.to_undirected())
        assert not nx.is_isomorphic(one, other)
        assert one.to_undirected().number_of_edges() == one.number_of_edges()  # no edge has a reverse
        assert degrees(one) == degrees(other)
        assert min(dict(one.in_degree).values()) == 1
        assert min(dict(one.out_degree).values()) == 0


def held_out_accuracy(features: np.ndarray, labels: np.ndarray, train: int) -> float:
    """Test accuracy of a logistic regression trained on the first ``train`` rows."""
    spread = features[:train].std(0)
    scaled = (features - features[:train].mean(0)) / np.where(spread > 0, spread, 1)
    inputs, signs = np.c_[scaled, np.ones(len(scaled))], 2 * labels - 1

    def loss(weights: np.ndarray) -> float:
        return np.logaddexp(0, -signs[:train] * (inputs[:train] @ weights)).mean() + 1e-3 * weights @ weights

    weights = minimize(loss, np.zeros(inputs.shape[1]), method="L-BFGS-B").x
    return float(((inputs[train:] @ weights > 0) == labels[train:]).mean())


def counted(dataset: GraphDataset, of_graph) -> np.ndarray:  # type: ignore[no-untyped-def]
    counts = [of_graph(directed(dataset, index)) for index in range(len(dataset))]
    known = sorted(set().union(*counts))
    return np.array([[count[key] for key in known] for count in counts])


def test_sizes_and_degrees_tell_nothing(dataset) -> None:
    features = np.c_[dataset.node_counts, dataset.edge_counts, counted(dataset, degrees)]
    assert (features[0::2] == features[1::2]).all()
    assert held_out_accuracy(features, dataset.targets.numpy(), train=1000) == 0.5


def test_edges_by_the_degrees_of_their_ends_tell_next_to_nothing(dataset) -> None:
    def ends(graph: nx.DiGraph) -> Counter:
        return Counter((graph.in_degree[u], graph.in_degree[v], graph.out_degree[u] > 1) for u, v in graph.edges)

    # 1,200 held-out graphs: chance is 50 % with a standard deviation of 1.4 %.
    assert abs(held_out_accuracy(counted(dataset, ends), dataset.targets.numpy(), train=1000) - 0.5) < 0.05


def test_symmetrized_pairs_are_the_same_graph_so_that_no_encoding_can_decide(symmetrized) -> None:
    for index in range(0, 100, 2):
        one, other = directed(symmetrized, index), directed(symmetrized, index + 1)
        assert nx.is_isomorphic(one, other)
        assert all(one.has_edge(v, u) for u, v in one.edges)
    for name in ("rw", "gape"):
        rows = make(name, dtype="float64")(symmetrized.batch())
        batch = symmetrized.batch().batch
        total = torch.zeros(len(symmetrized), rows.shape[1], dtype=rows.dtype).index_add_(0, batch, rows)
        torch.testing.assert_close(total[0::2], total[1::2])


def test_return_probabilities_are_positive_after_four_steps_exactly_on_the_cycle(dataset) -> None:
    back = make("rw", length=CYCLE_NODES)(dataset.batch())[:, CYCLE_NODES - 1] > 0
    batch = dataset.batch().batch
    nodes = torch.bincount(batch[back], minlength=len(dataset))
    cycles = nodes.reshape(-1, 2)
    assert bool((cycles[:, 0] >= CYCLE_NODES).all())
    assert bool((cycles[:, 1] == 0).all())


def test_gape_sums_up_on_graphs_whose_leaves_lead_nowhere(dataset) -> None:
    some = dataset.batch(range(40))
    graph = as_graph(some)
    assert bool((torch.bincount(some.edge_index[0], minlength=some.num_nodes) == 0).any())
    for settings in ({}, {"damping": 0.8, "relative": True}, {"readout": "closed"}):
        assert {status.name for status in make("gape", **settings).solve(graph).counts()} == {"RUN_SUM"}


def test_the_same_seed_gives_the_same_graphs_by_name_and_class(dataset) -> None:
    again = load("directed-cycles", **SIZES)
    assert torch.equal(again.batch().edge_index, dataset.batch().edge_index)
    assert repr(again) == repr(dataset)
    assert "DirectedCycles(symmetrized=False" in again.provenance
    with pytest.raises(ValueError, match="train must be an even number of graphs"):
        load("directed-cycles", train=3)
