"""Fundamental cycles of small undirected graphs, and the edges that close them."""

from collections.abc import Sequence

from gape.data.flat import Array


def cycle_basis(nodes: int, edges: Array) -> list[list[int]]:
    """List the fundamental cycles of a spanning forest, one per edge outside the forest.

    The forest is grown from a stack, as in Paton's algorithm (1969), which NetworkX has. Each cycle starts with the two
    ends of the edge that closes it; the others follow in the order of the cycle. Self-loops and repeated edges are not
    allowed.

    Example:
        >>> import numpy as np
        >>> cycle_basis(5, np.array([[0, 1], [1, 2], [2, 3], [3, 0], [3, 4]]))
        [[1, 2, 3, 0]]
    """
    neighbours: list[list[int]] = [[] for _ in range(nodes)]
    for u, v in edges.tolist():
        neighbours[u].append(v)
        neighbours[v].append(u)
    parent, depth = [-1] * nodes, [0] * nodes
    for root in range(nodes):
        stack = [root] if parent[root] < 0 else []
        parent[root] = root if stack else parent[root]
        while stack:
            node = stack.pop()
            for other in neighbours[node]:
                if parent[other] < 0:
                    parent[other], depth[other] = node, depth[node] + 1
                    stack.append(other)
    closing = [(u, v) for u, v in edges.tolist() if parent[u] != v and parent[v] != u]
    return [_through_forest(u, v, parent, depth) for u, v in closing]


def _through_forest(start: int, end: int, parent: Sequence[int], depth: Sequence[int]) -> list[int]:
    """Nodes of the cycle that an edge closes: ``start``, ``end``, then the way back through the forest."""
    up, down = [end], [start]
    while up[-1] != down[-1]:
        if depth[up[-1]] >= depth[down[-1]]:
            up.append(parent[up[-1]])
        else:
            down.append(parent[down[-1]])
    return [start, *up, *down[-2:0:-1]]


def chords(nodes: int, edges: Array) -> list[int]:
    """Find the edges that close a cycle with edges before them; every cycle of the graph has at least one of these.

    Returns: positions in ``edges``, in order.

    Example:
        >>> import numpy as np
        >>> chords(4, np.array([[0, 1], [1, 2], [2, 0], [2, 3]]))
        [2]
    """
    leader = list(range(nodes))

    def find(node: int) -> int:
        while leader[node] != node:
            leader[node] = leader[leader[node]]
            node = leader[node]
        return node

    closing = []
    for place, (u, v) in enumerate(edges.tolist()):
        first, second = find(u), find(v)
        if first == second:
            closing.append(place)
        leader[first] = second
    return closing
