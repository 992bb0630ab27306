"""What happens between epochs: the schedule, the best weights, the files, and when to stop."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lightning.pytorch import Callback, LightningModule, Trainer
from torch.optim.lr_scheduler import ReduceLROnPlateau

from gape.experiments.graph_tasks.training.checkpoint import Checkpoint, copied
from gape.experiments.graph_tasks.training.epochs import EpochTable
from gape.experiments.graph_tasks.training.module import Training

#: Called after each epoch with the line of metrics.csv.
Report = Callable[[dict[str, float]], None]

# Seconds between checkpoints: what an interruption may cost.
SAVE_EVERY = 15.0


class Journal(Callback):
    """Keeps ``metrics.csv`` and ``checkpoint.pt`` of a run, lowers the learning rate and ends the training.

    The schedule is stepped here rather than by Lightning, so that the checkpoint holds the state after the step.

    Args:
        folder: of the run.
        checkpoint: where the run stands; is kept up to date.
        max_minutes: training ends when it has taken so long over all sessions; None for no limit.
        report: told about every epoch.
    """

    def __init__(
        self, folder: Path, checkpoint: Checkpoint, max_minutes: float | None = None, report: Report | None = None
    ) -> None:
        self.folder, self.checkpoint, self.max_minutes, self.report = folder, checkpoint, max_minutes, report
        self.epochs = EpochTable(folder / "metrics.csv")
        self._before = checkpoint.minutes
        self._started = self._saved = time.monotonic()

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        settings = _training(pl_module).settings
        self._started = self._saved = time.monotonic()
        self.scheduler = ReduceLROnPlateau(trainer.optimizers[0], factor=settings.factor, patience=settings.patience)
        if self.checkpoint.scheduler:
            self.scheduler.load_state_dict(self.checkpoint.scheduler)
        if trainer.is_global_zero:
            self.epochs.cut(after=self.checkpoint.epoch)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        module, state = _training(pl_module), self.checkpoint
        line = self._line(module, trainer)
        self.scheduler.step(line["val_loss"])
        state.epoch, state.minutes = int(line["epoch"]), line["minutes"]
        # The better metric, and among equals the lower loss: accuracies of small sets are often equal.
        metric = line[f"val_{module.task.key}"]
        score = (_order(-metric if module.task.regression else metric), _order(-line["val_loss"]))
        if score > state.best_score or not state.best_weights:
            state.best_score, state.best_epoch, state.best_weights = score, state.epoch, copied(module.network)
        state.stopped = self._reason(module, trainer, state)
        if state.stopped:
            trainer.should_stop = True
        if not trainer.is_global_zero:
            return
        self.epochs.append(line)
        if trainer.logger is not None:
            trainer.logger.log_metrics(line, step=state.epoch)
        if state.stopped or time.monotonic() - self._saved > SAVE_EVERY:
            self.save(trainer, module)
        if self.report is not None:
            self.report(line)

    def save(self, trainer: Trainer, module: Training) -> None:
        """Write the checkpoint of the last whole epoch."""
        state = self.checkpoint
        state.weights, state.optimizer = copied(module.network), trainer.optimizers[0].state_dict()
        state.scheduler = self.scheduler.state_dict()
        state.save(self.folder / "checkpoint.pt")
        self._saved = time.monotonic()

    def _line(self, module: Training, trainer: Trainer) -> dict[str, float]:
        minutes = self._before + (time.monotonic() - self._started) / 60
        line: dict[str, Any] = {"epoch": module.epoch + 1, "minutes": minutes}
        line["lr"] = trainer.optimizers[0].param_groups[0]["lr"]
        line["train_loss"], line["val_loss"] = float(module.train_loss.compute()), float(module.val_loss.compute())
        line |= {f"val_{name}": float(value) for name, value in module.val_metrics.compute().items()}
        return line

    def _reason(self, module: Training, trainer: Trainer, state: Checkpoint) -> str | None:
        if trainer.optimizers[0].param_groups[0]["lr"] < module.settings.min_lr:
            return "lr"
        if state.epoch >= module.settings.max_epochs:
            return "epochs"
        # Clocks of several processes differ: the first one decides.
        late = self.max_minutes is not None and state.minutes >= self.max_minutes
        return "time" if trainer.strategy.broadcast(late) else None


def _order(value: float) -> float:
    """What is not a number is worse than any number."""
    return -math.inf if math.isnan(value) else value


def _training(module: LightningModule) -> Training:
    assert isinstance(module, Training)
    return module
