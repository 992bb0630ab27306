"""Train a translation model, resume it, test it."""

from __future__ import annotations

import logging
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import Callback, ProgressBar

from gape._internal.files import folder_lock, replacing
from gape.experiments.runs.lightning import fit
from gape.experiments.translation.batches import PieceCorpus
from gape.experiments.translation.corpus import DATASETS, Corpus, Splits, read_raw_reference
from gape.experiments.translation.run_folder import RunFolder
from gape.experiments.translation.scoring import score
from gape.experiments.translation.settings import Settings
from gape.experiments.translation.task import TranslationTask
from gape.experiments.translation.translator import split_lines, translate
from gape.experiments.translation.unfinished import Unfinished
from gape.experiments.translation.vocabulary import Vocabulary


def train(
    settings: Settings,
    splits: Splits,
    folder: str | Path,
    *,
    minutes: float | None = None,
    callbacks: Sequence[Callback] = (),
    progress: Callable[[str, int, int], None] = lambda name, done, total: None,
    data_dir: Path | None = None,
    after: str | Path | None = None,
) -> dict[str, Any]:
    """Train, translate the test texts with the best checkpoint, and write ``result.json`` last.

    Called again with the same folder, it resumes after the last look at the development text, or returns the result if
    there is one.

    Args:
        settings: of the run.
        splits: its text.
        folder: where its files go.
        minutes: raise :class:`Unfinished` at the first look after so long.
        callbacks: of Lightning, for instance a progress bar.
        progress: told how many sentences of a test text are translated.
        data_dir: where untokenised references are looked for.
        after: a complete run of fewer steps and otherwise the same settings, to go on from.
    """
    run, shorter = RunFolder(Path(folder)), None if after is None else RunFolder(Path(after))
    run.refuse(settings, splits.digest, shorter)
    result = run.result()
    if result is not None:
        for corpus in splits.tests:
            if corpus.name in result["bleu"] and run.read_references(corpus.name) != list(corpus.target):
                raise ValueError(f"{run.path} was scored on another text {corpus.name}; take another folder")
        return result
    vocabulary = _vocabulary(run, shorter, splits.train, settings)
    for corpus in (splits.dev, *splits.tests):  # before hours of training, not after them
        split_lines(vocabulary, corpus.source, settings.model, f"source text {corpus.name}")
    prepared = PieceCorpus.from_corpus(splits.train, vocabulary, max_pieces=settings.model.max_positions - 1)
    task = TranslationTask(settings, vocabulary, prepared, splits.dev)
    run.path.mkdir(parents=True, exist_ok=True)
    with folder_lock(run.path):
        run.begin(settings, vocabulary, splits.digest, shorter)
        _fit(task, run, minutes, callbacks)
        if len(task.history) < task.stretches():
            raise Unfinished(
                f"{run.path}: the time was over after {len(task.history)} of {task.stretches()} looks at the "
                f"development text; run it again to go on"
            )
        result = _test(task, run, splits, progress, data_dir)
        run.write_result(result)
    return result


def _vocabulary(run: RunFolder, shorter: RunFolder | None, corpus: Corpus, settings: Settings) -> Vocabulary:
    for begun in (run, shorter):
        if begun is not None and begun.begun:
            return Vocabulary.load(begun.vocabulary)
    return Vocabulary.train(corpus, settings.model.pieces)


def _fit(task: TranslationTask, run: RunFolder, minutes: float | None, callbacks: Sequence[Callback]) -> None:
    # Which devices there are, and its advertisements.
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    with warnings.catch_warnings():
        # The batches lie in memory; and what Lightning uses of PyTorch is its own affair.
        warnings.filterwarnings("ignore", message=".*does not have many workers")
        warnings.filterwarnings("ignore", category=FutureWarning, module="lightning")
        trainer = lightning.Trainer(
            max_epochs=task.stretches(),
            accelerator="auto" if torch.cuda.is_available() else "cpu",
            devices=1,
            gradient_clip_val=task.run.training.clip,
            reload_dataloaders_every_n_epochs=1,
            num_sanity_val_steps=0,
            logger=False,
            enable_model_summary=False,
            enable_progress_bar=any(isinstance(callback, ProgressBar) for callback in callbacks),
            callbacks=[*callbacks, _Keep(run), _Deadline(minutes)],
            enable_checkpointing=False,
        )
        fit(trainer, task, ckpt_path=run.checked_last(), weights_only=True)


class _Deadline(Callback):
    """Stops after a look when the time is over."""

    def __init__(self, minutes: float | None) -> None:
        self.end = None if minutes is None else time.monotonic() + 60 * minutes

    def on_train_epoch_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        if self.end is not None and time.monotonic() > self.end:
            trainer.should_stop = True


class _Keep(Callback):
    """Writes a checkpoint after every look, the weights if development BLEU is as good as ever, and what was seen."""

    def __init__(self, run: RunFolder) -> None:
        self.run = run

    def on_train_epoch_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        assert isinstance(pl_module, TranslationTask)
        scores = [look["dev_bleu"] for look in pl_module.history]
        if scores[-1] >= max(scores):
            with replacing(self.run.best) as temporary:
                torch.save(pl_module.model.state_dict(), temporary)
        self.run.write_history(pl_module.history)
        with replacing(self.run.last) as temporary:
            trainer.save_checkpoint(temporary)


def _test(
    task: TranslationTask,
    run: RunFolder,
    splits: Splits,
    progress: Callable[[str, int, int], None],
    data_dir: Path | None,
) -> dict[str, Any]:
    model, vocabulary = run.load()
    scores: dict[str, dict[str, float]] = {}
    signatures: dict[str, str] = {}
    for corpus in splits.tests:
        if not run.translations(corpus.name).exists():
            run.write_references(corpus.name, corpus.target)
            run.write_translations(
                corpus.name, translate(model, vocabulary, corpus.source, progress=partial(progress, corpus.name))
            )
        raw = read_raw_reference(data_dir, corpus.name) if data_dir is not None and task.run.data in DATASETS else None
        found = score(run.read_translations(corpus.name), corpus.target, raw_references=raw)
        scores[corpus.name] = {one.name: one.bleu for one in found}
        signatures |= {one.name: one.signature for one in found}
    looks = task.history
    best = max(looks, key=lambda look: (look["dev_bleu"], look["step"]))  # the later of equals, as it was kept
    return {
        "encoding": task.run.model.positions,
        "data": task.run.data,
        "text": splits.digest,
        "steps": int(looks[-1]["step"]),
        "seed": task.run.training.seed,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "best_dev_bleu": best["dev_bleu"],
        "best_step": int(best["step"]),
        "bleu": scores,
        "signatures": signatures,
        "train_seconds": round(sum(look["seconds"] for look in looks), 1),
        "train_cpu_seconds": round(sum(look["cpu_seconds"] for look in looks), 1),
        "tokens": int(sum(look["tokens"] for look in looks)),
        "left_out": task.train_text.dropped,
        "threads": torch.get_num_threads(),
        "settings": task.run.as_dict(),
    }
