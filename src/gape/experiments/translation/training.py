"""Train a translation model, resume it, and score it on the test texts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import Callback, ProgressBar, RichProgressBar
from rich.console import Console

from gape._internal.files import replacing
from gape.experiments.runs.lightning import fit, quiet_lightning
from gape.experiments.translation.batches import PieceCorpus
from gape.experiments.translation.corpus import DATASETS, Corpus, Splits, read_raw_reference
from gape.experiments.translation.folder import TranslationFolder
from gape.experiments.translation.module import TranslationModule
from gape.experiments.translation.scoring import score
from gape.experiments.translation.settings import Settings
from gape.experiments.translation.translator import split_lines, translate
from gape.experiments.translation.vocabulary import Vocabulary


class Unfinished(RuntimeError):
    """The time limit was reached before the end of the training; the same call resumes it."""


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

    Called again with the same folder, it resumes after the last validation, or returns the result if there is one.

    Args:
        settings: of the run.
        splits: its text.
        folder: of the run.
        minutes: time limit; :class:`Unfinished` is raised at the first validation after it.
        callbacks: of Lightning, for instance :func:`console_callbacks`.
        progress: called with the name of a test text, the number of its sentences done so far, and of all.
        data_dir: folder of datasets, searched for untokenised references.
        after: a complete run of fewer steps and otherwise equal settings, to continue from.
    """
    run, shorter = TranslationFolder(Path(folder)), None if after is None else TranslationFolder(Path(after))
    run.check(settings, splits.digest, shorter)
    result = run.result()
    if result is not None:
        for corpus in splits.tests:
            if corpus.name in result["bleu"] and run.read_references(corpus.name) != list(corpus.target):
                raise ValueError(f"{run.path} was scored on another text {corpus.name}; choose another folder")
        return result
    vocabulary = _vocabulary(run, shorter, splits.train, settings)
    for corpus in (splits.dev, *splits.tests):  # before hours of training, not after them
        split_lines(vocabulary, corpus.source, settings.model, f"source text {corpus.name}")
    pieces = PieceCorpus.from_corpus(splits.train, vocabulary, max_pieces=settings.model.max_positions - 1)
    module = TranslationModule(settings, vocabulary, pieces, splits.dev)
    with run.locked():
        run.start(settings, vocabulary, splits.digest, shorter)
        _fit(module, run, minutes, callbacks)
        if len(module.history) < module.intervals():
            raise Unfinished(
                f"{run.path}: the time limit was reached after {len(module.history)} of {module.intervals()} "
                f"validations; run it again to resume"
            )
        result = _test(module, run, splits, progress, data_dir)
        run.write_result(result)
    return result


def _vocabulary(
    run: TranslationFolder, shorter: TranslationFolder | None, corpus: Corpus, settings: Settings
) -> Vocabulary:
    """Load the vocabulary of the run or of the one it continues; train one if neither has started."""
    for known in (run, shorter):
        if known is not None and known.started:
            return Vocabulary.load(known.vocabulary)
    return Vocabulary.train(corpus, settings.model.pieces)


def _fit(
    module: TranslationModule, run: TranslationFolder, minutes: float | None, callbacks: Sequence[Callback]
) -> None:
    with quiet_lightning():
        trainer = lightning.Trainer(
            max_epochs=module.intervals(),
            accelerator="auto" if torch.cuda.is_available() else "cpu",
            devices=1,
            gradient_clip_val=module.settings.training.clip,
            reload_dataloaders_every_n_epochs=1,
            num_sanity_val_steps=0,
            logger=False,
            enable_model_summary=False,
            enable_progress_bar=any(isinstance(callback, ProgressBar) for callback in callbacks),
            callbacks=[*callbacks, _Checkpoints(run), _TimeLimit(minutes)],
            enable_checkpointing=False,
        )
        fit(trainer, module, ckpt_path=run.checkpoint(), weights_only=True)


