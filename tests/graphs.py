"""Batches of graphs drawn by hypothesis, and their matrices by NumPy alone."""

from dataclasses import dataclass

import numpy as np
import torch
from hypothesis import strategies as st

from gape import Graph


@dataclass(frozen=True)
class Drawn:
    """Edge lists of several graphs, each numbered from 0, before the library has seen them."""

    sizes: list[int]
    edges: list[list[tuple[int, int, float]]]
    weighted: bool

    def graph(self, number: int) -> Graph:
        """One of them alone."""
        edges = self.edges[number]
        return Graph(
            torch.tensor([edge[:2] for edge in edges], dtype=torch.int64).reshape(-1, 2).T,
            self.sizes[number],
            edge_weight=torch.tensor([edge[2] for edge in edges], dtype=torch.float64) if self.weighted else None,
        )

    def batch(self, order: np.random.Generator | None = None) -> Graph:
        """All of them as one; the edges of all graphs mixed if there is an ``order``."""
        ptr = np.cumsum([0, *self.sizes])
        edges = [(u + ptr[i], v + ptr[i], w) for i, part in enumerate(self.edges) for u, v, w in part]
        if order is not None:
            edges = [edges[i] for i in order.permutation(len(edges))]
        return Graph(
            np.array([edge[:2] for edge in edges], dtype=np.int64).reshape(-1, 2).T,
            int(ptr[-1]),
            edge_weight=np.array([edge[2] for edge in edges], dtype=np.float64) if self.weighted else None,
            ptr=ptr,
        )

    def dense(self) -> list[np.ndarray]:
        """The adjacency matrix of each."""
        matrices = []
        for size, edges in zip(self.sizes, self.edges, strict=True):
            matrix = np.zeros((size, size))
            for u, v, w in edges:
                matrix[u, v] += w if self.weighted else 1.0
            matrices.append(matrix)
        return matrices


@st.composite
def drawn_graphs(draw, max_graphs=4, max_nodes=5, max_edges=12, negative=True, mirrored=None, min_graphs=1):
    """Directed multigraphs with loops and isolated nodes, some without nodes or edges.

    Weights are multiples of 1/4, so that sums are exact in every order.
    """
    weighted = draw(st.booleans())
    mirror = draw(st.booleans()) if mirrored is None else mirrored
    weights = st.integers(-8 if negative else 1, 8).map(lambda quarter: quarter / 4)
    sizes = draw(st.lists(st.integers(0, max_nodes), min_size=min_graphs, max_size=max_graphs))
    edges = []
    for size in sizes:
        node = st.integers(0, max(size - 1, 0))
        part = draw(st.lists(st.tuples(node, node, weights), max_size=max_edges if size else 0))
        if mirror:
            part = part + [(v, u, w) for u, v, w in part if u != v]
            part = draw(st.permutations(part))
        if draw(st.booleans()):
            part = sorted(part)
        edges.append(list(part))
    return Drawn(sizes, edges, weighted)
