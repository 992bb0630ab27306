"""The Lightning module: the network with its loss, optimiser, batches and validation metrics."""

from __future__ import annotations

from typing import Any

import torch
from lightning.pytorch import LightningModule
from torch import Tensor
from torchmetrics import MeanMetric

from gape.data import Task
from gape.data.metrics import metrics_for
from gape.experiments.graph_tasks.settings import Settings
from gape.experiments.graph_tasks.training.data import FixedBatches, GraphBatch, TrainingBatches, mix_seeds
from gape.experiments.graph_tasks.training.network import loss
from gape.nn import GraphTransformer


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
