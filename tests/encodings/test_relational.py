"""Heterogeneous graphs: node types are labels, relations are edge types, and rows go back to their node types."""

import itertools

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, HeteroData

import gape
import gape.nn
from gape.encodings import GAPE, RandomWalk, RelationalGAPE
from gape.graph.hetero import hetero_graph, relation_types
from gape.pyg import AddEncoding, AddGAPE

SHOP = (("customer", "places", "order"), ("order", "contains", "product"), ("customer", "likes", "product"))


def shop(seed=0, *, sizes=(4, 5, 3), weighted=False):
    """Customers, orders and products with random edges of three relations."""
    draw = np.random.default_rng(seed)
    data = HeteroData()
    for name, size in zip(("customer", "order", "product"), sizes, strict=True):
        data[name].num_nodes = size
        data[name].x = torch.from_numpy(draw.normal(size=(size, 2))).float()
    for relation in SHOP:
        pairs = [(u, v) for u in range(data[relation[0]].num_nodes) for v in range(data[relation[-1]].num_nodes)]
        chosen = [pair for pair in pairs if draw.random() < 0.4]
        data[relation].edge_index = torch.tensor(chosen, dtype=torch.int64).reshape(-1, 2).T
        if weighted:
            data[relation].edge_weight = torch.from_numpy(draw.uniform(0.2, 0.9, len(chosen)))
    return data


def runs_by_enumeration(automaton, graph, length):
    """Total weight of runs of at most ``length`` steps into each node, one run after another."""
    weights = torch.ones(graph.num_edges) if graph.edge_weight is None else graph.edge_weight
    edges = list(zip(graph.edge_index.T.tolist(), graph.edge_type.tolist(), weights.tolist(), strict=True))
    here = {v: automaton.initial[:, int(graph.labels[v])].clone() for v in range(graph.num_nodes)}
    total = {v: weight.clone() for v, weight in here.items()}
    for _ in range(length):
        after = {v: torch.zeros_like(weight) for v, weight in here.items()}
        for (u, v), kind, weight in edges:
            after[v] += weight * (here[u] @ automaton.transition[kind])
        here = after
        for v in total:
            total[v] += here[v]
    return torch.stack([total[v] for v in range(graph.num_nodes)])


@pytest.mark.parametrize(("reverse", "weighted"), itertools.product([False, True], repeat=2))
def test_rows_are_the_runs_by_relation_one_step_after_another(reverse, weighted):
    data = shop(weighted=weighted)
    graph = hetero_graph(data, reverse=reverse)
    relations = relation_types(data, reverse)
    encoding = RelationalGAPE(
        states=4, damping=0.05, relative=False, labels=3, labelling="given", relations=len(relations), dtype="float64"
    )
    expected = runs_by_enumeration(encoding.automaton, graph, 40)
    torch.testing.assert_close(encoding(graph), expected, rtol=1e-9, atol=1e-12)
    gape_setting = GAPE(states=4, damping=0.05, relative=False, dtype="float64")
    by_type = AddEncoding(gape_setting, "pe", reverse_relations=reverse)(data)
    assert torch.equal(torch.cat([by_type[name].pe for name in data.node_types]), encoding(graph))


def test_relative_damping_converges_on_every_graph():
    for seed in range(5):
        graph = hetero_graph(shop(seed), reverse=True)
        encoding = RelationalGAPE(states=6, damping=0.9, relative=True, labels=3, labelling="given", relations=6)
        solution = encoding.solve(graph)
        assert solution.status == [gape.Status.RUN_SUM]


def test_convergence_is_certified_on_graphs_too_large_for_dense_matrices():
    generator = torch.Generator().manual_seed(0)
    data = HeteroData()
    data["a"].num_nodes, data["b"].num_nodes = 400, 700
    hubs = (400 * torch.rand(2000, generator=generator) ** 4).long()
    for relation in ("likes", "knows"):
        ends = torch.randint(700, (2000,), generator=generator)
        data["a", relation, "b"].edge_index = torch.stack([hubs, ends])
    graph = hetero_graph(data, reverse=True)
    encoding = RelationalGAPE(states=16, damping=0.95, labels=2, labelling="given", relations=4)
    solution = encoding.solve(graph)
    assert solution.status == [gape.Status.RUN_SUM]
    assert solution.spectral_radius[0] < 0.95


def test_the_first_relation_alone_is_gape():
    data = HeteroData()
    data["node"].num_nodes = 4
    data["node", "to", "node"].edge_index = torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]])
    expected = gape.encode(data["node", "to", "node"].edge_index, "gape", states=5)
    torch.testing.assert_close(gape.encode(data, "gape", states=5)["node"], expected)
    assert AddGAPE(states=5)(data)["node"].gape.shape == (4, 5)


def test_types_tell_apart_what_an_untyped_encoding_cannot():
    # Two customers each reach two products: by one relation, or by two different ones.
    data = HeteroData()
    data["customer"].num_nodes, data["product"].num_nodes = 2, 2
    data["customer", "buys", "product"].edge_index = torch.tensor([[0, 0, 1], [0, 1, 0]])
    data["customer", "returns", "product"].edge_index = torch.tensor([[1], [1]])
    typed = gape.encode(data, "gape", states=8)["product"]
    untyped = RandomWalk(8)(gape.Graph(hetero_graph(data).edge_index, 4))[2:]
    assert not torch.allclose(typed[0], typed[1])
    assert torch.equal(untyped[0], untyped[1])


