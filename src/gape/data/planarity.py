"""Is it planar? Exactly, for many small graphs at once: cheap proofs first, the full test for what is left."""

import numpy as np
from numpy.typing import NDArray

from gape.data.flat import Array


def kernel(adjacency: Array) -> Array:
    """Take away nodes of degree 0 and 1 and bridge nodes of degree 2, until every node left has degree 3 or more.

    None of these steps changes planarity (a parallel edge that a bridge would make is simply merged).

    Args:
        adjacency: ``[batch, n, n]`` bool, symmetric, zero diagonal.

    Returns: ``[batch, n, n]`` bool; nodes that are gone have empty rows.

    >>> ring = np.roll(np.eye(5, dtype=bool), 1, axis=1)
    >>> kernel((ring | ring.T)[None]).any()
    np.False_
    """
    left: Array = adjacency.copy()
    degree = left.sum(axis=2)
    while True:
        low = (degree == 1) | (degree == 2)
        graph = np.flatnonzero(low.any(axis=1))
        if len(graph) == 0:
            return left
        node = low[graph].argmax(axis=1)  # one node of every graph that has one
        row = left[graph, node]
        first = row.argmax(axis=1)
        row[np.arange(len(graph)), first] = False
        second = row.argmax(axis=1)
        two = degree[graph, node] == 2
        left[graph, node, :] = False
        left[graph, :, node] = False
        degree[graph, node] = 0
        degree[graph, first] -= 1
        graph, first, second = graph[two], first[two], second[two]
        degree[graph, second] -= 1
        new = ~left[graph, first, second]
        left[graph, first, second] = True
        left[graph, second, first] = True
        degree[graph[new], first[new]] += 1
        degree[graph[new], second[new]] += 1


def _too_many_edges(left: Array) -> NDArray[np.bool_]:
    """Proof that a kernel is not planar, from its numbers of nodes n, edges m, triangles and 4-cycles.

    A plane drawing has f ≥ m − n + 2 faces. Their lengths sum to 2m; each is at least 3; at most one face is
    bounded by each triangle and by each 4-cycle (the kernel has no component that is such a cycle). So
    2m ≥ 4f − t₃ and 2m ≥ 5f − 2t₃ − t₄, next to Euler's m ≤ 3n − 6.
    """
    matrix = left.astype(np.float32)
    degree = matrix.sum(axis=2)
    nodes, edges = (degree > 0).sum(axis=1), degree.sum(axis=1) / 2
    walks = matrix @ matrix
    triangles = (walks * matrix).sum(axis=(1, 2)) / 6
    squares = ((walks * walks).sum(axis=(1, 2)) - 2 * (degree**2).sum(axis=1) + 2 * edges) / 8
    faces = edges - nodes + 2
    proof: NDArray[np.bool_] = (edges > 3 * nodes - 6) | (2 * edges < 4 * faces - triangles)
    proof |= 2 * edges < 5 * faces - 2 * triangles - squares
    proof &= nodes >= 3
    return proof


def are_planar(adjacency: Array) -> NDArray[np.bool_]:
    """Whether each graph of a batch is planar.

    Args:
        adjacency: ``[batch, n, n]`` bool, symmetric, zero diagonal.

    Returns: ``[batch]`` bool. NetworkX's left-right test decides wherever counting does not.

    >>> complete = ~np.eye(5, dtype=bool)
    >>> one_edge_less = complete.copy()
    >>> one_edge_less[0, 1] = one_edge_less[1, 0] = False
    >>> are_planar(np.stack([complete, one_edge_less]))
    array([False,  True])
    """
    try:
        import networkx
    except ImportError as error:
        raise ImportError("PLANAR needs networkx: pip install 'gape[bench]'") from error

    left = kernel(adjacency)
    nodes = left.any(axis=2).sum(axis=1)
    planar: NDArray[np.bool_] = nodes <= 4
    open_cases = ~planar
    open_cases[open_cases] = ~_too_many_edges(left[open_cases])
    for index in np.flatnonzero(open_cases):
        graph = networkx.Graph(np.argwhere(np.triu(left[index])).tolist())
        planar[index] = networkx.check_planarity(graph)[0]
    return planar
