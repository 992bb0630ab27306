"""Training: learns, stops, goes on bit by bit, and writes its result last."""

import json
import multiprocessing
import re
import shutil
import signal
import time
from dataclasses import replace

import pytest
import torch
from lightning.pytorch.callbacks import Callback

from gape._internal.files import folder_lock
from gape.cli import main
from gape.experiments.report.render import render
from gape.experiments.translation.corpus import Corpus
from gape.experiments.translation.folder import TranslationFolder
from gape.experiments.translation.module import next_rate
from gape.experiments.translation.results import collect, read_results, translation_table
from gape.experiments.translation.settings import PRESETS, Settings, TrainingSettings, preset
from gape.experiments.translation.text import read_lines
from gape.experiments.translation.training import Unfinished, train
from gape.experiments.translation.translator import translate
from gape.experiments.translation.vocabulary import Vocabulary


def settings(positions="sinusoidal", **changes) -> Settings:
    small = {"layers": 1, "width": 32, "feed_forward": 64, "heads": 4, "max_positions": 64, "pieces": 40}
    short = {"steps": 6, "validate_every": 2, "tokens": 200, "dev_sentences": 5}
    return preset("small", data="mirror", positions=positions, **{**small, **short, **changes})


def start(folder, of, mirror) -> None:
    """Make a run that was interrupted before its first validation."""
    TranslationFolder(folder).start(of, Vocabulary.train(mirror.train, of.model.pieces), mirror.digest)


def test_resumed_training_ends_with_the_same_bits(mirror, tmp_path):
    whole = train(settings(), mirror, tmp_path / "whole")
    with pytest.raises(Unfinished, match="after 1 of 3 validations; run it again"):
        train(settings(), mirror, tmp_path / "parts", minutes=0)
    with pytest.raises(Unfinished, match="after 2 of 3 validations"):
        train(settings(), mirror, tmp_path / "parts", minutes=0)
    assert TranslationFolder(tmp_path / "parts").result() is None
    parts = train(settings(), mirror, tmp_path / "parts")
    a, b = (torch.load(tmp_path / name / "last.ckpt", weights_only=True) for name in ("whole", "parts"))
    assert a["state_dict"].keys() == b["state_dict"].keys()
    assert all(torch.equal(tensor, b["state_dict"][name]) for name, tensor in a["state_dict"].items())
    assert a["global_step"] == b["global_step"] == 6
    clocks = ("seconds", "cpu_seconds")
    validations = [
        [{k: v for k, v in record.items() if k not in clocks} for record in saved["history"]] for saved in (a, b)
    ]
    assert validations[0] == validations[1]
    assert len(validations[0]) == 3
    assert whole["bleu"] == parts["bleu"]
    # Called again, it only reads.
    (tmp_path / "whole" / "last.ckpt").unlink()
    assert train(settings(), mirror, tmp_path / "whole") == whole


def test_a_prolonged_run_ends_with_the_bits_of_a_long_one(mirror, tmp_path):
    train(settings(steps=4), mirror, tmp_path / "short")
    for _ in range(2):
        long = train(settings(steps=6), mirror, tmp_path / "long", after=tmp_path / "short")
    whole = train(settings(steps=6), mirror, tmp_path / "whole")
    a, b = (torch.load(tmp_path / name / "last.ckpt", weights_only=True) for name in ("long", "whole"))
    assert all(torch.equal(tensor, b["state_dict"][name]) for name, tensor in a["state_dict"].items())
    assert (long["bleu"], long["best_step"], long["steps"]) == (whole["bleu"], whole["best_step"], 6)
    assert TranslationFolder(tmp_path / "short").result()["steps"] == 4
    with pytest.raises(FileNotFoundError, match=r"there is no run .*nowhere to continue from; train it first"):
        train(settings(steps=6), mirror, tmp_path / "other", after=tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("longer", "complaint"),
    [
        (
            {"steps": 6, "seed": 3},
            "cannot continue from .*short: seed is 147 there and 3 here. Only the steps may differ",
        ),
        ({"steps": 2}, "has steps=3, expected fewer than steps=2"),
        ({"steps": None}, "has steps=3, expected fewer than steps=None"),
        ({"steps": 6}, "ends after 3 steps, and a longer run validates every 2"),
    ],
)
def test_only_the_beginning_of_a_run_is_prolonged(mirror, tmp_path, longer, complaint):
    start(tmp_path / "short", settings(steps=3), mirror)
    with pytest.raises(ValueError, match=complaint):
        train(settings(**longer), mirror, tmp_path / "long", after=tmp_path / "short")
    assert not (tmp_path / "long").exists()


