"""CYCLES and CYCLES-V against what is known of the authors' files, with NetworkX as an independent check."""

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gape.data import Cycles, CyclesV, GraphDataset
from gape.data.cycles import MAX_NODES, MIN_NODES, draw_disjointness_pair, graph_of_sets
from gape.data.cycles_v import chords, cycle_basis, lengthen_as_released

# Numbers of independent cycles, 1 to 12, of the 4,500 graphs with a 6-cycle in the authors' training file.
PUBLISHED_CYCLES = np.array([1774, 1246, 738, 383, 194, 97, 39, 14, 7, 5, 2, 1])
PUBLISHED_ISOLATED = 3108 / 5000  # of the graphs with a cycle in the test file of CYCLES-V
PUBLISHED_SIZE, PUBLISHED_EDGES = 48.96, 43.92


@pytest.fixture(scope="module")
def cycles() -> GraphDataset:
    return Cycles(train=200, val=200, test=7600, seed=4).build(cache=False)


@pytest.fixture(scope="module")
def clean() -> GraphDataset:
    return CyclesV(train=200, val=200, test=600, seed=4).build(cache=False)


@pytest.fixture(scope="module")
def released() -> GraphDataset:
    return CyclesV(variant="released", train=200, val=200, test=600, seed=4).build(cache=False)


def shortest_cycle(graph: nx.Graph) -> float:
    """Compute the girth, infinite for a forest: the shortest path between the ends of each edge without that edge."""
    lengths = [float("inf")]
    for u, v in list(graph.edges):
        rest = graph.copy()
        rest.remove_edge(u, v)
        if nx.has_path(rest, u, v):
            lengths.append(nx.shortest_path_length(rest, u, v) + 1)
    return min(lengths)


def independent_cycles(graph: nx.Graph) -> int:
    return graph.number_of_edges() - graph.number_of_nodes() + nx.number_connected_components(graph)


@given(st.integers(0, 10_000), st.integers(1, 5), st.floats(0, 0.6))
@settings(max_examples=60, deadline=None)
def test_graph_of_sets_holds_a_six_cycle_if_and_only_if_the_sets_meet(seed: int, side: int, share: float) -> None:
    upper, lower = np.random.default_rng(seed).random((2, side, side)) < share
    nodes, edges = graph_of_sets(upper, lower)
    graph = nx.Graph(edges.tolist())
    assert nodes == graph.number_of_nodes() == 4 * side + upper.sum() + lower.sum()
    assert len(edges) == graph.number_of_edges() == 2 * side + 2 * (upper.sum() + lower.sum())
    length = shortest_cycle(graph)
    assert length == 6 if (upper & lower).any() else length >= 8


def test_labels_are_right(cycles, as_networkx) -> None:  # type: ignore[no-untyped-def]
    for index in range(300):
        length = shortest_cycle(as_networkx(cycles, index))
        assert length == 6 if int(cycles[index].y) else length >= 8


def test_numbers_of_cycles_are_those_of_the_published_file(cycles, as_networkx) -> None:  # type: ignore[no-untyped-def]
    graphs = [as_networkx(cycles, index) for index in range(0, len(cycles), 2)]
    assert all(independent_cycles(graph) == len(nx.cycle_basis(graph)) for graph in graphs[:100])
    ours = np.bincount([independent_cycles(graph) for graph in graphs], minlength=13)
    assert ours[0] == 0
    # Two-sample chi-square over 1, ..., 7 and more than 7 cycles: 7 degrees of freedom, 99.9 % below 24.3.
    seen = np.stack([np.append(counts[:7], counts[7:].sum()) for counts in (ours[1:], PUBLISHED_CYCLES)])
    expected = seen.sum(0) * seen.sum(1, keepdims=True) / seen.sum()
    assert ((seen - expected) ** 2 / expected).sum() < 24.3


