"""Return probabilities of random walks: weights, types, and estimates with their standard errors."""

import numpy as np
import pytest
import torch

from gape import Graph
from gape.encodings import RandomWalk, estimate_random_walk
from tests.encodings.samples import random_graph

F64 = torch.float64


def test_random_walk_honours_edge_weights():
    light_heavy = Graph.from_edges([(0, 1), (0, 2)], undirected=True, edge_weight=torch.tensor([1.0, 3.0]))
    # From 0 to a neighbour and back: always, since leaves have nowhere else to go; from a leaf: by weight.
    np.testing.assert_allclose(RandomWalk(2, dtype=F64)(light_heavy)[:, 1], [1.0, 0.25, 0.75], rtol=1e-14)


def test_random_walk_is_right_below_total_weight_one():
    graph = random_graph(10, 0.4, 0, weighted=True)
    tiny = Graph(graph.edge_index, 10, edge_weight=graph.edge_weight * 1e-9)
    torch.testing.assert_close(RandomWalk(dtype=F64)(tiny), RandomWalk(dtype=F64)(graph), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("scale", [1e-60, 1e-42, 1e38, 1e200])
@pytest.mark.parametrize("undirected", [True, False])
def test_random_walk_in_float32_is_right_for_weights_beyond_float32(scale, undirected):
    graph = random_graph(10, 0.4, 0, undirected=undirected, weighted=True)
    weight = graph.edge_weight * scale
    weight[graph.edge_index.amax(0) < 5] *= 1e-50  # and for weights of all sizes in one graph
    scaled = Graph(graph.edge_index, 10, edge_weight=weight)
    exact = RandomWalk(dtype=F64)(scaled)
    torch.testing.assert_close(RandomWalk()(scaled).double(), exact, rtol=1e-5, atol=1e-6)


def test_random_walk_refuses_large_graphs_and_names_the_way_out():
    graph = Graph.from_edges([(i, i + 1) for i in range(60_000)], undirected=True)
    with pytest.raises(ValueError, match=r"60001 nodes.* needs .* GiB .*estimate_random_walk"):
        RandomWalk()(graph)


@pytest.mark.parametrize("undirected", [True, False])
def test_the_standard_error_of_an_estimate_is_one(undirected):
    # Over many seeds: errors divided by what is stated of them have mean 0 and variance 1.
    graph = random_graph(30, 0.15, 2, undirected=undirected)
    exact = RandomWalk(5, dtype=torch.float64)(graph)
    found = [estimate_random_walk(graph, 5, samples=256, seed=seed) for seed in range(20)]
    error = torch.stack([one.values - exact for one in found])
    stated = torch.stack([one.standard_error for one in found])
    assert bool((error[stated < 1e-12].abs() < 1e-12).all())
    ratio = error[stated >= 1e-12] / stated[stated >= 1e-12]
    assert abs(float(ratio.mean())) < 0.1
    assert 0.85 < float(ratio.std()) < 1.15
    assert float((ratio.abs() < 2).double().mean()) > 0.93


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"length": 2.5}, r"length must be a whole number, got 2\.5"),
        ({"length": 0}, "length must be at least 1, got 0"),
        ({"samples": 40.0}, r"samples must be a whole number, got 40\.0"),
    ],
)
def test_settings_of_an_estimate_are_whole_numbers(settings, message):
    with pytest.raises(ValueError, match=message):
        estimate_random_walk(random_graph(5, 0.5, 0), **settings)


def test_too_few_samples_to_tell_their_error_are_refused():
    with pytest.raises(ValueError, match="samples must be at least 32, got 8"):
        estimate_random_walk(random_graph(5, 0.5, 0), 3, samples=8)
    with pytest.raises(ValueError, match=r"seed must be a whole number, got 0\.5"):
        estimate_random_walk(random_graph(5, 0.5, 0), 3, seed=0.5)
    assert estimate_random_walk(random_graph(5, 0.5, 0), 3, samples=32, seed=2**62).values.shape == (5, 3)


@pytest.mark.parametrize("undirected", [True, False])
def test_estimated_random_walk_is_right_within_its_standard_error(undirected):
    graph = random_graph(40, 0.15, 2, undirected=undirected, weighted=True)
    exact = RandomWalk(10, dtype=torch.float64)(graph)
    found = estimate_random_walk(graph, 10, samples=1000, seed=1)
    error = (found.values - exact).abs() / (found.standard_error + 1e-12)
    assert float(error.max()) < 5.5
    assert float((error < 2).double().mean()) > 0.9
    assert float(found.standard_error.max()) < 0.06
    assert torch.equal(found.values, estimate_random_walk(graph, 10, samples=1000, seed=1).values)
    assert not torch.equal(found.values, estimate_random_walk(graph, 10, samples=1000, seed=2).values)
