"""Walk matrices divided by their spectral radius, graph by graph, so that one damping means the same on all of them."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from gape.graph import Graph
from gape.radius import STOCHASTIC, spectral_radii
from gape.walk import WalkMatrix


def walk_radius(graph: Graph, matrix: str) -> Tensor:
    """``[graphs]``: what to divide each graph's walk matrix by: ρ(A), or 1 where that is 0 or known to be at most 1.

    With negative weights ρ(|A|), which is what bounds automata whose transitions have types.

    Example:
        >>> ring = Graph.from_edges([(0, 1), (1, 2), (2, 0)], undirected=True)
        >>> walk_radius(ring, "adjacency"), walk_radius(ring, "random_walk")
        (tensor([2.0000], dtype=torch.float64), tensor([1.], dtype=torch.float64))
    """
    walk = graph.walk(matrix)
    ones = torch.ones(graph.num_graphs, dtype=torch.float64, device=graph.device)
    if (matrix in STOCHASTIC and walk.nonnegative) or graph.num_nodes == 0:
        return ones
    known = torch.zeros_like(ones, dtype=torch.bool)
    if not walk.nonnegative:
        source, target, values = (part.detach() for part in walk.entries())
        if matrix in STOCHASTIC:
            known = ones.scatter_reduce(0, graph.batch[source], values, "amin") >= 0
        graph = Graph(torch.stack([source, target]), graph.num_nodes, edge_weight=values.abs(), ptr=graph.ptr)
        matrix = "adjacency"
    radius = spectral_radii(graph, matrix)
    return torch.where((radius > 0) & ~known, radius, 1.0)


def unit_walk(graph: Graph, matrix: str, radius: Tensor) -> WalkMatrix:
    """The walk matrix of every graph divided by its ``radius`` ``[graphs]``; symmetric where it was."""
    walk = graph.walk(matrix)
    if bool((radius == 1).all()):
        return walk
    # Half on either side: the same vector left and right keeps a symmetric matrix symmetric.
    shrink = radius.rsqrt()[walk.adjacency.batch]
    same = walk.left is walk.right
    left = shrink if walk.left is None else walk.left * shrink
    right = left if same else shrink if walk.right is None else walk.right * shrink
    diagonal = None if walk.diagonal is None else walk.diagonal * shrink.square()
    return replace(walk, name=f"unit {matrix}", left=left, right=right, diagonal=diagonal)
