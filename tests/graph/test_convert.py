"""``as_graph``: the same graph comes out, whatever it came in."""

import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given
from hypothesis import strategies as st

from gape import Graph, as_graph
from tests.graphs import drawn_graphs

pyg = pytest.importorskip("torch_geometric.data")
Batch, Data, HeteroData, InMemoryDataset = pyg.Batch, pyg.Data, pyg.HeteroData, pyg.InMemoryDataset


class InMemory(InMemoryDataset):
    """A dataset that never touches the disk."""

    def __init__(self, graphs, transform=None):
        super().__init__(None, transform)
        self.data, self.slices = self.collate(graphs)


def adjacency(graph: Graph, number: int = 0) -> np.ndarray:
    size = int(graph.sizes[number])
    return graph.slice(number, number + 1).walk().dense()[0, :size, :size].numpy()


def assert_is(graph: Graph, matrices: list[np.ndarray]) -> None:
    assert graph.sizes.tolist() == [len(matrix) for matrix in matrices]
    for number, matrix in enumerate(matrices):
        np.testing.assert_array_equal(adjacency(graph, number), matrix)


def data_of(drawn, number, **more):
    graph = drawn.graph(number)
    weight = {} if graph.edge_weight is None else {"edge_weight": graph.edge_weight}
    return Data(edge_index=graph.edge_index, num_nodes=graph.num_nodes, **weight, **more)


PATH = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0.0]])


# ---------------------------------------------------------------------- PyG


@given(drawn_graphs())
def test_pyg_data_is_its_graph(drawn):
    for number, matrix in enumerate(drawn.dense()):
        assert_is(as_graph(data_of(drawn, number)), [matrix])


@given(drawn_graphs())
def test_pyg_batch_keeps_the_boundaries(drawn):
    batch = Batch.from_data_list([data_of(drawn, i) for i in range(len(drawn.sizes))])
    assert_is(as_graph(batch), drawn.dense())


def test_pyg_data_with_a_batch_vector_keeps_the_boundaries():
    index = torch.tensor([[0, 2], [1, 3]])
    graph = as_graph(Data(edge_index=index, num_nodes=4, batch=torch.tensor([0, 0, 1, 1])))
    assert graph.ptr.tolist() == [0, 2, 4]
    with pytest.raises(ValueError, match=r"batch must be ascending: node 2 belongs to graph 0, the node before it to"):
        as_graph(Data(edge_index=index, num_nodes=4, batch=torch.tensor([0, 1, 0, 1])))


def test_pyg_weights_may_be_a_column_or_require_gradients():
    weight = torch.tensor([[2.0], [3.0]], requires_grad=True)
    graph = as_graph(Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3, edge_weight=weight))
    assert graph.edge_weight.tolist() == [2.0, 3.0]
    graph.walk().dense().sum().backward()
    assert weight.grad.tolist() == [[1.0], [1.0]]


def test_pyg_edge_index_class_becomes_a_plain_tensor():
    index = pytest.importorskip("torch_geometric").EdgeIndex([[0, 1], [1, 2]], sparse_size=(3, 3))
    for source in (index, Data(edge_index=index), [index]):
        graph = as_graph(source)
        assert type(graph.edge_index) is torch.Tensor
        assert_is(graph, [PATH])


@given(drawn_graphs(max_graphs=6, min_graphs=2), st.data())
def test_a_collated_data_set_is_its_graphs_in_any_subset_and_order(drawn, data):
    dataset = InMemory([data_of(drawn, i) for i in range(len(drawn.sizes))])
    matrices = drawn.dense()
    assert_is(as_graph(dataset), matrices)
    chosen = data.draw(st.lists(st.integers(0, len(matrices) - 1), min_size=1))
    assert_is(as_graph(dataset[chosen]), [matrices[i] for i in chosen])
    assert_is(as_graph(dataset[torch.tensor(chosen)]), [matrices[i] for i in chosen])
    assert_is(as_graph(dataset[1:]), matrices[1:])
    shuffled, order = dataset.shuffle(return_perm=True)
    assert_is(as_graph(shuffled), [matrices[i] for i in order.tolist()])
    assert_is(as_graph(shuffled[:1]), [matrices[int(order[0])]])