def test_only_complete_runs_are_prolonged(mirror, tmp_path):
    start(tmp_path / "short", settings(steps=4), mirror)
    with pytest.raises(ValueError, match="short is not complete; finish it first"):
        train(settings(steps=6), mirror, tmp_path / "long", after=tmp_path / "short")


@pytest.mark.slow
def test_a_killed_run_goes_on_and_ends_with_the_same_bits(mirror, tmp_path):
    long = settings(steps=60, validate_every=2)
    process = multiprocessing.get_context("spawn").Process(target=train, args=(long, mirror, tmp_path / "killed"))
    process.start()
    try:
        while not (tmp_path / "killed" / "last.ckpt").exists():
            assert process.is_alive(), "the run ended without a checkpoint"
            time.sleep(0.01)
        time.sleep(0.1)  # somewhere within a later interval
    finally:
        process.kill()
        process.join()
    assert TranslationFolder(tmp_path / "killed").result() is None
    killed, whole = train(long, mirror, tmp_path / "killed"), train(long, mirror, tmp_path / "whole")
    a, b = (torch.load(tmp_path / name / "last.ckpt", weights_only=True) for name in ("killed", "whole"))
    assert all(torch.equal(tensor, b["state_dict"][name]) for name, tensor in a["state_dict"].items())
    assert (killed["bleu"], killed["best_step"]) == (whole["bleu"], whole["best_step"])


def test_two_processes_do_not_train_in_one_folder(mirror, tmp_path):
    with folder_lock(tmp_path), pytest.raises(ValueError, match="is being run by another process; wait for it"):
        train(settings(), mirror, tmp_path)
    assert not TranslationFolder(tmp_path).started


def test_of_equally_good_validations_the_last_is_kept_and_named(mirror, tmp_path):
    result = train(settings(learning_rate=1e-9), mirror, tmp_path)
    validations = json.loads((tmp_path / "history.json").read_text())
    assert len({record["dev_bleu"] for record in validations}) == 1
    assert result["best_step"] == validations[-1]["step"]
    last = torch.load(tmp_path / "last.ckpt", weights_only=True)["state_dict"]
    best = torch.load(tmp_path / "best.pt", weights_only=True)
    assert all(torch.equal(tensor, last[f"model.{name}"]) for name, tensor in best.items())


def test_without_steps_a_validation_follows_every_epoch(mirror, tmp_path):
    result = train(settings(steps=None, epochs=2, validate_every=None, tokens=2000), mirror, tmp_path)
    validations = json.loads((tmp_path / "history.json").read_text())
    assert len(validations) == 2
    pieces = sum(record["tokens"] for record in validations)
    assert validations[0]["tokens"] == validations[1]["tokens"] == pieces / 2  # every pair once per epoch
    assert result["steps"] == validations[1]["step"]


def test_steps_without_an_interval_are_validated_once_per_epoch(mirror, tmp_path):
    """Like `paper`, which validates once per epoch."""
    result = train(settings(steps=7, validate_every=None, tokens=1000), mirror, tmp_path)
    validations = json.loads((tmp_path / "history.json").read_text())
    once = train(settings(steps=None, epochs=1, validate_every=None, tokens=1000), mirror, tmp_path / "once")
    assert once["steps"] < 7
    assert [record["step"] for record in validations] == [*range(once["steps"], 7, once["steps"]), 7]
    assert result["steps"] == 7


def test_a_loss_that_is_not_a_number_stops_the_run(mirror, tmp_path):
    with pytest.raises(ValueError, match=r"the loss of step \d+ is nan: training has diverged; lower learning_rate"):
        train(settings(learning_rate=1e38, steps=40), mirror, tmp_path)
    assert TranslationFolder(tmp_path).result() is None


