"""Encodings side by side."""

import pytest
import torch

from gape.encodings import Concatenated, RandomWalk, RootedGAPE, ShortestPath, is_name, make, settings_of, summary
from gape.experiments.graph_tasks.cell import Cell
from tests.encodings.samples import batch_of, random_graph


def test_columns_are_those_of_the_parts():
    graph = random_graph(9, 0.4, 0)
    both = make("rw+gape-rooted", **{"rw.length": "6", "gape-rooted.machines": 2, "dtype": "float64"})
    expected = [RandomWalk(6, dtype="float64")(graph), RootedGAPE(2, dtype="float64")(graph)]
    assert torch.equal(both(graph), torch.cat(expected, 1))
    assert both == Concatenated((RandomWalk(6, dtype="float64"), RootedGAPE(2, dtype="float64")), dtype="float64")
    assert [len(rows) for rows in map(both, batch_of())] == [graph.num_nodes for graph in batch_of()]


def test_names_and_settings_of_the_parts():
    assert is_name("rw+gape-rooted")
    assert not is_name("rw+none")
    known = [setting.name for setting in settings_of("rw+pprp")]
    assert known[0] == "dtype"
    assert "rw.length" in known
    assert "pprp.powers" in known
    assert len(set(known)) == len(known)
    assert summary("rw+pprp") == "Features of several node encodings side by side, in the order given."


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("rw+walk", {}, "there is no encoding 'walk'"),
        ("rw+rw", {}, "names an encoding twice"),
        ("rw+pprp", {"length": 3}, "has no setting 'length'; it has dtype, rw.length"),
        ("rw+spd", {"dtype": "float32"}, "dtype must be one of int16"),
        ("rw+sa", {}, "does not give one row of features per node"),
    ],
)
def test_what_does_not_go_together_is_refused(name, settings, message):
    with pytest.raises(ValueError, match=message):
        make(name, **settings)(random_graph(4, 1.0, 0))
    with pytest.raises(ValueError, match="encodes pairs of nodes"):
        Concatenated((RandomWalk(), ShortestPath()))


def test_cells_of_the_comparison():
    cell = Cell("cycles-v", "rw+gape-rooted", 95, {"encoding.gape-rooted.layers": "2", "scaling": "whitened"})
    options = {"rw.length": 9, "gape-rooted.layers": 2, "gape-rooted.seed": 95}
    assert cell.settings.encoding_options == options
    assert cell.name == "cycles-v rw+gape-rooted encoding.gape-rooted.layers=2 scaling=whitened seed 95"
    assert Cell("cycles-v", "rw+gape-rooted", 95, {"encoding.gape-rooted.layers": "3"}).overrides == {}
    with pytest.raises(ValueError, match="'lape' does not enter by a linear layer"):
        Cell("cycles", "rw+lape")
