"""Encodings made for directed graphs: singular vectors, magnetic Laplacians and walk profiles."""

import itertools
import math

import networkx as nx
import numpy as np
import pytest
import torch

import gape
from gape import Graph
from gape.encodings import Laplacian, MagneticLaplacian, SingularVectors, Spectrum, WalkProfile
from gape.encodings.walk_profile import both_ways
from gape.linalg.eigenpairs import fix_phases
from tests.encodings.samples import permuted, random_graph

F64 = torch.float64
GRAPHS = [
    random_graph(n, 0.4, 1, undirected=False, weighted=weighted, loops=loops)
    for n in (2, 7, 13)
    for weighted in (True, False)
    for loops in (True, False)
]
# Two directed triangles: every eigenvalue of the magnetic Laplacian is double, with complex eigenvectors.
TRIANGLES = Graph.from_edges([(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)])


def close(ours, other, tolerance=1e-9) -> None:
    torch.testing.assert_close(torch.as_tensor(ours), torch.as_tensor(other), rtol=tolerance, atol=tolerance)


def adjacency(graph: Graph) -> np.ndarray:
    weights = np.zeros((graph.num_nodes,) * 2)
    np.add.at(weights, tuple(graph.edge_index.numpy()), graph.adjacency.weights.numpy())
    return weights


# ---------------------------------------------------------------------- svd


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("rank", [2, 20])
def test_singular_vectors_give_the_best_approximation_of_the_adjacency(graph, rank):
    rows = SingularVectors(rank, dtype=F64)(graph).numpy()
    left, right = rows[:, :rank], rows[:, rank:]
    u, s, vt = np.linalg.svd(adjacency(graph))
    s[rank:] = 0.0
    if rank >= len(s) or s[rank - 1] > s[rank] + 1e-6:
        close(left @ right.T, (u * s) @ vt)
    # Columns are orthogonal with the singular values as squared lengths.
    for side in (left, right):
        close(side.T @ side, np.diag(np.pad(s, (0, max(0, rank - len(s))))[:rank]))


def test_singular_vectors_of_large_sparse_graphs_are_those_of_dense_ones():
    graph = random_graph(700, 0.01, 0, undirected=False, weighted=True)
    rows = SingularVectors(5, dtype=F64)(graph).numpy()
    u, s, vt = np.linalg.svd(adjacency(graph))
    close(rows[:, :5] @ rows[:, 5:].T, (u[:, :5] * s[:5]) @ vt[:5], 1e-8)
    assert torch.equal(SingularVectors(5, dtype=F64)(graph), torch.from_numpy(rows))
    small = random_graph(9, 0.5, 0, undirected=False, weighted=True)
    together = SingularVectors(5, dtype=F64)(Graph.union([small, graph, small]))
    close(together[9:709], rows)
    close(together[709:], SingularVectors(5, dtype=F64)(small))


@pytest.mark.parametrize("graph", GRAPHS)
def test_singular_vectors_solve_the_walk_equation_without_source(graph):
    # P = μPB with μ = Σ⁻¹ and α = 0, B walking from sources to targets and back.
    rows = SingularVectors(3, dtype=F64)(graph).numpy()
    values = np.linalg.svd(adjacency(graph), compute_uv=False)[:3]
    rank = int((values > 1e-9).sum())
    both = np.concatenate([rows[:, :rank], rows[:, 3 : 3 + rank]])
    empty = np.zeros_like(adjacency(graph))
    walk = np.block([[empty, adjacency(graph)], [adjacency(graph).T, empty]])
    close(walk.T @ both / values[:rank], both)


def test_multiple_singular_values_of_a_large_graph_are_all_found():
    # Four copies of one directed cycle with a chord: every singular value is there four times.
    ring = [(i, (i + 1) % 150) for i in range(150)] + [(0, 75)]
    graph = Graph.from_edges([(150 * copy + u, 150 * copy + v) for copy in range(4) for u, v in ring])
    rows = SingularVectors(4, dtype=F64)(graph).numpy()
    top = np.linalg.svd(adjacency(graph), compute_uv=False)[:4]
    close(rows[:, :4].T @ rows[:, :4], np.diag(top), 1e-8)


# ---------------------------------------------------------------------- magnetic