@pytest.mark.parametrize("name", ["x", "pos", "z", "feat", "node_kind"])
def test_a_collated_data_set_may_tell_its_sizes_by_any_node_attribute(name):
    graphs = [
        Data(edge_index=torch.tensor([[0, 1], [1, 2]]), **{name: torch.zeros(3)}),
        Data(edge_index=torch.empty(2, 0, dtype=torch.int64), **{name: torch.zeros(2)}),
    ]
    assert_is(as_graph(InMemory(graphs)), [PATH, np.zeros((2, 2))])


def test_collated_storage_is_read_without_a_loop_over_the_graphs(monkeypatch):
    dataset = InMemory([Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)] * 3)
    monkeypatch.setattr(InMemory, "get", lambda *_: pytest.fail("read a graph by itself"))
    assert_is(as_graph(dataset), [PATH] * 3)


def test_a_data_set_with_a_transform_is_read_through_it():
    from torch_geometric.transforms import ToUndirected

    dataset = InMemory([Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)] * 2, transform=ToUndirected())
    assert_is(as_graph(dataset), [PATH + PATH.T] * 2)


def test_a_data_set_of_pyg_is_its_graphs():
    from torch_geometric.datasets import FakeDataset

    dataset = FakeDataset(num_graphs=5, avg_num_nodes=8, edge_dim=1)
    expected = [nx.to_numpy_array(as_networkx(data), weight="weight") for data in dataset]
    graph = as_graph(dataset)
    assert graph.num_graphs == 5
    for number, matrix in enumerate(expected):
        np.testing.assert_allclose(adjacency(graph, number), matrix, rtol=1e-6)
    for same in (as_graph(list(dataset)), as_graph(torch.utils.data.Subset(dataset, range(5)))):
        np.testing.assert_array_equal(same.edge_index.numpy(), graph.edge_index.numpy())


def as_networkx(data):
    graph = nx.MultiDiGraph()
    graph.add_nodes_from(range(data.num_nodes))
    weights = torch.ones(data.num_edges) if data.edge_weight is None else data.edge_weight
    for (u, v), w in zip(data.edge_index.T.tolist(), weights.tolist(), strict=True):
        graph.add_edge(u, v, weight=w)
    return graph


def test_a_data_set_of_one_graph_is_that_graph():
    assert_is(as_graph(InMemory([Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3)])), [PATH])


def test_bad_pyg_input_is_quoted():
    index = torch.tensor([[0, 1], [1, 2]])
    with pytest.raises(ValueError, match=r"Data\(x=\[3, 1\]\) has no edge_index"):
        as_graph(Data(x=torch.ones(3, 1)))
    with pytest.raises(ValueError, match=r"num_nodes=2, but edge 1 is \[1, 2\]"):
        as_graph(Data(edge_index=index, num_nodes=2))
    dataset = InMemory([Data(edge_index=index, num_nodes=3)] * 2)
    with pytest.raises(ValueError, match="empty dataset"):
        as_graph(dataset[[]])
    with pytest.raises(ValueError, match=r"2 graphs does not say how many nodes.*edge_index.*set num_nodes"):
        as_graph(InMemory([Data(edge_index=index, y=torch.ones(1))] * 2))
    with pytest.raises(ValueError, match="no edge_index"):
        as_graph(InMemory([Data(x=torch.ones(2, 1))] * 2))
    hetero = HeteroData()
    hetero["atom"].x = torch.ones(2, 1)
    assert repr(as_graph(hetero)) == "Graph(graphs=1, nodes=2, edges=0, undirected, labels=1, edge_types=0)"
    with pytest.raises(ValueError, match="no node types"):
        as_graph(HeteroData())


@pytest.mark.parametrize("edge", [[0, 2], [2, 0], [2, 3], [2, 2], [-1, -1], [0, -1], [-4, 1]])
def test_an_edge_of_a_collated_data_set_does_not_slip_into_another_graph(edge):
    good = Data(edge_index=torch.tensor([[0], [1]]), num_nodes=5)
    bad = Data(edge_index=torch.tensor(edge)[:, None], num_nodes=2)
    with pytest.raises(ValueError, match=rf"graph 1 of the dataset has 2 nodes, but an edge \[{edge[0]}, {edge[1]}\]"):
        as_graph(InMemory([good, bad, good]))


