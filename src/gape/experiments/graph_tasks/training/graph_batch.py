"""Some graphs of a data set as the tensors that the model takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from gape.nn import AttentionPattern, WalkInput


@dataclass(eq=False)
class GraphBatch:
    """A batch of graphs, with its attention pattern once a model has made it.

    Args:
        x: node features.
        edge_index: ``[2, num_edges]``.
        batch: ``[num_nodes]``, the graph of every node.
        y: targets.
        encoding: what the model's encoder takes, if anything.
        num_graphs: number of graphs.
        weight: of the loss; not 1 when processes share a batch unequally, so that the mean over processes of their
            weighted losses is the mean over the graphs.
        pattern: who attends to whom.
    """

    x: Tensor
    edge_index: Tensor
    batch: Tensor
    y: Tensor
    encoding: Tensor | WalkInput | None
    num_graphs: int
    weight: float = 1.0
    pattern: AttentionPattern | None = None

    def to(self, device: torch.device | str, non_blocking: bool = False) -> GraphBatch:
        """The same on another device; itself if it is there already."""
        if self.x.device == torch.device(device):
            return self
        moved: dict[str, Any] = {
            name: value.to(device, non_blocking=non_blocking)
            for name, value in vars(self).items()
            if isinstance(value, Tensor | WalkInput)
        }
        return replace(self, **moved, pattern=None)
