"""Spectral radii of walk matrices against dense eigenvalues and closed forms."""

import numpy as np
import pytest
import torch

from gape import Graph, Status
from gape.encodings import GAPE, sequence_graph, spectral_radius
from gape.graph.spectral_radius import spectral_radii
from gape.graph.walk_matrix import WalkMatrix
from gape.native import library, switched_off
from tests.encodings.samples import random_graph

F64 = torch.float64


def test_spectral_radius_of_a_large_directed_graph():
    graph = random_graph(700, 0.01, 1, undirected=False)
    exact = np.abs(np.linalg.eigvals(graph.walk().dense()[0].numpy())).max()
    np.testing.assert_allclose(spectral_radius(graph.walk())[0], exact, rtol=1e-10)


def test_spectral_radius_of_large_graphs_without_a_gap():
    # Arnoldi's method gets nowhere: all eigenvalues of a directed cycle have the same size.
    weight = torch.rand(1000, generator=torch.Generator().manual_seed(0), dtype=F64) + 0.5
    ring = sequence_graph("cycle", 1000, directed=True)
    weighted = Graph(ring.edge_index, 1000, edge_weight=weight)
    mean = float(weight.log().mean().exp())
    several = Graph(
        torch.cat([ring.edge_index, ring.edge_index + 1000], 1), 2000, edge_weight=torch.cat([weight, 2 * weight])
    )
    nodes = torch.arange(900)
    skips = Graph(torch.stack([nodes.repeat(2), torch.cat([nodes + 1, nodes + 3]) % 900]), 900)
    path, cosine = sequence_graph("path", 5000), np.cos(np.pi / 5001)
    for graph, exact in [(ring, 1.0), (weighted, mean), (several, 2 * mean), (skips, 2.0), (path, 2 * cosine)]:
        np.testing.assert_allclose(spectral_radius(graph.walk())[0], exact, rtol=1e-10)
    assert GAPE(4, damping=0.9, relative=True).solve(ring).status == [Status.RUN_SUM]


def test_spectral_radius_that_cannot_be_found_is_not_guessed():
    steep = Graph(sequence_graph("cycle", 700, directed=True).edge_index, 700, edge_weight=np.logspace(-3, 3, 700))
    with pytest.raises(ValueError, match=r"is between .* too different; rescale them, or use an absolute damping"):
        spectral_radius(steep.walk())
    signed = Graph(steep.edge_index, 700, edge_weight=-torch.ones(700))
    with pytest.raises(ValueError, match=r"negative weights cannot be found.*absolute damping"):
        spectral_radius(signed.walk())


def test_relative_damping_does_not_pad_small_graphs_to_a_large_one():
    # Their dense matrices together would have 4·10⁸ entries.
    ring, path = sequence_graph("cycle", 3), sequence_graph("path", 20_000)
    radii = spectral_radii(Graph.union([ring, path, ring]), "adjacency")
    np.testing.assert_allclose(radii, [2.0, 2 * np.cos(np.pi / 20_001), 2.0], rtol=1e-10)


@pytest.mark.skipif(library() is None, reason="no compiled kernels")
@pytest.mark.parametrize("matrix", ["adjacency", "random_walk", "symmetric"])
@pytest.mark.parametrize("weighted", [False, True])
def test_compiled_radii_are_the_largest_eigenvalues(matrix, weighted):
    draw = np.random.default_rng(0)
    graphs = [Graph.from_edges([], num_nodes=n) for n in (0, 1, 3)]
    for n in (2, 5, 23, 64, 200):
        for edges in (n // 2, 2 * n):
            pairs = [(int(u), int(v)) for u, v in draw.integers(n, size=(edges, 2)) if u != v]
            weight = draw.uniform(0.1, 5.0, len(pairs)) if weighted else None
            graphs.append(Graph.from_edges(pairs, num_nodes=n, undirected=True, edge_weight=weight))
    batch = Graph.union(graphs)
    found = spectral_radii(batch, matrix)
    with switched_off():
        expected = spectral_radii(Graph.union(graphs), matrix)
    torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-14)
    for graph, radius in zip(graphs, found, strict=True):
        alone = spectral_radii(graph, matrix)
        assert torch.equal(alone, radius.reshape(1))


def test_kernels_read_vectors_of_any_precision():
    adjacency = Graph.from_edges([(0, i) for i in range(1, 6)], undirected=True).adjacency
    halves = torch.full((6,), 0.5)
    found = [spectral_radius(WalkMatrix("mine", adjacency, left=x, right=x)) for x in (halves, halves.double())]
    assert torch.equal(*found)
    assert float(found[0]) == pytest.approx(5**0.5 / 4)
