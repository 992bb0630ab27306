"""Random-walk return probabilities: the closed runs of a shift automaton."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gape.encodings.base import NodeEncoding, at_least
from gape.graph.batching import blocks, dense_parts, refuse_above, spread_rows
from gape.graph.graph import Graph
from gape.graph.walk_matrix import WalkMatrix
from gape.linalg.powers import PowerDiagonals

# Entries of the matrices worked on together, measured: fewer cost more calls, more fall out of the cache.
CACHED = 1 << 18


@dataclass(frozen=True)
class RandomWalk(NodeEncoding):
    r"""Probability that a random walk from a node is back after 1, 2, …, ``length`` steps.

    Introduced as an encoding by Dwivedi et al. (2022): [W_vv, (W²)_vv, …] with W = D⁻¹A, D the weighted out-degrees.
    Equal to the closed readout of :meth:`gape.Automaton.shift` on W. Directed graphs: the walk follows the edges.
    A node that a walk cannot leave ends it. For float32 results the powers are taken in float32: a relative error of
    about 1e-6.

    Args:
        length: number of steps, and so of features.
        memory: largest memory, in GiB, for the dense powers of one graph; they fill in whatever the edges.

    Returns, when called on a graph: ``[num_nodes, length]``.

    Example:
        >>> triangle = Graph.from_edges([(0, 1), (1, 2), (2, 0)], undirected=True)
        >>> RandomWalk(length=3)(triangle)[0]
        tensor([0.0000, 0.5000, 0.2500])
    """

    length: int = 20
    memory: float = 4.0

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, length=self.length)

    def parts(self, graph: Graph) -> list[Graph]:
        return dense_parts(graph)

    def rows(self, graph: Graph) -> Tensor:
        largest = int(graph.sizes.max()) if graph.num_graphs else 0
        diagonals = PowerDiagonals(self.length, self.dtype)
        refuse_above(
            self.memory,
            (diagonals.small + diagonals.giant + 3) * largest**2 * self.dtype.itemsize,
            f"RandomWalk on a graph of {largest} nodes, dense after a few steps,",
            "raise memory, or estimate with gape.encodings.estimate_random_walk",
        )
        out = torch.zeros(graph.num_nodes, self.length, dtype=self.dtype, device=graph.device)
        # Weights may be anything in float64; only what they come to is sure to fit into float32.
        walk = graph.walk("adjacency") if graph.edge_weight is None else return_walk(graph)
        for block in blocks(walk, dtype=self.dtype, multiple=4, entries=CACHED):
            symmetric = _normalise(block.matrices) if walk.name == "adjacency" else walk.name == "symmetric"
            spread_rows(out, block, diagonals(block.matrices, symmetric=symmetric))
        return out


def return_walk(graph: Graph) -> WalkMatrix:
    """D⁻¹A, or where that is possible D^(-1/2) A D^(-1/2): similar by a diagonal matrix, so powers return alike."""
    undirected = graph.undirected and bool((graph.adjacency.out_degree >= 0).all())
    return graph.walk("symmetric" if undirected else "random_walk")


def _normalise(edges: Tensor) -> bool:
    """The same in place, for dense matrices ``[B, n, n]`` of edges without weights; whether they are symmetric."""
    degree, symmetric = edges.sum(-1), torch.equal(edges, edges.mT)
    inverse = torch.where(degree == 0, 0.0, 1.0 / degree)
    if symmetric:
        inverse = inverse.sqrt()
        edges.mul_(inverse.unsqueeze(1))
    edges.mul_(inverse.unsqueeze(2))
    return symmetric
