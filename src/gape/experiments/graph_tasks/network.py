"""The model of a cell, its loss, its metrics, and its evaluation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torchmetrics import MeanAbsoluteError, Metric, MetricCollection
from torchmetrics.classification import MulticlassAccuracy, MulticlassRecall

from gape.data import Task
from gape.experiments.graph_tasks.checkpoint import Weights
from gape.experiments.graph_tasks.data import EncodedDataset, FixedBatches
from gape.experiments.graph_tasks.registry import find_row
from gape.experiments.graph_tasks.settings import Settings, task_protocol
from gape.nn import DegreeAndDistance, Encoder, GraphTransformer, LinearEncoder, SpectralAttention


def build_network(settings: Settings, encoded: EncodedDataset) -> GraphTransformer:
    """Build the paper's graph transformer with the encoder of the row; weights come from the global generator.

    Example:
        >>> from gape.experiments.graph_tasks.settings import protocol_settings
        >>> from gape.experiments.graph_tasks.data import encoded_dataset
        >>> cell = protocol_settings("csl", "none")
        >>> sum(p.numel() for p in build_network(cell, encoded_dataset(cell)).parameters())
        315390
    """
    categories = encoded.dataset.node_categories
    return GraphTransformer(
        inputs=categories if len(categories) > 1 else categories[0] if categories else "constant",
        out_channels=encoded.dataset.num_outputs,
        layers=settings.layers,
        hidden=settings.hidden,
        heads=settings.heads,
        pooling=settings.pooling,
        encoding=_encoder(settings, encoded),
        attention=settings.attention,
        norm=settings.norm,
        dropout=settings.dropout,
    )


def _encoder(settings: Settings, encoded: EncodedDataset) -> Encoder | None:
    kind, scaling = find_row(settings.encoding).encoder, settings.scaling
    if encoded.learned is not None:
        task = encoded.dataset.task
        return encoded.learned.encoder(
            settings.hidden, task.node_categories, settings.heads, scaling, task.edge_categories
        )
    if kind == "none":
        return None
    if kind == "spectral":
        # One head on CSL, four elsewhere, as in the authors' runs.
        return SpectralAttention(heads=1 if settings.task == "csl" else 4)
    if kind == "degree-distance":
        tables = task_protocol(settings.task)
        return DegreeAndDistance(settings.hidden, settings.heads, degrees=tables.degrees, distances=tables.distances)
    signed = kind == "signed"
    return LinearEncoder(encoded.width, settings.hidden, flip_signs=signed, scaling=scaling, width=settings.width)


def loss(task: Task, predictions: Tensor, targets: Tensor, class_counts: Tensor | None = None) -> Tensor:
    """Return the absolute error for regression, cross entropy for graph classes, weighted for node classes.

    The weight of a node class is the share of the batch's nodes that are not in it, as in Dwivedi et al. (2020), so
    that rare classes count more.

    Args:
        task: of the dataset.
        predictions: ``[batch, outputs]``.
        targets: ``[batch]``.
        class_counts: ``[num_classes]``, number of nodes by class in a batch of which this is a part; the losses of the
            parts add up to that of the batch.

    Example:
        >>> zinc = Task("zinc", "graph", "mae", num_classes=0, node_categories=(28,))
        >>> loss(zinc, torch.tensor([[1.0], [2.0]]), torch.tensor([0.0, 4.0]))
        tensor(1.5000)
        >>> class_weights(torch.tensor([0, 0, 0, 2]), num_classes=3)
        tensor([0.2500, 0.0000, 0.7500])
    """
    if task.regression:
        return functional.l1_loss(predictions.squeeze(-1), targets)
    if task.level != "node":
        return functional.cross_entropy(predictions, targets)
    if class_counts is None:
        return functional.cross_entropy(predictions, targets, weight=class_weights(targets, task.num_classes))
    weights = _weights(class_counts)
    total = functional.cross_entropy(predictions, targets, weight=weights, reduction="sum")
    return total / (weights * class_counts).sum()


def class_weights(targets: Tensor, num_classes: int) -> Tensor:
    """Return the share of targets that are of another class, per class; 0 for classes that do not occur."""
    return _weights(torch.bincount(targets, minlength=num_classes))


def _weights(counts: Tensor) -> Tensor:
    return (1.0 - counts / counts.sum()) * (counts > 0)


class PerBatchMean(Metric):
    """Average another metric over batches, as published results do.

    The value depends on how the dataset is cut into batches, and a smaller last batch has full weight. Use it only to
    compare with published numbers.

    Args:
        metric: constructor of the other metric. Processes may have different numbers of batches, so the other metric
            is never synchronised; only the sum over batches is.

    Example:
        >>> metric = PerBatchMean(MeanAbsoluteError)
        >>> metric.update(torch.tensor([1.0, 1.0, 1.0]), torch.zeros(3))
        >>> metric.update(torch.tensor([4.0]), torch.zeros(1))
        >>> float(metric.compute())
        2.5
    """

    full_state_update = False
    total: Tensor
    batches: Tensor

    def __init__(self, metric: Callable[..., Metric], **options: Any) -> None:
        super().__init__(**options)
        self.metric = metric(sync_on_compute=False)
        self.add_state("total", default=torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("batches", default=torch.zeros((), dtype=torch.int64), dist_reduce_fx="sum")

    def update(self, predictions: Tensor, targets: Tensor) -> None:
        """Score one batch."""
        self.metric.reset()
        self.metric.update(predictions, targets)
        self.total += self.metric.compute().double()
        self.batches += 1

    def compute(self) -> Tensor:
        """Return the mean of the scores so far."""
        return (self.total / self.batches).float()


def metrics_for(task: Task) -> MetricCollection:
    """Make the metrics of a task, for ``update(predictions, targets)``.

    ========================  ==========================================================
    task's metric             keys of ``compute()``
    ========================  ==========================================================
    ``"mae"``                 ``mae``, ``mae_per_batch``
    ``"accuracy"``            ``accuracy``
    ``"macro-recall"``        ``macro_recall`` (ours, over the whole dataset), ``macro_recall_per_batch`` (published)
    ========================  ==========================================================

    All are fractions, not percent. Predictions are ``[batch]`` for a regression and scores ``[batch, classes]`` for
    classes; targets ``[batch]``. The macro recall of a batch leaves out classes that are neither among its targets nor
    among its predictions.

    Example:
        >>> scores = metrics_for(Task("pattern", "node", "macro-recall", num_classes=2, node_categories=(3,)))
        >>> scores.update(torch.tensor([[2.0, 1.0], [2.0, 1.0], [0.0, 1.0]]), torch.tensor([0, 0, 1]))
        >>> scores.update(torch.tensor([[2.0, 1.0], [0.0, 1.0]]), torch.tensor([1, 1]))
        >>> {name: round(float(value), 3) for name, value in scores.compute().items()}
        {'macro_recall': 0.833, 'macro_recall_per_batch': 0.625}
    """
    metrics: dict[str, Metric]
    if task.metric == "mae":
        metrics = {"mae": MeanAbsoluteError(), "mae_per_batch": PerBatchMean(MeanAbsoluteError)}
    elif task.metric == "accuracy":
        metrics = {"accuracy": MulticlassAccuracy(task.num_classes, average="micro")}
    else:
        recall = partial(MulticlassRecall, task.num_classes, average="macro")
        metrics = {"macro_recall": recall(), "macro_recall_per_batch": PerBatchMean(recall)}
    return MetricCollection(metrics, compute_groups=False)  # type: ignore[arg-type]


def evaluate(network: GraphTransformer, weights: Weights, batches: FixedBatches, task: Task) -> dict[str, float]:
    """Compute all metrics of the task, as fractions, and the mean loss over batches."""
    network.load_state_dict(weights)
    network.eval()
    metrics, losses = metrics_for(task), []
    with torch.inference_mode():
        for batch in batches:
            predictions = network(
                batch.x,
                batch.edge_index,
                batch.batch,
                batch.encoding,
                num_graphs=batch.num_graphs,
                pattern=batch.pattern,
            )
            losses.append(float(loss(task, predictions, batch.y)))
            metrics.update(predictions.squeeze(-1) if task.regression else predictions, batch.y)
    found = {**metrics.compute(), "loss": sum(losses) / len(losses)}
    return {name: float(f"{float(value):.7g}") for name, value in found.items()}  # float32 has no more digits
