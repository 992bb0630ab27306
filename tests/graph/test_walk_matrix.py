"""Every walk matrix against its formula in dense NumPy."""

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st

from gape import Graph, as_graph
from gape.graph.adjacency import bucket_sorted, comparison_sorted, key_sorted
from gape.graph.walk_matrix import NAMES
from tests.graphs import drawn_graphs


def power(degree: np.ndarray, exponent: float) -> np.ndarray:
    """The degree matrix to a negative power; degree 0 stays 0."""
    return np.diag([d**exponent if d != 0 else 0.0 for d in degree])


def formula(name: str, a: np.ndarray) -> np.ndarray:
    out, into = a.sum(1), a.sum(0)
    if name == "adjacency":
        return a
    if name == "random_walk":
        return power(out, -1.0) @ a
    if name == "random_walk_in":
        return a @ power(into, -1.0)
    if name == "laplacian":
        return np.diag(out) - a
    normal = power(out, -0.5) @ a @ power(into, -0.5)
    return normal if name == "symmetric" else np.diag(((out != 0) | (into != 0)).astype(float)) - normal


def needs_roots(name: str) -> bool:
    return name in ("symmetric", "normalized_laplacian")


def blocks(matrices: list[np.ndarray]) -> np.ndarray:
    whole = np.zeros((sum(map(len, matrices)),) * 2)
    start = 0
    for matrix in matrices:
        stop = start + len(matrix)
        whole[start:stop, start:stop] = matrix
        start = stop
    return whole


# ---------------------------------------------------------------------- products and entries


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_push_pull_dense_and_entries_are_the_formula(name, data, seed):
    drawn = data.draw(drawn_graphs(negative=not needs_roots(name)))
    rng = np.random.default_rng(seed)
    walk = drawn.batch(rng).walk(name)
    matrices = [formula(name, a) for a in drawn.dense()]
    whole = blocks(matrices)
    n = len(whole)
    close = {"rtol": 1e-12, "atol": 1e-12}

    for shape in ((n,), (n, 3)):
        x = rng.standard_normal(shape)
        np.testing.assert_allclose(walk.push(torch.from_numpy(x)).numpy(), whole.T @ x, **close)
        np.testing.assert_allclose(walk.pull(torch.from_numpy(x)).numpy(), whole @ x, **close)

    rows, columns, values = (part.numpy() for part in walk.entries())
    np.testing.assert_allclose(scipy.sparse.coo_array((values, (rows, columns)), (n, n)).toarray(), whole, **close)

    padded = walk.dense().numpy()
    largest = max(drawn.sizes)
    assert padded.shape == (len(matrices), largest, largest)
    for i, matrix in enumerate(matrices):
        np.testing.assert_allclose(padded[i, : len(matrix), : len(matrix)], matrix, **close)
        assert not padded[i, len(matrix) :].any()
        assert not padded[i, :, len(matrix) :].any()


