"""Bases computed once by the transform give what the layer computes on the fly."""

import pytest
import torch
from learnable_cases import LABELS, MODES, graphs, layer, read_by
from torch_geometric.data import Batch, Data, InMemoryDataset
from torch_geometric.loader import DataLoader

import gape
from gape import Graph
from gape.nn import GAPE
from gape.pyg import AddWalkBasis, basis_of
from gape.solvers import Krylov, Schur, Spectral
from gape.solvers.basis import prepare_layer


def data_list(graph: Graph) -> list[Data]:
    found = []
    for i in range(graph.num_graphs):
        one = graph.slice(i, i + 1)
        found.append(
            Data(edge_index=one.edge_index, num_nodes=one.num_nodes, label=one.labels, edge_type=one.edge_type)
        )
    return found


def transform(one, **others) -> AddWalkBasis:
    chosen = dict(one.basis_settings)
    if chosen["vectors"] is None:
        chosen["vectors"] = 16
    return AddWalkBasis(**chosen, **others)


def encode(one, batch: Batch):
    given = read_by(one, batch.label, batch.edge_type)
    return one(batch.edge_index, batch.batch, **given, basis=basis_of(batch))


@pytest.mark.parametrize("mode", MODES)
def test_a_basis_changes_nothing(mode):
    graph = graphs(labels=6 if "many" in mode else LABELS)
    one = layer(mode)
    add = transform(one)
    batch = Batch.from_data_list([add(data) for data in data_list(graph)])
    torch.testing.assert_close(encode(one, batch), one.encode(graph), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("mode", ["node", "closed", "closed-length", "typed-node-length"])
def test_the_transform_on_a_batch_a_loader_and_a_data_set(mode):
    graph, one = graphs(), layer(mode)
    plain, add = data_list(graph), transform(one)
    expected = one.encode(graph)
    torch.testing.assert_close(encode(one, add(Batch.from_data_list(plain))), expected)

    class Stored(InMemoryDataset):
        def __init__(self):
            super().__init__()
            self.data, self.slices = self.collate(plain)

    stored = Stored()
    whole = AddWalkBasis(**one.basis_settings).over(stored)
    assert "walk_radius" not in stored.slices
    batch = next(iter(DataLoader(whole, batch_size=4)))
    torch.testing.assert_close(encode(one, batch), expected)
    part = next(iter(DataLoader(whole[[2, 0]], batch_size=2)))
    rows = torch.cat([expected[graph.ptr[2] : graph.ptr[3]], expected[: graph.ptr[1]]])
    torch.testing.assert_close(encode(one, part), rows)
    back = add(Batch.from_data_list(plain)).to_data_list()
    assert back[2].walk_radius.shape == (1,)


def test_single_precision_bases_cost_half_and_a_few_digits():
    graph, one = graphs(), layer("node")
    batch = Batch.from_data_list([transform(one, dtype=torch.float32)(data) for data in data_list(graph)])
    assert batch.walk_vectors.dtype == torch.float32
    torch.testing.assert_close(encode(one, batch), one.encode(graph), rtol=1e-4, atol=1e-5)


def test_directed_graphs_in_a_basis_with_room_for_them():
    directed = Graph.from_edges([(0, 1), (1, 2), (2, 0), (2, 3)], labels=torch.tensor([0, 1, 0, 2]))
    data = Data(edge_index=directed.edge_index, num_nodes=4)
    with pytest.raises(ValueError, match="directed=True"):
        AddWalkBasis()(data)
    for mode in ("node", "node-labels"):
        one = layer(mode)
        basis = basis_of(transform(one, directed=True)(data.clone()))
        torch.testing.assert_close(one.encode(directed, basis), one.encode(directed))


def test_a_whole_basis_of_directed_graphs_is_exact_where_no_number_of_vectors_is():
    path = torch.arange(119)
    data = Data(edge_index=torch.stack([path, path + 1]), num_nodes=120)
    one = layer("node")
    with pytest.raises(ValueError, match=r"which directed graphs need\) of 120 nodes does not fit into vectors=35"):
        AddWalkBasis(**one.basis_settings, directed=True)(data.clone())
    found = AddWalkBasis(vectors=120, directed=True, dtype=torch.float32)(data.clone())
    assert found.walk_vectors.dtype == torch.complex64
    found = AddWalkBasis(vectors=120, directed=True)(data.clone())
    basis = basis_of(found)
    torch.testing.assert_close(
        one(data.edge_index, basis=basis), one(data.edge_index, num_nodes=120), rtol=1e-9, atol=1e-9
    )


def test_a_basis_of_too_few_vectors_for_the_damping_is_refused():
    path = Graph.from_edges([(i, i + 1) for i in range(199)], undirected=True)
    with pytest.raises(ValueError, match=r"has 35 vectors and damping=0.99 needs 114 to be exact"):
        layer("node", damping=0.99).encode(path, prepare_layer(path))


def test_an_empty_graph_at_the_end_of_a_batch_is_seen_in_the_basis():
    empty = Data(edge_index=torch.zeros(2, 0, dtype=torch.int64), num_nodes=0)
    ring = Data(edge_index=torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]]), num_nodes=3)
    one = layer("node")
    batch = Batch.from_data_list([transform(one)(data) for data in (ring, empty)])
    found = one(batch.edge_index, batch.batch, basis=basis_of(batch))
    torch.testing.assert_close(found, one(ring.edge_index, num_nodes=3))


