"""Heat kernels, resistances, potentials and communicability against NetworkX, SciPy and automata."""

import math

import networkx as nx
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
import torch

import gape
from gape import Automaton, Graph
from gape.encodings import Communicability, EffectiveResistance, Electrostatic, HeatKernel
from tests.encodings.samples import random_graph

F64 = torch.float64
CONNECTED = [random_graph(n, 1 / n + 0.5, 3, weighted=weighted) for n in (2, 9, 17) for weighted in (True, False)]
LOOPS = [random_graph(11, 0.4, 5, weighted=True, loops=True)]
DISCONNECTED = [random_graph(12, 0.08, seed, weighted=True) for seed in range(3)]


def close(ours, other) -> None:
    torch.testing.assert_close(torch.as_tensor(ours), torch.as_tensor(other), rtol=1e-9, atol=1e-9)


def adjacency(graph: Graph) -> np.ndarray:
    weights = np.zeros((graph.num_nodes,) * 2)
    np.add.at(weights, tuple(graph.edge_index.numpy()), graph.adjacency.weights.numpy())
    return weights


def networkx(graph: Graph) -> nx.Graph:
    return nx.from_numpy_array(adjacency(graph))


def matrix(pairs) -> torch.Tensor:
    return pairs.matrices()[0].squeeze(-1)


# ---------------------------------------------------------------------- heat


@pytest.mark.parametrize("graph", [*CONNECTED, *DISCONNECTED])
@pytest.mark.parametrize("kind", ["normalized", "combinatorial"])
def test_heat_is_the_exponential_of_networkx_laplacian(graph, kind):
    make = nx.normalized_laplacian_matrix if kind == "normalized" else nx.laplacian_matrix
    laplacian = make(networkx(graph)).toarray().astype(float)
    times = (0.0, 0.3, 2.0, 11.0)
    expected = np.stack([scipy.linalg.expm(-t * laplacian) for t in times], -1)
    close(HeatKernel(times, kind, readout="pair", dtype=F64)(graph).matrices()[0], expected)
    close(HeatKernel(times, kind, dtype=F64)(graph), np.stack([np.diag(expected[..., i]) for i in range(4)], -1))


@pytest.mark.parametrize("graph", CONNECTED)
@pytest.mark.parametrize("readout", ["closed", "pair"])
def test_heat_is_a_readout_of_the_shift_automaton(graph, readout):
    # exp(-tL) = e⁻ᵗ Σ tᵏ/k! Mᵏ with M = I - L; 60 steps leave less than 1e-12 at t = 5.
    times = (0.5, 5.0)
    walks = gape.solve(Automaton.shift(60), graph, readout=readout, matrix="symmetric").weights
    poisson = [[math.exp(-t + k * math.log(t) - math.lgamma(k + 1)) for t in times] for k in range(61)]
    found = HeatKernel(times, readout=readout, dtype=F64)(graph)
    close(found.values if readout == "pair" else found, walks @ torch.tensor(poisson, dtype=F64))


# ---------------------------------------------------------------------- resistance


@pytest.mark.parametrize("graph", CONNECTED)
def test_resistance_is_networkx_resistance_distance(graph):
    found = matrix(EffectiveResistance(dtype=F64)(graph))
    expected = nx.resistance_distance(networkx(graph), weight="weight", invert_weight=False)
    nodes = range(graph.num_nodes)
    close(found, np.array([[expected[u][v] for v in nodes] for u in nodes]))


@pytest.mark.parametrize("graph", CONNECTED)
def test_mean_resistance_is_networkx_information_centrality(graph):
    found = EffectiveResistance(readout="node", dtype=F64)(graph)[:, 0]
    expected = nx.information_centrality(networkx(graph), weight="weight")
    close(found, np.array([1 / expected[v] / (graph.num_nodes - 1) for v in range(graph.num_nodes)]))


@pytest.mark.parametrize("graph", [*CONNECTED, *LOOPS])
def test_commute_time_is_the_mean_of_the_walk_there_and_back(graph):
    weights, n = adjacency(graph), graph.num_nodes
    walk = weights / weights.sum(1, keepdims=True)
    hitting = np.zeros((n, n))
    for target in range(n):
        others = np.arange(n) != target
        left = np.eye(n - 1) - walk[others][:, others]
        hitting[others, target] = np.linalg.solve(left, np.ones(n - 1))
    close(matrix(EffectiveResistance(commute=True, dtype=F64)(graph)), hitting + hitting.T)


@pytest.mark.parametrize("graph", CONNECTED)
def test_resistance_is_a_closed_readout_where_the_other_node_absorbs(graph):
    # Visits of u to itself before v, divided by the degree of u: runs of one state that never leave v.
    found, degree = matrix(EffectiveResistance(dtype=F64)(graph)), adjacency(graph).sum(1)
    walk = adjacency(graph) / degree[:, None]
    for v in range(graph.num_nodes):
        absorbed = walk.copy()
        absorbed[v] = 0.0
        visits = gape.solve(Automaton.katz(1.0), scipy.sparse.csr_array(absorbed), readout="closed").weights[:, 0]
        close(np.delete(visits.numpy() / degree, v), np.delete(found[:, v].numpy(), v))


@pytest.mark.parametrize("graph", DISCONNECTED)
@pytest.mark.parametrize("commute", [True, False])
def test_components_have_the_resistances_they_have_alone(graph, commute):
    components = [sorted(nodes) for nodes in nx.connected_components(networkx(graph))]
    assert len(components) > 1
    found = matrix(EffectiveResistance(commute, unreachable=math.inf, dtype=F64)(graph))
    expected = torch.full_like(found, math.inf)
    for nodes in components:
        alone = gape.as_graph(scipy.sparse.csr_array(adjacency(graph)[np.ix_(nodes, nodes)]))
        expected[np.ix_(nodes, nodes)] = matrix(EffectiveResistance(commute, dtype=F64)(alone))
    close(found, expected)


