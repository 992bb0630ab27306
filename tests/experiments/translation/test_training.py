"""Training learns, stops, resumes bitwise, and writes its result last."""

import json
import multiprocessing
import signal
import time
from dataclasses import replace

import pytest
import torch
from lightning.pytorch.callbacks import Callback

from gape.experiments.runs.folder import versions
from gape.experiments.translation.corpus import Corpus
from gape.experiments.translation.folder import TranslationFolder
from gape.experiments.translation.settings import TrainingSettings
from gape.experiments.translation.training import Unfinished, next_rate, train
from gape.experiments.translation.translator import translate
from tests.experiments.translation.small_runs import settings


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


def test_a_result_says_with_which_versions_it_was_trained(mirror, tmp_path):
    with pytest.raises(Unfinished):
        train(settings(), mirror, tmp_path / "run", minutes=0)
    path = tmp_path / "run" / "versions.json"
    (now,) = json.loads(path.read_text())["sessions"]
    path.write_text(json.dumps({"sessions": [{**now, "torch": "1.0"}]}))
    result = train(settings(), mirror, tmp_path / "run")
    assert result["versions"] == now == versions()
    assert result["versions_before"] == [{**now, "torch": "1.0"}]
    longer = train(settings(steps=8), mirror, tmp_path / "longer", after=tmp_path / "run")
    assert longer["versions_before"] == result["versions_before"]  # its first steps are those of the shorter run


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


@pytest.mark.slow
def test_a_killed_run_resumes_and_ends_with_the_same_bits(mirror, tmp_path):
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


def test_learning_rate_falls_when_bleu_falls_and_not_below_the_floor():
    settings = TrainingSettings(learning_rate=3e-4)
    assert next_rate(3e-4, [1.0, 2.0, 3.0], settings) == 3e-4  # too early to tell
    assert next_rate(3e-4, [2.0, 1.0, 3.0, 1.0], settings) == 3e-4  # as bad as the worst, not worse
    assert next_rate(3e-4, [2.0, 1.0, 3.0, 0.9], settings) == pytest.approx(2.4e-4)
    assert next_rate(1.1e-5, [2.0, 1.0, 3.0, 0.9], settings) == 1e-5
    assert next_rate(1e-6, [2.0, 1.0, 3.0, 0.9], settings) == 1e-6  # below it from the start


@pytest.mark.slow
def test_encodings_learn_to_reverse_a_sentence_and_none_does_not(mirror, tmp_path):
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