def _test(
    module: TranslationModule,
    run: TranslationFolder,
    splits: Splits,
    progress: Callable[[str, int, int], None],
    data_dir: Path | None,
) -> dict[str, Any]:
    """Translate and score the test texts with the best weights; texts that were translated before are only scored."""
    model, vocabulary = run.load()
    bleu: dict[str, dict[str, float]] = {}
    signatures: dict[str, str] = {}
    for corpus in splits.tests:
        if not run.translations(corpus.name).exists():
            lines = translate(model, vocabulary, corpus.source, progress=partial(progress, corpus.name))
            run.write_translations(corpus.name, lines, corpus.target)
        named = data_dir is not None and module.settings.data in DATASETS
        raw = read_raw_reference(data_dir, corpus.name) if named and data_dir is not None else None
        scores = score(run.read_translations(corpus.name), corpus.target, raw_references=raw)
        bleu[corpus.name] = {one.name: one.bleu for one in scores}
        signatures |= {one.name: one.signature for one in scores}
    history = module.history
    best = max(history, key=lambda record: (record["dev_bleu"], record["step"]))  # the later of equals, like best.pt
    return {
        "encoding": module.settings.model.positions,
        "data": module.settings.data,
        "text": splits.digest,
        "steps": int(history[-1]["step"]),
        "seed": module.settings.training.seed,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "best_dev_bleu": best["dev_bleu"],
        "best_step": int(best["step"]),
        "bleu": bleu,
        "signatures": signatures,
        "train_seconds": round(sum(record["seconds"] for record in history), 1),
        "train_cpu_seconds": round(sum(record["cpu_seconds"] for record in history), 1),
        "tokens": int(sum(record["tokens"] for record in history)),
        "left_out": module.train_text.dropped,
        "threads": torch.get_num_threads(),
        "settings": module.settings.as_dict(),
    }


class _TimeLimit(Callback):
    """Stops the training at the first validation after the time limit."""

    def __init__(self, minutes: float | None) -> None:
        self.end = None if minutes is None else time.monotonic() + 60 * minutes

    def on_train_epoch_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        if self.end is not None and time.monotonic() > self.end:
            trainer.should_stop = True


class _Checkpoints(Callback):
    """Writes the history and a checkpoint after every validation, and the weights if development BLEU is the best."""

    def __init__(self, run: TranslationFolder) -> None:
        self.run = run

    def on_train_epoch_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        assert isinstance(pl_module, TranslationModule)
        scores = [record["dev_bleu"] for record in pl_module.history]
        if scores[-1] >= max(scores):
            with replacing(self.run.best) as temporary:
                torch.save(pl_module.model.state_dict(), temporary)
        self.run.write_history(pl_module.history)
        with replacing(self.run.last) as temporary:
            trainer.save_checkpoint(temporary)


class _ValidationLog(Callback):
    """Prints a line per validation."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def on_train_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        assert isinstance(pl_module, TranslationModule)
        if dropped := pl_module.train_text.dropped:
            limit = pl_module.settings.model.max_positions - 1
            self.console.print(f"dropped {dropped:,} training pairs of more than {limit:,} pieces", highlight=False)

    def on_train_epoch_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        assert isinstance(pl_module, TranslationModule)
        record = pl_module.history[-1]
        self.console.print(
            f"step {record['step']:,}: loss {record['loss']:.3f}, dev BLEU {record['dev_bleu']:.2f}, learning rate "
            f"{record['learning_rate']:.1e}, {record['tokens'] / max(record['seconds'], 1e-9):,.0f} tokens/s",
            highlight=False,
            soft_wrap=True,
        )


def console_callbacks(console: Console) -> list[Callback]:
    """Return callbacks that show a progress bar on a terminal, and print a line per validation."""
    bars = [RichProgressBar(leave=False, console_kwargs={"stderr": True})] if console.is_terminal else []
    return [*bars, _ValidationLog(console)]
