"""`gape compare`: what it says of an encoding is what the encoding does."""

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from gape.cli import main
from gape.encodings import Encoding, Pairs, RandomWalk, make
from gape.encodings.registry import ADVICE, REGISTRY
from gape.experiments import compare as comparison
from gape.experiments.compare import Row, compare, compared_names, observe, read_rows, render, write_rows
from gape.experiments.expressiveness import PairSet
from gape.experiments.runtime.baselines import baselines, sample_graphs
from gape.experiments.runtime.cost import (
    Cost,
    _in_process,
    _timed,
    fitting_settings,
    load_workload,
    measure,
    measure_baseline,
    save_workload,
)
from gape.experiments.runtime.workloads import workload
from gape.graph.graph import Graph


def test_every_encoding_of_graphs_has_one_line_of_advice():
    assert set(compared_names()) == set(ADVICE)


def test_promises_of_good_encodings_hold():
    for name in ("rw", "gape", "spd", "degree"):
        found = observe(name, graphs=4)
        assert found.repeatable
        assert found.batch_error < 1e-12
        assert max(found.order_error, found.symmetric_error) < 1e-10
        assert (found.directed, found.weighted, found.disconnected) == ("yes", "yes", "yes")
    vectors = observe("lape", graphs=8)
    assert vectors.directed == "symmetrize"
    assert vectors.order_error < 1e-10
    assert vectors.symmetric_error > 0.1  # no rule chooses between twins


@pytest.mark.parametrize("name", ["gape-rooted", "ppr", "heat", "resistance", "electrostatic", "communicability"])
def test_bytes_do_not_depend_on_the_number_of_threads(name):
    assert observe(name, graphs=20).repeatable


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
    assert _in_process(never_ending, 0.5).refused == "> 0.5 s"
    assert _in_process(exit, 60, 3).refused == "its process ended with code 3"


def never_ending():
    while True:
        pass


def test_other_libraries_are_timed_where_they_have_the_encoding(tmp_path):
    path, _ = save_workload("CYCLES", tmp_path, None, share=0.002)
    limits = {"limit_seconds": 120, "limit_gigabytes": 2}
    assert measure_baseline("rw", "CYCLES", path, **limits)["seconds"] > 0
    assert measure_baseline("walk-profile", "CYCLES", path, **limits) is None
    wide = tmp_path / "wide.npz"
    np.savez(wide, edge_index=np.array([[0], [1]]), ptr=np.array([0, 60_000]))
    assert measure_baseline("heat", "web", wide, **limits) == {"way": "SciPy", "seconds": None, "refused": "memory"}
    apart = tmp_path / "apart.npz"
    np.savez(apart, edge_index=np.array([[0], [1]]), ptr=np.array([0, 3]))
    assert (
        measure_baseline("resistance", "citations", apart, **limits)["refused"] == "Graph G must be strongly connected."
    )
    large, _ = save_workload("web", tmp_path, None, share=0.002)
    assert measure_baseline("svd", "web", large, **limits)["seconds"] > 0


@pytest.mark.parametrize("name", sorted(baselines()))
def test_other_libraries_compute_the_same_encoding(name):
    baseline, encoding = baselines()[name], make(name)
    for graph in sample_graphs(workload("CYCLES", None, 6), 3, baseline.min_nodes):
        found = encoding(graph)
        ours = found.matrices()[0] if isinstance(found, Pairs) else found
        assert baseline.agrees(ours, baseline.compute(baseline.prepare(graph)))
        assert not baseline.agrees(2 * ours + 1, baseline.compute(baseline.prepare(graph)))


def test_time_of_processes_of_an_encoding_is_counted(monkeypatch):
    work = "import time\nwhile time.process_time() < 0.5: pass"

    class Elsewhere(RandomWalk):
        def compute(self, graph):
            subprocess.run([sys.executable, "-c", work], check=True)
            return torch.ones(graph.num_nodes, 1)

    monkeypatch.setitem(REGISTRY, "elsewhere", (Elsewhere, {}))
    found = _timed("elsewhere", {}, Graph.from_edges([(0, 1)]))
    assert found.seconds > 0.4


def test_settings_fit_the_graphs():
    directed = Graph.from_edges([(0, 1)], num_nodes=200)
    assert fitting_settings("lape", directed, 2.0)["symmetrize"] is True
    assert fitting_settings("gape-rooted", directed, 2.0)["radius"] == 1
    assert fitting_settings("degree", directed, 2.0) == {}


