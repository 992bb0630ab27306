"""Shortest-path distances between all pairs of nodes (SPD)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch

from gape._internal.threads import map_threads
from gape._internal.validation import check_at_least
from gape.encodings.base import INTEGERS, PairEncoding
from gape.encodings.pairs import Pairs
from gape.graph.batching import check_memory, dense_parts, padding_bounds
from gape.graph.convert import as_graph
from gape.graph.graph import Graph
from gape.linalg.hops import distance_type, hop_distances


@dataclass(frozen=True)
class ShortestPath(PairEncoding):
    """Number of edges on the shortest path between each two nodes, for attention biases (Ying et al., 2021).

    Row ``u``, column ``v``: from ``u`` to ``v``, along the edges' directions if the graph is directed. Edge weights
    are not lengths and are ignored.

    Args:
        cap: the distance of nodes without a path; longer paths count as ``cap - 1``.
        memory: largest memory, in GiB, for the distances of all graphs and the tables they are worked out in.
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
            raise ValueError(f"cap={self.cap} does not fit into {self.dtype}")

    def __call__(self, graph: Any) -> Pairs:
        graph = as_graph(graph)
        pairs = _pairs(graph)
        # Small graphs gain by parts that stay in cache, dense ones by not cutting their many edges apart.
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
        """The result, tables of all pairs in two stages with a mask, and their padding in parts side by side."""
        table = 2 * np.dtype(distance_type(self.cap)).itemsize + 1
        pairs = [_pairs(part) for part in parts]
        padding = max(part.num_nodes * int(part.sizes.max()) - of for part, of in zip(parts, pairs, strict=True))
        return sum(pairs) * (self.dtype.itemsize + table) + torch.get_num_threads() * padding * table

    def _distances(self, part: Graph) -> torch.Tensor:
        flat = hop_distances(part.edge_index.cpu().numpy(), part.sizes.cpu().numpy(), self.cap)
        return torch.from_numpy(flat).to(part.device, self.dtype)


def _pairs(graph: Graph) -> int:
    return int(graph.sizes.square().sum())


def _even_parts(graph: Graph) -> list[Graph]:
    """Dense parts without much padding."""
    parts = []
    for part in dense_parts(graph):
        bounds = padding_bounds(part.sizes.tolist())
        parts += [part] if len(bounds) == 2 else [part.slice(a, b) for a, b in pairwise(bounds)]
    return parts
