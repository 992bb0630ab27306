"""Index tables of edge-wise attention: pairs grouped by target and by source, head by head."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor


@dataclass(frozen=True)
class HeadBags:
    """Weighted sums over the pairs at a node, one sum (a *bag*) per node and head.

    The weights of a batch are ``[num_pairs, heads]``; the bags want them node by node, then head by head.

    Args:
        entry: ``[num_pairs · heads]``, where in the flattened weights each entry of each bag is found.
        start: ``[num_nodes · heads]``, first entry of every bag.
        pair: ``[num_pairs · heads]``, the pair of every entry.
        head: ``[num_pairs · heads]``, the head of every entry.
    """

    entry: Tensor
    start: Tensor
    pair: Tensor
    head: Tensor

    @classmethod
    def group(cls, node: Tensor, rank: Tensor, degree: Tensor, heads: int) -> "HeadBags":
        """Bags of the pairs at ``node`` ``[num_pairs]``, in the order of ``rank`` within each node."""
        first = degree.cumsum(0) - degree
        head = torch.arange(heads, device=node.device)
        # Before pair number `rank` of node v, head h, lie: the pairs of earlier nodes in every head, the
        # pairs of v in earlier heads, and the earlier pairs of v in this head.
        place = (first[node] * heads + rank)[:, None] + head * degree[node][:, None]
        flat = torch.arange(place.numel(), device=node.device)
        entry = torch.empty_like(flat).scatter_(0, place.view(-1), flat)
        start = ((first * heads)[:, None] + head * degree[:, None]).view(-1)
        pair = torch.div(entry, heads, rounding_mode="floor")
        return cls(entry, start, pair, entry - pair * heads)

    def rows(self, node: Tensor, stride: int, offset: int = 0) -> Tensor:
        """Row of a ``[num_nodes · stride, channels]`` table that every entry reads, ``node`` given per pair."""
        return node.index_select(0, self.pair).mul_(stride).add_(self.head).add_(offset)


class EdgeLayout:
    """Pairs sorted by target, and the tables that edge-wise attention and its gradient read.

    The gradient's tables are built when first asked for, so inference does not pay for them.

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
        self.start = self.in_degree.cumsum(0) - self.in_degree
        self.number = torch.arange(len(source), device=source.device)
        self._head_sums: dict[tuple[int, torch.dtype, float], Tensor] = {}

    def head_sum(self, channels: int, dtype: torch.dtype, scale: float = 1.0) -> Tensor:
        """``[heads · channels, heads]``, sums the channels of each head, times ``scale``.

        A product with this matrix is faster than a sum over the last of the axes pairs × heads × channels.
        """
        key = channels, dtype, scale
        if key not in self._head_sums:
            identity = torch.eye(self.heads, dtype=dtype, device=self.start.device) * scale
            self._head_sums[key] = identity.repeat_interleave(channels, 0)
        return self._head_sums[key]

    @cached_property
    def by_target(self) -> HeadBags:
        """The pairs into every node."""
        return HeadBags.group(self.target, self.number - self.start[self.target], self.in_degree, self.heads)

    @cached_property
    def by_source(self) -> HeadBags:
        """The pairs out of every node."""
        degree = torch.bincount(self.source, minlength=self.num_nodes)
        source, order = self.source.sort(stable=True)
        rank = torch.empty_like(order)
        rank[order] = self.number - (degree.cumsum(0) - degree)[source]
        return HeadBags.group(self.source, rank, degree, self.heads)

    # Query, key and value of node v, head h, are rows 3·heads·v + {0, heads, 2·heads} + h of the joint table.

    @cached_property
    def key_rows(self) -> Tensor:
        """Key at the source of every entry of :attr:`by_target`."""
        return self.by_target.rows(self.source, 3 * self.heads, self.heads)

    @cached_property
    def value_rows(self) -> Tensor:
        """Value at the source of every entry of :attr:`by_target`."""
        return self.key_rows + self.heads

    @cached_property
    def query_rows(self) -> Tensor:
        """Query at the target of every entry of :attr:`by_source`."""
        return self.by_source.rows(self.target, 3 * self.heads)

    @cached_property
    def output_rows(self) -> Tensor:
        """Output at the target of every entry of :attr:`by_source`."""
        return self.by_source.rows(self.target, self.heads)
