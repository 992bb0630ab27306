"""How good a network is on some graphs."""

from __future__ import annotations

import torch

from gape.data import Task
from gape.data.metrics import metrics_for
from gape.experiments.graph_tasks.training.batches import FixedBatches
from gape.experiments.graph_tasks.training.checkpoint import Weights
from gape.experiments.graph_tasks.training.losses import loss
from gape.nn import GraphTransformer


def evaluate(network: GraphTransformer, weights: Weights, batches: FixedBatches, task: Task) -> dict[str, float]:
    """All metrics of the task, as fractions, and the mean loss over batches."""
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
