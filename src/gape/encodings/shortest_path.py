"""Shortest-path distances between all pairs of nodes (SPD)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar

import numpy as np
import torch

from gape._internal.threads import map_threads
from gape._internal.validation import check_at_least
from gape.encodings.base import INTEGERS, PairEncoding
from gape.encodings.pairs import Pairs
from gape.graph.batching import check_memory, dense_parts, padding_bounds
from gape.graph.graph import Graph
from gape.linalg.hops import distance_type, hop_distances


@dataclass(frozen=True)
class ShortestPath(PairEncoding):
    """Number of edges on the shortest path between all pairs of nodes, for attention biases (Ying et al., 2021).

    Row ``u``, column ``v`` is the distance from ``u`` to ``v``, along the edges if the graph is directed. Edge weights
    are ignored.

    Args:
        cap: distance of pairs without a path; longer paths count as ``cap - 1``.
        memory: memory limit, in GiB, for the distances of all graphs and for intermediate tables.
        dtype: of the distances, ``torch.int16``, ``torch.int32`` or ``torch.int64``.

    Returns, when called on a graph: :class:`Pairs` of integers.

    Example:
        >>> path = Graph.from_edges([(0, 1), (1, 2)])
        >>> ShortestPath(cap=9)(path).matrices()[0]
        tensor([[0, 1, 2],
                [9, 0, 1],
                [9, 9, 0]], dtype=torch.int32)
    """

    cap: int = 510
    memory: float = 4.0
    dtype: torch.dtype = field(default=torch.int32, kw_only=True)

    dtypes: ClassVar[tuple[torch.dtype, ...]] = INTEGERS

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(2, cap=self.cap)
        if self.cap > torch.iinfo(self.dtype).max:
            raise ValueError(f"cap={self.cap} does not fit into {self.dtype}; lower cap, or set dtype='int64'")

    def compute(self, graph: Graph) -> Pairs:
        pairs = _pairs(graph)
        # Small graphs are faster in parts that stay in cache, dense ones without splitting their many edges.
        parts = graph.parts if pairs < 64 * graph.num_nodes else _even_parts(graph)
        check_memory(
            self.memory,
            self._bytes_needed(parts),
            f"ShortestPath between {pairs} pairs of nodes",
            "encode fewer graphs at a time, or raise memory",
        )
        found = map_threads(self._distances, parts)
        return Pairs(found[0] if len(found) == 1 else torch.cat(found), graph.sizes)

    def _bytes_needed(self, parts: Sequence[Graph]) -> int:
        """Bytes of the result, of two tables of all pairs with a mask, and of their padding in parallel parts."""
        table = 2 * np.dtype(distance_type(self.cap)).itemsize + 1
        pairs = [_pairs(part) for part in parts]
        padding = max(part.num_nodes * int(part.sizes.max()) - count for part, count in zip(parts, pairs, strict=True))
        return sum(pairs) * (self.dtype.itemsize + table) + torch.get_num_threads() * padding * table

    def _distances(self, part: Graph) -> torch.Tensor:
        flat = hop_distances(part.edge_index.cpu().numpy(), part.sizes.cpu().numpy(), self.cap)
        return torch.from_numpy(flat).to(part.device, self.dtype)


def _pairs(graph: Graph) -> int:
    return int(graph.sizes.square().sum())


def _even_parts(graph: Graph) -> list[Graph]:
    """Split the batch into dense parts without much padding."""
    parts = []
    for part in dense_parts(graph):
        bounds = padding_bounds(part.sizes.tolist())
        parts += [part] if len(bounds) == 2 else [part.slice(a, b) for a, b in pairwise(bounds)]
    return parts
