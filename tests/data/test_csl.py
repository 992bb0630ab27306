"""CSL against the theory of circulant graphs and against the published file."""

import itertools
from pathlib import Path

import networkx as nx
import pytest
import torch

from gape.data import CSL
from gape.data.csl import NODES, SKIPS, circular_skip_link


def ring_edges_in_place(data) -> int:  # type: ignore[no-untyped-def]
    edges = {tuple(edge) for edge in data.edge_index.t().tolist()}
    return sum((i, (i + 1) % NODES) in edges for i in range(NODES))


def test_every_graph_is_four_regular_and_of_its_class(as_networkx) -> None:  # type: ignore[no-untyped-def]
    dataset = CSL(seed=1).build()
    for index in range(0, 150, 7):
        graph = as_networkx(dataset, index)
        assert set(dict(graph.degree).values()) == {4}
        original = nx.circulant_graph(NODES, [1, SKIPS[int(dataset[index].y)]])
        assert nx.is_isomorphic(graph, original)


def test_classes_are_not_isomorphic() -> None:
    def signature(skip: int) -> tuple[float, ...]:
        graph = nx.Graph(circular_skip_link(NODES, skip).tolist())
        return tuple(nx.adjacency_spectrum(graph).real.round(6).tolist())

    spectra = [sorted(signature(skip)) for skip in SKIPS]
    assert all(a != b for a, b in itertools.combinations(spectra, 2))


@pytest.mark.parametrize("order", ["random", "near-canonical"])
def test_folds_are_stratified_and_test_parts_partition(order: str) -> None:
    dataset = CSL(order=order, seed=2).build()  # type: ignore[arg-type]
    tests = torch.cat([split.test for split in dataset.splits])
    assert tests.sort().values.tolist() == list(range(150))
    labels = dataset.targets
    for split in dataset.splits:
        for part, per_class in zip(split.parts, (9, 3, 3), strict=True):
            assert labels[part].bincount().tolist() == [per_class] * 10


def test_random_order_forgets_the_ring_and_near_canonical_keeps_it() -> None:
    random = [ring_edges_in_place(data) for data in CSL().build()]
    near = [ring_edges_in_place(data) for data in CSL(order="near-canonical").build()]
    assert sum(random) / 150 < 8  # 4 of 40 possible neighbours: 41 * 4 / 40 = 4.1 expected
    assert min(near) >= 36
    assert near[::15] == [41] * 10


def test_same_seed_same_graphs() -> None:
    assert torch.equal(CSL(seed=5).build().batch().edge_index, CSL(seed=5).build().batch().edge_index)
    assert not torch.equal(CSL(seed=5).build().batch().edge_index, CSL(seed=6).build().batch().edge_index)


def test_published_file(real_data: Path, as_networkx) -> None:  # type: ignore[no-untyped-def]
    dataset = CSL(order="published").build(real_data)
    assert len(dataset) == 150
    assert dataset.targets.bincount().tolist() == [15] * 10
    assert {ring_edges_in_place(data) for data in dataset} <= set(range(36, 42))
    assert torch.cat([split.test for split in dataset.splits]).sort().values.tolist() == list(range(150))
    for index in range(3, 150, 15):
        original = nx.circulant_graph(NODES, [1, SKIPS[int(dataset[index].y)]])
        assert nx.is_isomorphic(as_networkx(dataset, index), original)
