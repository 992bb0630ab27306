"""From node states to the answer, for a graph or for every node."""

from typing import Literal

import torch
from torch import Tensor, nn

Pooling = Literal["sum", "mean", "node"]


class Readout(nn.Module):
    """Pools the nodes of every graph and applies a multilayer perceptron that halves its width twice.

    Args:
        hidden: width of the node states; the perceptron goes hidden → hidden / 2 → hidden / 4 → out_channels.
        out_channels: width of the answer.
        pooling: "sum" or "mean" over the nodes of each graph, or "node" for an answer at every node.

    Example:
        >>> h, batch = torch.randn(5, 80), torch.tensor([0, 0, 0, 1, 1])
        >>> Readout(80, 10, "mean")(h, batch, num_graphs=2).shape
        torch.Size([2, 10])
        >>> Readout(80, 10, "node")(h, batch, num_graphs=2).shape
        torch.Size([5, 10])
    """

    def __init__(self, hidden: int, out_channels: int, pooling: Pooling = "sum") -> None:
        super().__init__()
        if pooling not in ("sum", "mean", "node"):
            raise ValueError(f"readout must be 'sum', 'mean' or 'node', got {pooling!r}")
        if out_channels < 1 or hidden < 4:
            raise ValueError(
                f"the readout halves hidden twice, so hidden must be at least 4, and out_channels at least 1; "
                f"got hidden={hidden} and out_channels={out_channels}"
            )
        self.pooling = pooling
        self.perceptron = nn.Sequential(
            nn.Linear(hidden, hidden // 2),
            nn.ReLU(),
            nn.Linear(hidden // 2, hidden // 4),
            nn.ReLU(),
            nn.Linear(hidden // 4, out_channels),
        )

    def forward(self, h: Tensor, batch: Tensor, num_graphs: int) -> Tensor:
        """``[num_nodes, hidden]`` to ``[num_graphs or num_nodes, out_channels]``."""
        if self.pooling != "node":
            h = h.new_zeros(num_graphs, h.shape[1]).index_add(0, batch, h)
        if self.pooling == "mean":
            sizes = torch.bincount(batch, minlength=num_graphs).clamp(min=1)
            h = h / sizes[:, None]
        output: Tensor = self.perceptron(h)
        return output
