"""Index tables of dense attention: graphs of similar size padded together into blocks that fit the cache."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

# Scores of one block, in numbers. A block is read and written several times, so it should stay in the
# second-level cache (1 MB of float32) on a CPU; a GPU wants few, large kernels instead.
CPU_BLOCK = 1 << 18
GPU_BLOCK = 1 << 26


@dataclass(frozen=True)
class Block:
    """A few graphs of similar size, padded to the largest.

    Args:
        graphs: ``[b]``, numbers of the graphs.
        count: ``[b, n, n]``, how often the row's node attends to the column's node: 0, 1, or the number of
            parallel edges. Padding rows and columns are 0.
    """

    graphs: Tensor
    count: Tensor

    @property
    def slots(self) -> int:
        """Places for nodes, padding included."""
        return self.count.shape[0] * self.count.shape[1]

    def mask(self, dtype: torch.dtype) -> Tensor:
        """``[b, 1, n, n]``, log of :attr:`count`: added to a score, −∞ forbids the pair."""
        return self._log_count if dtype == self.count.dtype else self.count.to(dtype).log()[:, None]

    @cached_property
    def _log_count(self) -> Tensor:
        return self.count.log()[:, None]


class DenseLayout:
    """Blocks of graphs for dense attention, and where every node stands in them.

    Args:
        pairs: ``[2, num_pairs]``, source and target of every pair, both in one graph; None for all pairs within graphs.
        batch: ``[num_nodes]``, the graph of every node, ascending.
        local: ``[num_nodes]``, the number of every node within its graph.
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
        groups = _groups(sizes, heads)
        # Where each graph's slots and its n × n table begin, over all blocks laid end to end.
        width = torch.zeros(len(sizes), dtype=torch.long)
        slot_start, cell_start = torch.zeros_like(width), torch.zeros_like(width)
        slots = cells = 0
        for graphs, n in groups:
            rank = torch.arange(len(graphs))
            width[graphs], slot_start[graphs], cell_start[graphs] = n, slots + rank * n, cells + rank * n * n
            slots, cells = slots + len(graphs) * n, cells + len(graphs) * n * n
        width, slot_start, cell_start = width.to(device), slot_start.to(device), cell_start.to(device)

        #: ``[num_nodes]``, slot of every node over all blocks laid end to end.
        self.slot = slot_start[batch] + local
        #: The node in every slot; padding slots name node 0 and what they compute is never read.
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


def _groups(sizes: Tensor, heads: int) -> list[tuple[Tensor, int]]:
    """Graphs by size, cut into groups whose padded score tables stay within the block size; with the width."""
    budget = (CPU_BLOCK if sizes.device.type == "cpu" else GPU_BLOCK) // heads
    groups: list[tuple[Tensor, int]] = []
    # From the largest graph down: the first graph of a group sets its width.
    ordered, order = sizes.cpu().sort(descending=True, stable=True)
    widths, begin = ordered.tolist(), 0
    while begin < len(widths) and widths[begin] > 0:
        n = widths[begin]
        end = min(begin + max(budget // (n * n), 1), len(widths))
        groups.append((order[begin:end], n))
        begin = end
    return groups