# ---------------------------------------------------------------------- NetworkX


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
@given(st.lists(st.tuples(st.sampled_from("edcba"), st.sampled_from("abcde"), st.integers(-8, 8))), st.booleans())
def test_networkx_graphs_of_every_kind_with_any_names(kind, triples, weighted):
    graph = kind()
    graph.add_nodes_from("abc")
    for u, v, w in triples:
        graph.add_edge(u, v, **({"weight": w / 4} if weighted else {}))
    assert_is(as_graph(graph), [nx.to_numpy_array(graph)])
    assert as_graph(graph).undirected or graph.is_directed()


def test_networkx_corner_cases():
    assert_is(as_graph(nx.Graph()), [np.zeros((0, 0))])
    assert_is(as_graph(nx.empty_graph(2)), [np.zeros((2, 2))])
    half = nx.DiGraph([(0, 1), (1, 2)])
    half[0][1]["weight"] = 0.5  # the other edge has none, and counts 1
    assert_is(as_graph(half), [np.array([[0, 0.5, 0], [0, 0, 1], [0, 0, 0]])])
    assert as_graph(nx.path_graph(3)).edge_weight is None
    assert_is(as_graph(nx.path_graph(5).subgraph([1, 2])), [np.array([[0, 1], [1, 0.0]])])


@pytest.mark.parametrize(("weight", "quoted"), [("heavy", "'a' – 'b' has weight 'heavy'"), (float("nan"), "got nan")])
def test_networkx_weights_that_are_no_numbers_are_quoted(weight, quoted):
    graph = nx.Graph()
    graph.add_edge("a", "b", weight=weight)
    with pytest.raises(ValueError, match=quoted):
        as_graph(graph)


# ---------------------------------------------------------------------- SciPy and arrays


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "dia"])
@pytest.mark.parametrize("kind", ["array", "matrix"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int32, bool])
def test_scipy_matrices_of_every_form(form, kind, dtype):
    dense = np.array([[0, 1, 0], [1, 1, 0], [0, 2, 0]]).astype(dtype)
    matrix = getattr(scipy.sparse, f"{form}_{kind}")(dense)
    assert_is(as_graph(matrix), [dense.astype(float)])


def test_scipy_corner_cases():
    twice = scipy.sparse.coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(2, 2))
    assert_is(as_graph(twice), [np.array([[0, 3.0], [0, 0]])])
    assert_is(as_graph(scipy.sparse.csr_array((0, 0))), [np.zeros((0, 0))])
    assert_is(as_graph(scipy.sparse.csr_array((2, 2))), [np.zeros((2, 2))])
    assert as_graph(scipy.sparse.csr_array(PATH)).edge_weight is None


@pytest.mark.parametrize(
    ("matrix", "quoted"),
    [
        (scipy.sparse.csr_array((2, 3)), r"square, got shape \[2, 3\]"),
        (scipy.sparse.coo_array(np.arange(3.0)), r"square, got shape \[3\]"),
        (scipy.sparse.csr_array(np.array([[0, 1j], [0, 0]])), "complex128"),
        (scipy.sparse.csr_array(np.array([[0, np.nan], [0, 0]])), r"got nan on edge 0 \[0, 1\]"),
    ],
)
def test_bad_scipy_matrices_are_quoted(matrix, quoted):
    with pytest.raises(ValueError, match=quoted):
        as_graph(matrix)


@pytest.mark.parametrize("form", [np.array, torch.tensor])
def test_edge_arrays(form):
    assert_is(as_graph(form([[0, 1], [1, 2]])), [PATH])


@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64"])
def test_edge_arrays_may_be_of_any_integers(kind):
    assert_is(as_graph(np.array([[0, 1], [1, 2]], dtype=kind)), [PATH])
    assert_is(as_graph(torch.tensor([[0, 1], [1, 2]], dtype=getattr(torch, kind))), [PATH])


