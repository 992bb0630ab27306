"""Known defects of other libraries, with our answer beside theirs.

PyG is run as installed, and DGL where it is (1.1.3 goes with our torch). TopoBench is not on PyPI: its published
formulas, and DGL's, are restated here in our words. If a pinned version gets one of these fixed, its half of the test
fails and can go.
"""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse.linalg
import torch
from torch_geometric.data import Data
from torch_geometric.transforms import AddLaplacianEigenvectorPE, AddRandomWalkPE

import gape
from gape import Graph
from gape.encodings import Laplacian, RandomWalk, RelativeRandomWalk, SingularVectors
from gape.pyg import AddLaplacian, AddRandomWalk


def return_probabilities(data: Data, length: int) -> torch.Tensor:
    """Diagonals of the powers of D⁻¹A by NumPy, parallel edges added up."""
    weights = np.zeros((data.num_nodes,) * 2)
    np.add.at(weights, tuple(data.edge_index.numpy()), data.edge_weight.double().numpy())
    degree = weights.sum(1, keepdims=True)
    walk = np.divide(weights, degree, out=np.zeros_like(weights), where=degree > 0)
    return torch.from_numpy(np.stack([np.diag(np.linalg.matrix_power(walk, t + 1)) for t in range(length)], 1))


def weighted_data() -> Data:
    """The graph of the report in PyG's issue 10098."""
    torch.manual_seed(42)
    index = torch.randint(0, 100, (2, 1000))
    return Data(edge_index=index, edge_weight=torch.rand(1000), num_nodes=100)


def test_return_probabilities_with_weights_stay_probabilities():
    # PyG issue 10098: a probability of 22,252, since edges get 1/degree instead of weight/degree.
    data = weighted_data()
    assert AddRandomWalkPE(20, attr_name="pe")(data.clone()).pe.max() == pytest.approx(22252.12, rel=1e-4)
    ours = AddRandomWalk(20)(data.clone()).random_walk
    assert 0 <= ours.min() <= ours.max() <= 1
    torch.testing.assert_close(ours.double(), return_probabilities(data, 20), rtol=1e-5, atol=1e-6)
    pairs = RelativeRandomWalk(20, dtype="float64")(data).matrices()[0]
    assert bool((pairs.sum(1) <= 1 + 1e-12).all())


def test_weights_change_where_a_walk_goes():
    # PyG issue 9915: the walk matrix is D⁻¹ on the edges, without A; by the paper it is AD⁻¹, with A's weights.
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    data = Data(edge_index=edges, edge_weight=torch.tensor([3.0, 3.0, 1.0, 1.0]), num_nodes=3)
    adjacency = torch.tensor([[0.0, 3, 0], [3, 0, 1], [0, 1, 0]])
    paper = torch.linalg.matrix_power(adjacency / adjacency.sum(0), 2).diagonal()
    theirs = AddRandomWalkPE(2, attr_name="pe")(data.clone()).pe[:, 1]
    ours = AddRandomWalk(2)(data.clone()).random_walk[:, 1]
    torch.testing.assert_close(ours, paper)  # [3/4, 1, 1/4]
    assert not torch.allclose(theirs, paper)


def test_parallel_edges_count_twice_on_small_graphs_too():
    # PyG keeps one of two parallel edges on graphs of up to 2,000 nodes, and adds them up on larger ones.
    twice = Data(edge_index=torch.tensor([[0, 0, 0, 1, 1, 2], [1, 1, 2, 0, 0, 0]]), num_nodes=3)
    ours = RandomWalk(2)(twice)
    assert ours[0, 1] == 1
    assert AddRandomWalkPE(2, attr_name="pe")(twice.clone()).pe[0, 1] < 0.9


def seed_everything() -> None:
    np.random.seed(42)  # noqa: NPY002  # what PyG draws from
    torch.manual_seed(42)


def test_eigenvectors_are_the_same_at_every_call():
    # PyG issue 7499: ARPACK starts from another random vector at every call, whatever is seeded. Signs are set aside.
    grid = gape.as_graph(nx.convert_node_labels_to_integers(nx.grid_2d_graph(12, 12)))
    data = Data(edge_index=grid.edge_index, num_nodes=grid.num_nodes)
    theirs, ours = [], []
    for _ in range(2):
        seed_everything()
        transform = AddLaplacianEigenvectorPE(k=8, attr_name="pe", is_undirected=True)
        theirs.append(transform(data.clone()).pe.abs())
        ours.append(AddLaplacian(vectors=8)(data.clone()).laplacian)
    assert torch.equal(*ours)
    assert not torch.allclose(*theirs, atol=1e-3)


def topobench_lappe(graph: Graph, k: int) -> torch.Tensor:
    """TopoBench's LapPE on graphs of 128 nodes or more, restated (method "gpu", the default, on the CPU too).

    The k + 1 largest eigenvectors of D^(-1/2) A D^(-1/2) by LOBPCG in float32 from random vectors, to a tolerance of
    1e-3; those with 1 - θ > 1e-6 are kept, and columns that are missing then are zero.
    """
    source, target = graph.edge_index
    root = torch.bincount(target, minlength=graph.num_nodes).float().pow(-0.5)
    root[root.isinf()] = 0.0
    n = graph.num_nodes
    matrix = torch.sparse_coo_tensor(graph.edge_index, root[source] * root[target], (n, n)).coalesce()
    theta, vectors = torch.lobpcg(matrix, X=torch.randn(n, k + 1), largest=True, tol=1e-3)
    values, order = (1.0 - theta).sort()
    return _nontrivial(values, vectors[:, order], k)


