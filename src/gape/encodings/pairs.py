"""A number, or k numbers, for every pair of nodes of the same graph."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gape.graph.adjacency import Adjacency
from gape.graph.batching import Block, offsets


@dataclass(frozen=True, eq=False, repr=False)
class Pairs:
    """The square matrices of a batch of graphs, row by row, one graph after the other.

    Row is where a path or a walk starts, column where it ends. The flat form holds no padding and is what PyG makes
    when it collates graphs that each carry their ``[n², …]`` entries as an attribute, so a ``DataLoader`` batches it
    without help; :meth:`padded` is the shape of a dense attention bias.

    Args:
        values: ``[Σ n², …]``, entry ``u·n + v`` of a graph's block belongs to the pair (u, v).
        sizes: ``[graphs]``, the number of nodes n of each graph.

    Example:
        >>> pairs = Pairs(torch.tensor([0, 1, 1, 0, 7]), sizes=torch.tensor([2, 1]))
        >>> pairs.matrices()
        [tensor([[0, 1],
                [1, 0]]), tensor([[7]])]
        >>> pairs.padded(fill=-1)[1]
        tensor([[ 7, -1],
                [-1, -1]])
    """

    values: Tensor
    sizes: Tensor

    def __post_init__(self) -> None:
        expected = int(self.sizes.square().sum())
        if len(self.values) != expected:
            raise ValueError(
                f"graphs of sizes {self.sizes.tolist()[:8]} have {expected} pairs, got {len(self.values)} values"
            )

    @property
    def num_graphs(self) -> int:
        return len(self.sizes)

    @property
    def ptr(self) -> Tensor:
        """``[graphs + 1]``: where each graph's entries begin."""
        return offsets(self.sizes.square())

    def matrices(self) -> list[Tensor]:
        """One ``[n, n, …]`` per graph; views, not copies."""
        sizes = self.sizes.tolist()
        blocks = torch.split(self.values, [n * n for n in sizes])
        return [block.reshape(n, n, *self.values.shape[1:]) for n, block in zip(sizes, blocks, strict=True)]

    def mask(self) -> Tensor:
        """``[graphs, n_max, n_max]``: whether a cell of :meth:`padded` belongs to a pair of nodes."""
        inside = self._inside()
        return inside.unsqueeze(1) & inside.unsqueeze(2)

    def padded(self, fill: float = 0) -> Tensor:
        """``[graphs, n_max, n_max, …]``: all matrices, ``fill`` where a graph has no such node.

        For attention, whose rows attend to columns, ``padded().transpose(1, 2)[i, v, u]`` is what a walk from ``u``
        brings to ``v``; on undirected graphs distances need no transposing.
        """
        mask = self.mask()
        out = self.values.new_full((*mask.shape, *self.values.shape[1:]), fill)
        out[mask] = self.values
        return out

    def to(self, where: torch.device | torch.dtype | str) -> Pairs:
        """The same on another device or in another type."""
        values = self.values.to(where)
        return Pairs(values, self.sizes.to(values.device))

    def _inside(self) -> Tensor:
        largest = int(self.sizes.max()) if self.num_graphs else 0
        return torch.arange(largest, device=self.sizes.device) < self.sizes.unsqueeze(1)

    def __repr__(self) -> str:
        shape = ["n", "n", *self.values.shape[1:]]
        return f"Pairs(graphs={self.num_graphs}, each=[{', '.join(map(str, shape))}], dtype={self.values.dtype})"


def empty_pairs(adjacency: Adjacency, *shape: int, dtype: torch.dtype) -> Pairs:
    """Pairs of all graphs to be filled in by :func:`spread_pairs`."""
    count = int(adjacency.sizes.square().sum())
    return Pairs(torch.zeros(count, *shape, dtype=dtype, device=adjacency.ptr.device), adjacency.sizes)


def spread_pairs(out: Pairs, block: Block, matrices: Tensor) -> None:
    """Write ``matrices`` ``[B, n, n, …]`` (no padding) to their places in ``out``."""
    n = matrices.shape[1]
    places = out.ptr[block.graphs, None] + torch.arange(n * n, device=matrices.device)
    out.values.index_copy_(0, places.flatten(), matrices.flatten(0, 2).to(out.values.dtype))
