"""Results are compared with the baseline and shown beside the paper's."""

import shutil

import pytest

from gape.experiments.report.render import render
from gape.experiments.translation.results import collect, read_results, translation_table
from gape.experiments.translation.training import train
from tests.experiments.translation.small_runs import settings


def test_results_are_compared_with_the_sinusoidal_run_and_shown_beside_the_papers(mirror, tmp_path):
    for name in ("sinusoidal", "none"):
        train(settings(name, steps=2), mirror, tmp_path / "runs" / name)
    lines = collect(tmp_path / "runs", tmp_path / "results" / "translation.jsonl")
    assert lines == read_results(tmp_path / "results" / "translation.jsonl")
    by_name = {line["encoding"]: line for line in lines}
    assert by_name["sinusoidal"]["bootstrap"]["test"]["p_value"] is None
    assert 0 <= by_name["none"]["bootstrap"]["test"]["p_value"] <= 1
    assert lines == collect(tmp_path / "runs", tmp_path / "results" / "translation.jsonl")
    own = translation_table(lines)  # beside text of one's own the paper's figures would mean nothing
    assert not [line for line in own.lines if line[1] == "paper"]
    table = translation_table([*lines, {**lines[0], "encoding": "rw", "data": "evbnews"}])
    shown = {(row, kind): [entry.text for entry in entries] for row, kind, entries in table.lines}
    assert shown["sinusoidal", "paper"][0] == "32.6"
    assert shown["GAPE", "paper"][0] == "32.5"
    assert shown["GAPE", "ours"][0] == "missing"
    assert shown["no encoding", "ours, mirror, 2 steps"][2] == f"{by_name['none']['bleu']['test']['lower-cased']:.2f}"
    assert ("no encoding", "paper") not in shown
    assert ("sinusoidal-automaton", "ours, mirror, 2 steps") in {
        line[:2] for line in translation_table([*lines, {**lines[0], "encoding": "sinusoidal-automaton"}]).lines
    }
    kinds = {kind for _, kind, _ in translation_table([*lines, {**by_name["none"], "seed": 1}]).lines}
    assert {"ours, mirror, 2 steps, seed 1", "ours, mirror, 2 steps, seed 147"} < kinds
    model = {**by_name["none"]["settings"]["model"], "layers": 3}
    deeper = {**by_name["none"], "settings": {**by_name["none"]["settings"], "model": model}}
    kinds = {kind for _, kind, _ in translation_table([*lines, deeper]).lines}
    assert {"ours, mirror, 2 steps, layers=1", "ours, mirror, 2 steps, layers=3"} < kinds
    for how in ("text", "markdown", "latex", "csv"):
        assert "32.6" in render(table, how)
    assert r"95 \% interval & p \\" in render(table, "latex")
    assert {line.split(",")[3] for line in render(table, "csv").splitlines()} >= {"95 % interval", "p", "tst2013"}
    with pytest.raises(
        ValueError, match="brief shows figures at best validation, and the table translation has others"
    ):
        render(table, "brief")


def test_a_comparison_outlives_the_translations_it_was_made_of(mirror, tmp_path):
    for name in ("sinusoidal", "none"):
        train(settings(name, steps=2), mirror, tmp_path / "runs" / name)
    results = tmp_path / "translation.jsonl"
    before = collect(tmp_path / "runs", results)
    shutil.rmtree(tmp_path / "runs" / "sinusoidal")
    assert collect(tmp_path / "runs", results) == before
    results.write_text(results.read_text() + "null\n")
    with pytest.raises(ValueError, match=r"line 3 of .*translation.jsonl is damaged: expected an object, got 'null'"):
        read_results(results)
