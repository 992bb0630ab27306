"""The model of a cell, its loss, and its evaluation."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from gape.data import Task
from gape.data.metrics import metrics_for
from gape.experiments.graph_tasks.protocol import task_protocol
from gape.experiments.graph_tasks.registry import find_row
from gape.experiments.graph_tasks.settings import Settings
from gape.experiments.graph_tasks.training.checkpoint import Weights
from gape.experiments.graph_tasks.training.data import EncodedDataset, FixedBatches
from gape.nn import DegreeAndDistance, Encoder, GraphTransformer, LinearEncoder, SpectralAttention


def build_network(settings: Settings, encoded: EncodedDataset) -> GraphTransformer:
    """Build the paper's graph transformer with the encoder of the row; weights come from the global generator.

    Example:
        >>> from gape.experiments.graph_tasks.protocol import settings
        >>> from gape.experiments.graph_tasks.training.data import encoded_dataset
        >>> cell = settings("csl", "none")
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
