"""`gape compare`: what it says of an encoding is what the encoding does."""

import json

import pytest
import torch

from gape.cli import main
from gape.encodings import Encoding, RandomWalk
from gape.encodings.registry import ADVICE, REGISTRY
from gape.experiments.compare import Row, compared_names, observe, read_rows, render, write_rows
from gape.experiments.runtime.cost import fitting_settings, load_workload, measure, others, save_workload
from gape.graph.graph import Graph


def test_every_encoding_of_graphs_has_one_line_of_advice():
    assert set(compared_names()) <= set(ADVICE)


def test_promises_of_good_encodings_hold():
    for name in ("rw", "gape", "spd", "degree"):
        found = observe(name, graphs=4)
        assert found.repeatable
        assert found.batch_error < 1e-12
        assert found.order_error < 1e-10
        assert (found.directed, found.weighted, found.disconnected) == ("yes", "yes", "yes")
    assert observe("lape", graphs=2).directed == "symmetrize"


def test_broken_promises_are_seen(monkeypatch):
    class Drawn(RandomWalk):
        def compute(self, graph):
            return torch.rand(graph.num_nodes, 2)

    class Numbered(RandomWalk):
        def compute(self, graph):
            return torch.arange(graph.num_nodes, dtype=torch.float64).unsqueeze(1)

    class Choosy(RandomWalk):
        def compute(self, graph):
            if not graph.undirected:
                raise ValueError("directed")
            return torch.ones(graph.num_nodes, 1)

    kinds: dict[str, type[Encoding]] = {"drawn": Drawn, "numbered": Numbered, "choosy": Choosy}
    for name, kind in kinds.items():
        monkeypatch.setitem(REGISTRY, name, (kind, {}))
    assert not observe("drawn", graphs=2).repeatable
    numbered = observe("numbered", graphs=3)
    assert numbered.order_error > 0.1
    assert numbered.batch_error > 0.1
    assert observe("choosy", graphs=2).directed == "no"


@pytest.mark.parametrize("name", ["CYCLES", "citations"])
def test_workloads_are_graphs_of_the_kind_they_are_called(tmp_path, name):
    path, origin = save_workload(name, tmp_path, None, share=0.002)
    graph = load_workload(path)
    assert graph.undirected == (name == "CYCLES")
    assert origin
    if name == "citations":
        assert bool((graph.edge_index[0] > graph.edge_index[1]).all())  # citations point backwards


def test_a_cost_is_measured_or_says_why_not(tmp_path):
    path, _ = save_workload("citations", tmp_path, None, share=0.05)
    cost = measure("degree", path, limit_seconds=120, limit_gigabytes=1)
    assert cost.seconds > 0
    assert cost.refused == ""
    assert measure("spd", path, limit_seconds=120, limit_gigabytes=1e-3).refused == "memory"
    assert measure("gape-rooted", path, limit_seconds=0.001, limit_gigabytes=1).refused == "> 0.001 s"


def test_other_libraries_are_timed_where_they_have_the_encoding(tmp_path):
    path, _ = save_workload("CYCLES", tmp_path, None, share=0.002)
    assert others("rw", "CYCLES", path)["seconds"] > 0
    assert others("heat", "CYCLES", path) is None
    assert others("rw", "web", path) is None


def test_settings_fit_the_graphs():
    directed = Graph.from_edges([(0, 1)], num_nodes=200)
    assert fitting_settings("lape", directed, 2.0)["symmetrize"] is True
    assert fitting_settings("gape-rooted", directed, 2.0)["radius"] == 1
    assert fitting_settings("degree", directed, 2.0) == {}


def test_rows_are_kept_and_shown(tmp_path, capsys):
    cost = {"seconds": None, "gigabytes": None, "refused": "memory"}
    file = tmp_path / "comparison.jsonl"
    write_rows(file, [Row("rw", {"ZINC": cost}, {}, None)])
    write_rows(file, [Row("gape", {"ZINC": {**cost, "seconds": 0.5, "gigabytes": 0.25}}, {}, 0)])
    assert [json.loads(line)["encoding"] for line in file.read_text().splitlines()] == ["gape", "rw"]
    assert "| `gape` | 0.5 s, 0.2 GiB |" in render(read_rows(file), ["ZINC"])
    with pytest.raises(SystemExit) as end:
        main(["compare", "--show", str(file)])
    assert not end.value.code
    assert "– (memory)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["lapee"], "did you mean 'lape'?"),
        (["rw", "--workload", "mars"], "there is no workload 'mars'"),
        (["--show", "nowhere.jsonl"], "there is no file nowhere.jsonl"),
    ],
)
def test_mistakes_are_named_before_anything_is_measured(capsys, words, complaint):
    with pytest.raises(SystemExit) as end:
        main(["compare", *words])
    assert end.value.code == 2
    assert complaint in capsys.readouterr().err
