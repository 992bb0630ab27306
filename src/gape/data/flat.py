"""Many graphs in a few flat NumPy arrays: the form in which graphs are generated, read and written."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gape.linalg.integers import offsets

Array = NDArray[Any]


def _lengths(ptr: Array) -> NDArray[np.int64]:
    wide = ptr.astype(np.int64)  # differences of unsigned offsets would wrap around
    lengths: NDArray[np.int64] = wide[1:] - wide[:-1]
    return lengths


@dataclass(frozen=True, eq=False)
class FlatGraphs:
    """Graphs in flat arrays: graph ``i`` has nodes ``node_ptr[i]:node_ptr[i+1]``, edges ``edge_ptr[i]:edge_ptr[i+1]``.

    Args:
        node_ptr: ``[num_graphs + 1]``.
        edge_ptr: ``[num_graphs + 1]``.
        edges: ``[num_edges, 2]``; each edge once, as a pair of node numbers *local* to its graph. A directed edge leads
            from the first node to the second.
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
                raise ValueError(f"{name} must increase from 0 to {rows}, got {ptr[0]} … {ptr[-1]}")
        if self.edges.ndim != 2 or self.edges.shape[1] != 2:
            raise ValueError(f"edges must have shape [num_edges, 2], got {self.edges.shape}")
        if self.x.ndim != 2:
            raise ValueError(f"x must have shape [num_nodes, d], got {self.x.shape}")
        if len(self.y) not in (self.num_graphs, len(self.x)):
            raise ValueError(
                f"y must have one entry per graph ({self.num_graphs}) or per node ({len(self.x)}), got {len(self.y)}"
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
        """Join edge lists, one per graph. Without ``x`` every node has the single real feature 1."""
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
        """Number of graphs."""
        return len(self.node_ptr) - 1

    @property
    def node_counts(self) -> NDArray[np.int64]:
        """Number of nodes per graph."""
        return _lengths(self.node_ptr)

    @property
    def edge_counts(self) -> NDArray[np.int64]:
        """Number of edges per graph."""
        return _lengths(self.edge_ptr)

    def graph_edges(self, index: int) -> Array:
        """Return the edges of one graph, ``[edges of that graph, 2]``."""
        block: Array = self.edges[self.edge_ptr[index] : self.edge_ptr[index + 1]]
        return block
