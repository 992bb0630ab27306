"""What would silently give a useless encoding says so, and what to do."""

import networkx as nx
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import gape
from gape import Graph, nn, pyg
from gape.encodings import GAPE, Degree

one_way = Data(edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]), num_nodes=4)


@pytest.mark.parametrize(
    "encode",
    [
        lambda: gape.encode(one_way, "rw"),
        lambda: gape.encode([one_way, one_way], "rw"),
        lambda: pyg.AddRandomWalk()(one_way.clone()),
    ],
)
def test_edges_without_reverse_give_no_return_probabilities(encode):
    with pytest.warns(
        UserWarning, match=r"all values of RandomWalk on these \d edges are 0: .*add the reverse edges"
    ) as caught:
        encode()
    assert caught[0].filename == __file__


def test_rows_that_are_all_the_same_are_named():
    ring = nx.cycle_graph(9)
    with pytest.warns(UserWarning, match="all 9 rows are the same: GAPE tells no node"):
        gape.encode(ring, "gape")
    with pytest.warns(UserWarning, match="all 18 rows are the same: Degree .*try 'rw' or 'gape-rooted'"):
        gape.encode([ring, ring], "degree")
    for name in ("rw", "gape-rooted"):
        with pytest.warns(UserWarning, match=r"all 9 rows are the same: .*; try 'lape', or give nodes labels"):
            gape.encode(ring, name)


@pytest.mark.parametrize(("name", "weight"), [("electrostatic", 1e-60), ("svd", 1e160)])
def test_values_beyond_float32_are_said_and_fit_into_float64(name, weight):
    path = Graph.from_edges(
        [(0, 1), (1, 2), (2, 3)], undirected=True, edge_weight=torch.tensor([weight] * 3, dtype=torch.float64)
    )
    with pytest.warns(UserWarning, match=r"values of \w+ are beyond the range of float32: .* dtype='float64'"):
        assert gape.encode(path, name).isinf().any()
    assert gape.encode(path, name, dtype="float64").isfinite().all()


def test_zeros_of_any_encoding_are_named():
    with pytest.warns(UserWarning, match="all values of RandomWalk on these 4 edges are 0: try 'lape'"):
        gape.encode(nx.path_graph(3), "rw", length=1)


def test_closed_runs_without_training_are_return_probabilities():
    graph = gape.as_graph(nx.lollipop_graph(5, 4))
    expected = gape.encode(graph, "gape-closed", dtype="float64")
    layer = nn.GAPE.recipe("gape-closed", scaling="none")
    columns = layer(graph.edge_index, num_nodes=9).detach().double().reshape(9, 20, -1)
    for length in range(20):
        for column in columns[:, length].T:
            factor = float(column @ expected[:, length]) / float(expected[:, length].square().sum() or 1.0)
            torch.testing.assert_close(column, factor * expected[:, length], rtol=1e-5, atol=1e-7)


@pytest.mark.filterwarnings("error")
def test_rows_that_differ_are_not_named():
    for name in ("gape", "rw", "lape", "sa", "degree"):
        gape.encode(nx.path_graph(9), name)
    gape.encode([nx.cycle_graph(9), nx.path_graph(4)], "gape")


@pytest.mark.filterwarnings("error")
def test_one_different_row_of_many_is_enough():
    ring = gape.as_graph(nx.cycle_graph(5000))
    values = torch.ones(5000, 2)
    with pytest.raises(UserWarning, match="all 5000 rows are the same"):
        Degree().warn_if_uninformative(values, ring)
    for row in (1, 2500, 4999):
        Degree().warn_if_uninformative(values.index_fill(0, torch.tensor(row), 1.001), ring)
    Degree().warn_if_uninformative(values.index_fill(0, torch.tensor(1), torch.nan), ring)


def test_infinite_values_are_counted_beside_values_that_are_not_numbers():
    values = torch.tensor([[torch.nan], [torch.inf], [-torch.inf], [1.0]])
    with pytest.warns(UserWarning, match="2 values of GAPE are beyond the range of float32"):
        GAPE().warn_if_uninformative(values, gape.as_graph(nx.path_graph(4)))


def test_weights_of_another_name_are_not_used_silently():
    data = Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2, weight=torch.tensor([2.0, 2.0]))
    for graphs in (data, [data, data]):
        with pytest.warns(UserWarning, match=r"has 'weight', which is not read.* data.edge_weight = data.weight"):
            assert gape.as_graph(graphs).edge_weight is None


def test_degrees_that_cancel_are_named():
    graph = Graph([[0, 0, 1, 2], [1, 2, 0, 0]], 3, edge_weight=[1.0, -1.0, 1.0, -1.0])
    with pytest.warns(UserWarning, match="out of 1 nodes, such as node 0, cancel"):
        GAPE(states=2, matrix="random_walk", relative=False, damping=0.1)(graph)


def test_a_square_edge_array_is_read_in_one_way_and_says_which():
    with pytest.warns(UserWarning, match=r"sources \[0, 1\] and targets \[2, 3\]; for pairs .* transpose"):
        assert gape.as_graph(np.array([[0, 1], [2, 3]])).num_edges == 2
    assert gape.as_graph(np.array([[0, 1], [1, 0]])).num_nodes == 2  # the same both ways


def test_a_layer_does_not_guess_the_number_of_nodes():
    index = torch.tensor([[0, 1], [1, 0]])
    layer = nn.GAPE(states=2, seed=0)
    with pytest.raises(ValueError, match=r"names nodes up to 1, but the last nodes may have no edges; give num_nodes"):
        layer(index)
    assert layer(index, num_nodes=4).shape == (4, 2)
    assert layer(index, torch.tensor([0, 0, 0])).shape == (3, 2)
    assert layer(index, basis=layer.prepare(Graph(index, 4))).shape == (4, 2)


def test_a_large_graph_beyond_the_sum_over_runs_is_named_before_any_work(monkeypatch):
    monkeypatch.setattr(gape.encodings.gape, "MIN_WARNED_NODES", 10)
    star = nx.star_graph(30)
    with pytest.warns(UserWarning, match=r"is at least 2\.7, so the sum .*relative=True"):
        GAPE(states=2, damping=0.5, relative=False).solve(star)


@pytest.mark.filterwarnings("error")
def test_a_large_graph_with_the_default_is_not_named(monkeypatch):
    monkeypatch.setattr(gape.encodings.gape, "MIN_WARNED_NODES", 10)
    assert GAPE(states=2).solve(nx.star_graph(30)).ok