def test_renumbering_the_nodes_of_a_type_permutes_its_rows():
    data = shop(3)
    order = torch.tensor([2, 0, 3, 1])
    turned = shop(3)
    place = torch.argsort(order)
    for relation in SHOP:
        if relation[0] == "customer":
            index = turned[relation].edge_index
            turned[relation].edge_index = torch.stack([place[index[0]], index[1]])
    before, after = gape.encode(data, "gape", states=4), gape.encode(turned, "gape", states=4)
    torch.testing.assert_close(after["customer"], before["customer"][order])
    torch.testing.assert_close(after["product"], before["product"])


def test_a_list_of_heterogeneous_graphs_is_encoded_together_and_alone_alike():
    graphs = [shop(seed) for seed in range(3)]
    batch = gape.as_graph(graphs)
    encoding = RelationalGAPE(states=4, labels=3, labelling="given", relations=3)
    rows = torch.split(encoding(batch), [12, 12, 12])
    for data, together in zip(graphs, rows, strict=True):
        torch.testing.assert_close(together, torch.cat(list(gape.encode(data, "gape", states=4).values())))
    for name in ("gape", "rw"):
        for data, together in zip(graphs, gape.encode(graphs, name), strict=True):
            alone = gape.encode(data, name)
            assert together.keys() == alone.keys()
            assert all(torch.equal(together[key], alone[key]) for key in alone)
    other = shop()
    del other[SHOP[0]]
    with pytest.raises(ValueError, match="graph 1 has the node types and relations"):
        gape.encode([graphs[0], other], "gape")


def test_heterogeneous_graphs_have_no_silent_traps_of_their_own():
    data = shop()  # every edge leads to a later type: no walk returns
    data[SHOP[0]].weight = torch.ones(data[SHOP[0]].num_edges)
    with pytest.warns(UserWarning, match="all values of RandomWalk .* are 0: if each edge stands for both"):
        gape.encode(data, "rw")
    with pytest.warns(UserWarning, match="has 'weight', which is not read"):
        gape.encode(data, "gape")


def test_encodings_are_appended_to_x_and_others_see_one_graph():
    data = AddEncoding(RandomWalk(3), None)(shop())
    rows = torch.split(RandomWalk(3)(gape.Graph(hetero_graph(shop()).edge_index, 12)), [4, 5, 3])
    assert torch.equal(data["order"].x[:, 2:], rows[1])
    assert data["customer"].x.shape == (4, 5)


def test_types_without_nodes_or_edges_keep_their_place():
    data = shop(sizes=(4, 0, 3))
    rows = gape.encode(data, "gape", states=4)
    assert [len(rows[name]) for name in ("customer", "order", "product")] == [4, 0, 3]


def broken(change):
    data = shop()
    change(data)
    return data


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (lambda d: d[SHOP[0]].update({"edge_index": torch.tensor([[9], [0]])}), "node 9 of 'customer', which has 4"),
        (lambda d: d[SHOP[1]].update({"edge_index": torch.tensor([[0], [-1]])}), "node -1 of 'product', which has 3"),
        (lambda d: d[SHOP[2]].pop("edge_index"), "has no edge_index"),
        (lambda d: d[SHOP[2]].update({"edge_index": torch.zeros(3, 2, dtype=torch.int64)}), r"shape \[2, edges\]"),
    ],
)
def test_broken_heterogeneous_graphs_are_refused(change, complaint):
    with pytest.raises(ValueError, match=complaint):
        gape.encode(broken(change), "gape")


def test_what_does_not_fit_is_refused_with_the_way_out():
    with pytest.raises(ValueError, match="to_data_list"):
        gape.encode(Batch.from_data_list([shop(), shop()]), "gape")
    with pytest.raises(ValueError, match="encodes pairs of nodes"):
        gape.encode(shop(), "spd")
    with pytest.raises(ValueError, match="labels are the node types"):
        gape.encode(shop(), "gape", labels=4, labelling="degree")
    other = HeteroData()
    other["customer"].num_nodes = 3
    with pytest.raises(ValueError, match="graph 1 has the node types"):
        gape.as_graph([shop(), other])
    with pytest.raises(ValueError, match="readout='node'"):
        RelationalGAPE(readout="closed", relations=2)


def test_the_layer_does_the_same_and_learns():
    data = shop(1)
    layer = gape.nn.GAPE(states=6, out_channels=4, labels=3, transition_by="edge", edge_types=6, scaling="none", seed=0)
    rows = layer.encode_hetero(data, reverse_relations=True)
    whole = layer.encode(hetero_graph(data, reverse=True))
    assert torch.equal(torch.cat([rows[name] for name in data.node_types]), whole)
    rows["product"].sum().backward()
    assert all(parameter.grad is not None and parameter.grad.abs().sum() > 0 for parameter in layer.parameters())
    with pytest.raises(ValueError, match="3 node types and 3 relations, the layer labels=3 and edge_types=6"):
        layer.encode_hetero(data)
