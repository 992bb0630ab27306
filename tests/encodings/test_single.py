"""One graph alone, on the direct path, gets what it gets in a list; multiple eigenvalues included."""

import networkx as nx
import pytest
import torch

import gape
from gape import Graph
from gape.encodings import GAPE, Laplacian, Spectrum
from gape.graph.small_graphs import MAX_SINGLE_NODES, single_matrix
from tests.encodings.samples import encoding, random_graph, rows

SYMMETRIC = {
    "cycle": nx.cycle_graph(12),
    "complete": nx.complete_graph(7),
    "hypercube": nx.convert_node_labels_to_integers(nx.hypercube_graph(4)),
    "star": nx.star_graph(9),
    "petersen": nx.petersen_graph(),
    "grid": nx.convert_node_labels_to_integers(nx.grid_2d_graph(5, 5)),
    "apart": nx.disjoint_union_all([nx.cycle_graph(5), nx.empty_graph(2), nx.cycle_graph(5), nx.path_graph(2)]),
    "beyond the direct path": nx.circulant_graph(MAX_SINGLE_NODES + 40, [1, 2]),
}
GRAPHS = {
    **{name: gape.as_graph(graph) for name, graph in SYMMETRIC.items()},
    "tree": gape.as_graph(nx.balanced_tree(2, 3)),
    "random": random_graph(20, 0.2, 0),
    "directed": random_graph(20, 0.2, 1, undirected=False),
    "loops and parallel edges": Graph.from_edges([(0, 0), (0, 1), (1, 0), (0, 1), (1, 0), (2, 2)], num_nodes=4),
    "one node": Graph.from_edges([], num_nodes=1),
    "no edges": Graph.from_edges([], num_nodes=3),
}
CASES = [
    ("rw", {}),
    ("rw", {"length": 1}),
    ("lape", {}),
    ("lape", {"laplacian": "combinatorial", "vectors": 3}),
    ("sa", {}),
    ("gape", {}),
    ("gape", {"damping": 0.02, "relative": False}),
    ("gape", {"damping": 0.9, "relative": True, "initial": "orthogonal"}),
    ("gape", {"damping": 0.0}),
    ("gape-star", {"damping": 0.01}),
    ("svd", {"rank": 3}),
    ("svd", {"rank": 20}),
    ("magnetic", {}),
    *((name, {}) for name in ("walk-profile", "heat", "electrostatic", "communicability", "pprp", "gape-rooted")),
]


def alone_and_in_a_list(encode, graph):
    other = gape.as_graph(nx.path_graph(graph.num_nodes))
    return rows(encode(graph)), rows(encode(Graph.union([other, graph])))[graph.num_nodes :]


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize(("name", "settings"), CASES)
def test_a_graph_alone_gets_what_it_gets_in_a_list(name, settings, graph):
    if name in ("lape", "sa", "heat", "electrostatic"):
        settings = {**settings, "symmetrize": True}
    alone, listed = alone_and_in_a_list(encoding(name, **settings), GRAPHS[graph])
    torch.testing.assert_close(alone, listed, rtol=1e-9, atol=1e-9, equal_nan=True)


@pytest.mark.parametrize("graph", SYMMETRIC)
@pytest.mark.parametrize("laplacian", ["normalized", "combinatorial"])
def test_vectors_of_multiple_eigenvalues_are_orthonormal_eigenvectors(graph, laplacian):
    k = SYMMETRIC[graph].number_of_nodes() // 2
    found = Laplacian(vectors=k, laplacian=laplacian, dtype="float64").eigenpairs(SYMMETRIC[graph])
    of = nx.normalized_laplacian_matrix if laplacian == "normalized" else nx.laplacian_matrix
    matrix = torch.from_numpy(of(SYMMETRIC[graph]).toarray()).double()
    exists = ~found.values[0].isnan()
    vectors, values = found.vectors[:, exists], found.values[0, exists]
    torch.testing.assert_close(matrix @ vectors, vectors * values, rtol=0, atol=1e-12)
    torch.testing.assert_close(vectors.T @ vectors, torch.eye(len(values)).double(), rtol=0, atol=1e-12)


def test_trivial_vectors_of_a_graph_in_pieces_are_those_of_the_pieces():
    vectors = Spectrum(pairs=4, unit_rows=False, dtype="float64")(GRAPHS["apart"])[..., 0]
    assert ((vectors != 0).sum(0)[:5] <= 5).all()


@pytest.mark.parametrize("name", ["lape", "sa", "rw", "gape", "svd"])
def test_molecules_alone_get_what_they_get_in_a_list(name, real_data):
    from gape.data import load

    molecules = [load("zinc", data_dir=real_data)[i] for i in range(1000)]
    encode = encoding(name, dtype="float32")
    listed = gape.encode(molecules, encode)
    gaps = [
        float((rows(encode(molecule)) - there).abs().nan_to_num(0.0).max())
        for molecule, there in zip(molecules, listed, strict=True)
    ]
    assert max(gaps) < 1e-5


def test_where_the_sum_over_runs_diverges_the_direct_path_leaves_the_work_to_the_solvers():
    complete = SYMMETRIC["complete"]
    with pytest.warns(gape.solvers.AlgebraicOnlyWarning):
        found = GAPE(states=4, damping=0.5, relative=False)(complete)
    assert found.shape == (7, 4)


@pytest.mark.parametrize(
    "graph",
    [
        Graph.from_edges([(0, 1)], edge_weight=[2.0]),
        Graph.from_edges([], num_nodes=0),
        random_graph(MAX_SINGLE_NODES + 1, 0.1, 0),
        Graph.union([random_graph(3, 0.5, 0)] * 2),
    ],
)
def test_the_direct_path_is_for_one_small_graph_without_weights(graph):
    assert single_matrix(graph) is None