def test_edge_arrays_without_edges_or_backwards():
    assert as_graph(torch.empty(2, 0, dtype=torch.int64)).num_nodes == 0
    assert_is(as_graph(np.array([[2, 1], [1, 0]])[::-1, ::-1]), [PATH])


@pytest.mark.parametrize(
    ("array", "quoted"),
    [
        (np.zeros((3, 3)), r"float64 \[3, 3\].*csr_array"),
        (np.zeros((3, 2), dtype=int), r"int64 \[3, 2\]"),
        (torch.zeros(2), r"float32 \[2\]"),
        (torch.zeros(2, 3, dtype=torch.bool), "integers, got bool"),
        (torch.eye(2, dtype=torch.int64).to_sparse(), r"int64 \[2, 2\]"),
        (np.array([["a"], ["b"]]), "an array of numbers.*'a'"),
        (np.array([[0, -4], [1, -1]]), r"edge 1 is \[-4, -1\]"),
        (np.array([[0], [10**13]]), "node ids run to 10000000000000 with 1 edge;.*number the nodes from 0"),
        (np.array([[0], [2**63 + 1]], dtype=np.uint64), "an edge array must be below 2.63, got 9223372036854775809"),
    ],
)
def test_bad_edge_arrays_are_quoted(array, quoted):
    with pytest.raises(ValueError, match=quoted):
        as_graph(array)


# ---------------------------------------------------------------------- DGL, by its methods


class Dgl:
    """What the library uses of a DGL graph."""

    def __init__(self, pairs, sizes, weight=None, dtype=torch.int64):
        self._edges = tuple(torch.tensor(pairs, dtype=dtype).reshape(-1, 2).T)
        self._sizes = torch.tensor(sizes, dtype=dtype)
        self.edata = {} if weight is None else {"weight": torch.tensor(weight)}
        self.nodes, self.adj, self.is_directed = (), None, True

    def edges(self):
        return self._edges

    def num_nodes(self):
        return int(self._sizes.sum())

    def batch_num_nodes(self):
        return self._sizes


def test_dgl_like_graphs_and_batches():
    assert_is(as_graph(Dgl([(0, 1), (1, 2)], [3])), [PATH])
    batch = Dgl([(0, 1), (1, 2), (4, 5)], [3, 0, 3], weight=[1.0, 1.0, 2.0], dtype=torch.int32)
    assert_is(as_graph(batch), [PATH, np.zeros((0, 0)), np.diag([0.0, 2.0], 1)])


# ---------------------------------------------------------------------- lists


def test_lists_of_mixed_kinds_are_one_batch_in_order():
    kinds = [
        Graph.from_edges([(0, 1), (1, 2)]),
        Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3),
        nx.DiGraph([("x", "y"), ("y", "z")]),
        scipy.sparse.csr_array(PATH),
        np.array([[0, 1], [1, 2]]),
        torch.tensor([[0, 1], [1, 2]]),
        Dgl([(0, 1), (1, 2)], [3]),
    ]
    for form in (list, tuple):
        assert_is(as_graph(form(kinds)), [PATH] * len(kinds))
    assert_is(as_graph([kinds, Batch.from_data_list([kinds[1]] * 2)]), [PATH] * (len(kinds) + 2))
    weighted = nx.DiGraph()
    weighted.add_edge(0, 1, weight=2.5)
    assert_is(as_graph([*kinds, weighted]), [PATH] * len(kinds) + [np.array([[0, 2.5], [0, 0]])])


def test_a_graph_is_itself():
    graph = Graph.from_edges([(0, 1)])
    assert as_graph(graph) is graph
    assert as_graph([graph]) is graph


