"""PLANAR: planarity as in NetworkX, exact classes, splits without overlap."""

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gape.data import GraphDataset, Planar, Split, edge_count_baseline, isolated_node_baseline
from gape.data.generation import cache_path
from gape.data.planar import are_planar, kernel


def random_graphs(seed: int, nodes: int, probability: float, count: int) -> np.ndarray:  # type: ignore[type-arg]
    upper = np.triu(np.random.default_rng(seed).random((count, nodes, nodes)) < probability, k=1)
    return upper | upper.transpose(0, 2, 1)


@given(st.integers(0, 10_000), st.integers(1, 40), st.floats(0, 1))
@settings(max_examples=80, deadline=None)
def test_planarity_agrees_with_networkx_on_the_whole_graph(seed: int, nodes: int, mean_degree: float) -> None:
    # Mean degrees up to 6: from forests to hopeless, with the doubtful zone well covered.
    graphs = random_graphs(seed, nodes, min(1.0, 6 * mean_degree / nodes), count=8)
    expected = [nx.check_planarity(nx.from_numpy_array(graph))[0] for graph in graphs]
    assert are_planar(graphs).tolist() == expected


@pytest.mark.parametrize(
    ("graph", "planar"),
    [
        (nx.complete_graph(5), False),
        (nx.complete_bipartite_graph(3, 3), False),
        (nx.petersen_graph(), False),
        (nx.dodecahedral_graph(), True),
        (nx.icosahedral_graph(), True),
        (nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(4)), True),
        (nx.disjoint_union_all([nx.complete_graph(4)] * 3), True),
        (nx.disjoint_union(nx.path_graph(5), nx.complete_graph(5)), False),
        (nx.empty_graph(3), True),
        (nx.grid_2d_graph(4, 5), True),
        (nx.moebius_kantor_graph(), False),
        (nx.wheel_graph(12), True),
    ],
)
def test_planarity_of_known_graphs(graph: nx.Graph, planar: bool) -> None:
    assert are_planar(nx.to_numpy_array(graph).astype(bool)[None]).tolist() == [planar]


def test_subdividing_and_hanging_trees_on_does_not_change_the_kernel() -> None:
    graph = nx.petersen_graph()
    for _ in range(6):
        u, v = next(iter(graph.edges))
        new = graph.number_of_nodes()
        graph.remove_edge(u, v)
        graph.add_edges_from([(u, new), (new, v), (new + 1, new), (new + 1, new + 2)])
        graph.remove_edge(new + 1, new + 2)
    left = kernel(nx.to_numpy_array(graph).astype(bool)[None])[0]
    reduced = nx.from_numpy_array(left)
    reduced.remove_nodes_from(list(nx.isolates(reduced)))
    assert nx.is_isomorphic(reduced, nx.petersen_graph())


@pytest.fixture(scope="module")
def planar() -> GraphDataset:
    return Planar(train=160, val=20, test=40, smallest=24, largest=30, seed=1).build(
        cache=False, processes=1, show=False
    )


@pytest.fixture(scope="module")
def balanced() -> GraphDataset:
    settings = Planar(train=60, val=10, test=10, smallest=24, largest=30, balance="edges", seed=1)
    return settings.build(cache=False, processes=1, show=False)


@pytest.mark.parametrize("which", ["planar", "balanced"])
def test_labels_are_right(which: str, request: pytest.FixtureRequest, as_networkx) -> None:  # type: ignore[no-untyped-def]
    dataset = request.getfixturevalue(which)
    for index in range(len(dataset)):
        assert nx.check_planarity(as_networkx(dataset, index))[0] == bool(dataset[index].y)


def test_pairs_have_the_same_size(planar: GraphDataset) -> None:
    assert torch.equal(planar.node_counts[0::2], planar.node_counts[1::2])
    assert set(planar.node_counts.tolist()) == set(range(24, 31))


def test_balanced_pairs_have_the_same_number_of_edges(balanced: GraphDataset) -> None:
    assert torch.equal(balanced.edge_counts[0::2], balanced.edge_counts[1::2])
    assert edge_count_baseline(balanced) == 0.5


def test_counting_edges_gives_most_of_the_answer_away_otherwise(planar: GraphDataset) -> None:
    assert edge_count_baseline(planar) > 0.7