def topobench_exact(graph: Graph, k: int) -> torch.Tensor:
    """Its method "exact", restated: the k + 1 lowest eigenvectors by ARPACK, of which the same are kept."""
    laplacian = normalized_laplacian(graph).numpy()
    start = np.random.default_rng(0).random(graph.num_nodes)
    values, vectors = scipy.sparse.linalg.eigsh(laplacian, k=k + 1, which="SM", tol=1e-3, v0=start)
    return _nontrivial(torch.from_numpy(values), torch.from_numpy(vectors), k)


def _nontrivial(values: torch.Tensor, vectors: torch.Tensor, k: int) -> torch.Tensor:
    vectors = vectors[:, values > 1e-6][:, :k]
    return torch.nn.functional.pad(vectors, (0, k - vectors.shape[1]))


def normalized_laplacian(graph: Graph) -> torch.Tensor:
    other = nx.Graph(list(map(tuple, graph.edge_index.T.tolist())))
    matrix = nx.normalized_laplacian_matrix(other, nodelist=range(graph.num_nodes))
    return torch.from_numpy(matrix.toarray())


def residual(graph: Graph, vectors: torch.Tensor) -> float:
    """Largest ‖Lv - λv‖ of the columns, with the best λ of each."""
    vectors, laplacian = vectors.double(), normalized_laplacian(graph)
    moved = laplacian @ vectors
    values = (vectors * moved).sum(0)
    return float((moved - values * vectors).norm(dim=0).max())


def trivial_share(graph: Graph, vectors: torch.Tensor) -> float:
    """How much of a column is the trivial eigenvector √degree, between 0 and 1."""
    root = torch.bincount(graph.edge_index[0], minlength=graph.num_nodes).double().sqrt()
    return float((root / root.norm() @ vectors.double()).abs().max())


def test_eigenvectors_are_accurate_and_without_the_trivial_one():
    torch.manual_seed(0)
    ring = Graph.from_edges([(i, (i + 1) % 400) for i in range(400)] + [(0, 7)], undirected=True)
    theirs, ours = topobench_lappe(ring, 4), Laplacian(4)(ring)
    assert trivial_share(ring, theirs) > 0.9
    assert trivial_share(ring, ours) < 1e-6
    assert residual(ring, theirs) > 1e-3
    assert residual(ring, ours) < 1e-6
    assert not torch.allclose(theirs.abs(), topobench_lappe(ring, 4).abs(), atol=1e-2)  # another start, another answer
    assert torch.equal(ours, Laplacian(4)(ring))


def test_disconnected_graphs_have_as_many_columns_as_asked_for():
    # Five complete graphs of 30 nodes, each with one edge missing: five trivial vectors.
    part = [(i, j) for i in range(30) for j in range(i) if (i, j) != (1, 0)]
    graph = Graph.from_edges([(30 * c + i, 30 * c + j) for c in range(5) for i, j in part], undirected=True)
    theirs, ours = topobench_exact(graph, 8), Laplacian(8)(graph)
    assert int(theirs.any(0).sum()) == 4
    assert int(ours.any(0).sum()) == 8
    assert residual(graph, ours) < 1e-6


def dgl_svd_pe(adjacency: np.ndarray, k: int, generator: np.random.Generator) -> np.ndarray:
    """DGL's svd_pe, restated: [U√Σ, V√Σ] with a random sign for every node, not for every vector."""
    u, s, vt = np.linalg.svd(adjacency)
    rows = np.concatenate([u[:, :k] * np.sqrt(s[:k]), vt[:k].T * np.sqrt(s[:k])], 1)
    return rows * generator.choice([-1.0, 1.0], (len(rows), 1))


# The graph of DGL's documentation, regular: its first singular vector is constant.
DGL_EDGES = [0, 1, 2, 3, 4, 2, 3, 1, 4, 0], [2, 3, 1, 4, 0, 0, 1, 2, 3, 4]


def installed_dgl_svd_pe() -> np.ndarray:
    dgl = pytest.importorskip("dgl", reason="DGL is not installed: pip install --no-deps dgl==1.1.3 psutil")
    np.random.seed(0)  # noqa: NPY002  # what DGL draws from
    return dgl.svd_pe(dgl.graph(DGL_EDGES), k=5, padding=True, random_flip=True).numpy()


def restated_dgl_svd_pe() -> np.ndarray:
    adjacency = np.zeros((5, 5))
    adjacency[DGL_EDGES] = 1.0
    return dgl_svd_pe(adjacency, 5, np.random.default_rng(0))


@pytest.mark.parametrize("svd_pe", [installed_dgl_svd_pe, restated_dgl_svd_pe])
def test_signs_belong_to_vectors_and_not_to_nodes(svd_pe):
    graph = Graph(torch.tensor(DGL_EDGES), 5)
    adjacency = np.zeros((5, 5))
    adjacency[DGL_EDGES] = 1.0
    theirs = svd_pe()
    ours = SingularVectors(5, dtype="float64")(graph).numpy()
    assert set(np.sign(theirs[:, 0])) == {-1.0, 1.0}
    assert set(np.sign(ours[:, 0])) == {1.0}
    # Sources times targets give back the edges, whatever the signs of the vectors; with signs of nodes they do not.
    assert np.allclose(ours[:, :5] @ ours[:, 5:].T, adjacency)
    assert not np.allclose(theirs[:, :5] @ theirs[:, 5:].T, adjacency)