@given(drawn_graphs(), st.integers(0, 2**32))
def test_products_take_complex_narrow_and_strided_vectors(drawn, seed):
    rng = np.random.default_rng(seed)
    walk = drawn.batch(rng).walk("random_walk")
    whole = blocks([formula("random_walk", a) for a in drawn.dense()])
    x = torch.from_numpy(rng.standard_normal((len(whole), 4)) + 1j * rng.standard_normal((len(whole), 4)))
    for one, tolerance in ((x, 1e-12), (x.to(torch.complex64), 1e-5), (x.real.float(), 1e-5), (x[:, ::2], 1e-12)):
        pushed = walk.push(one)
        assert pushed.dtype == (torch.complex128 if one.is_complex() else torch.float64)
        np.testing.assert_allclose(pushed.numpy(), whole.T @ one.numpy(), rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(walk.pull(one).numpy(), whole @ one.numpy(), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("directed", [False, True])
def test_matrices_are_those_of_networkx(directed):
    graph = nx.gnp_random_graph(12, 0.3, seed=4, directed=directed)
    graph.add_edge(0, 0)
    for u, v in graph.edges:
        graph[u][v]["weight"] = 0.5 + (u * v) % 3
    ours = as_graph(graph)
    np.testing.assert_allclose(ours.walk("adjacency").dense()[0].numpy(), nx.to_numpy_array(graph))
    if not directed:
        np.testing.assert_allclose(ours.walk("laplacian").dense()[0].numpy(), nx.laplacian_matrix(graph).toarray())
        normalized = nx.normalized_laplacian_matrix(graph).toarray()
        np.testing.assert_allclose(ours.walk("normalized_laplacian").dense()[0].numpy(), normalized, atol=1e-14)


def test_laplacians_are_those_of_scipy():
    a = scipy.sparse.csr_array(np.array([[0, 2, 1, 0], [2, 0, 3, 0], [1, 3, 0, 0], [0, 0, 0, 0.0]]))
    ours = as_graph(a)
    laplacian = scipy.sparse.csgraph.laplacian(a).toarray()
    np.testing.assert_allclose(ours.walk("laplacian").dense()[0].numpy(), laplacian)
    normed = scipy.sparse.csgraph.laplacian(a, normed=True).toarray()
    np.testing.assert_allclose(ours.walk("normalized_laplacian").dense()[0].numpy(), normed, atol=1e-15)


@given(drawn_graphs(negative=False))
def test_rows_or_columns_of_random_walks_sum_to_one_or_zero(drawn):
    graph = drawn.batch()
    for name, axis in (("random_walk", 1), ("random_walk_in", 0)):
        sums = blocks([m.numpy() for m in graph.walk(name).dense()]).sum(axis)
        assert np.all(np.isclose(sums, 1) | (sums == 0))


def test_each_matrix_is_computed_once():
    graph = Graph.from_edges([(0, 1), (1, 2)])
    for name in NAMES:
        assert graph.walk(name) is graph.walk(name)
        assert graph.walk(name).adjacency is graph.walk("adjacency").adjacency
    assert graph.walk() is graph.walk("adjacency")


def test_weights_that_cancel_give_a_zero_row():
    graph = Graph([[0, 0, 1], [1, 2, 0]], 3, edge_weight=[1.0, -1.0, 2.0])
    assert graph.walk("random_walk").dense()[0].tolist() == [[0, 0, 0], [1, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize("name", ["symmetric", "normalized_laplacian"])
def test_the_root_of_a_negative_degree_is_refused(name):
    graph = Graph([[0, 1, 1], [1, 0, 2]], 3, edge_weight=[1.0, -3.0, 1.0])
    with pytest.raises(ValueError, match="node 1 has out-degree -2"):
        graph.walk(name)


# ---------------------------------------------------------------------- gradients of the entries


@pytest.mark.parametrize("name", NAMES)
def test_entries_follow_the_gradient_of_the_weights(name):
    index = torch.tensor([[0, 1, 1, 2, 0, 0], [1, 0, 2, 2, 1, 2]])
    weight = torch.tensor([0.5, 1.0, 2.0, 0.25, 1.5, 0.75], dtype=torch.float64, requires_grad=True)

    def dense(w):
        return Graph(index, 4, edge_weight=w).walk(name).dense()

    assert torch.autograd.gradcheck(dense, weight)
    # The graph of a gradient serves one backward pass: a second one needs a matrix of its own.
    graph = Graph(index, 4, edge_weight=weight)
    for _ in range(2):
        weight.grad = None
        graph.walk(name).dense().square().sum().backward()
        assert weight.grad.isfinite().all()


def test_weights_changed_by_an_optimiser_are_seen():
    weight = torch.ones(2, dtype=torch.float64, requires_grad=True)
    graph = Graph([[1, 0], [0, 1]], 2, edge_weight=weight)
    graph.walk().push(torch.ones(2))
    with torch.no_grad():
        weight.mul_(3.0)
    assert graph.walk().push(torch.ones(2)).tolist() == [3.0, 3.0]


# ---------------------------------------------------------------------- symmetry


@given(drawn_graphs(), st.integers(0, 2**32))
def test_symmetry_is_that_of_the_dense_matrix(drawn, seed):
    expected = all((a == a.T).all() for a in drawn.dense())
    graph = drawn.batch(np.random.default_rng(seed))
    assert graph.undirected == expected
    for name in ("adjacency", "laplacian"):
        assert graph.walk(name).symmetric == expected


@given(drawn_graphs(mirrored=True, negative=False))
def test_normalised_matrices_of_undirected_graphs_are_symmetric(drawn):
    graph = drawn.batch()
    for name in ("symmetric", "normalized_laplacian"):
        assert graph.walk(name).symmetric
        dense = graph.walk(name).dense()
        assert torch.allclose(dense, dense.mT, rtol=1e-15, atol=1e-15)


@pytest.mark.parametrize(
    ("edges", "weights", "symmetric"),
    [
        ([(0, 1), (1, 0)], None, True),
        ([(0, 1), (1, 0), (0, 1)], None, False),
        ([(0, 1), (1, 0), (0, 1), (1, 0)], None, True),
        ([(0, 1), (1, 0)], [1.0, 2.0], False),
        ([(0, 1), (0, 1), (1, 0)], [1.0, 2.0, 3.0], True),
        ([(0, 1), (0, 1), (0, 1), (1, 0), (1, 0), (1, 0)], [0.1, 0.2, 0.3, 0.3, 0.1, 0.2], True),
        ([(0, 1)], [0.0], True),
        ([(0, 1), (0, 1)], [1.0, -1.0], True),
        ([(2, 2), (2, 2)], [1.0, 5.0], True),
        ([(0, 1), (1, 2), (2, 0)], None, False),
        ([(0, 1), (1, 2), (2, 0), (1, 0), (2, 1)], None, False),
    ],
)
def test_parallel_and_weightless_edges_count_by_their_sum(edges, weights, symmetric):
    graph = Graph.from_edges(edges, num_nodes=3, edge_weight=weights)
    assert graph.undirected == symmetric


def test_one_missing_edge_among_many_is_found():
    rng = np.random.default_rng(0)
    pairs = np.unique(rng.integers(0, 2000, (10_000, 2)), axis=0)
    whole = Graph.from_edges(pairs, num_nodes=2000, undirected=True)
    assert whole.undirected
    for missing in rng.integers(0, len(pairs), 50):
        if pairs[missing, 0] == pairs[missing, 1]:
            continue
        kept = np.delete(np.arange(whole.num_edges), missing)
        assert not Graph(whole.edge_index[:, kept], 2000).undirected


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_similarity_makes_the_matrix_symmetric(name, data):
    drawn = data.draw(drawn_graphs(mirrored=data.draw(st.booleans()), negative=not needs_roots(name)))
    walk = drawn.batch().walk(name)
    scale = walk.similarity
    if scale is None:
        undirected = all((a == a.T).all() for a in drawn.dense())
        signed = drawn.weighted and any(w < 0 for part in drawn.edges for _, _, w in part)
        assert not undirected or signed
        return
    assert (scale > 0).all()
    assert scale.isfinite().all()
    whole = blocks([formula(name, a) for a in drawn.dense()])
    similar = scale.numpy()[:, None] * whole / scale.numpy()
    np.testing.assert_allclose(similar, similar.T, rtol=1e-12, atol=1e-12)


def test_undirected_random_walks_are_known_to_be_similar_to_a_symmetric_matrix():
    graph = Graph.from_edges([(0, 1), (1, 2), (1, 3)], num_nodes=5, undirected=True)
    for name in ("random_walk", "random_walk_in"):
        assert not graph.walk(name).symmetric
        assert graph.walk(name).similarity is not None


# ---------------------------------------------------------------------- bounds


@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_norm_bounds_bound_and_nonnegative_is_true_only_of_nonnegative_matrices(name, data):
    drawn = data.draw(drawn_graphs(negative=not needs_roots(name)))
    walk = drawn.batch().walk(name)
    radii, norms, smallest = [], [], 0.0
    for a in drawn.dense():
        matrix = formula(name, a)
        radii.append(max(abs(np.linalg.eigvals(matrix)), default=0.0))
        norms.append(np.linalg.norm(matrix, 2) if len(matrix) else 0.0)
        smallest = min(smallest, matrix.min(initial=0.0))
    # A defective eigenvalue moves by the root of the rounding error.
    assert (walk.norm_bounds.numpy() >= np.array(radii) * (1 - 1e-9) - 1e-2).all()
    assert (walk.two_norm_bounds.numpy() >= np.array(norms) * (1 - 1e-12) - 1e-12).all()
    if walk.nonnegative:
        assert smallest >= 0
    elif name == "adjacency":
        assert any(w < 0 for part in drawn.edges for _, _, w in part)


@given(drawn_graphs(min_graphs=2), st.integers(0, 2**32))
def test_sums_and_maxima_over_the_nodes_of_each_graph(drawn, seed):
    rng = np.random.default_rng(seed)
    adjacency = drawn.batch().adjacency
    ptr = np.cumsum([0, *drawn.sizes])
    for x in (rng.standard_normal(ptr[-1]), rng.standard_normal((ptr[-1], 2)), rng.integers(0, 9, ptr[-1])):
        expected = [x[a:b].sum(0) for a, b in pairwise(ptr)]
        np.testing.assert_allclose(adjacency.segment_sum(torch.from_numpy(x)).numpy(), expected, atol=1e-12)
    x = rng.random(ptr[-1])
    expected = [x[a:b].max(initial=0.0) for a, b in pairwise(ptr)]
    np.testing.assert_array_equal(adjacency.segment_max(torch.from_numpy(x)).numpy(), expected)
    assert adjacency.local.tolist() == [i for size in drawn.sizes for i in range(size)]


def test_a_node_whose_weights_cancel_has_no_similarity():
    # Row 0 of D⁻¹A is zero while column 0 is not: no scaling makes that symmetric.
    graph = Graph.from_edges([(0, 1), (0, 2), (1, 2)], undirected=True, edge_weight=[1.0, -1.0, 3.0])
    assert graph.undirected
    assert graph.walk("random_walk").similarity is None
    assert graph.walk("random_walk_in").similarity is None


@given(drawn_graphs(), st.integers(0, 2**32))
def test_acyclic_is_that_of_networkx(drawn, seed):
    graph = drawn.batch(np.random.default_rng(seed))
    oracle = nx.MultiDiGraph(graph.edge_index.T.tolist())
    assert graph.walk().acyclic == nx.is_directed_acyclic_graph(oracle)
    assert graph.walk("random_walk").acyclic == graph.walk().acyclic
    assert not graph.walk("laplacian").acyclic


def test_keys_sort_edges_without_weights():
    rows, columns = torch.randint(0, 50, (2, 400), generator=torch.Generator().manual_seed(1))
    starts, compressed = key_sorted(rows, columns, 50)
    expected_starts, expected, _ = comparison_sorted(rows, columns, torch.ones(400), 50)
    assert torch.equal(starts, expected_starts)
    for row in range(50):
        mine = compressed[starts[row] : starts[row + 1]].tolist()
        assert mine == sorted(expected[starts[row] : starts[row + 1]].tolist())


def test_both_ways_of_sorting_edges_give_the_same_products():
    generator = torch.Generator().manual_seed(0)
    rows, columns = torch.randint(0, 50, (2, 400), generator=generator)
    values = torch.randn(400, generator=generator, dtype=torch.float64)
    x = torch.randn(50, 3, generator=generator, dtype=torch.float64)
    expected = torch.zeros(50, 50, dtype=torch.float64).index_put_((rows, columns), values, accumulate=True) @ x
    for way in (bucket_sorted, comparison_sorted):
        starts, compressed, ordered = way(rows, columns, values, 50)
        matrix = torch.sparse_csr_tensor(starts.long(), compressed.long(), ordered, size=(50, 50))
        assert torch.allclose(matrix @ x, expected, atol=1e-12)
