"""Laplacian eigenvectors and spectra against dense decompositions and PyG."""

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.transforms import AddLaplacianEigenvectorPE, AddRandomWalkPE

from gape import Graph, as_graph
from gape.encodings import Laplacian, RandomWalk, Spectrum, random_flips, sequence_graph, split_spectrum
from gape.encodings.laplacian import dense_eigenpairs
from gape.encodings.laplacian_matrix import LaplacianMatrix
from tests.encodings.samples import permuted, random_graph

F64 = torch.float64


@pytest.fixture
def _double():
    """PyG computes in the default type."""
    torch.set_default_dtype(F64)
    yield
    torch.set_default_dtype(torch.float32)


@pytest.mark.usefixtures("_double")
@pytest.mark.parametrize("nodes", [12, 60, 130])
def test_values_equal_pygs_up_to_sign_where_pygs_are_right(nodes):
    graph = random_graph(nodes, 0.4, 0)
    data = Data(edge_index=graph.edge_index, num_nodes=nodes)
    theirs = AddLaplacianEigenvectorPE(8, is_undirected=True)(data.clone()).laplacian_eigenvector_pe
    ours = Laplacian(8, dtype=F64)(graph)
    signs = (ours * theirs).sum(0).sign()
    torch.testing.assert_close(ours, theirs.to(F64) * signs, rtol=0, atol=1e-10)
    walk = AddRandomWalkPE(20)(data.clone()).random_walk_pe
    torch.testing.assert_close(RandomWalk(20, dtype=F64)(graph), walk, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", ["normalized", "combinatorial"])
@pytest.mark.parametrize("trivial", [True, False])
def test_large_graphs_agree_with_dense_decomposition(kind, trivial, monkeypatch):
    # Two components, some lonely nodes, numbered at random.
    generator = np.random.default_rng(0)
    pieces = nx.disjoint_union_all([nx.random_regular_graph(3, 150, seed=1), nx.path_graph(90), nx.empty_graph(5)])
    matrix = nx.to_scipy_sparse_array(pieces).tocoo()
    place = generator.permutation(245)
    graph = Graph(np.stack([place[matrix.row], place[matrix.col]]), 245)
    encode = (
        (lambda: Spectrum(9, kind, unit_rows=False, dtype=F64)(graph))
        if trivial
        else (lambda: Laplacian(9, kind, dtype=F64)(graph))
    )
    dense = encode()
    monkeypatch.setattr("gape.encodings.laplacian.MAX_DENSE_NODES", 100)
    sparse = encode()
    if trivial:
        torch.testing.assert_close(sparse[0, :, 1], dense[0, :, 1], rtol=1e-8, atol=1e-8)
        assert bool((sparse[..., :7, 0].square().sum((0,)) > 0.999).all())
        return
    torch.testing.assert_close(sparse, dense, rtol=1e-6, atol=1e-6)


def test_large_graphs_among_small_ones_change_nothing_for_any(monkeypatch):
    graphs = [random_graph(nodes, 0.3, nodes, weighted=True) for nodes in (8, 40, 9, 10, 11, 45, 50, 7)]
    expected = [Laplacian(4, dtype=F64)(graph) for graph in graphs]
    monkeypatch.setattr("gape.encodings.laplacian.MAX_DENSE_NODES", 20)
    torch.testing.assert_close(Laplacian(4, dtype=F64)(as_graph(graphs)), torch.cat(expected), rtol=1e-7, atol=1e-7)


def test_both_ways_to_large_eigenvectors_agree(monkeypatch):
    # A long path has no spectral gap, so the inverse is used; a random regular graph has one.
    for graph in (sequence_graph("path", 1500), random_graph(1500, 0.006, 1)):
        found = Laplacian(6, dtype=F64).eigenpairs(graph)
        walk = graph.walk("normalized_laplacian")
        assert float((walk.pull(found.vectors) - found.vectors * found.values[0]).norm(dim=0).max()) < 1e-9
        monkeypatch.setattr("gape.encodings.laplacian.MAX_DENSE_NODES", 5000)
        dense = Laplacian(6, dtype=F64).eigenpairs(graph)
        monkeypatch.undo()
        torch.testing.assert_close(found.values, dense.values, rtol=1e-7, atol=1e-9)
        torch.testing.assert_close(found.vectors, dense.vectors, rtol=1e-5, atol=1e-5)


REPETITIVE = {
    "torus": nx.grid_2d_graph(26, 26, periodic=True),
    "same cycles": nx.disjoint_union_all([nx.cycle_graph(200)] * 3),
    "same random graphs": nx.disjoint_union_all([nx.random_regular_graph(4, 140, seed=5)] * 4),
    "complete": nx.complete_graph(520),
}


@pytest.mark.parametrize("kind", ["normalized", "combinatorial"])
@pytest.mark.parametrize("name", REPETITIVE)
def test_multiple_eigenvalues_of_large_graphs_are_all_there(name, kind):
    whole = nx.convert_node_labels_to_integers(REPETITIVE[name])
    matrix = {"normalized": nx.normalized_laplacian_matrix, "combinatorial": nx.laplacian_matrix}[kind](whole).toarray()
    expected, trivial = np.linalg.eigvalsh(matrix), nx.number_connected_components(whole)
    graph = as_graph(whole)
    found = Laplacian(8, kind, dtype=F64).eigenpairs(graph)
    values, vectors = found.values[0].numpy(), found.vectors.numpy()
    np.testing.assert_allclose(values, expected[trivial : trivial + 8], rtol=1e-9)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-8)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(8), atol=1e-10)
    assert torch.equal(Laplacian(8, kind, dtype=F64)(graph), found.vectors)
    spectrum = Spectrum(8 + trivial, kind, dtype=F64)(graph)
    np.testing.assert_allclose(spectrum[0, :, 1], expected[: trivial + 8], rtol=1e-9, atol=1e-12 * expected[-1])