def test_a_basis_that_does_not_fit_is_refused_with_the_reason():
    graph = graphs()
    krylov = prepare_layer(graph, vectors=12)
    with pytest.raises(ValueError, match="complete basis"):
        layer("closed").encode(graph, krylov)
    with pytest.raises(ValueError, match="matrix='adjacency'"):
        layer("node-walk").encode(graph, krylov)
    with pytest.raises(ValueError, match="other graphs"):
        layer("node").encode(graphs((3, 4)), krylov)
    with pytest.raises(ValueError, match="return weights"):
        layer("closed-length").encode(graph, prepare_layer(graph, vectors=0, returns=2))
    with pytest.raises(ValueError, match="lacks vectors"):
        layer("node").encode(graph, prepare_layer(graph, vectors=0))
    with pytest.raises(ValueError, match="does not fit"):
        AddWalkBasis(vectors=4, complete=True)(Batch.from_data_list(data_list(graph)))
    with pytest.raises(ValueError, match=r"over\(dataset\) or a Batch; for single graphs set vectors"):
        AddWalkBasis(vectors=None)(data_list(graph)[0])
    with pytest.raises(ValueError, match=r"basis must be a Basis.* got DataBatch"):
        layer("node")(graph.edge_index, graph.batch, basis=Batch.from_data_list(data_list(graph)))


@pytest.mark.parametrize("mode", ["node", "closed", "closed-length", "typed-node-length", "pair-length"])
def test_a_basis_of_other_weights_is_refused(mode):
    graph, one = graphs(), layer(mode)
    given = read_by(one, graph.labels, graph.edge_type)
    weights = torch.full((graph.num_edges,), 0.01)
    weighted = Graph(graph.edge_index, graph.num_nodes, weights, graph.labels, graph.edge_type, graph.ptr)
    basis = one.prepare(weighted)
    with pytest.raises(ValueError, match=r"other weights: those of graph 0 add up to .* give edge_weight, too"):
        one(graph.edge_index, graph.batch, **given, basis=basis)
    found = one(graph.edge_index, graph.batch, edge_weight=weights, **given, basis=basis)
    torch.testing.assert_close(found, one.encode(weighted))
    with pytest.raises(ValueError, match="give the same edge_weight, or compute the basis"):
        one(graph.edge_index, graph.batch, edge_weight=2 * weights, **given, basis=basis)


def test_a_basis_of_other_signs_is_refused():
    path = Graph.from_edges([(0, 1), (1, 2), (2, 3)], undirected=True, edge_weight=torch.tensor([1.0, -1.0, 1.0]))
    one = layer("node-length")
    basis = one.prepare(path)
    with pytest.raises(ValueError, match="add up to 4 and -2 there and to 6 here; give edge_weight, too"):
        one(path.edge_index, num_nodes=4, basis=basis)
    one(path.edge_index, num_nodes=4, edge_weight=path.edge_weight.half(), basis=basis)


