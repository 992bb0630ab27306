r"""Attention computed pair by pair, for sparse patterns.

For the pair e = (u→v), head by head, with d channels a head and bias b:

    s_e = clamp(q_v·k_u / √d + b_e),   p_e = exp(s_e) / Σ_{e'→v} exp(s_e'),   o_v = Σ_{e→v} p_e v_u.

With g the gradient of o, the gradient is (the sum over e'→v of p_e' g_v·v_u' being g_v·o_v)

    ∂s_e = p_e (g_v·v_u − g_v·o_v)   where the clamp is not active,   ∂b = ∂s,
    ∂q_v = Σ_{e→v} ∂s_e k_u / √d,   ∂k_u = Σ_{u→e} ∂s_e q_v / √d,   ∂v_u = Σ_{u→e} p_e g_v.

All four sums are weighted sums of table rows, one bag of rows per node and head. ``embedding_bag`` does that
without storing the ``[num_pairs, heads, d]`` products, which is where the time of a gather–scatter
formulation goes; this is why the gradient is written out.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from gape.nn.attention.edge_layout import EdgeLayout, HeadBags


def edge_attention(qkv: Tensor, layout: EdgeLayout, *, clamp: float | None = 5.0, bias: Tensor | None = None) -> Tensor:
    """Attention over the pairs of ``layout``; nodes that attend to nothing get 0.

    Args:
        qkv: ``[num_nodes, 3 · channels]``, queries, keys and values side by side, each head by head.
        layout: who attends to whom.
        clamp: bound on the absolute value of the scores, None for no bound.
        bias: ``[num_pairs, heads]``, added to the scores before the clamp, in the order the layout was given.

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
    """``[num_nodes, heads · d]``: per bag, the sum of rows of ``table`` ``[·, d]`` times ``[num_pairs, heads]``."""
    entries = weights.view(-1).index_select(0, bags.entry)
    sums = F.embedding_bag(rows, table, bags.start, mode="sum", per_sample_weights=entries)
    return sums.view(-1, weights.shape[1] * table.shape[1])


class _EdgeAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, qkv: Tensor, bias: Tensor | None, layout: EdgeLayout, clamp: float | None) -> Tensor:
        qkv = qkv.detach()  # else embedding_bag takes its slower road for tables that need a gradient
        heads, width = layout.heads, qkv.shape[1] // 3
        channels = width // heads
        products = qkv[:, :width].index_select(0, layout.target)
        products *= qkv[:, width : 2 * width].index_select(0, layout.source)
        scores = products @ layout.head_sum(channels, qkv.dtype, channels**-0.5)
        if bias is not None:
            scores += bias
        inside = None
        if clamp is None:
            # Any shift per target cancels; the largest score makes exp safe.
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
    @once_differentiable  # a second derivative would be silently wrong; this makes it an error
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
