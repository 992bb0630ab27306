"""Run folders refuse other settings, texts and damaged files, and start from shorter runs."""

import json
from dataclasses import replace

import pytest
import torch

from gape._internal.files import folder_lock
from gape.experiments.translation.folder import TranslationFolder
from gape.experiments.translation.training import Unfinished, train
from gape.experiments.translation.translator import translate
from tests.experiments.translation.small_runs import settings, start


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


def test_two_processes_do_not_train_in_one_folder(mirror, tmp_path):
    with folder_lock(tmp_path), pytest.raises(ValueError, match="is in use by another process; wait for it"):
        train(settings(), mirror, tmp_path)
    assert not TranslationFolder(tmp_path).started


def test_a_folder_with_other_settings_is_left_alone(mirror, tmp_path):
    start(tmp_path, settings(), mirror)
    with pytest.raises(
        ValueError, match=r"other settings: positions is 'sinusoidal' there and 'gape' here, .*choose ano"
    ):
        train(settings("gape", seed=3), mirror, tmp_path)


def test_a_folder_refused_stays_as_it_is(mirror, tmp_path):
    """A refused run that continues from another one copies nothing of it."""
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


def test_a_run_is_not_resumed_with_another_text(mirror, tmp_path):
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


def test_the_result_of_another_test_text_is_refused(mirror, tmp_path):
    train(settings(steps=2), mirror, tmp_path)
    other = replace(mirror, tests=(mirror.tests[0].take([1, 0, *range(2, len(mirror.tests[0]))]),))
    with pytest.raises(ValueError, match="was scored on another text test; choose another folder"):
        train(settings(steps=2), other, tmp_path)


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


def test_a_model_read_back_translates_the_same(mirror, tmp_path):
    train(settings("gape"), mirror, tmp_path)
    model, vocabulary = TranslationFolder(tmp_path).load()
    test = mirror.tests[0]
    assert translate(model, vocabulary, test.source) == TranslationFolder(tmp_path).read_translations("test")
    assert "positions.table" in torch.load(tmp_path / "best.pt", weights_only=True)


def test_code_of_the_page_runs(mirror, tmp_path, monkeypatch):
    """Its commands are those of test_commands.py."""
    from tests.test_pages import blocks

    monkeypatch.chdir(tmp_path)
    train(settings("gape"), mirror, tmp_path / "runs-translation" / "g")
    names = {"source": torch.randint(3, 8000, (2, 5)), "target": torch.randint(3, 8000, (2, 4))}
    for script in blocks("translation", "python"):
        exec(compile(script, "translation.md", "exec"), names)
    assert names["scores"].shape[::2] == (2, 8000)
    assert len(names["vocabulary"]) == 40