def magnetic_laplacian(graph: Graph, q: float, normalized: bool) -> np.ndarray:
    """The magnetic Laplacian as NetworkX documents it, entry by entry; NetworkX 3.6 does not have the function yet."""
    weights = adjacency(graph)
    other = nx.from_numpy_array(weights, create_using=nx.DiGraph)
    if hasattr(nx, "magnetic_laplacian_matrix"):
        return np.asarray(nx.magnetic_laplacian_matrix(other, normalized=normalized, q=q).todense())
    n = len(weights)
    hermitian = np.zeros((n, n), dtype=complex)
    for j, k in itertools.product(range(n), repeat=2):
        delta = int(other.has_edge(j, k)) - int(other.has_edge(k, j))
        hermitian[j, k] = (weights[j, k] + weights[k, j]) / 2 * np.exp(2j * math.pi * q * delta)
    degree = ((weights + weights.T) / 2).sum(1)
    laplacian = np.diag(degree) - hermitian
    root = np.diag([1 / math.sqrt(d) if d > 0 else 0.0 for d in degree])
    return root @ laplacian @ root if normalized else laplacian


@pytest.mark.parametrize("graph", [*GRAPHS, TRIANGLES])
@pytest.mark.parametrize("kind", ["normalized", "combinatorial"])
def test_magnetic_vectors_are_eigenvectors_of_networkx_matrix(graph, kind):
    potentials, k = (0.0, 0.1, 0.25), min(5, graph.num_nodes)
    encode = MagneticLaplacian(5, potentials, kind, dtype=F64)
    rows = encode(graph).numpy().reshape(graph.num_nodes, 3, 2, 5)
    for i, (q, found) in enumerate(zip(potentials, encode.eigenpairs(graph), strict=True)):
        matrix = magnetic_laplacian(graph, q, kind == "normalized")
        vectors = rows[:, i, 0] + 1j * rows[:, i, 1]
        close(found.vectors, vectors)
        close(found.values[0, :k], np.linalg.eigvalsh(matrix)[:k])
        close(matrix @ vectors[:, :k], vectors[:, :k] * found.values[0, :k].numpy())
        close(vectors[:, :k].conj().T @ vectors[:, :k], np.eye(k, dtype=complex))
        assert not vectors[:, k:].any()


def test_without_potential_or_directions_the_magnetic_laplacian_is_the_laplacian():
    directed, undirected = (random_graph(14, 0.4, 2, undirected=u, weighted=True) for u in (False, True))
    spectrum = Spectrum(6, symmetrize=True, unit_rows=False, dtype=F64)(directed)[..., 0]
    close(MagneticLaplacian(6, (0.0,), dtype=F64)(directed), torch.cat([spectrum, torch.zeros_like(spectrum)], 1))
    rows = MagneticLaplacian(6, (0.25,), dtype=F64)(undirected)
    close(rows[:, 1:6], Laplacian(5, dtype=F64)(undirected))
    assert not rows[:, 6:].any()


def test_phases_do_not_depend_on_the_phase_they_came_with():
    vectors = torch.randn(2, 6, 3, dtype=torch.complex128, generator=torch.Generator().manual_seed(0))
    turned = vectors * torch.exp(1j * torch.tensor([0.3, 2.0, -1.0], dtype=torch.complex128))
    close(fix_phases(turned), fix_phases(vectors))
    # A tie: entries that cancel.
    tie = torch.tensor([[[1.0], [-1.0]]], dtype=torch.complex128)
    close(fix_phases(tie * 1j), fix_phases(tie))


# ---------------------------------------------------------------------- walk profile


def enumerate_profile(graph: Graph, length: int, normalise: bool) -> np.ndarray:
    """Walk by walk: every sequence of letters F and B as a product of NumPy matrices, ``[n, n, features]``."""
    weights = adjacency(graph)
    degree = weights.sum(1) + weights.sum(0)
    scale = np.divide(1.0, degree, out=np.zeros_like(degree), where=degree > 0)[:, None] if normalise else 1.0
    letters = {"F": scale * weights, "B": scale * weights.T}
    steps = WalkProfile(length).steps
    out = np.zeros((*weights.shape, len(steps)))
    for total in range(length + 1):
        for word in itertools.product("FB", repeat=total):
            product = np.eye(len(weights))
            for letter in word:
                product = product @ letters[letter]
            out[..., steps.index((word.count("F"), word.count("B")))] += product
    return out


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("matrix", ["random_walk", "adjacency"])
def test_walk_profiles_are_sums_over_all_sequences_of_directions(graph, matrix):
    expected = enumerate_profile(graph, 4, matrix == "random_walk")
    close(WalkProfile(4, matrix, readout="pair", dtype=F64)(graph).matrices()[0], expected)
    close(WalkProfile(4, matrix, readout="closed", dtype=F64)(graph), np.einsum("vvc->vc", expected))
    close(WalkProfile(4, matrix, dtype=F64)(graph), expected.sum(0))


