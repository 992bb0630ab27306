"""Attention bias in the two shapes the kernels want: on pairs, or on the cells of padded tables."""

from torch import Tensor

from gape.nn.attention.pattern import AttentionPattern


def fit_bias(bias: Tensor, pattern: AttentionPattern) -> Tensor:
    """The bias in the shape that the kernel of ``pattern`` takes, whichever of the two it came in.

    Args:
        bias: ``[num_pairs, heads]``, in the order of ``pattern.pairs``; or ``[num_graphs, heads, n, n]`` with
            n at least the size of the largest graph, rows for the attending node, columns for the node
            attended to, numbered within their graph.
        pattern: who attends to whom, and with which kernel.

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
            "a bias per pair has no place in a dense table when edges are parallel; "
            "use kernel='edge', or merge the parallel edges"
        )
    table = bias.new_zeros(pattern.num_graphs, largest, largest, pattern.heads)
    return table.index_put(cell, bias).permute(0, 3, 1, 2)