def test_a_folder_with_other_settings_is_left_alone(mirror, tmp_path):
    start(tmp_path, settings(), mirror)
    with pytest.raises(
        ValueError, match=r"other settings: positions is 'sinusoidal' there and 'gape' here, .*choose ano"
    ):
        train(settings("gape", seed=3), mirror, tmp_path)


def test_a_folder_refused_stays_as_it_is(mirror, tmp_path):
    """Also by a run that wants to go on from another: nothing of that one may be left behind."""
    train(settings(steps=4), mirror, tmp_path / "short")
    start(tmp_path / "other", settings("gape", steps=6), mirror)
    before = sorted(path.name for path in (tmp_path / "other").iterdir())
    with pytest.raises(ValueError, match="other settings: positions is 'gape' there"):
        train(settings(steps=6), mirror, tmp_path / "other", after=tmp_path / "short")
    assert sorted(path.name for path in (tmp_path / "other").iterdir()) == before == ["pieces.model", "settings.json"]


def test_a_checkpoint_without_settings_is_not_resumed_from(mirror, tmp_path):
    (tmp_path / "last.ckpt").write_text("of another program")
    with pytest.raises(ValueError, match=r"has a checkpoint but no settings.json; choose another folder"):
        train(settings(), mirror, tmp_path)


def test_a_run_interrupted_before_its_first_validation_can_still_be_prolonged(mirror, tmp_path):
    train(settings(steps=4), mirror, tmp_path / "short")
    start(tmp_path / "long", settings(steps=6), mirror)
    train(settings(steps=6), mirror, tmp_path / "long", after=tmp_path / "short")
    validations = json.loads((tmp_path / "long" / "history.json").read_text())
    assert [record["step"] for record in validations] == [2, 4, 6]
    short = json.loads((tmp_path / "short" / "history.json").read_text())
    assert validations[:2] == short  # clocks and all: they were not run again


def test_a_run_does_not_go_on_with_another_text(mirror, tmp_path):
    with pytest.raises(Unfinished):
        train(settings(), mirror, tmp_path, minutes=0)
    other = replace(mirror, dev=mirror.dev.take([1, 0, *range(2, len(mirror.dev))]))
    with pytest.raises(
        ValueError, match=r"its training or development text was different; remove it, or choose another"
    ):
        train(settings(), other, tmp_path)


@pytest.mark.parametrize(
    ("file", "content", "complaint"),
    [
        ("settings.json", "{", r"settings.json is damaged"),
        ("settings.json", "{}", r"settings.json does not contain the settings of a run"),
        ("settings.json", "[]", r"settings.json is damaged: expected an object"),
        ("pieces.model", "no model", r"pieces.model: these 8 bytes are not a sentencepiece model"),
        ("best.pt", "no weights", r"best.pt is damaged .*remove its folder"),
        ("best.pt", "", r"best.pt is damaged"),
    ],
)
def test_damaged_files_of_a_run_are_named(mirror, tmp_path, file, content, complaint):
    train(settings(steps=2), mirror, tmp_path)
    (tmp_path / file).write_text(content)
    with pytest.raises(ValueError, match=complaint):
        TranslationFolder(tmp_path).load()


def test_a_checkpoint_cut_short_is_named(mirror, tmp_path):
    with pytest.raises(Unfinished):
        train(settings(), mirror, tmp_path, minutes=0)
    whole = (tmp_path / "last.ckpt").read_bytes()
    (tmp_path / "last.ckpt").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=r"last.ckpt is damaged .*remove its folder and train again"):
        train(settings(), mirror, tmp_path)


def test_weights_of_another_shape_are_named(mirror, tmp_path):
    train(settings(steps=2), mirror, tmp_path)
    there = json.loads((tmp_path / "settings.json").read_text())
    there["model"]["layers"] = 2
    (tmp_path / "settings.json").write_text(json.dumps(there))
    with pytest.raises(ValueError, match=r"best.pt does not fit the model of .*settings.json"):
        TranslationFolder(tmp_path).load()