@pytest.mark.parametrize("graph", GRAPHS)
def test_pairs_of_walk_profiles_are_runs_of_the_typed_automaton(graph):
    # Started in one node only, the automaton gives one row of the pair readout.
    encode = WalkProfile(3, readout="pair", dtype=F64)
    table, machine = encode(graph).matrices()[0], encode.automaton
    assert machine.transition_by == "edge"
    for start in range(graph.num_nodes):
        rhs = torch.zeros(graph.num_nodes, machine.states, dtype=F64)
        rhs[start, 0] = 1.0
        solution = gape.solve(machine, both_ways(graph), rhs=rhs, matrix="random_walk")
        close(solution.weights, table[start])


@pytest.mark.parametrize("graph", [*GRAPHS, TRIANGLES])
@pytest.mark.filterwarnings("error")
def test_runs_of_the_typed_automaton_end_and_are_summed_exactly(graph):
    # States only grow, so a walk of more than 4 steps weighs nothing, whatever the spectral radius of the graph.
    solution = gape.solve(WalkProfile(4).automaton, both_ways(graph))
    assert solution.status == [gape.Status.RUN_SUM]
    assert solution.residual.tolist() == solution.spectral_radius.tolist() == [0.0]
    assert torch.equal(WalkProfile(4, "adjacency", dtype=F64)(graph), solution.weights)


@pytest.mark.parametrize("q", [0.0, 0.1, 0.25])
def test_walk_profiles_are_the_powers_of_the_magnetic_laplacian(q):
    # D - H = VΛV*, and every step forward turns by 2πq, every step backward by -2πq (Huang et al., 2025).
    graph = Graph.from_edges(
        [(0, 1), (1, 2), (2, 0), (0, 3), (4, 2), (3, 4)], edge_weight=[1.0, 0.5, 2.0, 1.5, 1.0, 0.7]
    )
    profile = WalkProfile(4, "adjacency", readout="pair", dtype=F64)
    table, both = profile(graph).matrices()[0].numpy(), adjacency(graph) + adjacency(graph).T
    (pairs,) = MagneticLaplacian(5, (q,), "combinatorial", dtype=F64).eigenpairs(graph)
    vectors, values = pairs.vectors.numpy(), pairs.values[0].numpy()
    twice = np.diag(both.sum(1)) - 2 * (vectors * values) @ vectors.conj().T
    for total in range(5):
        turned = sum(
            table[..., c] * np.exp(2j * math.pi * q * (i - j))
            for c, (i, j) in enumerate(profile.steps)
            if i + j == total
        )
        close(np.linalg.matrix_power(twice, total), turned)


def test_walk_profiles_sum_to_undirected_walks_and_see_directions():
    graph = random_graph(9, 0.3, 0, undirected=False)
    profile = WalkProfile(3, "adjacency", readout="pair", dtype=F64)
    table, both = profile(graph).matrices()[0], adjacency(graph) + adjacency(graph).T
    for total in range(4):
        columns = [c for c, (i, j) in enumerate(profile.steps) if i + j == total]
        close(table[..., columns].sum(-1), np.linalg.matrix_power(both, total))
    reverse = Graph(graph.edge_index.flip(0), graph.num_nodes)
    swap = [profile.steps.index((j, i)) for i, j in profile.steps]
    close(profile(reverse).matrices()[0], table[..., swap])


def test_directions_are_told_apart_where_an_undirected_encoding_cannot():
    # A directed triangle and an acyclic one are the same graph without directions.
    cycle, acyclic = Graph.from_edges([(0, 1), (1, 2), (2, 0)]), Graph.from_edges([(0, 1), (1, 2), (0, 2)])
    for encode in (WalkProfile(3, readout="closed"), MagneticLaplacian(3, (0.1,)), SingularVectors(3)):
        assert not torch.allclose(encode(cycle).sort(0).values, encode(acyclic).sort(0).values, atol=1e-3)
    order = torch.tensor([2, 0, 1])
    close(WalkProfile(3)(permuted(acyclic, order)), WalkProfile(3)(acyclic)[order])
