"""The training loop: Lightning module, epochs, learning rate schedule, checkpoints, and the rules that end training."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

try:
    from lightning.pytorch import Callback, LightningModule, Trainer
except ImportError as error:
    raise ImportError("training needs Lightning: pip install 'gape[bench]'") from error
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torchmetrics import MeanMetric

from gape.data import Task
from gape.experiments.graph_tasks.checkpoint import Checkpoint, EpochTable, copy_weights
from gape.experiments.graph_tasks.data import (
    EncodedDataset,
    FixedBatches,
    GraphBatch,
    TrainingBatches,
    mix_seeds,
)
from gape.experiments.graph_tasks.network import build_network, loss, metrics_for
from gape.experiments.graph_tasks.settings import Settings
from gape.experiments.runs.lightning import fit, quiet_lightning
from gape.nn import GraphTransformer

#: Called after each epoch with the line of metrics.csv.
Report = Callable[[dict[str, float]], None]

# Seconds between checkpoints: what a crash may cost. Ctrl-C and SIGTERM cost the epoch they interrupt.
SAVE_EVERY_SECONDS = 15.0


def train_fold(
    settings: Settings,
    encoded: EncodedDataset,
    fold: int,
    folder: Path,
    *,
    max_minutes: float | None = None,
    report: Report | None = None,
    tensorboard: bool = False,
    trainer_options: dict[str, Any] | None = None,
) -> Checkpoint:
    """Train one fold of a cell until the schedule, the number of epochs or the time limit ends it.

    Args:
        settings: of the cell.
        encoded: the data with its encodings.
        fold: index of the split.
        folder: for ``metrics.csv`` and ``checkpoint.pt``; training resumes from a checkpoint there.
        max_minutes: of training, over all sessions.
        report: called after every epoch.
        tensorboard: also write TensorBoard's files.
        trainer_options: of Lightning's ``Trainer``, such as ``devices=2, strategy="ddp_spawn"``.

    Returns:
        The last checkpoint.
    """
    path = folder / "checkpoint.pt"
    state = Checkpoint.load(path) or Checkpoint()
    if _ended(state, max_minutes):
        return state
    state.stopped = None
    module = _module(settings, encoded, fold, state)
    _fit(module, EpochEnd(folder, state, max_minutes, report), tensorboard, trainer_options or {})
    finished = Checkpoint.load(path)
    if finished is None or not finished.stopped:
        raise RuntimeError(f"training in {folder} ended without a reason; its last epoch is in metrics.csv")
    return finished


def _ended(state: Checkpoint, max_minutes: float | None) -> bool:
    """Return True if training ended earlier, and not by a time limit that is now later."""
    more_time = state.stopped == "time" and (max_minutes is None or state.minutes < max_minutes)
    return state.stopped is not None and not more_time


def _module(settings: Settings, encoded: EncodedDataset, fold: int, state: Checkpoint) -> TrainingModule:
    """Build the network, new or from the checkpoint, with its batches."""
    torch.manual_seed(mix_seeds(settings.seed, fold))
    network = build_network(settings, encoded)
    split = encoded.dataset.splits[fold]
    used = split.some_of_train(settings.train_fraction)
    if state.weights:
        network.load_state_dict(state.weights)
    elif network.encoding is not None:
        network.encoding.fit_scaling(
            (batch.encoding, network.pattern(batch.edge_index, batch.batch, batch.num_graphs))
            for batch in FixedBatches(encoded, used, settings.batch_size)
        )
    return TrainingModule(
        network,
        settings,
        encoded.dataset.task,
        TrainingBatches(encoded, used, settings.batch_size, mix_seeds(settings.seed, fold, 1)),
        FixedBatches(encoded, split.val, settings.batch_size),
        fold=fold,
        first_epoch=state.epoch,
        optimizer_state=state.optimizer or None,
    )


def _fit(module: TrainingModule, epoch_end: EpochEnd, tensorboard: bool, options: dict[str, Any]) -> None:
    """Train the module with Lightning, from its first epoch to where ``epoch_end`` stops it."""
    with quiet_lightning():
        trainer = Trainer(
            max_epochs=module.settings.max_epochs - module.first_epoch,
            callbacks=[epoch_end],
            logger=_tensorboard(epoch_end.folder) if tensorboard else False,
            enable_checkpointing=False,
            enable_model_summary=False,
            enable_progress_bar=False,
            num_sanity_val_steps=0,
            use_distributed_sampler=False,
            default_root_dir=str(epoch_end.folder),
            **{"accelerator": "auto", "devices": 1, **options},
        )
        fit(trainer, module)


def _tensorboard(folder: Path) -> Any:
    from lightning.pytorch.loggers import TensorBoardLogger

    try:
        return TensorBoardLogger(str(folder), name="tensorboard", version="")
    except ModuleNotFoundError as error:
        raise ImportError("tensorboard=True needs TensorBoard: pip install tensorboard") from error


class EpochEnd(Callback):
    """Writes ``metrics.csv`` and ``checkpoint.pt`` after epochs, reduces the learning rate, and ends training.

    The scheduler is stepped here rather than by Lightning, so that the checkpoint holds its state after the step.

    Args:
        folder: of the cell, or of one of its folds.
        checkpoint: the state of training; updated after each epoch.
        max_minutes: training ends after this time over all sessions; None for no limit.
        report: called after every epoch.
    """

    def __init__(
        self, folder: Path, checkpoint: Checkpoint, max_minutes: float | None = None, report: Report | None = None
    ) -> None:
        self.folder, self.checkpoint, self.max_minutes, self.report = folder, checkpoint, max_minutes, report
        self.epochs = EpochTable(folder / "metrics.csv")
        self._minutes_before, self._saved_epoch = checkpoint.minutes, checkpoint.epoch
        self._started = self._saved = time.monotonic()

    def on_fit_start(self, trainer: Trainer, pl_module: LightningModule) -> None:
        settings = _training_module(pl_module).settings
        self._started = self._saved = time.monotonic()
        self.scheduler = ReduceLROnPlateau(trainer.optimizers[0], factor=settings.factor, patience=settings.patience)
        if self.checkpoint.scheduler:
            self.scheduler.load_state_dict(self.checkpoint.scheduler)
        if trainer.is_global_zero:
            self.epochs.cut(after=self.checkpoint.epoch)

    def on_train_epoch_end(self, trainer: Trainer, pl_module: LightningModule) -> None:
        module, state = _training_module(pl_module), self.checkpoint
        line = self._line(module, trainer)
        self.scheduler.step(line["val_loss"])
        state.epoch, state.minutes = int(line["epoch"]), line["minutes"]
        # The better metric, and among equals the lower loss: accuracies of small sets are often equal.
        metric = line[f"val_{module.task.key}"]
        score = (_nan_last(-metric if module.task.regression else metric), _nan_last(-line["val_loss"]))
        if score > state.best_score or not state.best_weights:
            state.best_score, state.best_epoch, state.best_weights = score, state.epoch, copy_weights(module.network)
        state.stopped = self._stop_reason(module, trainer, state)
        if state.stopped:
            trainer.should_stop = True
        if trainer.is_global_zero:
            self._record(line, module, trainer)
        if state.stopped:
            trainer.strategy.barrier()  # all processes read the checkpoint when training has ended

    def _record(self, line: dict[str, float], module: TrainingModule, trainer: Trainer) -> None:
        """Write what the first process writes after an epoch."""
        state = self.checkpoint
        self.epochs.append(line)
        if trainer.logger is not None:
            trainer.logger.log_metrics(line, step=state.epoch)
        # Copies, since an interruption saves them in the middle of the next epoch.
        state.weights, state.optimizer = copy_weights(module.network), deepcopy(trainer.optimizers[0].state_dict())
        state.scheduler = deepcopy(self.scheduler.state_dict())
        if state.stopped or time.monotonic() - self._saved > SAVE_EVERY_SECONDS:
            self.save()
        if self.report is not None:
            self.report(line)

    def on_exception(self, trainer: Trainer, pl_module: LightningModule, exception: BaseException) -> None:
        """Save the last whole epoch when training is interrupted."""
        if trainer.is_global_zero and self.checkpoint.epoch > self._saved_epoch:
            self.save()

    def save(self) -> None:
        """Write the checkpoint of the last whole epoch."""
        self.checkpoint.save(self.folder / "checkpoint.pt")
        self._saved, self._saved_epoch = time.monotonic(), self.checkpoint.epoch

    def _line(self, module: TrainingModule, trainer: Trainer) -> dict[str, float]:
        minutes = self._minutes_before + (time.monotonic() - self._started) / 60
        line: dict[str, Any] = {"epoch": module.epoch + 1, "minutes": minutes}
        line["lr"] = trainer.optimizers[0].param_groups[0]["lr"]
        line["train_loss"], line["val_loss"] = float(module.train_loss.compute()), float(module.val_loss.compute())
        line |= {f"val_{name}": float(value) for name, value in module.val_metrics.compute().items()}
        return line

    def _stop_reason(self, module: TrainingModule, trainer: Trainer, state: Checkpoint) -> str | None:
        if trainer.optimizers[0].param_groups[0]["lr"] < module.settings.min_lr:
            return "lr"
        if state.epoch >= module.settings.max_epochs:
            return "epochs"
        # The clocks of several processes differ: the first process decides.
        late = self.max_minutes is not None and state.minutes >= self.max_minutes
        return "time" if trainer.strategy.broadcast(late) else None


def _nan_last(value: float) -> float:
    """Order NaN below every number."""
    return -math.inf if math.isnan(value) else value


def _training_module(module: LightningModule) -> TrainingModule:
    assert isinstance(module, TrainingModule)
    return module


def training_loss(task: Task, predictions: Tensor, batch: GraphBatch, world: int) -> Tensor:
    """Return a loss whose mean over the processes that share a batch, and so its gradient, is that of the batch."""
    if task.level != "node" or world == 1:
        return loss(task, predictions, batch.y) * batch.weight
    counts = torch.bincount(batch.y, minlength=task.num_classes)
    torch.distributed.all_reduce(counts)
    return loss(task, predictions, batch.y, counts) * world


class TrainingModule(LightningModule):
    """A cell as Lightning trains it.

    Args:
        network: the model.
        settings: of the cell.
        task: of the dataset.
        train, val: the batches.
        fold: index of the split, part of the seed of everything random in training.
        first_epoch: epochs done in earlier sessions.
        optimizer_state: of the optimiser at the end of those.
    """

    def __init__(
        self,
        network: GraphTransformer,
        settings: Settings,
        task: Task,
        train: TrainingBatches,
        val: FixedBatches,
        *,
        fold: int = 0,
        first_epoch: int = 0,
        optimizer_state: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.network, self.settings, self.task = network, settings, task
        self.train_batches, self.val_batches = train, val
        self.fold, self.first_epoch, self._optimizer_state = fold, first_epoch, optimizer_state
        # "disable": one NaN loss makes the mean NaN, rather than being left out with a warning. It happens: where all
        # nodes are equal (CSL without encoding) their variance is 0, and in evaluation each of twelve batch norms
        # multiplies the distance to its running mean by 300, until float32 overflows.
        self.train_loss, self.val_loss = MeanMetric(nan_strategy="disable"), MeanMetric(nan_strategy="disable")
        self.val_metrics = metrics_for(task)

    @property
    def epoch(self) -> int:
        """Index of the epoch, counted over all sessions."""
        return self.first_epoch + self.current_epoch

    def forward(self, batch: GraphBatch) -> Tensor:
        if batch.pattern is None:
            batch.pattern = self.network.pattern(batch.edge_index, batch.batch, batch.num_graphs)
        output: Tensor = self.network(batch.x, batch.edge_index, batch.batch, batch.encoding, pattern=batch.pattern)
        return output

    def configure_optimizers(self) -> torch.optim.Optimizer:
        optimizer = torch.optim.Adam(self.network.parameters(), lr=self.settings.lr, fused=True)
        if self._optimizer_state is not None:
            optimizer.load_state_dict(self._optimizer_state)
        return optimizer

    def train_dataloader(self) -> TrainingBatches:
        self.train_batches.rank, self.train_batches.world = self.global_rank, self.trainer.world_size
        return self.train_batches

    def val_dataloader(self) -> FixedBatches:
        self.val_batches.rank, self.val_batches.world = self.global_rank, self.trainer.world_size
        return self.val_batches

    def on_train_epoch_start(self) -> None:
        # Every epoch starts from its own seed, so that resuming after an interruption changes nothing.
        torch.manual_seed(mix_seeds(self.settings.seed, self.fold, self.epoch, self.global_rank))
        self.train_batches.epoch = self.epoch
        self.train_loss.reset()

    def training_step(self, batch: GraphBatch, index: int) -> Tensor:
        value = training_loss(self.task, self(batch), batch, self.trainer.world_size)
        self.train_loss.update(value.detach())
        return value

    def on_validation_epoch_start(self) -> None:
        self.val_loss.reset()
        self.val_metrics.reset()
        if self.trainer.world_size > 1:  # batch norm has seen other graphs in each process
            for buffer in self.network.buffers():
                torch.distributed.broadcast(buffer, src=0)

    def validation_step(self, batch: GraphBatch, index: int) -> None:
        predictions = self(batch)
        self.val_loss.update(loss(self.task, predictions, batch.y))
        self.val_metrics.update(predictions.squeeze(-1) if self.task.regression else predictions, batch.y)
