"""``encode`` and the registry."""

import sys

import networkx as nx
import pytest
import scipy.sparse
import torch
from torch_geometric.data import Batch, Data, InMemoryDataset

import gape
from gape.encodings import (
    ALIASES,
    GAPE,
    Pairs,
    RandomWalk,
    is_name,
    make,
    names,
    sequence_graph,
    settings_of,
    summary,
)
from tests.encodings.samples import random_graph

PRESETS = ("gape", "gape-paper", "gape-star", "gape-star-20", "gape-2star", "gape-2star-20", "gape-2star-max")
OTHERS = (
    "gape-rooted",
    "rw",
    "lape",
    "sa",
    "spd",
    "degree",
    "ppr",
    "pprp",
    "rrwp",
    "heat",
    "resistance",
    "electrostatic",
    "communicability",
    "svd",
    "magnetic",
    "walk-profile",
    "sinusoidal",
    "lape-p",
    "lape-c",
    "lape-c10k",
)


class InMemory(InMemoryDataset):
    def __init__(self, graphs):
        super().__init__()
        self.data, self.slices = self.collate(graphs)


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 0.5], [1.0, -2.0, 0.5]], ids=["none", "positive", "signed"])
def test_input_is_validated_once(name, weights, monkeypatch):
    checked = []
    monkeypatch.setattr("gape.graph.graph.check_graph", checked.append)
    if weights and min(weights) < 0:
        try:
            make(name)(gape.Graph.from_edges([(0, 1)], undirected=True, edge_weight=[-1.0]))
        except ValueError as error:
            pytest.skip(str(error))
    graphs = [nx.cycle_graph(3), nx.cycle_graph(3)]
    for graph in graphs:
        for edge, weight in zip(graph.edges, weights or (), strict=False):
            graph.edges[edge]["weight"] = weight
    checked.clear()
    gape.encode(graphs, name)
    assert [graph.num_graphs for graph in checked] == [1, 1]


def data(nodes: int) -> Data:
    return Data(edge_index=random_graph(nodes, 0.5, 0).edge_index, num_nodes=nodes)


def test_one_graph_or_batch_gives_one_tensor_whatever_holds_it():
    graph = random_graph(6, 0.5, 0)
    other = nx.from_edgelist(graph.edge_index.T.tolist())
    matrix = scipy.sparse.coo_array((torch.ones(graph.num_edges), graph.edge_index.numpy()), shape=(6, 6))
    expected = RandomWalk(4)(graph)
    for held in (graph, data(6), matrix.tocsr(), graph.edge_index, graph.edge_index.numpy()):
        assert torch.equal(gape.encode(held, "rw", length=4), expected)
    order = list(other.nodes)
    torch.testing.assert_close(gape.encode(other, "rw", length=4), expected[order])
    batch = gape.encode(Batch.from_data_list([data(6), data(3)]), "rw", length=4)
    assert batch.shape == (9, 4)
    assert isinstance(gape.encode(graph, "spd"), Pairs)


def test_a_collection_gives_a_list():
    graphs = [data(6), data(3), data(4)]
    for collection in (graphs, tuple(graphs), InMemory(graphs), InMemory(graphs)[:2]):
        encoded = gape.encode(collection, RandomWalk(4))
        assert [len(rows) for rows in encoded] == [6, 3, 4][: len(collection)]
        distances = gape.encode(collection, "spd")
        assert [tuple(matrix.shape) for matrix in distances] == [(6, 6), (3, 3), (4, 4)][: len(collection)]


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("how", ["encode", "call", "store"])
def test_the_input_is_converted_once(name, how, tmp_path):
    encoding, converted = make(name), []

    def count(frame, event, _):
        if event == "call" and frame.f_code is gape.as_graph.__code__:
            converted.append(frame.f_back.f_globals["__name__"])

    edges = sequence_graph("cycle", 5).edge_index
    call = {
        "encode": lambda: gape.encode(edges, encoding),
        "call": lambda: encoding(edges),
        "store": lambda: gape.encode(edges, encoding, store=tmp_path),
    }[how]
    sys.setprofile(count)
    try:
        call()
    finally:
        sys.setprofile(None)
    # gape.solve is public and checks its own argument.
    assert len([module for module in converted if module.startswith("gape.encodings")]) == 1


def test_encode_refuses_what_it_does_not_know():
    graph = random_graph(4, 0.5, 0)
    with pytest.raises(ValueError, match=r"there is no encoding 'walk'; there are gape, .*rw"):
        gape.encode(graph, "walk")
    with pytest.raises(ValueError, match="rw has no setting 'lenght'; it has dtype, length, memory"):
        gape.encode(graph, "rw", lenght=4)
    for name, meant in (
        ("rwp", "rwpe"),
        ("laep", "lape"),
        ("GAPE-Star", "gape-star"),
        ("rws", "rwse"),
        ("rv", "rw"),
        ("wr", "rw"),
        ("lap", "lape"),
        ("spf", "spd"),
        ("hat", "heat"),
        ("deg", "degree"),
        ("elec", "electrostatic"),
        ("rw+lpae", "lape"),
    ):
        with pytest.raises(ValueError, match=rf"did you mean '{meant}'\?$"):
            gape.encode(graph, name)
    for name, setting, meant in (("rw", "lenght", "length"), ("rw+lape", "rw.lengths", "rw.length")):
        with pytest.raises(ValueError, match=rf"did you mean '{meant}'\?$"):
            gape.encode(graph, name, **{setting: 4})
    with pytest.raises(ValueError, match=r"settings \['length'\] go with a name"):
        gape.encode(graph, RandomWalk(), length=3)
    with pytest.raises(ValueError, match="must be an encoding or its name, got int"):
        gape.encode(graph, 3)


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_other_names_in_use_are_understood(alias, name):
    assert make(alias) == make(name)
    assert settings_of(alias) == settings_of(name)
    assert is_name(alias)
    assert alias not in names()


def test_every_name_is_there_and_every_setting_explained():
    assert {*PRESETS, *OTHERS} <= set(names())
    for name in names():
        assert summary(name)
        for setting in settings_of(name):
            assert setting.help, (name, setting.name)
            assert setting.default is not None or setting.name in ("cap", "length", "radius")


def test_settings_from_text_are_settings_from_values():
    written = make("gape", states="8", damping="0.5", relative="true", seed="3", dtype="float64", readout="closed")
    assert written == GAPE(8, 0.5, True, seed=3, readout="closed", dtype=torch.float64)
    assert make("degree", cap="none").cap is None
    assert make("degree", cap="7").cap == 7
    for name, settings, message in [
        ("gape", {"states": "many"}, "states must be a whole number, got 'many'"),
        ("gape", {"damping": "low"}, "damping must be a number, got 'low'"),
        ("gape", {"relative": "maybe"}, "relative must be true or false, got 'maybe'"),
        ("gape", {"readout": "far"}, "readout must be one of node, closed, pair, got 'far'"),
        ("ppr", {"beta": "0"}, "beta is a restart probability"),
        ("spd", {"dtype": "float32"}, "dtype must be one of int16, int32, int64"),
    ]:
        with pytest.raises(ValueError, match=message):
            make(name, **settings)


def test_settings_of_a_preset_show_what_it_sets():
    defaults = {setting.name: setting.default for setting in settings_of("gape-star-20")}
    assert (defaults["labels"], defaults["transition"], defaults["damping"]) == (20, "stochastic", 1.0)
    assert next(s for s in settings_of("gape") if s.name == "readout").choices == ("node", "closed", "pair")