def test_isolated_nodes_give_something_away(planar: GraphDataset, as_networkx) -> None:  # type: ignore[no-untyped-def]
    train, _, test = planar.split()

    def right(part: GraphDataset, least: int) -> float:
        """Accuracy of calling a graph planar if it has at least ``least`` isolated nodes; planar graphs are sparser."""
        counts = (nx.number_of_isolates(as_networkx(part, i)) for i in range(len(part)))
        return sum((n >= least) == (y == 1) for n, y in zip(counts, part.targets.tolist(), strict=True)) / len(part)

    chosen = max(range(8), key=lambda least: right(train, least))
    assert right(train, chosen) > 0.5
    assert isolated_node_baseline(planar) == pytest.approx(right(test, chosen))


def test_no_graph_is_in_two_parts(planar: GraphDataset) -> None:
    seen = [data.edge_index.sort().values.flatten().tolist() for data in planar]
    assert len({tuple(edges) for edges in seen}) == len(seen)


def test_planar_draws_have_the_distribution_of_plain_rejection() -> None:
    # Independent route: NetworkX draws and NetworkX tests. n = 24 is planar often enough for plain rejection.
    plain = []
    seed = 0
    while len(plain) < 150:
        graph = nx.gnp_random_graph(24, 0.1, seed=seed)
        seed += 1
        if nx.check_planarity(graph)[0]:
            plain.append(graph.number_of_edges())
    dataset = Planar(train=300, val=2, test=2, smallest=24, largest=24).build(cache=False, processes=1, show=False)
    ours = dataset.edge_counts[dataset.targets == 1] / 2
    error = np.hypot(np.std(plain) / 150**0.5, float(ours.std()) / len(ours) ** 0.5)
    assert abs(np.mean(plain) - float(ours.mean())) < 4 * error


def test_result_does_not_depend_on_the_number_of_processes() -> None:
    settings = Planar(train=40, val=20, test=20, smallest=12, largest=14, seed=2)
    one, two = (settings.build(cache=False, processes=count, show=False).batch() for count in (1, 2))
    assert torch.equal(one.edge_index, two.edge_index)


def test_cached_set_is_the_same_and_is_not_sampled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = Planar(train=4, val=2, test=2, smallest=12, largest=12)
    first = settings.build(processes=1, show=False)

    def never(piece: object) -> None:
        raise AssertionError("sampled again")

    monkeypatch.setattr("gape.data.planar._sample", never)
    assert torch.equal(settings.build(processes=1).batch().edge_index, first.batch().edge_index)


def test_unreachable_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"largest <= 38, got 30\.\.50"):
        Planar(largest=50)


@pytest.mark.slow
def test_full_set_has_the_published_size_and_takes_less_than_five_minutes() -> None:
    import time

    start = time.perf_counter()
    dataset = Planar().build(cache=False)
    assert time.perf_counter() - start < 300
    assert len(dataset) == 10_000
    assert abs(float(dataset.node_counts.float().mean()) - 33) < 0.1
    assert 0.9 < edge_count_baseline(dataset) < 1.0


def test_reshuffled_parts_overlap_as_those_of_the_authors_do() -> None:
    sizes = {"train": 700, "val": 150, "test": 150}
    settings = Planar(**sizes, smallest=12, largest=12, splits="reshuffled")
    (split,) = settings.build(cache=False, processes=1, show=False).splits
    assert [len(part) for part in split.parts] == list(sizes.values())
    assert all(len(part.unique()) == len(part) and int(part.max()) < 1000 for part in split.parts)
    for part in (split.val, split.test):
        assert abs(float(torch.isin(part, split.train).float().mean()) - 0.7) < 0.15  # s.d. 0.04
    assert torch.equal(split.test, Split.reshuffled(**sizes, seed=0).test)


def test_reshuffling_leaves_the_graphs_and_their_place_in_the_cache_alone() -> None:
    disjoint, reshuffled = (
        Planar(train=40, val=20, test=20, smallest=12, largest=14, seed=2, splits=splits)
        for splits in ("disjoint", "reshuffled")  # type: ignore[arg-type]
    )
    assert cache_path(disjoint) == cache_path(reshuffled)
    one, two = (settings.build(processes=1, show=False) for settings in (disjoint, reshuffled))
    assert torch.equal(one.batch().edge_index, two.batch().edge_index)
    assert "overlap" in two.provenance
    assert "overlap" not in one.provenance
    with pytest.raises(ValueError, match="splits must be 'disjoint' or 'reshuffled', got 'none'"):
        Planar(splits="none")  # type: ignore[arg-type]