def test_sizes_edges_and_components_are_those_of_the_published_file(cycles, as_networkx) -> None:  # type: ignore[no-untyped-def]
    sizes = cycles.node_counts.float()
    assert MIN_NODES <= int(sizes.min()) <= 40 < 60 <= int(sizes.max()) <= MAX_NODES
    assert abs(float(sizes.mean()) - PUBLISHED_SIZE) < 0.2  # s.d. 0.04
    assert abs(float(cycles.edge_counts.float().mean()) / 2 - PUBLISHED_EDGES) < 0.4
    assert float(((sizes >= 45) & (sizes <= 55)).float().mean()) > 0.8
    components = [nx.number_connected_components(as_networkx(cycles, index)) for index in range(400)]
    assert 6 < np.mean(components) < 7.5
    assert np.quantile(components, 0.05) > 1


def test_no_node_is_isolated_so_that_constants_stay_constant(cycles: GraphDataset) -> None:
    # A model without an encoding averages over neighbours: with a constant input it sees nothing but the size.
    batch = cycles.batch()
    degree = batch.edge_index[1].bincount(minlength=len(batch.batch))
    assert int(degree.min()) == 1
    ones = torch.ones(len(batch.batch), dtype=torch.float64)
    mean = torch.zeros_like(ones).index_add(0, batch.edge_index[1], ones[batch.edge_index[0]]) / degree
    assert torch.equal(mean, ones)


def test_classes_differ_in_size_and_degrees(cycles: GraphDataset) -> None:
    sizes, edges = cycles.node_counts.float(), cycles.edge_counts.float() / 2
    positive = cycles.targets == 1
    for counts, difference in ((sizes, 2.25), (edges, 4.5)):
        assert abs(float(counts[positive].mean() - counts[~positive].mean()) - difference) < 0.1 * difference


def test_node_numbers_give_nothing_away(cycles: GraphDataset) -> None:
    # Nodes of rows and columns are drawn first, those of cells last; after the shuffle both are anywhere.
    places = []
    for data in cycles[:400]:
        degree = data.edge_index[0].bincount(minlength=data.num_nodes)
        places.append((degree == 2).nonzero().float().mean() / data.num_nodes)
    assert abs(float(torch.stack(places).mean()) - 0.5) < 0.02


@pytest.mark.parametrize("variant", ["disjointness", "matched"])
def test_graphs_depend_on_the_seed_and_on_nothing_else(variant: str) -> None:
    one, two, other = (
        Cycles(variant=variant, train=10, val=2, test=2, seed=seed).build(cache=False).batch()  # type: ignore[arg-type]
        for seed in (9, 9, 10)
    )
    assert torch.equal(one.edge_index, two.edge_index)
    assert one.edge_index.shape != other.edge_index.shape or not torch.equal(one.edge_index, other.edge_index)


@given(st.integers(0, 10_000), st.integers(3, 25))
@settings(max_examples=60, deadline=None)
def test_cycle_basis_is_one(seed: int, nodes: int) -> None:
    graph = nx.gnp_random_graph(nodes, 2.5 / nodes, seed=seed)
    edges = np.array(graph.edges, dtype=np.int64).reshape(-1, 2)
    cycles = cycle_basis(nodes, edges)
    assert len(cycles) == len(chords(nodes, edges)) == len(nx.cycle_basis(graph))
    closing = set()
    for cycle in cycles:
        assert len(cycle) == len(set(cycle)) >= 3
        assert all(graph.has_edge(u, v) for u, v in zip(cycle, cycle[1:] + cycle[:1], strict=True))
        closing.add(frozenset(cycle[:2]))
    # Each has an edge that no other has, so they are independent.
    assert len(closing) == len(cycles)
    on_cycle = [{frozenset(pair) for pair in zip(c, c[1:] + c[:1], strict=True)} for c in cycles]
    assert all(sum(edge in on for on in on_cycle) == 1 for edge in closing)


def test_a_forest_is_left_without_chords() -> None:
    graph = nx.gnp_random_graph(30, 0.12, seed=1)
    edges = np.array(graph.edges)
    graph.remove_edges_from(edges[chords(30, edges)].tolist())
    assert nx.is_forest(graph)
    assert independent_cycles(graph) == 0