@pytest.mark.parametrize(
    ("source", "quoted"),
    [
        ([], "at least one graph, got an empty list"),
        ((), "at least one graph, got an empty tuple"),
        ([(0, 1), (1, 2)], r"list of pairs that starts with \(0, 1\).*from_edges"),
        ([[0, 1], [1, 2]], r"list of pairs that starts with \[0, 1\].*from_edges.*as_graph\(numpy.array\(rows\)\)"),
        ([[0, 1, 2], [1, 2, 0]], r"list of numbers that starts with \[0, 1, 2\].*as_graph\(numpy.array\(rows\)\)"),
        ([(0, 1, 2.5), (1, 2, 1.0)], r"list of numbers that starts with \(0, 1, 2.5\).*from_edges.*edge_weight"),
        ([0, 1, 2], "list of numbers that starts with 0;.*from_edges"),
        ([nx.path_graph(2), [0, 1, 2]], "graph 1 of 2: got a list of numbers that starts with 0"),
        ([nx.path_graph(2), 7], "graph 1 of 2: cannot read a graph from the int 7"),
        ([nx.path_graph(2), np.zeros((3, 3))], r"graph 1 of 2: .*float64 \[3, 3\]"),
        ("graph.csv", "cannot read a graph from the str 'graph.csv'.*for a file: gape.io.read_graphs"),
        (b"graph", "cannot read a graph from the bytes b'graph'"),
        ({"edge_index": [[0], [1]]}, "cannot read a graph from the dict"),
        (None, "cannot read a graph from the NoneType None"),
        (3, "cannot read a graph from the int 3"),
    ],
)
def test_what_is_no_graph_is_quoted(source, quoted):
    with pytest.raises(ValueError, match=quoted):
        as_graph(source)


class Made(torch.utils.data.Dataset):
    """Graphs that are made when asked for, whatever the number."""

    def __len__(self):
        return 3

    def __getitem__(self, i):
        return Graph.from_edges([(j, j + 1) for j in range(i % 5 + 1)])


def test_a_data_set_that_makes_its_graphs_is_read_up_to_its_length():
    assert as_graph(Made()).sizes.tolist() == [2, 3, 4]


def test_what_pyg_data_may_hold_by_mistake_is_named():
    from torch_geometric import transforms
    from torch_geometric.data import Data

    index = torch.tensor([[0, 1], [1, 0]])
    with pytest.raises(ValueError, match="has adj_t and no edge_index; encode before ToSparseTensor"):
        as_graph(transforms.ToSparseTensor()(Data(edge_index=index, num_nodes=2)))
    assert as_graph(Data(edge_index=index, num_nodes=2, edge_weight=[1.0, 2.0])).edge_weight.tolist() == [1.0, 2.0]
    graph = nx.Graph()
    graph.add_edge("a", "b", weight=10**400)
    with pytest.raises(ValueError, match=r"edge 'a' – 'b' has weight 1000.* a float can hold"):
        as_graph(graph)


def test_lists_of_pyg_data_are_joined_as_one_by_one():
    from torch_geometric.data import Data

    def data(n, weighted=True):
        index = torch.randint(0, n, (2, 2 * n), generator=torch.Generator().manual_seed(n))
        return Data(edge_index=index, num_nodes=n, edge_weight=torch.arange(2.0 * n) if weighted else None)

    for items in ([data(3), data(5)], [data(3, False), data(5, False)], [data(3), data(4, False)]):
        joined, union = as_graph(items), Graph.union([as_graph(item) for item in items])
        assert torch.equal(joined.edge_index, union.edge_index)
        assert torch.equal(joined.ptr, union.ptr)
        assert torch.equal(joined.adjacency.weights, union.adjacency.weights)
    bad = Data(edge_index=torch.tensor([[0], [4]]), num_nodes=4)
    with pytest.raises(ValueError, match=r"graph 1 of 2: edge_index must name nodes from 0 to below num_nodes=4"):
        as_graph([data(3), bad])


def test_an_encoding_that_passes_no_gradient_on_says_so():
    import gape

    weights = torch.ones(2, dtype=torch.float64, requires_grad=True)
    graph = Graph(torch.tensor([[0, 1], [1, 0]]), 2, edge_weight=weights)
    with pytest.warns(UserWarning, match="the edge weights require gradients, but RandomWalk.* is not differentiable"):
        gape.encode(graph, "rw", length=2)
    assert gape.encode(graph, "gape-paper", states=2).requires_grad
