"""Many graphs in a few flat NumPy arrays, the form that is generated, read and kept on disk."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def offsets(counts: Array | Sequence[int]) -> NDArray[np.int64]:
    """Where each of several blocks of the given lengths starts, and where the last one ends.

    >>> offsets([2, 0, 3]).tolist()
    [0, 2, 2, 5]
    """
    return np.concatenate([[0], np.cumsum(np.asarray(counts, dtype=np.int64))]).astype(np.int64)


def _lengths(ptr: Array) -> NDArray[np.int64]:
    wide = ptr.astype(np.int64)  # offsets may come as unsigned numbers, whose differences would wrap
    lengths: NDArray[np.int64] = wide[1:] - wide[:-1]
    return lengths


@dataclass(frozen=True, eq=False)
class FlatGraphs:
    """Graph ``i`` owns nodes ``node_ptr[i]:node_ptr[i+1]`` and edges ``edge_ptr[i]:edge_ptr[i+1]``.

    Args:
        node_ptr: ``[num_graphs + 1]``.
        edge_ptr: ``[num_graphs + 1]``.
        edges: ``[num_edges, 2]``; every edge once, as a pair of node numbers *local* to its graph; of directed graphs
            from the first to the second.
        x: node features, ``[num_nodes, d]``.
        y: targets, ``[num_graphs]`` or ``[num_nodes]``.
        edge_attr: edge features, ``[num_edges]`` or ``[num_edges, d]``; None if there are none.

    Example:
        >>> import numpy as np
        >>> triangle_and_edge = FlatGraphs.from_edges(
        ...     sizes=[3, 2], edges=[[(0, 1), (1, 2), (0, 2)], [(0, 1)]], y=np.array([1, 0]))
        >>> triangle_and_edge.num_graphs, triangle_and_edge.edge_counts.tolist()
        (2, [3, 1])
    """

    node_ptr: Array
    edge_ptr: Array
    edges: Array
    x: Array
    y: Array
    edge_attr: Array | None = None

    def __post_init__(self) -> None:
        if self.node_ptr.ndim != 1 or self.node_ptr.shape != self.edge_ptr.shape or len(self.node_ptr) < 1:
            raise ValueError(
                "node_ptr and edge_ptr must both have num_graphs + 1 entries, "
                f"got shapes {self.node_ptr.shape} and {self.edge_ptr.shape}"
            )
        for name, ptr, rows in (
            ("node_ptr", self.node_ptr, len(self.x)),
            ("edge_ptr", self.edge_ptr, len(self.edges)),
        ):
            if ptr[0] != 0 or ptr[-1] != rows or (np.diff(ptr.astype(np.int64)) < 0).any():
                raise ValueError(f"{name} must rise from 0 to {rows}, got {ptr[0]} … {ptr[-1]}")
        if self.edges.ndim != 2 or self.edges.shape[1] != 2:
            raise ValueError(f"edges must have shape [num_edges, 2], got {self.edges.shape}")
        if self.x.ndim != 2:
            raise ValueError(f"x must have shape [num_nodes, d], got {self.x.shape}")
        if len(self.y) not in (self.num_graphs, len(self.x)):
            raise ValueError(
                f"y must have one entry a graph ({self.num_graphs}) or a node ({len(self.x)}), got {len(self.y)}"
            )
        if self.edge_attr is not None and len(self.edge_attr) != len(self.edges):
            raise ValueError(
                f"edge_attr must have one row for each of {len(self.edges)} edges, got {len(self.edge_attr)}"
            )
        if len(self.edges):
            size = np.repeat(self.node_counts, self.edge_counts)
            wrong = np.flatnonzero((self.edges.min(axis=1) < 0) | (self.edges.max(axis=1) >= size))
            if len(wrong):
                graph = int(np.searchsorted(self.edge_ptr, wrong[0], side="right")) - 1
                raise ValueError(
                    f"edge {tuple(self.edges[wrong[0]].tolist())} leaves graph {graph}, "
                    f"which has {self.node_counts[graph]} nodes; edges use node numbers local to the graph"
                )

    @classmethod
    def from_edges(cls, sizes: Sequence[int], edges: Iterable[Any], y: Array, x: Array | None = None) -> "FlatGraphs":
        """Join one edge list a graph. Without ``x`` every node carries the single real feature 1."""
        blocks = [np.asarray(block).reshape(-1, 2) for block in edges]
        node_ptr = offsets(sizes)
        joined = np.concatenate(blocks) if blocks else np.zeros((0, 2))
        small = np.int16 if max(sizes, default=0) <= np.iinfo(np.int16).max else np.int64
        return cls(
            node_ptr=node_ptr,
            edge_ptr=offsets([len(block) for block in blocks]),
            edges=joined.astype(small),
            x=np.ones((int(node_ptr[-1]), 1), dtype=np.float32) if x is None else x,
            y=y,
        )

    @property
    def num_graphs(self) -> int:
        """How many graphs there are."""
        return len(self.node_ptr) - 1

    @property
    def node_counts(self) -> NDArray[np.int64]:
        """Number of nodes of every graph."""
        return _lengths(self.node_ptr)

    @property
    def edge_counts(self) -> NDArray[np.int64]:
        """Number of edges of every graph."""
        return _lengths(self.edge_ptr)

    def graph_edges(self, index: int) -> Array:
        """The edges of one graph, ``[num_edges_of_it, 2]``."""
        block: Array = self.edges[self.edge_ptr[index] : self.edge_ptr[index + 1]]
        return block