@pytest.mark.parametrize("mode", ["node", "closed", "closed-length"])
def test_a_basis_of_other_graphs_of_the_same_size_is_refused(mode):
    path, star = (Graph.from_edges(e, undirected=True) for e in ([(0, 1), (1, 2), (2, 3)], [(0, 1), (0, 2), (0, 3)]))
    one = layer(mode, **({"labels": 1} if mode == "closed-length" else {}))
    basis = one.prepare(path)
    torch.testing.assert_close(one.encode(path, basis), one.encode(path))
    shuffled = Graph(path.edge_index[:, torch.randperm(6, generator=torch.Generator().manual_seed(0))], 4)
    one.encode(shuffled, basis)  # the order of the edges means nothing
    for other in (star, Graph(torch.tensor([1, 0, 2, 3])[path.edge_index], 4)):
        with pytest.raises(ValueError, match="other edges than those of graph 0, or for another order of its nodes"):
            one.encode(other, basis)


def test_graphs_in_a_list_get_bases_as_a_batch():
    graph, one = graphs(), layer("closed")
    add = AddWalkBasis(**one.basis_settings)
    parts = add(Batch.from_data_list(data_list(graph))).to_data_list()
    for made in (parts, add.over(data_list(graph))):
        torch.testing.assert_close(encode(one, Batch.from_data_list(made)), one.encode(graph))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"matrix": "rw"}, "matrix must be one of 'adjacency', .* got 'rw'"),
        ({"vectors": -1}, "vectors must be at least 0, got -1"),
        ({"vectors": 2.5}, "vectors must be a whole number, got 2.5"),
        ({"returns": -1}, "returns must be at least 0, got -1"),
        ({"dtype": torch.bfloat16}, "dtype must be torch.float32 or torch.float64, got torch.bfloat16"),
    ],
)
def test_transforms_that_cannot_be_are_refused_when_built(wrong, message):
    with pytest.raises(ValueError, match=message):
        AddWalkBasis(**wrong)


def test_bases_are_orthonormal_and_turn_the_walk_matrix_into_h():
    graph = graphs((6, 9))
    basis = AddWalkBasis(vectors=9, complete=True)(Batch.from_data_list(data_list(graph)))
    for i in range(2):
        a, b = int(graph.ptr[i]), int(graph.ptr[i + 1])
        v = basis.walk_vectors[a:b]
        matrix = graph.slice(i, i + 1).walk().dense()[0] / basis.walk_radius[i]
        torch.testing.assert_close(v @ v.T, torch.eye(b - a, dtype=torch.float64))
        torch.testing.assert_close(v @ torch.diag(basis.walk_spectrum[i]) @ v.T, matrix)
        assert float(basis.walk_spectrum[i].abs().max()) == pytest.approx(1.0)


@pytest.mark.parametrize(
    "mode", ["node", "node-walk", "closed", "closed-labels", "closed-length", "pair", "typed-node"]
)
def test_a_prepared_basis_of_unit_radius_changes_nothing(mode):
    graph, one = graphs(), layer(mode)
    basis = gape.prepare(graph, solver=Spectral(), matrix=one.matrix, labels=1, unit_radius=True)
    torch.testing.assert_close(one.encode(graph, basis), one.encode(graph), rtol=1e-9, atol=1e-10)
    read = read_by(one, graph.labels, graph.edge_type)
    found = one(graph.edge_index, graph.batch, **read, basis=basis)
    torch.testing.assert_close(found, one.encode(graph), rtol=1e-9, atol=1e-10)


def test_a_prepared_basis_of_a_directed_graph_changes_nothing():
    directed = Graph.from_edges([(0, 1), (1, 2), (2, 0), (2, 3)], labels=torch.tensor([0, 1, 0, 2]))
    basis = gape.prepare(directed, solver=Schur(), labels=1, unit_radius=True)
    for mode in ("node", "node-labels"):
        torch.testing.assert_close(layer(mode).encode(directed, basis), layer(mode).encode(directed))