def test_clean_variant_differs_in_cycles_and_not_in_size(clean, as_networkx) -> None:  # type: ignore[no-untyped-def]
    assert torch.equal(clean.node_counts[0::2], clean.node_counts[1::2])
    lengths: dict[int, set[float]] = {0: set(), 1: set()}
    for index in range(400):
        graph = as_networkx(clean, index)
        assert nx.number_of_isolates(graph) == nx.number_of_selfloops(graph) == 0
        lengths[int(clean[index].y)].add(shortest_cycle(graph))
    assert lengths[1] == set(range(6, 14))
    assert min(lengths[0]) > 14


def test_released_variant_keeps_the_mistakes(released, as_networkx) -> None:  # type: ignore[no-untyped-def]
    isolated, loops = {0: 0, 1: 0}, {0: 0, 1: 0}
    for index in range(400):
        graph, label = as_networkx(released, index), int(released[index].y)
        loops[label] += nx.number_of_selfloops(graph) > 0
        graph.remove_edges_from(list(nx.selfloop_edges(graph)))
        alone = nx.number_of_isolates(graph)
        isolated[label] += alone > 0
        if label and alone:
            assert alone < independent_cycles(graph)
    assert isolated[0] == loops[0] == 0
    assert 0.4 < isolated[1] / 200 < 0.65  # seven lengths of eight, and six graphs of ten with two cycles or more
    assert 0.06 < loops[1] / 200 < 0.2  # one length of eight


@given(st.integers(0, 10_000), st.integers(1, 9))
@settings(max_examples=40, deadline=None)
def test_script_leaves_a_number_out_after_every_cycle_but_the_last(seed: int, count: int) -> None:
    (nodes, edges), _ = draw_disjointness_pair(np.random.default_rng(seed))
    cycles = len(nx.cycle_basis(nx.Graph(edges.tolist())))
    size, changed = lengthen_as_released(nodes, edges, count)
    graph = nx.Graph(changed.tolist())
    assert size == nodes + cycles * (count + 1) - 1 == int(changed.max()) + 1
    assert size - graph.number_of_nodes() == cycles - 1
    assert nx.number_of_selfloops(graph) == (cycles if count == 1 else 0)
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    # A cycle that lost its edge to one before it becomes a detour.
    assert independent_cycles(graph) >= cycles


def test_isolated_nodes_are_as_frequent_as_in_the_paper_if_every_cycle_is_lengthened() -> None:
    dataset = CyclesV(variant="released", low=1, high=10, train=2, val=2, test=4000, seed=4).build(cache=False)
    batch = dataset.batch()
    joined = batch.edge_index.unique()
    isolated = torch.ones(len(batch.batch), dtype=torch.bool).index_fill(0, joined, False)
    graphs = batch.batch[isolated].unique()
    assert bool((dataset.targets[graphs] == 1).all())
    assert abs(2 * len(graphs) / len(dataset) - PUBLISHED_ISOLATED) < 0.04  # s.d. 0.013 for both


def test_lengthening_a_cycle_leaves_the_rest_as_it_is() -> None:
    dataset = CyclesV(variant="released", low=0, high=1, train=20, val=2, test=2, seed=1).build(cache=False)
    sizes = dataset.node_counts.reshape(-1, 2)
    # m is 0, and paths have 0 or int(2.4) nodes in one class, 0 or int(4.6) in the other.
    assert int(sizes.max()) <= MAX_NODES + 4
    degrees = [data.edge_index[0].bincount(minlength=data.num_nodes) for data in dataset]
    assert all(int(degree.min()) == 1 for degree in degrees)


def test_settings_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="variant must be 'disjointness' or 'matched', got 'old'"):
        Cycles(variant="old")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"variant must be one of clean, released, .* got 'as-released'"):
        CyclesV(variant="as-released")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="0 <= low < high, got low=3 and high=3"):
        CyclesV(low=3, high=3)
    with pytest.raises(ValueError, match="low and high are for variant='clean' and 'released'"):
        CyclesV(variant="matched", high=10)
