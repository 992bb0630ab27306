"""Spectral attention: a small transformer over the Laplacian eigenpairs of each node."""

import torch
from torch import Tensor, nn

from gape.nn.attention.pattern import AttentionPattern
from gape.nn.encoders import Encoder
from gape.nn.feed_forward import WideFeedForward


class SpectralAttention(Encoder):
    """Transformer over the eigenvector entries and eigenvalues of each node (Kreuzer et al., 2021).

    Each node is a sequence of k pairs (entry of the eigenvector at the node, eigenvalue). A linear layer, one
    transformer layer and a sum over the sequence give ``width`` channels, which are concatenated to the embedded node
    features. As in Soga & Chiang (2023), the feed-forward network has PyTorch's default width of 2,048 and
    dropout of 0.1, and signs are not flipped.

    Args:
        width: number of channels.
        heads: attention heads of the small transformer; divides ``width``.
        feed_forward: width of its feed-forward network.
        dropout: its dropout.

    Example:
        >>> pattern = AttentionPattern(torch.tensor([[0], [1]]), num_nodes=2, heads=8)
        >>> spectrum = torch.randn(2, 10, 2)  # two nodes, ten eigenpairs
        >>> spectrum[:, 2:] = torch.nan  # of which eight do not exist
        >>> SpectralAttention()(spectrum, pattern).shape
        torch.Size([2, 8])
    """

    def __init__(self, width: int = 8, heads: int = 4, *, feed_forward: int = 2048, dropout: float = 0.1) -> None:
        super().__init__()
        if heads < 1 or width % heads:
            raise ValueError(f"heads must divide width, got heads={heads} and width={width}")
        self.concatenated = width
        self.linear = nn.Linear(2, width)
        self.attention = nn.MultiheadAttention(width, heads, dropout, batch_first=True)
        self.attention_norm = nn.LayerNorm(width)
        self.feed_forward = WideFeedForward(width, feed_forward, dropout)
        self.feed_forward_norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, encoding: Tensor | None, pattern: AttentionPattern) -> Tensor:
        """Map ``[num_nodes, k, 2]``, NaN where an eigenpair does not exist, to ``[num_nodes, width]``."""
        if encoding is None or encoding.dim() != 3 or [len(encoding), encoding.shape[2]] != [pattern.num_nodes, 2]:
            got = "None" if encoding is None else f"shape {list(encoding.shape)}"
            raise ValueError(
                f"encoding must have shape [{pattern.num_nodes}, k, 2], the eigenvector entry and the eigenvalue "
                f"of each of k eigenpairs, NaN where an eigenpair does not exist; got {got}"
            )
        missing = encoding.isnan().any(-1)
        # A softmax over nothing is NaN: a node without eigenpairs attends to all its padding, and its sum is 0.
        hidden_keys = missing & ~missing.all(-1, keepdim=True)
        states = self.linear(encoding.masked_fill(missing[..., None], 0).to(self.linear.weight.dtype))
        # PyTorch's transformer encoder layer with norm_first=False.
        attended, _ = self.attention(states, states, states, key_padding_mask=hidden_keys, need_weights=False)
        states = self.attention_norm(states + self.dropout(attended))
        states = self.feed_forward_norm(states + self.dropout(self.feed_forward(states)))
        return torch.where(missing[..., None], 0, states).sum(1)
