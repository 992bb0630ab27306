"""Values for every pair of nodes of the same graph."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gape.graph.batching import offsets


@dataclass(frozen=True, eq=False, repr=False)
class Pairs:
    """Square matrices of a batch of graphs, stored flat: row by row, graph after graph, without padding.

    The row is the node where a path or walk starts, the column where it ends. PyG's ``DataLoader`` produces the same
    flat form when it batches graphs with an attribute of ``[n², …]`` entries. :meth:`padded` has the shape of a dense
    attention bias.

    Args:
        values: ``[Σ n², …]``; entry ``u·n + v`` of a graph's block belongs to the pair (u, v).
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
        """Offsets ``[graphs + 1]`` of each graph's entries."""
        return offsets(self.sizes.square())

    def matrices(self) -> list[Tensor]:
        """Return one ``[n, n, …]`` per graph; views, not copies."""
        sizes = self.sizes.tolist()
        blocks = torch.split(self.values, [n * n for n in sizes])
        return [block.reshape(n, n, *self.values.shape[1:]) for n, block in zip(sizes, blocks, strict=True)]

    def mask(self) -> Tensor:
        """Mask ``[graphs, n_max, n_max]`` of the entries of :meth:`padded` that belong to a pair of nodes."""
        inside = self._inside()
        return inside.unsqueeze(1) & inside.unsqueeze(2)

    def padded(self, fill: float = 0) -> Tensor:
        """Pad all matrices to ``[graphs, n_max, n_max, …]`` with ``fill``.

        In attention rows attend to columns: ``padded().transpose(1, 2)[i, v, u]`` is the value of walks from ``u`` to
        ``v``. Distances on undirected graphs are symmetric and need no transposing.
        """
        mask = self.mask()
        out = self.values.new_full((*mask.shape, *self.values.shape[1:]), fill)
        out[mask] = self.values
        return out

    def to(self, where: torch.device | torch.dtype | str) -> Pairs:
        """Move to another device or convert to another type."""
        values = self.values.to(where)
        return Pairs(values, self.sizes.to(values.device))

    def _inside(self) -> Tensor:
        largest = int(self.sizes.max()) if self.num_graphs else 0
        return torch.arange(largest, device=self.sizes.device) < self.sizes.unsqueeze(1)

    def __repr__(self) -> str:
        shape = ["n", "n", *self.values.shape[1:]]
        return f"Pairs(graphs={self.num_graphs}, each=[{', '.join(map(str, shape))}], dtype={self.values.dtype})"
