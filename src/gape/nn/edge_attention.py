r"""Edge-wise attention kernel, for sparse patterns.

For the pair e = (u→v), for each head, with d channels per head and bias b:

    s_e = clamp(q_v·k_u / √d + b_e),   p_e = exp(s_e) / Σ_{e'→v} exp(s_e'),   o_v = Σ_{e→v} p_e v_u.

With g the gradient of o, the gradient is (the sum over e'→v of p_e' g_v·v_u' being g_v·o_v)

    ∂s_e = p_e (g_v·v_u − g_v·o_v)   where the clamp is not active,   ∂b = ∂s,
    ∂q_v = Σ_{e→v} ∂s_e k_u / √d,   ∂k_u = Σ_{u→e} ∂s_e q_v / √d,   ∂v_u = Σ_{u→e} p_e g_v.

All four sums are weighted sums of table rows, one bag of rows per node and head. ``embedding_bag`` computes them
without storing the ``[num_pairs, heads, d]`` products, which dominate the time of a gather–scatter formulation. This is
why the gradient is written by hand.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from gape.graph.batching import offsets


@dataclass(frozen=True)
class HeadBags:
    """Weighted sums over the pairs at a node, one sum (a *bag*) per node and head.

    The weights of a batch are ``[num_pairs, heads]``; the bags are ordered by node, then by head.

    Args:
        entry: ``[num_pairs · heads]``, position of each bag entry in the flattened weights.
        start: ``[num_nodes · heads]``, offset of each bag.
        pair: ``[num_pairs · heads]``, the pair of each entry.
        head: ``[num_pairs · heads]``, the head of each entry.
    """

    entry: Tensor
    start: Tensor
    pair: Tensor
    head: Tensor

    @classmethod
    def group(cls, node: Tensor, rank: Tensor, degree: Tensor, heads: int) -> "HeadBags":
        """Group the pairs at ``node`` ``[num_pairs]``, in the order of ``rank`` within each node."""
        first = offsets(degree)[:-1]
        head = torch.arange(heads, device=node.device)
        # Offset of pair number `rank` of node v in head h: the pairs of earlier nodes in all heads, the pairs of v in
        # earlier heads, and the earlier pairs of v in this head.
        place = (first[node] * heads + rank)[:, None] + head * degree[node][:, None]
        flat = torch.arange(place.numel(), device=node.device)
        entry = torch.empty_like(flat).scatter_(0, place.view(-1), flat)
        start = ((first * heads)[:, None] + head * degree[:, None]).view(-1)
        pair = torch.div(entry, heads, rounding_mode="floor")
        return cls(entry, start, pair, entry - pair * heads)

    def rows(self, node: Tensor, stride: int, offset: int = 0) -> Tensor:
        """Row of a ``[num_nodes · stride, channels]`` table that each entry reads; ``node`` is per pair."""
        return node.index_select(0, self.pair).mul_(stride).add_(self.head).add_(offset)


class EdgeLayout:
    """Pairs sorted by target, with the index tables of edge-wise attention and its gradient.

    The tables of the gradient are built on first use, so inference does not pay for them.

    Args:
        source: ``[num_pairs]``, the node attended to.
        target: ``[num_pairs]``, the node that attends.
        num_nodes: number of nodes.
        heads: number of attention heads.

    Example:
        >>> layout = EdgeLayout(torch.tensor([0, 2, 1]), torch.tensor([2, 1, 2]), num_nodes=3, heads=2)
        >>> layout.order.tolist(), layout.start.tolist()
        ([1, 0, 2], [0, 0, 1])
    """

    def __init__(self, source: Tensor, target: Tensor, num_nodes: int, heads: int) -> None:
        self.num_nodes, self.heads = num_nodes, heads
        self.target, self.order = target.sort(stable=True)
        self.source = source[self.order]
        self.in_degree = torch.bincount(target, minlength=num_nodes)
        self.start = offsets(self.in_degree)[:-1]
        self.number = torch.arange(len(source), device=source.device)
        self._head_sums: dict[tuple[int, torch.dtype, float], Tensor] = {}

    def head_sum(self, channels: int, dtype: torch.dtype, scale: float = 1.0) -> Tensor:
        """Return a ``[heads · channels, heads]`` matrix that sums the channels of each head, times ``scale``.

        A product with this matrix is faster than a sum over the last of the axes pairs × heads × channels.
        """
        key = channels, dtype, scale
        if key not in self._head_sums:
            identity = torch.eye(self.heads, dtype=dtype, device=self.start.device) * scale
            self._head_sums[key] = identity.repeat_interleave(channels, 0)
        return self._head_sums[key]

    @cached_property
    def by_target(self) -> HeadBags:
        """Pairs grouped by target."""
        return HeadBags.group(self.target, self.number - self.start[self.target], self.in_degree, self.heads)

    @cached_property
    def by_source(self) -> HeadBags:
        """Pairs grouped by source."""
        degree = torch.bincount(self.source, minlength=self.num_nodes)
        source, order = self.source.sort(stable=True)
        rank = torch.empty_like(order)
        rank[order] = self.number - offsets(degree)[source]
        return HeadBags.group(self.source, rank, degree, self.heads)

    # Query, key and value of node v, head h, are rows 3·heads·v + {0, heads, 2·heads} + h of the joint table.

    @cached_property
    def key_rows(self) -> Tensor:
        """Key at the source of each entry of :attr:`by_target`."""
        return self.by_target.rows(self.source, 3 * self.heads, self.heads)

    @cached_property
    def value_rows(self) -> Tensor:
        """Value at the source of each entry of :attr:`by_target`."""
        return self.key_rows + self.heads

    @cached_property
    def query_rows(self) -> Tensor:
        """Query at the target of each entry of :attr:`by_source`."""
        return self.by_source.rows(self.target, 3 * self.heads)

    @cached_property
    def output_rows(self) -> Tensor:
        """Output at the target of each entry of :attr:`by_source`."""
        return self.by_source.rows(self.target, self.heads)


def edge_attention(qkv: Tensor, layout: EdgeLayout, *, clamp: float | None = 5.0, bias: Tensor | None = None) -> Tensor:
    """Compute attention over the pairs of ``layout``; nodes that attend to nothing get 0.

    Args:
        qkv: ``[num_nodes, 3 · channels]``, queries, keys and values concatenated, each grouped by head.
        layout: the pairs.
        clamp: bound on the absolute value of the scores, None for no bound.
        bias: ``[num_pairs, heads]``, added to the scores before the clamp, in the order of ``source`` and
            ``target`` of the layout.

    Returns:
        ``[num_nodes, channels]``.

    Example:
        >>> layout = EdgeLayout(torch.tensor([0, 1]), torch.tensor([2, 2]), num_nodes=3, heads=1)
        >>> qkv = torch.tensor([[0.0, 0.0, 2.0], [0.0, 0.0, 4.0], [0.0, 0.0, 9.0]])
        >>> edge_attention(qkv, layout)  # node 2 attends evenly to 0 and 1; these attend to nothing
        tensor([[0.],
                [0.],
                [3.]])
    """
    sorted_bias = None if bias is None else bias.index_select(0, layout.order)
    output: Tensor = _EdgeAttention.apply(qkv.contiguous(), sorted_bias, layout, clamp)  # type: ignore[no-untyped-call]
    return output


def _weighted_sums(bags: HeadBags, rows: Tensor, table: Tensor, weights: Tensor) -> Tensor:
    """Sum rows of ``table`` ``[·, d]`` times ``weights`` ``[num_pairs, heads]`` per bag: ``[num_nodes, heads · d]``."""
    entries = weights.view(-1).index_select(0, bags.entry)
    sums = F.embedding_bag(rows, table, bags.start, mode="sum", per_sample_weights=entries)
    return sums.view(-1, weights.shape[1] * table.shape[1])


class _EdgeAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, qkv: Tensor, bias: Tensor | None, layout: EdgeLayout, clamp: float | None) -> Tensor:
        qkv = qkv.detach()  # embedding_bag is slower for tables that require a gradient
        heads, width = layout.heads, qkv.shape[1] // 3
        channels = width // heads
        products = qkv[:, :width].index_select(0, layout.target)
        products *= qkv[:, width : 2 * width].index_select(0, layout.source)
        scores = products @ layout.head_sum(channels, qkv.dtype, channels**-0.5)
        if bias is not None:
            scores += bias
        inside = None
        if clamp is None:
            # A shift per target cancels in the softmax; subtracting the maximum keeps exp from overflowing.
            where = layout.target[:, None].expand_as(scores)
            largest = scores.new_zeros(layout.num_nodes, heads)
            largest.scatter_reduce_(0, where, scores, "amax", include_self=False)
            scores -= largest.index_select(0, layout.target)
        else:
            inside = scores.abs() <= clamp
            scores.clamp_(-clamp, clamp)
        weights = scores.exp_()
        total = F.embedding_bag(layout.number, weights, layout.start, mode="sum")
        weights /= total.index_select(0, layout.target)
        output = _weighted_sums(layout.by_target, layout.value_rows, qkv.view(-1, channels), weights)
        ctx.save_for_backward(qkv, weights, inside, output)
        ctx.layout = layout
        return output

    @staticmethod
    @once_differentiable  # raise on a second derivative instead of returning a wrong one
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor | None, None, None]:
        qkv, weights, inside, output = ctx.saved_tensors
        layout: EdgeLayout = ctx.layout
        gradient = gradients[0].contiguous()
        width = output.shape[1]
        channels = width // layout.heads
        head_sum = layout.head_sum(channels, qkv.dtype)

        by_weight = gradient.index_select(0, layout.target)
        by_weight *= qkv[:, 2 * width :].index_select(0, layout.source)
        by_score = by_weight @ head_sum
        by_score -= ((gradient * output) @ head_sum).index_select(0, layout.target)
        by_score *= weights
        if inside is not None:
            by_score *= inside

        table = qkv.view(-1, channels)
        scaled = by_score * channels**-0.5
        by_query = _weighted_sums(layout.by_target, layout.key_rows, table, scaled)
        by_key = _weighted_sums(layout.by_source, layout.query_rows, table, scaled)
        by_value = _weighted_sums(layout.by_source, layout.output_rows, gradient.view(-1, channels), weights)
        by_bias = by_score if ctx.needs_input_grad[1] else None
        return torch.cat([by_query, by_key, by_value], 1), by_bias, None, None
