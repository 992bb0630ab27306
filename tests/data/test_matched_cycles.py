"""Matched CYCLES and CYCLES-V: only the cycle tells the classes apart, checked with NetworkX."""

import hashlib

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gape.data import Cycles, CyclesV, GraphDataset, edge_count_baseline
from gape.data.cycles import CYCLE_NODES, LONG_CYCLE_NODES, degree_sequence, unicyclic


def cycle_length(graph: nx.Graph) -> int:
    (cycle,) = nx.cycle_basis(graph)
    return len(cycle)


@pytest.fixture(scope="module")
def cycles() -> GraphDataset:
    return Cycles(variant="matched", train=200, val=200, test=1000, seed=4).build(cache=False)


@pytest.fixture(scope="module")
def clean() -> GraphDataset:
    return CyclesV(variant="matched", train=200, val=200, test=600, seed=4).build(cache=False)


@pytest.fixture(scope="module")
def as_released() -> GraphDataset:
    return CyclesV(variant="matched-released", train=200, val=200, test=600, seed=4).build(cache=False)


@given(st.integers(0, 10_000), st.integers(12, 40), st.data())
@settings(max_examples=80, deadline=None)
def test_unicyclic_graphs_have_their_degrees_and_one_cycle(seed: int, nodes: int, data: st.DataObject) -> None:
    generator = np.random.default_rng(seed)
    leaves = data.draw(st.integers(1, nodes // 2))
    degrees = degree_sequence(generator, nodes, leaves)
    length = data.draw(st.integers(3, nodes - leaves))
    graph = nx.Graph(unicyclic(generator, degrees, length).tolist())
    assert [graph.degree[node] for node in range(nodes)] == degrees.tolist()
    assert nx.is_connected(graph)
    assert cycle_length(graph) == length


def test_forests_are_uniform() -> None:
    # Nodes 0 and 1 of a triangle have one child each, node 3 has one child, 4 and 5 are leaves.
    degrees = np.array([3, 3, 2, 2, 1, 1])
    generator = np.random.default_rng(0)
    seen: dict[frozenset[tuple[int, int]], int] = {}
    trials = 6000
    for _ in range(trials):
        edges = unicyclic(generator, degrees, length=3)
        if set(edges[:3].ravel().tolist()) == {0, 1, 2}:
            tree = frozenset((min(u, v), max(u, v)) for u, v in edges[3:].tolist())
            seen[tree] = seen.get(tree, 0) + 1
    # Node 3 is a child of 0 or 1 and has leaf 4 or 5; the other leaf is a child of the other: 4 forests.
    counts = np.array(list(seen.values()))
    assert len(counts) == 4
    assert (np.abs(counts / counts.sum() - 0.25) < 0.04).all()


def test_impossible_cycles_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot put a cycle of 9 nodes"):
        unicyclic(np.random.default_rng(0), np.array([3, 2, 2, 1]), length=9)
    with pytest.raises(ValueError, match="sum to 8, got a sum of 7"):
        unicyclic(np.random.default_rng(0), np.array([2, 2, 2, 1]), length=3)


def test_positive_graphs_hold_a_six_cycle_and_the_others_only_longer_ones(cycles, as_networkx) -> None:  # type: ignore[no-untyped-def]
    for index in range(400):
        graph = as_networkx(cycles, index)
        assert nx.is_connected(graph)
        length = cycle_length(graph)
        if int(cycles[index].y):
            assert length == CYCLE_NODES
        else:
            assert LONG_CYCLE_NODES[0] <= length <= LONG_CYCLE_NODES[1]


def test_pairs_share_nodes_edges_and_degrees(cycles: GraphDataset, clean: GraphDataset) -> None:
    for dataset in (cycles, clean):
        assert dataset.targets.reshape(-1, 2).eq(torch.tensor([1, 0])).all()
        for pair in range(100):
            first, second = (
                dataset[2 * pair + k].edge_index[0].bincount(minlength=dataset[2 * pair + k].num_nodes) for k in (0, 1)
            )
            assert torch.equal(first.sort().values, second.sort().values)
            assert int(first.min()) >= 1


def test_sizes_are_those_of_the_paper(cycles: GraphDataset) -> None:
    sizes = cycles.node_counts.float()
    assert int(sizes.min()) >= 37
    assert int(sizes.max()) <= 65
    assert abs(float(sizes.mean()) - 48.96) < 0.6
    assert float(((sizes >= 45) & (sizes <= 55)).float().mean()) > 0.7


def test_counting_edges_gives_nothing_away(cycles: GraphDataset, clean: GraphDataset) -> None:
    assert edge_count_baseline(cycles) == 0.5
    assert edge_count_baseline(clean) == 0.5


def test_neighbour_averaging_of_constants_with_a_sum_at_the_end_gives_nothing_away(cycles: GraphDataset) -> None:
    # Attention over neighbours of a constant is that constant, so a sum over nodes sees the size, equal in a pair.
    batch = cycles.batch()
    state = torch.ones(len(batch.batch), dtype=torch.float64)
    degree = batch.edge_index[1].bincount()
    for _ in range(10):
        state = torch.tanh(
            torch.zeros_like(state).index_add(0, batch.edge_index[1], state[batch.edge_index[0]]) / degree
        )
    total = torch.zeros(len(cycles), dtype=torch.float64).index_add(0, batch.batch, state)
    assert torch.allclose(total[0::2], total[1::2])


def test_node_numbers_give_nothing_away(cycles: GraphDataset) -> None:
    # Generators place leaves last; after the shuffle their mean position is the middle.
    places = [(data.edge_index[0].bincount() == 1).nonzero().float().mean() / data.num_nodes for data in cycles[:400]]
    assert abs(float(torch.stack(places).mean()) - 0.5) < 0.04


def test_matched_variant_has_lengths_6_to_15_against_longer(clean, as_networkx) -> None:  # type: ignore[no-untyped-def]
    lengths: dict[int, set[int]] = {0: set(), 1: set()}
    for index in range(400):
        graph = as_networkx(clean, index)
        assert nx.is_connected(graph)
        assert nx.number_of_selfloops(graph) == 0
        lengths[int(clean[index].y)].add(cycle_length(graph))
    assert lengths[1] == set(range(6, 16))
    assert min(lengths[0]) > 15


def test_matched_released_variant_keeps_the_self_loops(as_released, as_networkx) -> None:  # type: ignore[no-untyped-def]
    lengths, loops = set(), 0
    for index in range(400):
        graph = as_networkx(as_released, index)
        loops += nx.number_of_selfloops(graph)
        graph.remove_edges_from(nx.selfloop_edges(graph))
        assert nx.is_connected(graph)
        if int(as_released[index].y):
            lengths.add(cycle_length(graph))
    assert lengths == set(range(6, 14))
    assert loops > 0
    sizes, labels = as_released.node_counts.float(), as_released.targets
    # 3.5 + 9.5 nodes are added on average to one class, 18 to the other.
    assert abs(float(sizes[labels == 0].mean() - sizes[labels == 1].mean()) - 5) < 4  # s.d. 0.9


@pytest.mark.parametrize("variant", ["clean", "released", "matched", "matched-released"])
def test_same_seed_same_graphs(variant: str) -> None:
    one, two = (CyclesV(variant=variant, train=10, val=2, test=2, seed=9).build(cache=False).batch() for _ in range(2))  # type: ignore[arg-type]
    assert torch.equal(one.edge_index, two.edge_index)


@pytest.mark.parametrize(
    ("settings", "digest"),
    [
        (Cycles(variant="matched", train=20, val=10, test=30, seed=3), "71055542a370c19e"),
        (CyclesV(variant="matched", train=20, val=10, test=30, seed=3), "11a183a941bc8413"),
        (CyclesV(variant="matched-released", train=20, val=10, test=30, seed=3), "32c7c1ce6d8d5465"),
    ],
)
def test_graphs_are_those_of_the_collected_results(settings: Cycles | CyclesV, digest: str) -> None:
    graphs = settings.generate()
    arrays = (graphs.node_ptr, graphs.edge_ptr, graphs.edges.astype(np.int64), graphs.y)
    assert hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()[:16] == digest


def test_odd_parts_are_refused() -> None:
    with pytest.raises(ValueError, match="val must be an even number of graphs"):
        Cycles(val=3)
