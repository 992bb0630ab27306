"""What is minimised, task by task."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from gape.data import Task


def loss(task: Task, predictions: Tensor, targets: Tensor) -> Tensor:
    """Absolute error for a regression, cross entropy for classes of graphs, weighted cross entropy for those of nodes.

    The weight of a class in the last is the share of the batch's nodes that are not in it, as in Dwivedi et al. (2020),
    so that rare classes count more.

    Args:
        task: of the data set.
        predictions: ``[batch, outputs]``.
        targets: ``[batch]``.

    Example:
        >>> zinc = Task("zinc", "graph", "mae", num_classes=0, node_categories=(28,))
        >>> loss(zinc, torch.tensor([[1.0], [2.0]]), torch.tensor([0.0, 4.0]))
        tensor(1.5000)
        >>> class_weights(torch.tensor([0, 0, 0, 2]), num_classes=3)
        tensor([0.2500, 0.0000, 0.7500])
    """
    if task.regression:
        return functional.l1_loss(predictions.squeeze(-1), targets)
    weights = class_weights(targets, task.num_classes) if task.level == "node" else None
    return functional.cross_entropy(predictions, targets, weight=weights)


def class_weights(targets: Tensor, num_classes: int) -> Tensor:
    """Share of the targets that are of another class; 0 for classes that do not occur."""
    counts = torch.bincount(targets, minlength=num_classes)
    return (1.0 - counts / counts.sum()) * (counts > 0)
