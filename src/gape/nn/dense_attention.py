r"""Dense attention kernel: graphs of similar size padded into blocks of a size that fits the cache.

With c the matrix that counts the edges u→v in row v and column u, and S = clamp(QKᵀ/√d + B), head by head:

    W = c ∘ exp(S),   z = W1,   O = W V / z   (0 where z is 0).

The clamp bounds exp, so no shift by the row maximum is needed. With G the gradient of O and H = G / z,

    ∂V = Wᵀ H,   ∂S = W ∘ (H Vᵀ − (H∘O)1)   where the clamp is not active,   ∂Q = ∂S K/√d,   ∂K = ∂Sᵀ Q/√d.

A column of ones appended to V, and one of −(H∘O)1 appended to H, give z and the subtraction in the same products.
Without a clamp ``scaled_dot_product_attention`` is used, with log c as its mask.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from gape.graph.batching import size_groups

# Attention scores per block. A block is read and written several times, so on a CPU it should stay in the second-level
# cache (1 MB of float32); on a GPU few large kernels are faster.
CPU_BLOCK_ELEMENTS = 1 << 18
GPU_BLOCK_ELEMENTS = 1 << 26


@dataclass(frozen=True)
class Block:
    """Graphs of similar size, padded to the largest.

    Args:
        graphs: ``[b]``, indices of the graphs.
        count: ``[b, n, n]``, how often the row's node attends to the column's node: 0, 1, or the number of
            parallel edges. Padding rows and columns are 0.
    """

    graphs: Tensor
    count: Tensor

    @property
    def slots(self) -> int:
        """Number of nodes, padding included."""
        return self.count.shape[0] * self.count.shape[1]

    def mask(self, dtype: torch.dtype) -> Tensor:
        """``[b, 1, n, n]``, log of :attr:`count`: added to a score, −∞ forbids the pair."""
        return self._log_count if dtype == self.count.dtype else self.count.to(dtype).log()[:, None]

    @cached_property
    def _log_count(self) -> Tensor:
        return self.count.log()[:, None]


class DenseLayout:
    """Blocks of graphs for dense attention, and the slot of each node in them.

    Args:
        pairs: ``[2, num_pairs]``, source and target of each pair, both of one graph; None for all pairs within graphs.
        batch: ``[num_nodes]``, the graph of each node, ascending.
        local: ``[num_nodes]``, index of each node within its graph.
        sizes: ``[num_graphs]``, nodes per graph.
        heads: number of attention heads.

    Example:
        >>> batch, local, sizes = torch.tensor([0, 1, 1]), torch.tensor([0, 0, 1]), torch.tensor([1, 2])
        >>> layout = DenseLayout(torch.tensor([[2], [1]]), batch, local, sizes, heads=8)
        >>> layout.blocks[0].graphs.tolist()  # the largest first; graph 0 is padded
        [1, 0]
        >>> layout.blocks[0].count.tolist()  # in graph 1 node 0 attends to node 1
        [[[0.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]]
    """

    def __init__(self, pairs: Tensor | None, batch: Tensor, local: Tensor, sizes: Tensor, heads: int) -> None:
        self.heads = heads
        device = batch.device
        budget = CPU_BLOCK_ELEMENTS if device.type == "cpu" else GPU_BLOCK_ELEMENTS
        groups = size_groups(sizes, budget // heads)
        # Offsets of each graph's slots and of its n × n matrix, over all blocks concatenated.
        width = torch.zeros(len(sizes), dtype=torch.long)
        slot_start, cell_start = torch.zeros_like(width), torch.zeros_like(width)
        slots = cells = 0
        for graphs, n in groups:
            rank = torch.arange(len(graphs))
            width[graphs], slot_start[graphs], cell_start[graphs] = n, slots + rank * n, cells + rank * n * n
            slots, cells = slots + len(graphs) * n, cells + len(graphs) * n * n
        width, slot_start, cell_start = width.to(device), slot_start.to(device), cell_start.to(device)

        #: ``[num_nodes]``, slot of each node over all blocks concatenated.
        self.slot = slot_start[batch] + local
        #: The node in each slot; padding slots hold node 0, and their result is never read.
        self.nodes = torch.zeros(slots, dtype=torch.long, device=device)
        self.nodes[self.slot] = torch.arange(len(batch), device=device)
        count = torch.zeros(cells, device=device)
        if pairs is not None:
            source, target = pairs
            graph = batch[target]
            cell = cell_start[graph] + local[target] * width[graph] + local[source]
            count.scatter_add_(0, cell, torch.ones_like(cell, dtype=count.dtype))
        blocks = []
        cells = 0
        for graphs, n in groups:
            b = len(graphs)
            table = count[cells : cells + b * n * n].view(b, n, n)
            if pairs is None:
                real = torch.arange(n, device=device) < sizes[graphs.to(device)][:, None]
                table.copy_(real[:, :, None] & real[:, None, :])
            blocks.append(Block(graphs.to(device), table))
            cells += b * n * n
        self.blocks = tuple(blocks)


def dense_attention(
    qkv: Tensor, layout: DenseLayout, *, clamp: float | None = 5.0, bias: Tensor | None = None
) -> Tensor:
    """Compute attention over the padded blocks of ``layout``; nodes that attend to nothing get 0.

    Args:
        qkv: ``[num_nodes, 3 · channels]``, queries, keys and values concatenated, each grouped by head.
        layout: the blocks.
        clamp: bound on the absolute value of the scores, None for no bound.
        bias: ``[num_graphs, heads, n, n]`` with n at least the size of the largest graph, rows for the
            attending node, columns for the node attended to; added to the scores before the clamp.

    Returns:
        ``[num_nodes, channels]``.

    Example:
        >>> batch, local, sizes = torch.zeros(3, dtype=torch.long), torch.arange(3), torch.tensor([3])
        >>> layout = DenseLayout(torch.tensor([[0, 1], [2, 2]]), batch, local, sizes, heads=1)
        >>> qkv = torch.tensor([[0.0, 0.0, 2.0], [0.0, 0.0, 4.0], [0.0, 0.0, 9.0]])
        >>> dense_attention(qkv, layout)  # node 2 attends evenly to 0 and 1; these attend to nothing
        tensor([[0.],
                [0.],
                [3.]])
    """
    if not layout.blocks:
        return qkv[:, : qkv.shape[1] // 3]
    if clamp is None:
        return _softmax_attention(qkv, layout, bias)
    output: Tensor = _ClampedAttention.apply(qkv, bias, layout, clamp)  # type: ignore[no-untyped-call]
    return output


def _split(rows: Tensor, layout: DenseLayout, parts: int) -> list[Tensor]:
    """Reshape ``[num_nodes, parts · heads · d]`` to padded ``[parts, b · heads, n, d]``, one per block."""
    padded = torch.split(rows.index_select(0, layout.nodes), [block.slots for block in layout.blocks])
    blocks = []
    for block, slots in zip(layout.blocks, padded, strict=True):
        b, n = block.count.shape[:2]
        split = slots.view(b, n, parts, layout.heads, -1).permute(2, 0, 3, 1, 4)
        blocks.append(split.reshape(parts, b * layout.heads, n, -1))
    return blocks


def _join(blocks: list[Tensor], layout: DenseLayout) -> Tensor:
    """Invert :func:`_split`: blocks of ``[parts, b · heads, n, d]`` to ``[num_nodes, parts · heads · d]``."""
    slots = []
    for block, part in zip(layout.blocks, blocks, strict=True):
        b, n = block.count.shape[:2]
        split = part.view(part.shape[0], b, layout.heads, n, -1).permute(1, 3, 0, 2, 4)
        slots.append(split.reshape(block.slots, -1))
    return torch.cat(slots).index_select(0, layout.slot)


def _block_bias(bias: Tensor, block: Block) -> Tensor:
    n = block.count.shape[1]
    return bias[block.graphs, :, :n, :n]


def _softmax_attention(qkv: Tensor, layout: DenseLayout, bias: Tensor | None) -> Tensor:
    outputs = []
    for block, parts in zip(layout.blocks, _split(qkv, layout, 3), strict=True):
        b, n = block.count.shape[:2]
        query, key, value = parts.view(3, b, layout.heads, n, -1)
        mask = block.mask(qkv.dtype)
        if bias is not None:
            mask = mask + _block_bias(bias, block)
        out = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        outputs.append(out.reshape(1, b * layout.heads, n, -1))
    return _join(outputs, layout)


class _ClampedAttention(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, qkv: Tensor, bias: Tensor | None, layout: DenseLayout, clamp: float) -> Tensor:
        scale = (qkv.shape[1] // 3 // layout.heads) ** -0.5
        saved: list[Tensor | None] = []
        outputs = []
        for block, parts in zip(layout.blocks, _split(qkv, layout, 3), strict=True):
            b, n = block.count.shape[:2]
            query, key, value = parts
            scores = torch.bmm(query, key.mT * scale)
            if bias is not None:
                scores.view(b, -1, n, n).add_(_block_bias(bias, block))
            low, high = torch.aminmax(scores)
            beyond = None
            if max(-float(low), float(high)) > clamp:
                beyond, scores = scores, scores.clamp(-clamp, clamp)
            weights = scores.exp_()
            weights.view(b, -1, n, n).mul_(block.count[:, None])
            value = F.pad(value, (0, 1), value=1.0)
            sums = torch.bmm(weights, value)
            total = sums[..., -1:]
            total = total + (total == 0)  # a node that attends to nothing: 0 / 1
            output = sums[..., :-1] / total
            outputs.append(output[None])
            saved += [query, key, value, weights, beyond, total, output]
        ctx.save_for_backward(*saved)
        ctx.layout, ctx.scale, ctx.clamp = layout, scale, clamp
        ctx.bias_shape = None if bias is None else bias.shape
        return _join(outputs, layout)

    @staticmethod
    @once_differentiable  # raise on a second derivative instead of returning a wrong one
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor | None, None, None]:
        layout: DenseLayout = ctx.layout
        saved = ctx.saved_tensors
        by_qkv, by_bias = [], None
        if ctx.needs_input_grad[1]:
            by_bias = gradients[0].new_zeros(ctx.bias_shape)
        for i, (block, parts) in enumerate(zip(layout.blocks, _split(gradients[0], layout, 1), strict=True)):
            query, key, value, weights, beyond, total, output = saved[7 * i : 7 * i + 7]
            b, n = block.count.shape[:2]
            gradient = parts[0] / total
            shift = -(gradient * output).sum(-1, keepdim=True)
            by_score = torch.bmm(torch.cat([gradient, shift], -1), value.mT)
            by_score *= weights
            if beyond is not None:
                by_score = torch.ops.aten.hardtanh_backward(by_score, beyond, -ctx.clamp, ctx.clamp)
            if by_bias is not None:
                by_bias[block.graphs, :, :n, :n] = by_score.view(b, -1, n, n)
            by_query = torch.bmm(by_score, key * ctx.scale)
            by_key = torch.bmm(by_score.mT, query * ctx.scale)
            by_value = torch.bmm(weights.mT, gradient)
            by_qkv.append(torch.stack([by_query, by_key, by_value]))
        return _join(by_qkv, layout), by_bias, None, None
