"""How predictions are scored, over a whole set and as the published figures were."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from gape.data.task import Task

try:
    from torchmetrics import MeanAbsoluteError, Metric, MetricCollection
    from torchmetrics.classification import MulticlassAccuracy, MulticlassRecall
except ImportError as error:
    raise ImportError("metrics need torchmetrics: pip install 'gape[bench]'") from error


class PerBatchMean(Metric):
    """The mean over batches of what another metric says about each batch: how the published figures were made.

    It depends on how the data is cut into batches, and counts a last, smaller batch fully. Use it to compare with
    published numbers only.

    Args:
        metric: makes the other metric. It is never synchronised: a batch belongs to one process, and processes may
            have unequal numbers of batches; what is synchronised is the sum over batches.

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
        """Mean of the scores so far."""
        return (self.total / self.batches).float()


def metrics_for(task: Task) -> MetricCollection:
    """The metrics of a task, ready for ``update(predictions, targets)``.

    ========================  ==========================================================
    task's metric             keys of what ``compute()`` gives
    ========================  ==========================================================
    ``"mae"``                 ``mae``, ``mae_per_batch``
    ``"accuracy"``            ``accuracy``
    ``"macro-recall"``        ``macro_recall`` (ours, over the whole set), ``macro_recall_per_batch`` (published)
    ========================  ==========================================================

    All are fractions, not percent. Predictions are ``[batch]`` for a regression and scores ``[batch, classes]`` for
    classes; targets ``[batch]``. A class that a batch neither has nor predicts does not count in its macro recall.

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
