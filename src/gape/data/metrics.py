"""Metrics of a task: over a whole dataset, and averaged over batches as in published results."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from gape.data.dataset import Task

try:
    from torchmetrics import MeanAbsoluteError, Metric, MetricCollection
    from torchmetrics.classification import MulticlassAccuracy, MulticlassRecall
except ImportError as error:
    raise ImportError("metrics need torchmetrics: pip install 'gape[bench]'") from error


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