@pytest.mark.parametrize("kind", ["normalized", "combinatorial"])
def test_directed_graphs_can_be_symmetrised(kind):
    graph = random_graph(14, 0.3, 2, undirected=False, weighted=True)
    weights = graph.walk().dense()[0]
    half = (weights + weights.T) / 2
    index = half.nonzero().T
    undirected = Graph(index, 14, edge_weight=half[tuple(index)])
    ours = Laplacian(5, kind, symmetrize=True, dtype=F64)(graph)
    torch.testing.assert_close(ours, Laplacian(5, kind, dtype=F64)(undirected), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["normalized", "combinatorial"])
@pytest.mark.parametrize("dense", [True, False])
def test_nodes_with_nothing_but_loops_are_components_of_their_own(kind, dense, monkeypatch):
    if not dense:
        monkeypatch.setattr("gape.encodings.laplacian.MAX_DENSE_NODES", 1)
    generator = np.random.default_rng(0)
    for joined in [0] * 20 + [4] * 20:
        whole = nx.path_graph(joined)
        whole.add_edges_from((node, node) for node in range(joined + 3))
        for u, v in whole.edges:
            whole[u][v]["weight"] = generator.uniform(0.1, 1.0)
        matrix = {"normalized": nx.normalized_laplacian_matrix, "combinatorial": nx.laplacian_matrix}[kind](whole)
        expected = np.linalg.eigvalsh(matrix.toarray())[nx.number_connected_components(whole) :]
        found = Laplacian(7, kind, dtype=F64).eigenpairs(as_graph(whole)).values[0]
        np.testing.assert_allclose(found[~found.isnan()], expected, rtol=1e-9)


@pytest.mark.parametrize("dense", [True, False])
def test_heavy_loops_cost_no_digits(dense, monkeypatch):
    if not dense:
        monkeypatch.setattr("gape.encodings.laplacian.MAX_DENSE_NODES", 1)
    plain = random_graph(8, 0.5, 1, weighted=True)
    nodes = torch.arange(8).expand(2, -1)
    weight = torch.cat([plain.edge_weight, torch.full((8,), 1e12, dtype=F64)])
    heavy = Graph(torch.cat([plain.edge_index, nodes], 1), 8, edge_weight=weight)
    found, expected = (Laplacian(2, "combinatorial", dtype=F64).eigenpairs(graph).values for graph in (heavy, plain))
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=0)


def parallel_edges(generator: np.random.Generator) -> Graph:
    """Draw an undirected graph of three nodes with many parallel edges, in random order."""
    ends, weight = generator.integers(0, 3, (12, 2)), generator.uniform(0.1, 1.0, 12)
    apart = ends[:, 0] != ends[:, 1]
    both, weights = np.concatenate([ends, ends[apart, ::-1]]), np.concatenate([weight, weight[apart]])
    order = generator.permutation(len(both))
    return Graph(both[order].T, 3, edge_weight=weights[order])


def test_parallel_weighted_edges_of_undirected_graphs_add_up():
    generator = np.random.default_rng(0)
    for graph in (parallel_edges(generator) for _ in range(100)):
        weights = np.zeros((3, 3))
        np.add.at(weights, tuple(graph.edge_index.numpy()), graph.edge_weight.numpy())
        laplacian = np.diag(weights.sum(1)) - weights
        assert graph.undirected
        np.testing.assert_allclose(
            Spectrum(3, "combinatorial", dtype=F64)(graph)[0, :, 1], np.linalg.eigvalsh(laplacian), atol=1e-12
        )


