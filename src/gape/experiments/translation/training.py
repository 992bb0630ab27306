"""Train a translation model, resume it, and score it on the test texts."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import Callback, ProgressBar, RichProgressBar
from rich.console import Console
from torch import Tensor
from torch.utils.data import DataLoader

from gape._internal.files import replacing
from gape.experiments.runs.lightning import fit, quiet_lightning
from gape.experiments.translation.batches import Batch, BatchPlan, PieceCorpus
from gape.experiments.translation.corpus import DATASETS, Corpus, Splits, read_raw_reference
from gape.experiments.translation.folder import TranslationFolder
from gape.experiments.translation.scoring import lower_cased, score
from gape.experiments.translation.settings import BeamSettings, Settings, TrainingSettings
from gape.experiments.translation.transformer import PAD, Transformer
from gape.experiments.translation.translator import split_lines, translate
from gape.experiments.translation.vocabulary import Vocabulary
from gape.linalg.integers import mix


class TranslationModule(lightning.LightningModule):
    """Trains a transformer and validates it on the development text.

    A Lightning epoch is the interval between two validations, so checkpoints, which are written after a validation,
    never fall within an interval. The batches of an interval and the dropout of a step depend only on the seed and
    their numbers, so a resumed run has bitwise the weights of an uninterrupted one.

    Args:
        settings: of the run.
        vocabulary: of both languages.
        train: training text.
        dev: development text.
    """

    def __init__(self, settings: Settings, vocabulary: Vocabulary, train: PieceCorpus, dev: Corpus) -> None:
        super().__init__()
        self.settings, self.vocabulary, self.train_text = settings, vocabulary, train
        self.dev_text = _evenly_spaced(dev, settings.training.dev_sentences)
        self.model = Transformer(settings.model, len(vocabulary), seed=settings.training.seed)
        self.model.restrict_output({piece for sentence in train.target for piece in sentence})
        self.history: list[dict[str, float]] = []
        self._reset_interval()

    # ------------------------------------------------------------------ batches

    @cached_property
    def plan(self) -> BatchPlan:
        """Batches of the training text."""
        return self.train_text.plan(self.settings.training.tokens, self.settings.training.seed)

    def intervals(self) -> int:
        """Number of validations of the whole run."""
        if self._by_epochs:
            return self.settings.training.epochs
        return math.ceil(self._steps / self._interval_steps)

    @property
    def _by_epochs(self) -> bool:
        """Tell if an interval is an epoch: neither ``steps`` nor ``validate_every`` is set."""
        return self.settings.training.steps is None and self.settings.training.validate_every is None

    @cached_property
    def _steps(self) -> int:
        training = self.settings.training
        return training.steps or sum(len(self.plan.epoch(number)) for number in range(training.epochs))

    @cached_property
    def _interval_steps(self) -> int:
        """Steps between validations, by default those of the first epoch."""
        return self.settings.training.validate_every or len(self.plan.epoch(0))

    def train_dataloader(self) -> DataLoader[Batch]:
        number = self.current_epoch
        if self._by_epochs:
            batches = self.plan.epoch(number)
        else:
            every = self._interval_steps
            batches = self.plan.steps(number * every, min(every, self._steps - number * every))
        return DataLoader([self.train_text.batch(batch) for batch in batches], batch_size=None)  # type: ignore[arg-type]

    def val_dataloader(self) -> DataLoader[str]:
        # One item, because the text is translated as a whole, in batches of its own.
        return DataLoader([0], batch_size=None)  # type: ignore[arg-type]

    def transfer_batch_to_device(self, batch: Any, device: torch.device, dataloader_idx: int) -> Any:
        if isinstance(batch, Batch):
            return replace(batch, source=batch.source.to(device), target=batch.target.to(device))
        return batch

    # ------------------------------------------------------------------ training

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.model.parameters(), lr=self.settings.training.learning_rate, fused=True)

    def on_train_batch_start(self, batch: Batch, batch_idx: int) -> None:
        key = mix(mix(torch.tensor(self.settings.training.seed)) + self.global_step)
        torch.manual_seed(int(key.item()))
        self._batch_start = time.perf_counter(), time.process_time()

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        loss = self.model.loss(batch.source, batch.target, self.settings.training.label_smoothing)
        value = float(loss.detach())
        if not math.isfinite(value):
            raise ValueError(
                f"the loss of step {self.global_step + 1} is {value}: training has diverged; lower learning_rate "
                f"(--set learning_rate=…), which is {self.settings.training.learning_rate}"
            )
        self._loss_sum += value
        self._tokens += int((batch.target[:, 1:] != PAD).sum())
        self._steps_done += 1
        self.log("loss", loss.detach(), prog_bar=True, batch_size=len(batch.source))
        return loss

    def on_train_batch_end(self, outputs: Any, batch: Batch, batch_idx: int) -> None:
        self._seconds += time.perf_counter() - self._batch_start[0]
        self._cpu_seconds += time.process_time() - self._batch_start[1]

    def _reset_interval(self) -> None:
        self._loss_sum, self._tokens, self._steps_done = 0.0, 0, 0
        self._seconds, self._cpu_seconds, self._batch_start = 0.0, 0.0, (0.0, 0.0)

    # ------------------------------------------------------------------ validation

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        beam = BeamSettings(beam=self.settings.training.dev_beam)
        translations = translate(self.model, self.vocabulary, self.dev_text.source, beam)
        bleu = lower_cased(translations, self.dev_text.target).bleu
        group = self.trainer.optimizers[0].param_groups[0]
        rate = group["lr"]
        self.history.append(
            {
                "step": self.global_step,
                "dev_bleu": bleu,
                "loss": self._loss_sum / max(self._steps_done, 1),
                "learning_rate": rate,
                "tokens": self._tokens,
                "seconds": self._seconds,
                "cpu_seconds": self._cpu_seconds,
            }
        )
        group["lr"] = next_rate(rate, [record["dev_bleu"] for record in self.history], self.settings.training)
        self._reset_interval()
        self.log("dev_bleu", torch.tensor(bleu), prog_bar=True, batch_size=1)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["history"] = self.history

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.history = list(checkpoint["history"])
        count, steps = len(self.history), self.history[-1]["step"]
        if not self._by_epochs and steps != min(count * self._interval_steps, self._steps):
            raise ValueError(
                f"the checkpoint has {count} validations in {steps} steps, expected one every {self._interval_steps}; "
                f"an older version wrote it, so choose another folder"
            )


def next_rate(rate: float, history: Sequence[float], settings: TrainingSettings) -> float:
    """Return the learning rate after a validation.

    It is multiplied by ``decay`` when the newest BLEU is below the lowest of the ``patience`` before it, but not below
    ``floor``.

    Args:
        rate: current learning rate.
        history: development BLEU of all validations, the newest last.
        settings: of the training.

    Example:
        >>> settings = TrainingSettings(learning_rate=1.0, patience=2)
        >>> next_rate(1.0, [5.0, 7.0, 6.0], settings), next_rate(1.0, [5.0, 7.0, 4.0], settings)
        (1.0, 0.8)
    """
    if len(history) <= settings.patience:
        return rate
    *earlier, newest = history[-settings.patience - 1 :]
    return max(min(settings.floor, rate), rate * settings.decay) if newest < min(earlier) else rate


def _evenly_spaced(corpus: Corpus, sentences: int | None) -> Corpus:
    if sentences is None or sentences >= len(corpus):
        return corpus
    return corpus.take([i * len(corpus) // sentences for i in range(sentences)])


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
        minutes: time limit of this call; :class:`Unfinished` is raised at the first validation after it.
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
        used = run.add_versions()
        _fit(module, run, minutes, callbacks)
        if len(module.history) < module.intervals():
            raise Unfinished(
                f"{run.path}: the time limit was reached after {len(module.history)} of {module.intervals()} "
                f"validations; run it again to resume"
            )
        result = {**_test(module, run, splits, progress, data_dir), **used}
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
            with replacing(self.run.best) as temporary, open(temporary, "wb") as file:
                torch.save(pl_module.model.state_dict(), file)
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
