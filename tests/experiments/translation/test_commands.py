"""The command line trains, translates and compares."""

import re

import pytest

from gape.cli import main
from gape.experiments.translation.corpus import read_lines
from gape.experiments.translation.folder import TranslationFolder
from gape.experiments.translation.results import read_results
from gape.experiments.translation.settings import PRESETS
from tests.experiments.translation.small_runs import settings


def test_command_line_trains_and_translates(mirror, tmp_path, capsys, monkeypatch):
    for part, corpus in (("train", mirror.train), ("dev", mirror.dev), ("test", mirror.tests[0])):
        (tmp_path / f"{part}.en").write_text("".join(f"{line}\n" for line in corpus.source))
        (tmp_path / f"{part}.vi").write_text("".join(f"{line}\n" for line in corpus.target))
    tiny = settings()
    monkeypatch.setitem(PRESETS, "small", (tiny.model, tiny.training))

    def call(*words):
        with pytest.raises(SystemExit) as exit_:
            main(["translate", *map(str, words)])
        return exit_.value.code or 0, *capsys.readouterr()

    run = tmp_path / "run"
    code, out, err = call("train", "--data", tmp_path, "-e", "gape", "--steps", 4, "--minutes", 0, "-o", run)
    assert code == 3
    assert "after 1 of 2 validations; run it again" in out
    assert "step 2: loss" in err
    code, out, _ = call("train", "--data", tmp_path, "-e", "gape", "--steps", 4, "-o", run)
    assert code == 0
    assert "lower-cased (nrefs:1|case:lc" in out
    code, out, err = call("run", run, tmp_path / "test.en", "-o", tmp_path / "test.hyp")
    assert (code, out) == (0, f"{tmp_path / 'test.hyp'}: 20 translations\n"), err
    assert (tmp_path / "test.hyp").read_text() == (run / "test.hyp.txt").read_text()
    other = ("run", run, tmp_path / "test.en", "-o", tmp_path / "other.hyp", "--positions")
    assert call(*other, "sinusoidal")[0] == 0
    assert (tmp_path / "other.hyp").read_text() != (tmp_path / "test.hyp").read_text()
    assert "'rw' has learned parameters, which were not trained with this model" in call(*other, "rw")[2]
    (tmp_path / "bad.en").write_text("a\n\n")
    assert "bad.en, line 2: the line is empty" in call("run", run, tmp_path / "bad.en", "-o", tmp_path / "x")[2]
    missing = call("run", run, tmp_path / "test.en", "-o", tmp_path / "nowhere" / "x")[2]
    assert f"there is no folder {tmp_path / 'nowhere'} for x; make it first" in missing
    assert "is a folder or device; name a regular file" in call("run", run, tmp_path / "test.en", "-o", tmp_path)[2]
    assert "is the text to translate" in call("run", run, tmp_path / "test.en", "-o", tmp_path / "test.en")[2]
    assert call("run", run, tmp_path / "test.en", "-o", tmp_path / "test.hyp.xz")[0] == 0
    assert read_lines(tmp_path / "test.hyp.xz") == read_lines(tmp_path / "test.hyp")
    (tmp_path / "long.en").write_text("a\n" + "fox " * 70 + "\n")
    assert "long.en, line 2: 70 pieces" in call("run", run, tmp_path / "long.en", "-o", tmp_path / "x")[2]
    assert call(*other, "gape")[0] == 0  # the run's own table, drawn with the run's own seed
    assert (tmp_path / "other.hyp").read_text() == (tmp_path / "test.hyp").read_text()
    assert "there is no setting 'depth'" in call("train", "--set", "depth=2", "-o", tmp_path / "y")[2]
    assert (
        "--languages must be two different extensions such as en-vi, got 'en'"
        in call("train", "--languages", "en", "-o", tmp_path / "y")[2]
    )
    own = ("train", "--data", tmp_path, "-o", tmp_path / "y")
    assert re.search(r"at most (\d+) are possible; .*\(--set pieces=\1\)", call(*own, "--set", "pieces=8000")[2])
    assert "for other extensions set languages (--languages)" in call(*own, "--languages", "de-fr")[2]
    (tmp_path / "empty").mkdir()
    for path in [*tmp_path.glob("*.en"), *tmp_path.glob("*.vi")]:
        (tmp_path / "empty" / path.name).write_text("a\n\n")
    empty = call("train", "--data", tmp_path / "empty", "-o", tmp_path / "y")[2]
    assert "train.en, line 2: the line is empty" in empty
    assert "In training text, drop_empty=True (--drop-empty) drops such pairs" in empty
    evbnews = call("train", "--languages", "de-fr", "-o", tmp_path / "y")[2]
    assert "languages (--languages) applies to a folder of your own; evbnews is en-vi" in evbnews
    assert "there is no position encoding 'gap'" in call("train", "-e", "gap", "-o", tmp_path / "y")[2]
    code, out, _ = call(
        "rows",
        "--steps",
        2,
        "-e",
        "sinusoidal, none",
        "--set",
        "layers=2",
        "--data",
        tmp_path,
        "--out",
        tmp_path / "runs",
        "--results",
        tmp_path / "translation.jsonl",
    )
    assert code == 0
    assert "none: BLEU, lower-cased, " in out
    assert len(read_results(tmp_path / "translation.jsonl")) == 2
    assert (
        TranslationFolder(tmp_path / "runs" / f"none-small-2-147,data={tmp_path.name},layers=2").settings().model.layers
        == 2
    )
