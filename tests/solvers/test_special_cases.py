"""Known encodings as automata, exactly (the table of special cases)."""

import networkx as nx
import numpy as np
import pytest
import torch

import gape
from gape.graph.labels import IndexLabels


def test_proposition_1_sinusoidal_encodings_are_the_sinusoidal_automaton_on_a_path():
    length, k = 200, 16
    path = gape.Graph.from_edges([(i, i + 1) for i in range(length - 1)], labels=[0] + [1] * (length - 1))
    weights = gape.solve(gape.Automaton.sinusoidal(k), path).weights.numpy()
    position = np.arange(length)[:, None]
    angle = position / 10000 ** (np.arange(0, k, 2) / k)
    expected = np.zeros((length, k))
    expected[:, 0::2], expected[:, 1::2] = np.sin(angle), np.cos(angle)
    np.testing.assert_allclose(weights, expected, atol=1e-12)


@pytest.mark.parametrize("directed", [False, True])
def test_pagerank_automaton_is_personalised_pagerank(directed):
    graph = nx.gnp_random_graph(12, 0.35, seed=4, directed=directed)
    assert all(degree > 0 for _, degree in (graph.out_degree() if directed else graph.degree()))
    walker = gape.as_graph(graph).with_labels(IndexLabels(12))
    weights = gape.solve(gape.Automaton.pagerank(12, beta=0.2), walker, matrix="random_walk").weights.numpy()
    for u in range(12):
        expected = nx.pagerank(graph, alpha=0.8, personalization={u: 1.0}, tol=1e-14, max_iter=1000)
        np.testing.assert_allclose(weights[:, u], [expected[v] for v in range(12)], atol=1e-11)


def test_katz_automaton_is_katz_centrality():
    graph = nx.gnp_random_graph(15, 0.3, seed=1, directed=True)
    beta = 0.05
    expected = nx.katz_centrality_numpy(graph, alpha=beta, beta=1.0, normalized=False)
    weights = gape.solve(gape.Automaton.katz(beta), graph).weights.flatten().numpy()
    np.testing.assert_allclose(weights, [expected[v] for v in graph.nodes], atol=1e-10)


def test_shift_automaton_counts_walks_of_each_length():
    graph = nx.gnp_random_graph(9, 0.4, seed=7, directed=True)
    weights = gape.solve(gape.Automaton.shift(5), graph).weights.numpy()
    matrix = nx.to_numpy_array(graph)
    expected = np.stack([np.linalg.matrix_power(matrix, t).sum(0) for t in range(6)], 1)
    np.testing.assert_allclose(weights, expected, atol=1e-8)


def test_translation_automaton_starts_on_the_first_token_only():
    path = gape.Graph.from_edges([(i, i + 1) for i in range(30)], labels=[0] + [1] * 30)
    automaton = gape.Automaton.random(states=6, damping=1.0, labels=2, initial_labels=(0,), seed=5)
    weights = gape.solve(automaton, path).weights
    row, mu = automaton.initial[:, 0], automaton.transition
    for position in range(31):
        assert torch.allclose(weights[position], row, atol=1e-12)
        row = row @ mu


def test_one_label_is_blind_on_regular_graphs():
    # The encoding is a linear map of walk counts, hence constant on a 4-regular graph (CSL): bounded by 1-WL.
    graph = nx.circulant_graph(41, [1, 5])
    weights = gape.solve(gape.Automaton.random(states=8, damping=0.02), graph).weights
    assert torch.allclose(weights, weights[:1].expand_as(weights), atol=1e-12)


def test_laplacian_eigenvectors_solve_the_sourceless_equation():
    graph = gape.as_graph(nx.gnp_random_graph(10, 0.5, seed=2))
    values, vectors = np.linalg.eigh(graph.walk("laplacian").dense()[0].numpy())
    keep = values > 1e-9
    p, mu = vectors[:, keep].T, np.diag(1 / values[keep])
    pulled = graph.walk("laplacian").push(torch.from_numpy(p.T.copy())).numpy().T
    np.testing.assert_allclose(mu @ pulled, p, atol=1e-12)