def test_a_complete_run_does_not_answer_for_another_test_text(mirror, tmp_path):
    train(settings(steps=2), mirror, tmp_path)
    other = replace(mirror, tests=(mirror.tests[0].take([1, 0, *range(2, len(mirror.tests[0]))]),))
    with pytest.raises(ValueError, match="was scored on another text test; choose another folder"):
        train(settings(steps=2), other, tmp_path)


@pytest.mark.parametrize(
    ("pieces", "bound"),
    [
        (5, r"the text has (\d+) characters, so more than \1 are needed"),
        (8000, r"at most (\d+) are possible; set pieces=\1"),
    ],
)
def test_a_vocabulary_that_does_not_fit_says_which_would(mirror, tmp_path, pieces, bound):
    with pytest.raises(ValueError, match=rf"400 training pairs cannot give a vocabulary of {pieces} pieces: {bound}"):
        train(settings(pieces=pieces), mirror, tmp_path)
    train(settings(steps=2), mirror, tmp_path)  # the folder is still free


def test_sentences_too_long_to_translate_are_refused_before_training(mirror, tmp_path):
    long = replace(mirror, tests=(Corpus("test", ("a", "fox " * 70), ("ao", "foxo")),))
    with pytest.raises(
        ValueError, match=r"source text test, line 2: \d+ pieces, .* at most 63 .*split the sentence 'fox fox"
    ):
        train(settings(), long, tmp_path)
    assert not list(tmp_path.iterdir())  # a run that never began leaves the folder for another


def test_training_pairs_too_long_are_counted(mirror, tmp_path):
    long = replace(mirror, train=Corpus("train", (*mirror.train.source, "fox " * 70), (*mirror.train.target, "foxo")))
    assert train(settings(steps=2), long, tmp_path)["left_out"] == 1


def test_a_run_is_not_prolonged_with_another_text_nor_if_it_is_complete(mirror, tmp_path):
    train(settings(steps=4), mirror, tmp_path / "short")
    other = replace(mirror, dev=mirror.dev.take([1, 0, *range(2, len(mirror.dev))]))
    with pytest.raises(ValueError, match=r"cannot continue from .*short: its training or development text"):
        train(settings(steps=6), other, tmp_path / "long", after=tmp_path / "short")
    whole = train(settings(steps=6), mirror, tmp_path / "long", after=tmp_path / "short")
    best = (tmp_path / "long" / "best.pt").read_bytes()
    (tmp_path / "long" / "last.ckpt").unlink()
    assert train(settings(steps=6), mirror, tmp_path / "long", after=tmp_path / "short") == whole
    assert (tmp_path / "long" / "best.pt").read_bytes() == best


def test_a_run_of_epochs_resumed_between_them_ends_with_the_same_bits(mirror, tmp_path):
    passes = settings(steps=None, epochs=2, validate_every=3, tokens=1000)
    train(passes, mirror, tmp_path / "whole")
    with pytest.raises(Unfinished):
        train(passes, mirror, tmp_path / "parts", minutes=0)
    train(passes, mirror, tmp_path / "parts")
    a, b = (torch.load(tmp_path / name / "last.ckpt", weights_only=True) for name in ("whole", "parts"))
    assert all(torch.equal(tensor, b["state_dict"][name]) for name, tensor in a["state_dict"].items())
    for i, record in enumerate(a["history"]):
        record["step"] = 5 * i + 5
    torch.save(a, tmp_path / "parts" / "last.ckpt")
    (tmp_path / "parts" / "result.json").unlink()
    with pytest.raises(ValueError, match="expected one every 3; an older version wrote it, so choose another folder"):
        train(passes, mirror, tmp_path / "parts")


def test_a_run_of_epochs_validates_as_often_as_it_is_told(mirror, tmp_path):
    result = train(settings(steps=None, epochs=2, validate_every=3, tokens=1000), mirror, tmp_path)
    validations = [record["step"] for record in json.loads((tmp_path / "history.json").read_text())]
    assert validations == [*range(3, result["steps"], 3), result["steps"]]
    pieces = [record["tokens"] for record in json.loads((tmp_path / "history.json").read_text())]
    once = train(settings(steps=None, epochs=1, validate_every=None, tokens=1000), mirror, tmp_path / "once")
    assert sum(pieces) == 2 * once["tokens"]


