"""The translation model as Lightning trains it."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from functools import cached_property
from typing import Any

import lightning
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from gape.experiments.translation.batches import Batch, BatchPlan, PieceCorpus
from gape.experiments.translation.corpus import Corpus
from gape.experiments.translation.model import PAD, Transformer
from gape.experiments.translation.schedule import next_rate
from gape.experiments.translation.scoring import lower_cased
from gape.experiments.translation.settings import BeamSettings, Settings
from gape.experiments.translation.translator import translate
from gape.experiments.translation.vocabulary import Vocabulary
from gape.linalg.hashing import mix


class TranslationTask(lightning.LightningModule):
    """Training with looks at the development text.

    What Lightning calls an epoch is the stretch from one look to the next, so that checkpoints, which are written
    after a look, never fall within a stretch. The batches of a stretch and the dropout of a step depend on the seed and
    their numbers only: a run that was stopped and resumed has the weights of one that was not, bit by bit.

    Args:
        settings: of the run.
        vocabulary: of both languages.
        train: training text in pieces.
        dev: development text.
    """

    def __init__(self, settings: Settings, vocabulary: Vocabulary, train: PieceCorpus, dev: Corpus) -> None:
        super().__init__()
        self.run, self.vocabulary, self.train_text = settings, vocabulary, train
        self.dev_text = _spread(dev, settings.training.dev_sentences)
        self.model = Transformer(settings.model, len(vocabulary), seed=settings.training.seed)
        self.model.restrict_output({piece for sentence in train.target for piece in sentence})
        self.history: list[dict[str, float]] = []
        self._begin_stretch()

    # ------------------------------------------------------------------ batches

    @property
    def plan(self) -> BatchPlan:
        return self.train_text.plan(self.run.training.tokens, self.run.training.seed)

    def stretches(self) -> int:
        """Number of stretches from look to look."""
        return self.run.training.epochs if self._by_passes else math.ceil(self._steps / self._steps_a_stretch())

    @property
    def _by_passes(self) -> bool:
        """Whether a stretch is a pass over the text: neither the steps nor those from look to look are given."""
        return self.run.training.steps is None and self.run.training.validate_every is None

    @cached_property
    def _steps(self) -> int:
        training = self.run.training
        return training.steps or sum(len(self.plan.epoch(number)) for number in range(training.epochs))

    def _steps_a_stretch(self) -> int:
        """Steps from look to look, by default about a pass."""
        return self.run.training.validate_every or len(self.plan.epoch(0))

    def train_dataloader(self) -> DataLoader[Batch]:
        number = self.current_epoch
        if self._by_passes:
            batches = self.plan.epoch(number)
        else:
            every = self._steps_a_stretch()
            batches = self.plan.steps(number * every, min(every, self._steps - number * every))
        return DataLoader([self.train_text.batch(batch) for batch in batches], batch_size=None)  # type: ignore[arg-type]

    def val_dataloader(self) -> DataLoader[str]:
        # One item: the text is translated as a whole, in batches of its own.
        return DataLoader([0], batch_size=None)  # type: ignore[arg-type]

    def transfer_batch_to_device(self, batch: Any, device: torch.device, dataloader_idx: int) -> Any:
        if isinstance(batch, Batch):
            return replace(batch, source=batch.source.to(device), target=batch.target.to(device))
        return batch

    # ------------------------------------------------------------------ steps

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.model.parameters(), lr=self.run.training.learning_rate, fused=True)

    def on_train_batch_start(self, batch: Batch, batch_idx: int) -> None:
        key = mix(mix(torch.tensor(self.run.training.seed)) + self.global_step)
        torch.manual_seed(int(key.item()))
        self._started = time.perf_counter(), time.process_time()

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        loss = self.model.loss(batch.source, batch.target, self.run.training.label_smoothing)
        value = float(loss.detach())
        if not math.isfinite(value):
            raise ValueError(
                f"the loss of step {self.global_step + 1} is {value}: training has diverged; lower learning_rate, "
                f"which is {self.run.training.learning_rate}"
            )
        self._loss_sum += value
        self._tokens += int((batch.target[:, 1:] != PAD).sum())
        self._stretch_steps += 1
        self.log("loss", loss.detach(), prog_bar=True, batch_size=len(batch.source))
        return loss

    def on_train_batch_end(self, outputs: Any, batch: Batch, batch_idx: int) -> None:
        self._seconds += time.perf_counter() - self._started[0]
        self._cpu_seconds += time.process_time() - self._started[1]

    def _begin_stretch(self) -> None:
        self._loss_sum, self._tokens, self._stretch_steps = 0.0, 0, 0
        self._seconds, self._cpu_seconds, self._started = 0.0, 0.0, (0.0, 0.0)

    # ------------------------------------------------------------------ looks

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        beam = BeamSettings(beam=self.run.training.dev_beam)
        lines = translate(self.model, self.vocabulary, self.dev_text.source, beam)
        bleu = lower_cased(lines, self.dev_text.target).bleu
        optimizer = self.trainer.optimizers[0]
        rate = optimizer.param_groups[0]["lr"]
        self.history.append(
            {
                "step": self.global_step,
                "dev_bleu": bleu,
                "loss": self._loss_sum / max(self._stretch_steps, 1),
                "learning_rate": rate,
                "tokens": self._tokens,
                "seconds": self._seconds,
                "cpu_seconds": self._cpu_seconds,
            }
        )
        optimizer.param_groups[0]["lr"] = next_rate(
            rate, [look["dev_bleu"] for look in self.history], self.run.training
        )
        self._begin_stretch()
        self.log("dev_bleu", torch.tensor(bleu), prog_bar=True, batch_size=1)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["history"] = self.history

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.history = list(checkpoint["history"])
        looks, seen = len(self.history), self.history[-1]["step"]
        if not self._by_passes and seen != min(looks * self._steps_a_stretch(), self._steps):
            raise ValueError(
                f"the checkpoint has looked {looks} times in {seen} steps, and looks are due every "
                f"{self._steps_a_stretch()}: it is of an older version; take another folder"
            )


def _spread(corpus: Corpus, sentences: int | None) -> Corpus:
    """So many sentences, evenly spread over the text."""
    if sentences is None or sentences >= len(corpus):
        return corpus
    return corpus.take([i * len(corpus) // sentences for i in range(sentences)])