# ---------------------------------------------------------------------- electrostatic


def potentials(graph: Graph) -> torch.Tensor:
    """L⁺_uv - L⁺_vv by NumPy's pseudo-inverse."""
    weights = adjacency(graph)
    np.fill_diagonal(weights, 0.0)
    inverse = np.linalg.pinv(np.diag(weights.sum(1)) - weights, hermitian=True)
    return torch.from_numpy(inverse - np.diag(inverse))


@pytest.mark.parametrize("graph", [*CONNECTED, *LOOPS, *DISCONNECTED])
def test_electrostatic_pairs_are_the_pseudo_inverse(graph):
    expected = potentials(graph)
    component = np.zeros(graph.num_nodes, dtype=int)
    for i, nodes in enumerate(nx.connected_components(networkx(graph))):
        component[list(nodes)] = i
    expected[torch.from_numpy(component[:, None] != component)] = 0.0
    close(matrix(Electrostatic(readout="pair", dtype=F64)(graph)), expected)


@pytest.mark.parametrize("graph", [*CONNECTED, *LOOPS])
def test_electrostatic_has_the_statistics_of_graphgps_with_its_sixth_column_corrected(graph):
    table, weights = potentials(graph), torch.from_numpy(adjacency(graph))
    weights.fill_diagonal_(0.0)
    near = weights / weights.sum(1, keepdim=True) * table
    columns = [f(table, dim) for dim in (0, 1) for f in (torch.amin, torch.amax, torch.mean, torch.std)]
    close(Electrostatic(dtype=F64)(graph), torch.stack([*columns, near.sum(0), near.sum(1)], 1))


def test_potential_differences_are_resistances():
    graph = random_graph(13, 0.4, 1, weighted=True)
    table = matrix(Electrostatic(readout="pair", dtype=F64)(graph))
    close(-(table + table.T), matrix(EffectiveResistance(dtype=F64)(graph)))


# ---------------------------------------------------------------------- communicability

DIRECTED = [random_graph(11, 0.3, 7, undirected=False, weighted=weighted) for weighted in (True, False)]
ACYCLIC = [Graph.from_edges([(0, 1), (1, 2), (0, 2), (2, 3)])]


def test_communicability_is_networkx():
    graph = random_graph(12, 0.3, 2)
    nodes, other = range(graph.num_nodes), networkx(graph)
    expected, own = nx.communicability_exp(other), nx.subgraph_centrality_exp(other)
    settings = {"betas": (1.0,), "relative": False, "dtype": F64}
    table = np.array([[expected[u][v] for v in nodes] for u in nodes])
    close(matrix(Communicability(readout="pair", **settings)(graph)), table)
    close(Communicability(**settings)(graph)[:, 0], np.array([own[v] for v in nodes]))


@pytest.mark.parametrize("graph", [*CONNECTED, *LOOPS, *DISCONNECTED, *DIRECTED, *ACYCLIC])
@pytest.mark.parametrize("series", ["exponential", "resolvent"])
@pytest.mark.parametrize("relative", [True, False])
def test_communicability_is_a_matrix_function(graph, series, relative):
    weights = adjacency(graph)
    radius = np.abs(np.linalg.eigvals(weights)).max()
    scaled = weights / radius if relative and radius > 1e-3 else weights
    betas = (0.02, 0.07) if series == "resolvent" else (0.3, 2.0)
    matrices = [
        scipy.linalg.expm(b * scaled) if series == "exponential" else np.linalg.inv(np.eye(len(weights)) - b * scaled)
        for b in betas
    ]
    found = Communicability(betas, series, relative, readout="pair", dtype=F64)(graph).matrices()[0]
    close(found, np.stack(matrices, -1))
    close(Communicability(betas, series, relative, dtype=F64)(graph), found.diagonal().T)


@pytest.mark.parametrize("graph", [*CONNECTED, *DIRECTED])
@pytest.mark.parametrize("readout", ["closed", "pair"])
def test_communicability_is_a_readout_of_automata(graph, readout):
    def found(series, beta):
        result = Communicability((beta,), series, False, readout=readout, dtype=F64)(graph)
        return result.values if readout == "pair" else result

    close(found("resolvent", 0.05), gape.solve(Automaton.katz(0.05), graph, readout=readout).weights)
    walks = gape.solve(Automaton.shift(60), graph, readout=readout).weights
    factorials = torch.tensor([[0.5**k / math.factorial(k)] for k in range(61)], dtype=F64)
    close(found("exponential", 0.5), walks @ factorials)


def test_series_that_diverge_are_refused_before_work_with_the_beta_that_does_not():
    ring = Graph.from_edges([(i, (i + 1) % 5) for i in range(5)], undirected=True)
    heavy = Graph.from_edges([(0, 1)], undirected=True, edge_weight=[500.0])
    with pytest.raises(ValueError, match=r"diverges for beta=0.5: graph 1 has ρ\(A\) = 2, so take betas below 0.5"):
        Communicability((0.1, 0.5), "resolvent", relative=False)([Graph.from_edges([(0, 1)]), ring])
    with pytest.raises(ValueError, match=r"overflows for beta=1: graph 0 has ρ\(A\) = 500, so take betas below 0.177"):
        Communicability((1.0,), relative=False)(heavy)
    assert torch.isfinite(Communicability((1.0,), relative=False, dtype=F64)(heavy)).all()
    assert torch.isfinite(Communicability((1.0,))(heavy)).all()