def test_an_interrupted_run_says_so(mirror, tmp_path):
    class Interrupt(Callback):
        def on_train_batch_end(self, *_):
            raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        train(settings(), mirror, tmp_path, callbacks=[Interrupt()])
    assert signal.getsignal(signal.SIGINT) is before  # and Ctrl-C still works


def test_a_model_read_back_translates_the_same(mirror, tmp_path):
    train(settings("gape"), mirror, tmp_path)
    model, vocabulary = TranslationFolder(tmp_path).load()
    test = mirror.tests[0]
    assert translate(model, vocabulary, test.source) == TranslationFolder(tmp_path).read_translations("test")
    assert "positions.table" in torch.load(tmp_path / "best.pt", weights_only=True)


def test_learning_rate_falls_when_bleu_falls_and_not_below_the_floor():
    settings = TrainingSettings(learning_rate=3e-4)
    assert next_rate(3e-4, [1.0, 2.0, 3.0], settings) == 3e-4  # too early to tell
    assert next_rate(3e-4, [2.0, 1.0, 3.0, 1.0], settings) == 3e-4  # as bad as the worst, not worse
    assert next_rate(3e-4, [2.0, 1.0, 3.0, 0.9], settings) == pytest.approx(2.4e-4)
    assert next_rate(1.1e-5, [2.0, 1.0, 3.0, 0.9], settings) == 1e-5
    assert next_rate(1e-6, [2.0, 1.0, 3.0, 0.9], settings) == 1e-6  # below it from the start


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
    assert "no file that could be replaced" in call("run", run, tmp_path / "test.en", "-o", tmp_path)[2]
    assert "is the text to translate" in call("run", run, tmp_path / "test.en", "-o", tmp_path / "test.en")[2]
    assert call("run", run, tmp_path / "test.en", "-o", tmp_path / "test.hyp.xz")[0] == 0
    assert read_lines(tmp_path / "test.hyp.xz") == read_lines(tmp_path / "test.hyp")
    (tmp_path / "long.en").write_text("a\n" + "fox " * 70 + "\n")
    assert "long.en, line 2: 70 pieces" in call("run", run, tmp_path / "long.en", "-o", tmp_path / "x")[2]
    assert call(*other, "gape")[0] == 0  # the run's own table, drawn with the run's own seed
    assert (tmp_path / "other.hyp").read_text() == (tmp_path / "test.hyp").read_text()
    assert "unknown setting 'depth'" in call("train", "--set", "depth=2", "-o", tmp_path / "y")[2]
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
    assert "unknown position encoding 'gap'" in call("train", "-e", "gap", "-o", tmp_path / "y")[2]
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


@pytest.mark.slow
def test_encodings_learn_to_say_a_sentence_backwards_and_none_does_not(mirror, tmp_path):
    scores = {}
    for name in ("sinusoidal", "gape", "none"):
        run = settings(name, steps=700, validate_every=350, tokens=400, learning_rate=3e-3, word_dropout=0.0)
        scores[name] = train(run, mirror, tmp_path / name)["bleu"]["test"]["lower-cased"]
    assert min(scores["sinusoidal"], scores["gape"]) > scores["none"] + 20


@pytest.mark.slow
def test_trained_sinusoidal_model_and_automaton_translate_alike(mirror, tmp_path):
    """Proposition 1 in a trained model: the weights of one, the table of the other."""
    train(settings(steps=300, validate_every=300, tokens=400, learning_rate=3e-3), mirror, tmp_path / "run")
    model, vocabulary = TranslationFolder(tmp_path / "run").load()
    expected = translate(model, vocabulary, mirror.dev.source)
    sinusoids = model.positions.table
    model.replace_positions("sinusoidal-automaton")
    assert model.positions.table is not sinusoids
    assert translate(model, vocabulary, mirror.dev.source) == expected
    model.replace_positions("none")
    assert translate(model, vocabulary, mirror.dev.source) != expected