def test_a_prepared_basis_that_does_not_fit_is_refused_with_the_reason():
    graph, one = graphs(), layer("node")
    with pytest.raises(ValueError, match=r"unit radius, got Basis.*unit_radius=True"):
        one.encode(graph, gape.prepare(graph, solver=Spectral(), labels=1))
    with pytest.raises(ValueError, match="labels=1, unit_radius=True"):
        one.encode(graph, gape.prepare(graph, labels=LABELS, unit_radius=True))
    unit = gape.prepare(graph, solver=Krylov(max_steps=2), labels=1, unit_radius=True)
    with pytest.raises(ValueError, match=r"has 2 vectors and damping=0.9 needs 11"):
        one.encode(graph, unit)
    with pytest.raises(ValueError, match="need a complete basis"):
        layer("closed").encode(graph, unit)
    with pytest.raises(ValueError, match="matrix='adjacency', got matrix='random_walk'"):
        layer("node-walk").encode(graph, unit)
    with pytest.raises(ValueError, match="prepare it for this graph"):
        one.encode(graphs((3, 4)), unit)
    with pytest.raises(ValueError, match="prepare it without unit_radius"):
        gape.solve(gape.Automaton.katz(0.25), graph, basis=unit)


def test_graphs_in_several_parts_are_encoded_as_in_one(monkeypatch):
    layers = [layer(mode) for mode in ("node", "node-labels", "closed-labels", "pair")]
    expected = [one.encode(graphs()) for one in layers]
    monkeypatch.setattr("gape.graph.batching.MAX_PART_NODES", 8)
    graph = graphs()
    assert len(graph.parts) > 1
    whole = prepare_layer(graph, complete=True)
    for one, found in zip(layers, expected, strict=True):
        torch.testing.assert_close(one.encode(graph), found, rtol=1e-9, atol=1e-10)
        torch.testing.assert_close(one.encode(graph, whole), found, rtol=1e-9, atol=1e-10)


def test_a_krylov_basis_of_a_directed_graph_that_is_not_exhausted_is_refused():
    edges = [(i, (i + 1) % 60) for i in range(60)] + [(0, 30), (7, 3), (20, 55)]
    graph = gape.Graph.from_edges(edges)
    basis = gape.prepare(graph, labels=1, unit_radius=True)
    machine = GAPE(states=2, damping=0.5, seed=0)
    with pytest.raises(ValueError, match=r"Krylov basis of a directed graph.*gape.prepare with Schur"):
        machine.encode(graph, basis)
    exact = gape.prepare(graph, solver=gape.solvers.Schur(), labels=1, unit_radius=True)
    torch.testing.assert_close(machine.read(graph, exact), machine.read(graph), rtol=1e-4, atol=1e-6)


def test_a_basis_prepared_for_several_labels_is_refused_by_a_layer():
    graph = gape.Graph.from_edges([(0, 1), (1, 2)], undirected=True, labels=[0, 1, 0])
    basis = gape.prepare(graph, solver=gape.solvers.Spectral(), unit_radius=True)
    with pytest.raises(ValueError, match=r"labels=1, unit_radius=True"):
        GAPE(states=2, seed=0).encode(graph, basis)


@pytest.mark.parametrize("solver", [None, Krylov(max_steps=4), Spectral(), Schur()])
def test_graphs_without_nodes_have_a_basis(solver):
    empty = Graph(torch.zeros(2, 0, dtype=torch.int64), 0)
    basis = gape.prepare(empty, solver=solver)
    assert gape.solve(gape.Automaton.katz(0.25), empty, basis=basis).weights.shape == (0, 1)


def test_a_basis_moves_between_devices_as_a_whole():
    graph, one = graphs(), layer("closed")
    basis = gape.prepare(graph, solver=Spectral(), labels=1, unit_radius=True)
    moved = basis.to("meta")
    assert moved.graph.edge_index.is_meta
    assert moved.parts[0].adjacency.ptr.is_meta
    torch.testing.assert_close(one.encode(graph, basis.to("cpu")), one.encode(graph))


def test_graphs_with_bases_for_different_matrices_are_refused_together():
    ring = Data(edge_index=torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]]), num_nodes=3)
    both = [AddWalkBasis(name, vectors=3)(ring.clone()) for name in ("adjacency", "random_walk")]
    with pytest.raises(ValueError, match=r"different walk matrices, 'adjacency', 'random_walk'"):
        basis_of(Batch.from_data_list(both))
