"""What today's implementations get wrong, and ours must not."""

import numpy as np
import pytest
import scipy.sparse.csgraph
import torch

from gape import Graph
from gape.encodings import Laplacian, RandomWalk, ShortestPath, random_flips, sequence_graph
from tests.encodings.samples import permuted, random_graph

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


def test_shortest_paths_of_a_long_path_take_no_cubic_time():
    # Floyd–Warshall would take 8·10⁹ steps here.
    distances = ShortestPath(cap=5000)(sequence_graph("path", 2000)).matrices()[0]
    places = torch.arange(2000)
    assert torch.equal(distances.long(), (places[:, None] - places).abs())
    graph = random_graph(700, 0.002, 1, undirected=False)
    weights = np.zeros((700, 700))
    weights[tuple(graph.edge_index.numpy())] = 1
    other = scipy.sparse.csgraph.shortest_path(weights, unweighted=True)
    ours = ShortestPath(cap=300)(graph).matrices()[0].numpy()
    assert np.array_equal(ours, np.where(np.isinf(other), 300, other))
