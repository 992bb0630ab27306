"""Multi-head softmax attention over an attention pattern, with an optional additive bias."""

from torch import Tensor, nn

from gape.nn.attention.dense import dense_attention
from gape.nn.attention.edge import edge_attention
from gape.nn.attention.pattern import AttentionPattern

# Clamped scores go through exp without subtracting the row maximum: e⁴⁰ times a million fits into float32.
MAX_CLAMP = 40.0


def attend(qkv: Tensor, pattern: AttentionPattern, *, clamp: float | None = 5.0, bias: Tensor | None = None) -> Tensor:
    """Apply softmax attention of each node over the nodes its pattern allows; 0 where it allows none.

    Args:
        qkv: ``[num_nodes, 3 · channels]``, queries, keys and values concatenated, each grouped by head.
        pattern: the pairs that attend, and the kernel.
        clamp: bound on the absolute value of the scores, None for no bound.
        bias: added to the scores before the clamp, in either shape of :func:`fit_bias`.

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
            f"{pattern.heads} heads, to match the pattern; got {list(qkv.shape)}"
        )
    if bias is not None:
        bias = fit_bias(bias, pattern)
    if pattern.kernel == "dense":
        return dense_attention(qkv, pattern.dense, clamp=clamp, bias=bias)
    return edge_attention(qkv, pattern.edges, clamp=clamp, bias=bias)


def _check_clamp(clamp: float | None) -> None:
    """Validate ``clamp``."""
    if clamp is not None and not 0 < clamp <= MAX_CLAMP:
        raise ValueError(f"clamp must be positive and at most {MAX_CLAMP:g}, or None for no clamp; got {clamp}")


def fit_bias(bias: Tensor, pattern: AttentionPattern) -> Tensor:
    """Convert a bias between its two shapes, to the one that the kernel of ``pattern`` takes.

    Args:
        bias: ``[num_pairs, heads]``, in the order of ``pattern.pairs``; or ``[num_graphs, heads, n, n]`` with
            n at least the size of the largest graph, rows for the attending node, columns for the node
            attended to, numbered within their graph.
        pattern: the pairs that attend, and the kernel.

    Returns:
        ``[num_pairs, heads]`` for the edge-wise kernel, ``[num_graphs, heads, n, n]`` for the dense one.

    Example:
        >>> import torch
        >>> edge = torch.tensor([[0], [1]])
        >>> pattern = AttentionPattern(edge, num_nodes=2, heads=1, kernel="dense")
        >>> fit_bias(torch.tensor([[0.5]]), pattern).tolist()
        [[[[0.0, 0.0], [0.5, 0.0]]]]
    """
    on_pairs = [pattern.num_pairs, pattern.heads]
    largest = int(pattern.sizes.max()) if pattern.num_graphs else 0
    fits_pairs = list(bias.shape) == on_pairs
    fits_cells = (
        bias.dim() == 4
        and list(bias.shape[:2]) == [pattern.num_graphs, pattern.heads]
        and bias.shape[2] == bias.shape[3] >= largest
    )
    if not (fits_pairs or fits_cells):
        raise ValueError(
            f"bias must have shape [num_pairs, heads] = {on_pairs} or [num_graphs, heads, n, n] = "
            f"[{pattern.num_graphs}, {pattern.heads}, n, n] with n at least {largest}, got {list(bias.shape)}"
        )
    if fits_pairs == (pattern.kernel == "edge"):
        return bias
    source, target = pattern.pairs
    cell = pattern.batch[target], pattern.local[target], pattern.local[source]
    if fits_cells:
        return bias.permute(0, 2, 3, 1)[cell]
    if any(bool((block.count > 1).any()) for block in pattern.dense.blocks):
        raise ValueError(
            "a bias per pair cannot be put into a dense table if there are parallel edges; "
            "use kernel='edge', or merge the parallel edges"
        )
    table = bias.new_zeros(pattern.num_graphs, largest, largest, pattern.heads)
    return table.index_put(cell, bias).permute(0, 3, 1, 2)


class MultiHeadAttention(nn.Module):
    """Multi-head attention: projections to queries, keys and values without bias, an output projection with bias.

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
        # One matrix product for all three; PyTorch's initial distribution depends on the input width only.
        self.qkv = nn.Linear(hidden, 3 * hidden, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.output = nn.Linear(hidden, hidden)

    def forward(self, h: Tensor, pattern: AttentionPattern, bias: Tensor | None = None) -> Tensor:
        """Map ``[num_nodes, hidden]`` to ``[num_nodes, hidden]``."""
        attended = attend(self.qkv(h), pattern, clamp=self.clamp, bias=bias)
        output: Tensor = self.output(self.dropout(attended))
        return output