def test_rows_are_kept_and_shown(tmp_path, capsys):
    cost = {"seconds": None, "gigabytes": None, "refused": "memory", "others": None}
    other = {"way": "PyG", "seconds": 12.3, "refused": ""}
    file = tmp_path / "comparison.jsonl"
    write_rows(file, [Row("rw", {"ZINC": cost})])
    write_rows(file, [Row("gape", {"ZINC": {**cost, "seconds": 0.5, "gigabytes": 0.25, "others": other}})])
    assert [json.loads(line)["encoding"] for line in file.read_text().splitlines()] == ["gape", "rw"]
    assert "| `gape` | 0.5 s, 0.2 GiB; PyG: 12 s | ? |" in render(read_rows(file), "cost")
    shown = printed(capsys, "--show", str(file))
    assert "– (memory)" in shown
    assert "take it for" in shown
    assert "take it for" not in printed(capsys, "--show", str(file), "--part", "cost")
    assert "| `gape` | 0.5 s | ? |" in printed(capsys, "--show", str(file), "--part", "choice")


def test_rows_written_at_the_same_time_are_all_kept(tmp_path):
    file = tmp_path / "comparison.jsonl"
    every = compared_names()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda name: write_rows(file, [Row(name)]), every))
    assert [row.encoding for row in read_rows(file)] == every


@pytest.mark.parametrize(
    ("line", "complaint"), [('{"encoding": "rw", ', "is damaged"), ('{"costs": {}}', "is not a result: it has no")]
)
def test_damaged_lines_are_named(tmp_path, line, complaint):
    file = tmp_path / "comparison.jsonl"
    write_rows(file, [Row("gape")])
    file.write_text(file.read_text() + line + "\n")
    with pytest.raises(ValueError, match=f"line 2 of {file} {complaint}"):
        read_rows(file)
    with pytest.raises(ValueError, match=complaint):
        write_rows(file, [Row("rw")])


def test_encodings_that_depend_on_the_order_of_nodes_tell_no_pairs_apart(monkeypatch, tmp_path):
    class Numbered(RandomWalk):
        def compute(self, graph):
            degrees = torch.bincount(graph.edge_index[0], minlength=graph.num_nodes)
            return (degrees * torch.arange(graph.num_nodes)).to(torch.float64).unsqueeze(1)

    class Failing(RandomWalk):
        def compute(self, graph):
            raise ValueError("there is no invariant here")

    (tmp_path / "brec").mkdir()
    star = Graph.from_edges([(0, 1), (0, 2), (0, 3)], undirected=True)
    pairs = PairSet(Graph.union([star, star]), ["toy"])
    monkeypatch.setattr(PairSet, "brec", classmethod(lambda cls, data_dir: pairs))
    for name, kind in {"numbered": Numbered, "failing": Failing}.items():
        monkeypatch.setitem(REGISTRY, name, (kind, {}))
    assert comparison._told_apart("degree", tmp_path) == 0
    assert comparison._told_apart("numbered", tmp_path) is None
    with pytest.raises(ValueError, match="no invariant here"):
        comparison._told_apart("failing", tmp_path)


def printed(capsys, *words):
    with pytest.raises(SystemExit) as end:
        main(["compare", *words])
    assert not end.value.code
    return capsys.readouterr().out


def test_a_comparison_goes_on_where_it_was_ended(monkeypatch):
    begun: list[tuple[str, str]] = []

    def note(name, path, **limits):
        begun.append((name, path.stem))
        return Cost(1.0, 0.5)

    monkeypatch.setattr(comparison, "measure", note)
    monkeypatch.setattr(comparison, "measure_baseline", lambda *args, **limits: None)
    monkeypatch.setattr(comparison, "observe", lambda name: observe("degree", graphs=2))
    words = {"data_dir": None, "share": 0.002}
    first = next(compare(["degree", "rw"], ["CYCLES"], **words))  # ended after one step
    assert (first.encoding, first.costs, begun) == ("degree", {}, [])
    rows = {row.encoding: row for row in compare(["degree", "rw"], ["CYCLES"], known=[first], **words)}
    assert begun == [("degree", "CYCLES"), ("rw", "CYCLES")]
    assert all(row.promises and row.costs["CYCLES"]["seconds"] == 1.0 for row in rows.values())
    assert list(compare(["degree", "rw"], ["CYCLES"], known=list(rows.values()), **words)) == []
    list(compare(["rw"], ["CYCLES"], known=list(rows.values()), again=True, **words))
    assert begun[2:] == [("rw", "CYCLES")]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["lapee"], "did you mean 'lape'?"),
        (["rw", "--workload", "mars"], "there is no workload 'mars'"),
        (["--show", "nowhere.jsonl"], "there is no file nowhere.jsonl"),
        (["rw", "--share", "0.1", "--results", "some.jsonl"], "got --share 0.1"),
        (["--part", "time"], "part must be one of 'cost', 'promises', 'choice', got 'time'"),
    ],
)
def test_mistakes_are_named_before_anything_is_measured(capsys, words, complaint):
    with pytest.raises(SystemExit) as end:
        main(["compare", *words])
    assert end.value.code == 2
    assert complaint in capsys.readouterr().err