def test_dense_and_sparse_laplacians_are_the_walk_matrices():
    graph = random_graph(11, 0.3, 4, weighted=True, loops=True)
    for name, matrix in (("normalized", "normalized_laplacian"), ("combinatorial", "laplacian")):
        kind = LaplacianMatrix(name, False, "test")
        expected = graph.walk(matrix).dense()
        torch.testing.assert_close(kind.dense(graph.walk().dense()), expected, rtol=1e-14, atol=1e-14)
        np.testing.assert_allclose(kind.sparse(graph)[0].toarray(), expected[0], rtol=1e-14, atol=1e-14)


def test_negative_weights_are_refused():
    graph = Graph.from_edges([(0, 1), (1, 2)], undirected=True, edge_weight=torch.tensor([1.0, -1.0]))
    with pytest.raises(ValueError, match=r"got -1 on edge 1 \[1, 2\]"):
        Laplacian(1)(graph)


def test_spectrum_is_the_decomposition_with_unit_rows_and_mask():
    graph = random_graph(6, 0.6, 1, weighted=True)
    spectrum = Spectrum(8, dtype=F64)(graph)
    entries, eigenvalues, mask = split_spectrum(spectrum)
    values, vectors = torch.linalg.eigh(graph.walk("normalized_laplacian").dense()[0])
    assert bool((mask[:, :6]).all())
    assert not bool(mask[:, 6:].any())
    assert bool(spectrum[:, 6:].isnan().all())
    torch.testing.assert_close(eigenvalues[:, :6], values.abs().expand(6, 6), rtol=1e-10, atol=1e-12)
    rows = vectors / vectors.norm(dim=1, keepdim=True)
    torch.testing.assert_close(entries[:, :6].abs(), rows.abs(), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(entries.square().sum(1), torch.ones(6, dtype=F64))


def test_spectrum_feeds_spectral_attention():
    from gape.nn import AttentionPattern
    from gape.nn.encoders import SpectralAttention

    graph = Graph.union([random_graph(4, 0.5, 0), random_graph(12, 0.5, 1)])
    pattern = AttentionPattern(graph.edge_index, num_nodes=16, heads=8)
    assert bool(torch.isfinite(SpectralAttention()(Spectrum(10)(graph), pattern)).all())


@pytest.mark.parametrize("nodes", [1, 2, 5, 8])
def test_laplacian_pads_when_there_are_fewer_nodes_than_vectors(nodes):
    encoded = Laplacian(8)(sequence_graph("path", nodes))
    assert encoded.shape == (nodes, 8)
    assert bool((encoded[:, : nodes - 1].norm(dim=0) > 0.99).all())
    assert bool((encoded[:, nodes - 1 :] == 0).all())


def test_laplacian_refuses_directed_graphs_and_says_what_to_do():
    with pytest.raises(ValueError, match=r"undirected=True.*symmetrize=True.*'gape' or 'rw'"):
        Laplacian(2)(Graph.from_edges([(0, 1), (1, 2), (2, 0)]))
    large = sequence_graph("path", 1500, directed=True)
    with pytest.raises(ValueError, match="symmetrize=True"):
        Laplacian(2)(large)


def test_laplacian_uses_no_global_random_state():
    graph = random_graph(1200, 0.005, 0)
    torch.manual_seed(1)
    np.random.seed(1)  # noqa: NPY002  (that is the point)
    first, before = Laplacian(3)(graph), np.random.get_state()[1].copy()  # noqa: NPY002
    np.random.seed(2)  # noqa: NPY002
    assert torch.equal(first, Laplacian(3)(graph))
    np.random.seed(1)  # noqa: NPY002
    assert np.array_equal(before, np.random.get_state()[1])  # noqa: NPY002


@pytest.mark.parametrize("copies", [2, 3])
def test_laplacian_drops_one_vector_for_each_component(copies):
    one = random_graph(11, 0.5, 3)
    index = torch.cat([one.edge_index + 11 * i for i in range(copies)], 1)
    several = Graph(index, 11 * copies)
    found = Laplacian(4, dtype=F64).eigenpairs(several)
    lowest = Laplacian(4, dtype=F64).eigenpairs(one).values[0]
    expected = lowest.repeat_interleave(copies)[:4]
    torch.testing.assert_close(found.values[0], expected, rtol=1e-10, atol=1e-10)


def test_isolated_nodes_are_components():
    graph = Graph(torch.tensor([[0, 1], [1, 0]]), 5)
    encoded = Laplacian(3)(graph)
    assert bool((encoded[2:] == 0).all())
    assert bool((encoded[:, 1:] == 0).all())
    np.testing.assert_allclose(encoded[:2, 0].abs(), np.sqrt(0.5), rtol=1e-6)


def test_signs_are_flipped_for_whole_vectors_never_for_nodes():
    batch = torch.tensor([0, 0, 0, 1, 1])
    encoded = torch.rand(5, 6) + 0.1
    for argument in (None, batch):
        flipped = random_flips(encoded, generator=torch.Generator().manual_seed(0), batch=argument)
        signs = flipped / encoded
        assert bool((signs.abs() == 1).all())
        assert bool((signs[:3] == signs[0]).all())
        assert bool((signs[3:] == signs[3]).all())
    assert bool((signs[0] != signs[3]).any())
    again = random_flips(encoded, generator=torch.Generator().manual_seed(0), batch=batch)
    assert torch.equal(flipped, again)


def test_signs_follow_the_nodes():
    graph = random_graph(18, 0.3, 2)
    order = torch.randperm(18, generator=torch.Generator().manual_seed(3))
    torch.testing.assert_close(
        Laplacian(6, dtype=F64)(permuted(graph, order)), Laplacian(6, dtype=F64)(graph)[order], rtol=1e-9, atol=1e-9
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("nodes", "bound"), [(60, 1e-12), (150, 1e-12), (1200, 1e-9)])
def test_eigenvectors_are_exact_not_to_one_percent(seed, nodes, bound):
    # All eigenvectors, some of them, and Lanczos's method, which is where a tolerance would enter.
    graph = random_graph(nodes, 15 / nodes, seed)
    found = Laplacian(10, dtype=F64).eigenpairs(graph)
    dense = graph.walk("normalized_laplacian").dense()[0]
    residual = dense @ found.vectors - found.vectors * found.values[0]
    assert float(residual.norm(dim=0).max()) < bound
    exact = torch.linalg.eigvalsh(dense)[1:11]
    torch.testing.assert_close(found.values[0], exact, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("kind", ["normalized", "combinatorial"])
@pytest.mark.parametrize("largest", [512, 10])
def test_null_vectors_of_the_other_components_come_first_if_asked_for(kind, largest, monkeypatch):
    monkeypatch.setattr("gape.encodings.laplacian.MAX_DENSE_NODES", largest)
    pieces = [nx.path_graph(4), nx.star_graph(6), nx.empty_graph(1), nx.cycle_graph(5)]
    graphs = [as_graph(nx.disjoint_union_all(pieces)), as_graph(nx.path_graph(4)), as_graph(nx.empty_graph(3))]
    plain, marked = (
        Laplacian(6, kind, null_vectors=how, dtype=F64).eigenpairs(graphs) for how in ("omit", "components")
    )
    matrix = LaplacianMatrix(kind, False, "test").sparse(graphs[0])[0]
    values, vectors = marked.values[0], marked.vectors[: graphs[0].num_nodes].numpy()
    np.testing.assert_allclose(matrix @ vectors, vectors * values.numpy(), atol=1e-10)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(6), atol=1e-10)
    assert values[:3].eq(0).all()
    assert [np.flatnonzero(vectors[:, i]).tolist() for i in range(3)] == [[*range(4, 11)], [11], [*range(12, 17)]]
    torch.testing.assert_close(marked.vectors[:17, 3:], plain.vectors[:17, :3])
    # A connected graph has no other components; of three nodes without edges, two are marked.
    torch.testing.assert_close(marked.vectors[17:21], plain.vectors[17:21])
    torch.testing.assert_close(marked.values[1:2], plain.values[1:2], equal_nan=True)
    torch.testing.assert_close(marked.vectors[21:, :3], torch.diag(torch.ones(2, dtype=F64), -1))
    assert Laplacian(6, kind, null_vectors="components")(graphs)[11, 1] == 1


def test_other_null_vectors_are_refused():
    with pytest.raises(ValueError, match="null_vectors must be one of 'omit', 'components', got 'all'"):
        Laplacian(null_vectors="all")


def test_large_graphs_get_a_dense_matrix_only_for_a_third_of_the_vectors(monkeypatch):
    sizes = []
    monkeypatch.setattr(
        "gape.encodings.laplacian.dense_eigenpairs", lambda *args: sizes.append(args[2]) or dense_eigenpairs(*args)
    )
    ring = sequence_graph("cycle", 600)
    few = Laplacian(vectors=8, dtype="float64").eigenpairs(ring)
    assert sizes == []
    many = Laplacian(vectors=250, dtype="float64").eigenpairs(ring)
    assert sizes == [250]
    torch.testing.assert_close(many.values[:, :8], few.values, rtol=0, atol=1e-9)
