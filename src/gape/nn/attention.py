"""Multi-head softmax attention over the pairs of nodes of an attention pattern, with an optional additive bias."""

from functools import cached_property
from typing import Literal

import torch
from torch import Tensor, nn

from gape._internal.validation import check_batch
from gape.graph.batching import offsets
from gape.nn.dense_attention import DenseLayout, dense_attention
from gape.nn.edge_attention import EdgeLayout, edge_attention

Kernel = Literal["auto", "edge", "dense"]

# Share of attending pairs from which the dense kernel is used. On one CPU core both kernels take the same time, forward
# and backward, at a density of about 0.15 for graphs of 120 nodes, 0.22 for 41 and 0.33 for 23. One threshold in
# between costs little, and the datasets of the paper are far from it (molecules, cycles and planar graphs at or below
# 0.1, block models at or above 0.3).
DENSE_FROM_DENSITY = 0.2


class AttentionPattern:
    r"""The pairs of nodes that attend in a batch of graphs, with the index tables of the attention kernels.

    An edge u→v of the graph lets v attend to u, so a node sees its in-neighbours, and itself only if it has
    a self-loop. With ``full=True`` every node attends to every node of its own graph, itself included.

    The tables depend on the graphs only, so all layers of a model share them. A training loop that sees the same
    batches again can keep the pattern.

    Args:
        edge_index: ``[2, num_edges]``, row 0 sources, row 1 targets. Parallel edges count with their multiplicity.
        batch: ``[num_nodes]``, the graph of each node, ascending; one graph if None.
        num_nodes: number of nodes; needed only if ``batch`` is None.
        num_graphs: number of graphs; the largest entry of ``batch`` plus one if None.
        heads: number of attention heads.
        full: all pairs of nodes in the same graph instead of the edges.
        kernel: "edge" to compute pair by pair, "dense" to compute on padded blocks, "auto" to take the dense
            kernel when at least a fifth of the pairs within graphs attend. Both give the same numbers.

    Example:
        >>> path = torch.tensor([[0, 1], [1, 2]])  # 0→1→2
        >>> pattern = AttentionPattern(path, num_nodes=3, heads=8)
        >>> pattern.num_pairs, round(pattern.density, 3)
        (2, 0.222)
        >>> AttentionPattern(path, num_nodes=3, heads=8, full=True).kernel
        'dense'
    """

    def __init__(
        self,
        edge_index: Tensor,
        batch: Tensor | None = None,
        *,
        num_nodes: int | None = None,
        num_graphs: int | None = None,
        heads: int,
        full: bool = False,
        kernel: Kernel = "auto",
    ) -> None:
        if kernel not in ("auto", "edge", "dense"):
            raise ValueError(f"kernel must be 'auto', 'edge' or 'dense', got {kernel!r}")
        if edge_index.dim() != 2 or edge_index.shape[0] != 2 or edge_index.is_floating_point():
            raise ValueError(
                f"edge_index must be integers of shape [2, num_edges], "
                f"got {edge_index.dtype} of shape {list(edge_index.shape)}"
            )
        if batch is None:
            if num_nodes is None:
                raise ValueError("give batch, or num_nodes for a single graph: edge_index does not show isolated nodes")
            batch = torch.zeros(num_nodes, dtype=torch.long, device=edge_index.device)
        check_batch(batch)
        if num_nodes is not None and num_nodes != len(batch):
            raise ValueError(f"num_nodes is {num_nodes} but batch has {len(batch)} entries; leave out one of them")
        self.num_nodes = len(batch)
        if edge_index.numel() and not 0 <= int(edge_index.min()) <= int(edge_index.max()) < self.num_nodes:
            raise ValueError(
                f"edge_index has nodes {int(edge_index.min())} to {int(edge_index.max())}, "
                f"but there are {self.num_nodes} nodes, numbered from 0"
            )
        largest = int(batch[-1]) + 1 if self.num_nodes else 0
        if num_graphs is not None and num_graphs < largest:
            raise ValueError(f"num_graphs is {num_graphs} but batch has {largest} graphs")
        across = batch.index_select(0, edge_index[0]) != batch.index_select(0, edge_index[1])
        if bool(across.any()):
            edge = int(across.nonzero()[0])
            pair = edge_index[:, edge]
            raise ValueError(
                f"edge {edge}, {pair.tolist()}, joins nodes of different graphs, {batch[pair].tolist()}; check that "
                "batch belongs to edge_index"
            )
        self.edge_index, self.batch, self.heads, self.full = edge_index, batch, heads, full
        self.num_graphs = largest if num_graphs is None else num_graphs
        self._kernel = kernel

    @cached_property
    def kernel(self) -> Literal["edge", "dense"]:
        """The requested kernel; for "auto" the faster one at this density."""
        if self._kernel == "auto":
            return "dense" if self.density >= DENSE_FROM_DENSITY else "edge"
        return self._kernel

    @cached_property
    def sizes(self) -> Tensor:
        """``[num_graphs]``, number of nodes per graph."""
        return torch.bincount(self.batch, minlength=self.num_graphs)

    @cached_property
    def local(self) -> Tensor:
        """``[num_nodes]``, index of each node within its graph."""
        first = offsets(self.sizes)[:-1]
        return torch.arange(self.num_nodes, device=self.batch.device) - first[self.batch]

    @cached_property
    def num_cells(self) -> int:
        """Pairs of nodes of the same graph, Σ n²: the cost of the dense kernel."""
        return int((self.sizes * self.sizes).sum())

    @property
    def num_pairs(self) -> int:
        """Pairs that attend: the cost of the edge-wise kernel."""
        return self.num_cells if self.full else self.edge_index.shape[1]

    @property
    def density(self) -> float:
        """``num_pairs`` / ``num_cells``, 0 for a batch without nodes."""
        return self.num_pairs / max(self.num_cells, 1)

    @cached_property
    def pairs(self) -> Tensor:
        """``[2, num_pairs]``, source and target of each attending pair: the edges, or all pairs if ``full``."""
        if not self.full:
            return self.edge_index
        # Target v has sizes[batch[v]] sources, the nodes of its graph in order.
        per_target = self.sizes[self.batch]
        target = torch.repeat_interleave(per_target)
        first_pair = offsets(per_target)[:-1]
        first_node = torch.arange(self.num_nodes, device=self.batch.device) - self.local
        rank = torch.arange(len(target), device=target.device) - first_pair[target]
        return torch.stack([first_node[target] + rank, target])

    @cached_property
    def edges(self) -> EdgeLayout:
        """Index tables of the edge-wise kernel."""
        return EdgeLayout(self.pairs[0], self.pairs[1], self.num_nodes, self.heads)

    @cached_property
    def dense(self) -> DenseLayout:
        """Index tables of the dense kernel."""
        pairs = None if self.full else self.edge_index
        return DenseLayout(pairs, self.batch, self.local, self.sizes, self.heads)


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
