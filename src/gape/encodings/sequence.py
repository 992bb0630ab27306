r"""Encodings of sequences: of nodes by their number, whatever the edges (§4.1 of Soga & Chiang, 2023).

The graphs behind them, paths and cycles, have eigenvectors that are cosines and sines, so nothing is decomposed.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from gape.encodings.base import NodeEncoding
from gape.graph.graph import Graph

Shape = Literal["path", "cycle"]


@dataclass(frozen=True)
class SequenceEncoding(NodeEncoding):
    """Row ``i`` of a table for node number ``i`` of each graph: depends on the order of the nodes, and only on it."""

    @abstractmethod
    def table(self, positions: int) -> Tensor:
        """``[positions, …]`` in float64: the encodings of a sequence of that length."""

    def rows(self, graph: Graph) -> Tensor:
        return torch.cat(self._tables(graph)) if self.depends_on_length else self._shared(graph)

    @property
    def depends_on_length(self) -> bool:
        """Whether the encoding of a position changes with the length of its sequence."""
        return False

    def _shared(self, graph: Graph) -> Tensor:
        longest = int(graph.sizes.max())
        return self.table(longest).to(graph.device)[graph.adjacency.local]

    def _tables(self, graph: Graph) -> list[Tensor]:
        known = {n: self.table(n).to(graph.device) for n in set(graph.sizes.tolist())}
        return [known[n] for n in graph.sizes.tolist()]


def sequence_graph(shape: Shape, nodes: int, *, directed: bool = False) -> Graph:
    """A path or a cycle, for encodings that need a graph.

    Example:
        >>> sequence_graph("path", 3, directed=True).edge_index
        tensor([[0, 1],
                [1, 2]])
    """
    last = nodes if shape == "cycle" and nodes > 2 else max(0, nodes - 1)
    edges = [(i, (i + 1) % nodes) for i in range(last)]
    return Graph.from_edges(edges, num_nodes=nodes, undirected=not directed)


def path_eigenpairs(nodes: int, kind: Literal["normalized", "combinatorial"], count: int) -> tuple[Tensor, Tensor]:
    """The ``count`` lowest eigenvalues and unit eigenvectors ``[n, count]`` of a path's Laplacian, ascending.

    Combinatorial: 2 - 2cos(πj/n) and cos(πj(i + ½)/n). Normalised: 1 - cos(πj/(n-1)) and √degree · cos(πji/(n-1)).
    """
    i = torch.arange(nodes, dtype=torch.float64).unsqueeze(1)
    j = torch.arange(count, dtype=torch.float64)
    if kind == "combinatorial" or nodes == 1:
        angle = math.pi * j / max(1, nodes)
        values, vectors = 2.0 - 2.0 * angle.cos(), (angle * (i + 0.5)).cos()
    else:
        angle = math.pi * j / (nodes - 1)
        degree = torch.full((nodes, 1), 2.0, dtype=torch.float64)
        degree[0] = degree[-1] = 1.0
        values, vectors = 1.0 - angle.cos(), degree.sqrt() * (angle * i).cos()
    return values, vectors / torch.linalg.vector_norm(vectors, dim=0)


def cycle_eigenpairs(
    nodes: int, kind: Literal["normalized", "combinatorial"], positions: int, count: int
) -> tuple[Tensor, Tensor]:
    """The ``count`` lowest eigenvalues and the first ``positions`` entries of their eigenvectors, on a cycle.

    Eigenvalue 2 - 2cos(2πj/n) (half of it, normalised) belongs to cos(2πji/n) and sin(2πji/n), in this order; these
    are the columns of the discrete Fourier transform.
    """
    column = torch.arange(count)
    j = ((column + 1) // 2).to(torch.float64)
    angle = 2.0 * math.pi * j / nodes
    turns = torch.arange(positions, dtype=torch.float64).unsqueeze(1) * angle
    vectors = torch.where(column % 2 == 1, turns.cos(), turns.sin())
    vectors[:, 0] = 1.0
    single = (column == 0) | ((2 * j == nodes) & (column % 2 == 1))
    vectors = vectors * torch.where(single, 1.0, j.new_tensor(2.0)).sqrt() / math.sqrt(nodes)
    values = (2.0 - 2.0 * angle.cos()) / (2.0 if kind == "normalized" else 1.0)
    return values, vectors
