"""Layouts are deterministic, keep neighbours near, and keep components apart."""

import networkx as nx
import numpy as np
import pytest
import torch

import gape
from gape.explorer.layout import MAX_STRESS_NODES, layout


def lengths(graph, places):
    source, target = graph.edge_index.numpy()
    return np.linalg.norm(places[source] - places[target], axis=1)


def test_the_same_graph_gets_the_same_picture_whatever_the_order_of_its_edges():
    graph = gape.as_graph(nx.random_regular_graph(3, 40, seed=1))
    shuffled = gape.Graph(graph.edge_index[:, torch.randperm(graph.num_edges)], graph.num_nodes)
    assert np.array_equal(layout(graph), layout(graph))
    assert np.allclose(layout(graph), layout(shuffled))


def test_a_cycle_becomes_a_circle_and_a_path_a_line():
    circle = layout(gape.as_graph(nx.cycle_graph(30)))
    radius = np.linalg.norm(circle - circle.mean(0), axis=1)
    assert radius.std() < 0.02 * radius.mean()
    line = layout(gape.as_graph(nx.path_graph(12)))
    assert np.ptp(line[:, 1]) < 0.1 * np.ptp(line[:, 0])
    steps = np.diff(line[:, 0])
    assert (steps > 0.5).all() or (steps < -0.5).all()


@pytest.mark.parametrize("nodes", [30, MAX_STRESS_NODES + 200])
def test_neighbours_are_nearer_than_other_nodes(nodes):
    """By stress majorisation and by forces."""
    graph = gape.as_graph(nx.connected_watts_strogatz_graph(nodes, 4, 0.05, seed=0))
    places = layout(graph)
    generator = np.random.default_rng(0)
    u, v = generator.integers(0, nodes, (2, 2000))
    assert np.isfinite(places).all()
    assert np.median(lengths(graph, places)) < 0.4 * np.median(np.linalg.norm(places[u] - places[v], axis=1)[u != v])


def test_communities_of_a_large_graph_lie_apart():
    blocks = nx.stochastic_block_model([300, 300, 300], np.full((3, 3), 0.001) + 0.04 * np.eye(3), seed=0)
    places = layout(gape.as_graph(blocks))
    community = np.repeat([0, 1, 2], 300)
    centres = np.stack([np.median(places[community == c], axis=0) for c in range(3)])
    nearest = np.linalg.norm(places[:, None] - centres, axis=2).argmin(1)
    assert (nearest == community).mean() > 0.9


def test_graphs_and_components_do_not_overlap():
    parts = [nx.cycle_graph(5), nx.disjoint_union(nx.path_graph(4), nx.empty_graph(3)), nx.complete_graph(6)]
    batch = gape.as_graph(parts)
    places = layout(batch)
    boxes = [places[batch.batch.numpy() == i] for i in range(3)]
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            apart = (a.min(0) > b.max(0)) | (b.min(0) > a.max(0))
            assert apart.any()
    assert len(np.unique(places.round(6), axis=0)) == batch.num_nodes


@pytest.mark.parametrize("nodes", [1, 2, 3])
def test_tiny_graphs_have_places(nodes):
    places = layout(gape.as_graph(nx.path_graph(nodes)))
    assert places.shape == (nodes, 2)
    assert np.isfinite(places).all()
