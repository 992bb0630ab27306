"""Multi-head attention over an attention pattern."""

from torch import Tensor, nn

from gape.nn.attention.bias import fit_bias
from gape.nn.attention.dense import dense_attention
from gape.nn.attention.edge import edge_attention
from gape.nn.attention.pattern import AttentionPattern

# Clamped scores go through exp as they are, without a shift by the largest: e⁴⁰ times a million fits float32.
LARGEST_CLAMP = 40.0


def attend(qkv: Tensor, pattern: AttentionPattern, *, clamp: float | None = 5.0, bias: Tensor | None = None) -> Tensor:
    """Softmax attention of every node over the nodes its pattern allows, 0 where it allows none.

    Args:
        qkv: ``[num_nodes, 3 · channels]``, queries, keys and values side by side, each head by head.
        pattern: who attends to whom, and with which kernel.
        clamp: bound on the absolute value of the scores, None for no bound.
        bias: added to the scores before the clamp, in either shape of :func:`gape.nn.attention.bias.fit_bias`.

    Returns:
        ``[num_nodes, channels]``.

    Example:
        >>> import torch
        >>> path = AttentionPattern(torch.tensor([[0, 1], [1, 2]]), num_nodes=3, heads=1)
        >>> attend(torch.tensor([[0.0, 0.0, 2.0], [0.0, 0.0, 4.0], [0.0, 0.0, 9.0]]), path).flatten()
        tensor([0., 2., 4.])
    """
    _check_clamp(clamp)
    if qkv.dim() != 2 or qkv.shape[0] != pattern.num_nodes or qkv.shape[1] % (3 * pattern.heads):
        raise ValueError(
            f"qkv must have shape [{pattern.num_nodes}, 3 · channels] with channels a multiple of "
            f"{pattern.heads} heads, as the pattern says; got {list(qkv.shape)}"
        )
    if bias is not None:
        bias = fit_bias(bias, pattern)
    if pattern.kernel == "dense":
        return dense_attention(qkv, pattern.dense, clamp=clamp, bias=bias)
    return edge_attention(qkv, pattern.edges, clamp=clamp, bias=bias)


def _check_clamp(clamp: float | None) -> None:
    if clamp is not None and not 0 < clamp <= LARGEST_CLAMP:
        raise ValueError(f"clamp must be positive and at most {LARGEST_CLAMP:g}, or None for no clamp; got {clamp}")


class MultiHeadAttention(nn.Module):
    """Queries, keys and values without bias, attention, dropout, and an output projection with bias.

    Args:
        hidden: width of the node states.
        heads: number of heads; divides ``hidden``.
        clamp: bound on the absolute value of the scores, None for no bound.
        dropout: dropout on the concatenated heads.

    Example:
        >>> attention = MultiHeadAttention(hidden=80, heads=8)
        >>> sum(p.numel() for p in attention.parameters())  # 4 · 80² + 80
        25680
    """

    def __init__(self, hidden: int = 80, heads: int = 8, *, clamp: float | None = 5.0, dropout: float = 0.0) -> None:
        super().__init__()
        if heads < 1 or hidden % heads:
            raise ValueError(f"heads must divide hidden, got heads={heads} and hidden={hidden}")
        _check_clamp(clamp)
        self.clamp = clamp
        # One product for all three; the initial distribution depends on the input width only.
        self.qkv = nn.Linear(hidden, 3 * hidden, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(hidden, hidden)

    def forward(self, h: Tensor, pattern: AttentionPattern, bias: Tensor | None = None) -> Tensor:
        """``[num_nodes, hidden]`` to ``[num_nodes, hidden]``."""
        attended = attend(self.qkv(h), pattern, clamp=self.clamp, bias=bias)
        output: Tensor = self.output(self.dropout(attended))
        return output
