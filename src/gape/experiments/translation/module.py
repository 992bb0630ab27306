"""The Lightning module that trains a translation model, and its learning-rate schedule."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import lightning
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from gape.experiments.translation.batches import Batch, BatchPlan, PieceCorpus
from gape.experiments.translation.corpus import Corpus
from gape.experiments.translation.scoring import lower_cased
from gape.experiments.translation.settings import BeamSettings, Settings, TrainingSettings
from gape.experiments.translation.transformer import PAD, Transformer
from gape.experiments.translation.translator import translate
from gape.experiments.translation.vocabulary import Vocabulary
from gape.linalg.hashing import mix


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
