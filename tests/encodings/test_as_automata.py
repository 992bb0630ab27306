"""Other encodings equal readouts of automata (§3.3 of the paper)."""

import functools

import networkx as nx
import numpy as np
import pytest
import torch

import gape
from gape import Automaton, Graph
from gape.encodings import (
    Laplacian,
    PageRank,
    PageRankPowers,
    Pairs,
    RandomWalk,
    RelativeRandomWalk,
    Sinusoidal,
    sequence_graph,
)
from tests.encodings.samples import random_graph

closed, pair = (functools.partial(gape.solve, readout=name) for name in ("closed", "pair"))

F64 = torch.float64
GRAPHS = [
    random_graph(n, p, seed, undirected=undirected, weighted=weighted, loops=weighted)
    for seed, (n, p) in enumerate([(9, 0.4), (14, 0.2), (23, 0.15)])
    for undirected in (True, False)
    for weighted in (True, False)
]


def walk_matrix(graph: Graph) -> np.ndarray:
    """D⁻¹A by NumPy."""
    weights = np.zeros((graph.num_nodes,) * 2)
    values = np.ones(graph.num_edges) if graph.edge_weight is None else graph.edge_weight.numpy()
    np.add.at(weights, tuple(graph.edge_index.numpy()), values)
    degree = weights.sum(1, keepdims=True)
    return np.divide(weights, degree, out=np.zeros_like(weights), where=degree > 0)


def close(ours, other) -> None:
    torch.testing.assert_close(torch.as_tensor(ours), torch.as_tensor(other), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("graph", GRAPHS)
def test_closed_shift_automaton_is_random_walk_encoding(graph):
    ours = RandomWalk(20, dtype=F64)(graph)
    close(closed(Automaton.shift(20), graph, matrix="random_walk").weights[:, 1:], ours)
    matrix = walk_matrix(graph)
    close(ours, np.stack([np.diag(np.linalg.matrix_power(matrix, t)) for t in range(1, 21)], 1))


@pytest.mark.parametrize("graph", GRAPHS)
def test_pair_readout_of_shift_automaton_is_relative_random_walk(graph):
    powers = pair(Automaton.shift(6), graph, matrix="random_walk").weights.reshape(graph.num_nodes, graph.num_nodes, 7)
    matrix = walk_matrix(graph)
    close(powers, np.stack([np.linalg.matrix_power(matrix, t) for t in range(7)], -1))
    close(RelativeRandomWalk(7, dtype=F64)(graph).matrices()[0], powers)
    close(RelativeRandomWalk(7, readout="closed", dtype=F64)(graph), powers.diagonal().T)


@pytest.mark.parametrize("graph", GRAPHS)
def test_pagerank_is_an_automaton(graph):
    n, beta = graph.num_nodes, 0.15
    ours = PageRank(beta, dangling="stop", dtype=F64)(graph).matrices()[0]
    labelled = graph.with_labels(torch.arange(n))
    close(gape.solve(Automaton.pagerank(n, beta), labelled, matrix="random_walk").weights.T, ours)
    one_state = Automaton([[beta]], [[1 - beta]])
    close(pair(one_state, graph, matrix="random_walk").weights.reshape(n, n), ours)


@pytest.mark.parametrize("graph", GRAPHS)
def test_pagerank_is_networkx_pagerank(graph):
    weights = walk_matrix(graph)
    other = nx.from_numpy_array(weights, create_using=nx.DiGraph)
    ours = PageRank(0.2, dtype=F64)(graph).matrices()[0]
    for u in range(graph.num_nodes):
        ranks = nx.pagerank(other, alpha=0.8, personalization={u: 1.0}, tol=1e-14, max_iter=2000)
        close(ours[u], np.array([ranks[v] for v in range(graph.num_nodes)]))


@pytest.mark.parametrize("graph", GRAPHS)
def test_pprp_is_the_closed_readout_of_an_automaton_on_powers(graph):
    beta, matrix = 0.9, walk_matrix(graph)
    ours = PageRankPowers(7, beta, scale=False, dtype=F64)(graph)
    machine = Automaton([[beta]], [[1 - beta]])
    for i in range(1, 8):
        power = np.linalg.matrix_power(matrix, i)
        index = np.stack(np.nonzero(power))
        walked = Graph(index, graph.num_nodes, edge_weight=power[tuple(index)])
        close(closed(machine, walked).weights[:, 0], ours[:, i - 1])
        close(np.diag(beta * np.linalg.inv(np.eye(len(power)) - (1 - beta) * power)).copy(), ours[:, i - 1])


def test_pprp_is_random_walk_up_to_scale_when_beta_is_near_one():
    # The remark of §3.3.3: the relative values are nearly identical.
    graph = random_graph(20, 0.2, 5)
    walk = RandomWalk(8, dtype=F64)(graph)
    low, high = walk.aminmax(dim=1, keepdim=True)
    scaled = (walk - low) / torch.where(high > low, high - low, 1.0)
    torch.testing.assert_close(PageRankPowers(8, 0.999, dtype=F64)(graph), scaled, rtol=0, atol=2e-3)


@pytest.mark.parametrize("nodes", [1, 2, 37])
def test_sinusoidal_is_an_automaton_on_a_path(nodes):
    path = sequence_graph("path", nodes, directed=True)
    labels = torch.ones(nodes, dtype=torch.int64)
    labels[0] = 0
    weights = gape.solve(Automaton.sinusoidal(16), path.with_labels(labels)).weights
    close(weights, Sinusoidal(16, dtype=F64)(path))


@pytest.mark.parametrize("kind", ["normalized", "combinatorial"])
def test_laplacian_eigenvectors_solve_the_walk_equation_without_source(kind):
    # P = μPL with μ = Λ⁻¹ and α = 0.
    for graph in (random_graph(12, 0.4, 1), random_graph(30, 0.2, 2, weighted=True)):
        found = Laplacian(5, kind, dtype=F64).eigenpairs(graph)
        edges = zip(*graph.edge_index.tolist(), graph.adjacency.weights.tolist(), strict=True)
        other = nx.Graph()
        other.add_nodes_from(range(graph.num_nodes))
        other.add_weighted_edges_from(edges)
        laplacian = nx.laplacian_matrix if kind == "combinatorial" else nx.normalized_laplacian_matrix
        walked = torch.from_numpy(laplacian(other).toarray().astype(float)).T @ found.vectors
        close(walked / found.values[0], found.vectors)


def test_katz_centrality_is_networkx():
    graph = random_graph(10, 0.3, 4, undirected=False)
    other = nx.DiGraph(list(map(tuple, graph.edge_index.T.tolist())))
    other.add_nodes_from(range(10))
    ranks = nx.katz_centrality_numpy(other, alpha=0.1, beta=1.0, normalized=False)
    scale = gape.solve(Automaton.katz(0.1), graph).weights[:, 0]
    ours = torch.tensor([ranks[v] for v in range(10)], dtype=F64)
    close(scale / scale.norm(), ours / ours.norm())


def test_pairs_sum_to_the_node_readout():
    graph = random_graph(9, 0.4, 7, undirected=False)
    machine = Automaton.random(5, 0.3, seed=1)
    table = Pairs(pair(machine, graph).weights, graph.sizes).matrices()[0]
    close(table.sum(0), gape.solve(machine, graph).weights)
    close(table.diagonal().T, closed(machine, graph).weights)
