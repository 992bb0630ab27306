"""One layer of the graph transformer."""

from typing import Literal

import torch
from torch import Tensor, nn

from gape.nn.attention.multi_head import MultiHeadAttention
from gape.nn.attention.pattern import AttentionPattern

Norm = Literal["batch", "layer"]


class GraphTransformerLayer(nn.Module):
    """Attention and a feed-forward network, each with a residual connection and normalised afterwards.

    Args:
        hidden: width of the node states; the feed-forward network is twice as wide.
        heads: number of attention heads.
        clamp: bound on the absolute value of the attention scores, None for no bound.
        norm: "batch" for BatchNorm1d over the nodes of the batch, as published; "layer" for LayerNorm.
        dropout: dropout after attention and inside the feed-forward network.

    Example:
        >>> layer = GraphTransformerLayer()
        >>> sum(p.numel() for p in layer.parameters())
        51840
    """

    def __init__(
        self,
        hidden: int = 80,
        heads: int = 8,
        *,
        clamp: float | None = 5.0,
        norm: Norm = "batch",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if norm not in ("batch", "layer"):
            raise ValueError(f"norm must be 'batch' or 'layer', got {norm!r}")
        normalise = nn.BatchNorm1d if norm == "batch" else nn.LayerNorm
        self.attention = MultiHeadAttention(hidden, heads, clamp=clamp, dropout=dropout)
        self.attention_norm = normalise(hidden)
        self.widen = nn.Linear(hidden, 2 * hidden)
        self.dropout = nn.Dropout(dropout)
        self.narrow = nn.Linear(2 * hidden, hidden)
        self.feed_forward_norm = normalise(hidden)

    def forward(self, h: Tensor, pattern: AttentionPattern, bias: Tensor | None = None) -> Tensor:
        """``[num_nodes, hidden]`` to ``[num_nodes, hidden]``."""
        # In place where nothing else reads the value: a step is bound by memory as much as by arithmetic.
        h = self.attention_norm(self.attention(h, pattern, bias).add_(h))
        wide = self.dropout(torch.relu_(self.widen(h)))
        output: Tensor = self.feed_forward_norm(self.narrow(wide).add_(h))
        return output
