"""PATTERN and CLUSTER against the published statistics and the model's own probabilities."""

import pytest
import torch

from gape.data import Cluster, GraphDataset, Pattern


def edge_rate(dataset: GraphDataset, first: torch.Tensor, second: torch.Tensor) -> tuple[float, float]:
    """Share of node pairs joined by an edge: pairs inside ``first``, and pairs between ``first`` and ``second``."""
    batch = dataset.batch()
    source, target = batch.edge_index
    a = torch.zeros(len(dataset)).index_add(0, batch.batch, first.float())
    b = torch.zeros(len(dataset)).index_add(0, batch.batch, second.float())
    inside = (first[source] & first[target]).sum() / (a * (a - 1)).sum()
    across = (first[source] & second[target]).sum() / (a * b).sum()
    return float(inside), float(across)


@pytest.fixture(scope="module")
def pattern() -> GraphDataset:
    return Pattern(train=8, val=1, test=1, seed=3).build(cache=False)


@pytest.fixture(scope="module")
def cluster() -> GraphDataset:
    return Cluster(train=600, val=100, test=100, seed=3).build(cache=False)


def test_pattern_has_published_size(pattern: GraphDataset) -> None:
    # Published: 118.89 nodes, 6098.9 directed edges. The mean of 100 pattern sizes alone has s.d. 0.87.
    assert abs(float(pattern.node_counts.float().mean()) - 118.89) < 5
    assert abs(float(pattern.edge_counts.float().mean()) / 6098.9 - 1) < 0.1
    assert int(pattern.node_counts.min()) >= 30
    assert int(pattern.node_counts.max()) <= 204


def test_pattern_edge_probabilities(pattern: GraphDataset) -> None:
    planted = pattern.targets == 1
    inside, across = edge_rate(pattern, planted, ~planted)
    assert abs(inside - 0.5) < 0.02
    assert abs(across - 0.5) < 0.01
    # Two nodes outside: the same community with chance Σ s²/(Σ s)², so between 0.35 and 0.5.
    outside, _ = edge_rate(pattern, ~planted, planted)
    assert 0.37 < outside < 0.40


def test_pattern_is_the_same_in_all_its_graphs() -> None:
    dataset = Pattern(train=4, val=2, test=2, patterns=1, seed=0).build(cache=False)
    inner = set()
    for data in dataset:
        member = data.y.bool()
        edges = data.edge_index[:, member[data.edge_index[0]] & member[data.edge_index[1]]]
        degrees = edges[0].bincount(minlength=len(member))[member]
        inner.add(tuple(sorted(zip(data.x[member, 0].tolist(), degrees.tolist(), strict=True))))
    assert len(inner) == 1


def test_pattern_features_say_nothing(pattern: GraphDataset) -> None:
    shares = pattern.batch().x[:, 0].bincount() / pattern.node_counts.sum()
    assert (shares - 1 / 3).abs().max() < 0.02


def test_cluster_has_published_size(cluster: GraphDataset) -> None:
    # Published: 117.2 nodes, 4303.9 directed edges; the mean of 800 sums of six sizes has s.d. 0.75.
    assert abs(float(cluster.node_counts.float().mean()) - 117.2) < 3
    assert abs(float(cluster.edge_counts.float().mean()) / 4303.9 - 1) < 0.05


def test_cluster_edge_probabilities(cluster: GraphDataset) -> None:
    for community in range(6):
        inside, across = edge_rate(cluster, cluster.targets == community, cluster.targets != community)
        assert abs(inside - 0.55) < 0.02
        assert abs(across - 0.25) < 0.01


def test_cluster_shows_one_member_of_every_community(cluster: GraphDataset) -> None:
    for data in cluster[:50]:
        known = data.x[:, 0] > 0
        assert sorted(data.x[known, 0].tolist()) == [1, 2, 3, 4, 5, 6]
        assert torch.equal(data.x[known, 0] - 1, data.y[known])


def test_nodes_are_shuffled(cluster: GraphDataset) -> None:
    changes = [(data.y.diff() != 0).float().mean() for data in cluster[:50]]
    assert sum(changes) / 50 > 0.6


@pytest.mark.parametrize("settings", [Pattern(train=1, val=1, test=1, patterns=3), Cluster(train=3, val=1, test=1)])
def test_same_seed_same_graphs(settings: Pattern | Cluster) -> None:
    first, second = settings.build(cache=False).batch(), settings.build(cache=False).batch()
    assert torch.equal(first.edge_index, second.edge_index)
    assert torch.equal(first.x, second.x)


@pytest.mark.slow
def test_published_splits_at_full_size() -> None:
    assert repr(Pattern().build(cache=False).splits[0]) == "Split(train=10000, val=2000, test=2000)"
    assert repr(Cluster().build(cache=False).splits[0]) == "Split(train=10000, val=1000, test=1000)"
