r"""Hop distances between all pairs of nodes, 64 targets at a time.

Let reach_t(u) be the set of nodes within t steps of u, held as bits. Then reach_t(u) is the union of reach_{t-1}(w)
over the edges u → w, one gather and one segmented OR for all nodes of all graphs, and the distance from u to v is the
number of steps t at which v is not yet in reach_t(u). On graphs with long paths that would be too many steps for all
pairs; there the few pairs that are reached at a time are followed one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

# Words gathered at a time.
ROOM = 1 << 22
# Up to so many nodes a table of all pairs sorts the edges faster than sorting does.
TABLE_NODES = 2048
# Steps for all pairs at once; few graphs are so long.
LEVELS = 64


def distance_type(unreachable: int) -> type[np.signedinteger[Any]]:
    """Of distances that may be ``unreachable``."""
    return np.int32 if unreachable < 2**31 else np.int64


def hop_distances(edge_index: Array, sizes: Array, unreachable: int) -> Array:
    """``[Σ n²]``: distances from row to column within each graph, graph after graph; at most ``unreachable`` - 1.

    Works on tables with a row for each node and as many columns as the largest graph has nodes.

    Args:
        edge_index: ``[2, E]``, edges within graphs that lie behind each other.
        sizes: ``[graphs]``, numbers of nodes.
        unreachable: the distance of pairs without a path.
    """
    n, largest = int(sizes.sum()), int(sizes.max(initial=0))
    if n == 0:
        return np.zeros(0, np.uint8)
    first = np.repeat(np.cumsum(sizes) - sizes, sizes)
    inside = np.arange(largest) < np.repeat(sizes, sizes)[:, None]
    edges = _Edges.of(edge_index, first, largest)
    words = -(-largest // 64)
    step = max(1, ROOM // max(1, len(edges.target)))
    tables = [
        _distances(edges, np.arange(n) - first, inside[:, 64 * w : 64 * (w + step)], 64 * w, unreachable)
        for w in range(0, words, step)
    ]
    table = tables[0] if len(tables) == 1 else np.concatenate(tables, 1)
    return np.asarray(table[inside])


@dataclass(frozen=True, eq=False)
class _Edges:
    """Targets of all edges sorted by source, where those of each node begin, and how many they are.

    Every node has an edge to itself. ``table`` ``[n, largest]`` has the same, if there is room for it.
    """

    target: Array
    begin: Array
    degree: Array
    table: Array | None

    @classmethod
    def of(cls, edge_index: Array, first: Array, largest: int) -> _Edges:
        n, (source, target), table = len(first), edge_index, None
        if largest <= TABLE_NODES:
            # Place (u, v) in a table of n rows; reading it row by row sorts the edges.
            row = np.arange(n) * largest - first
            table = np.zeros((n, largest), bool)
            flat = table.reshape(-1)
            flat[row[source] + target] = True
            flat[row + np.arange(n)] = True
            degree = np.add.reduce(table, 1, dtype=np.int64)
            target = np.flatnonzero(flat) - np.repeat(row, degree)
        else:
            source, target = np.append(source, np.arange(n)), np.append(target, np.arange(n))
            target = target[np.argsort(source, kind="stable")]
            degree = np.bincount(source, minlength=n)
        return cls(target, np.cumsum(degree) - degree, degree, table)

    def reversed(self) -> _Edges:
        """The edges the other way round."""
        source = np.repeat(np.arange(len(self.degree)), self.degree)
        degree = np.bincount(self.target, minlength=len(self.degree))
        order = np.argsort(self.target, kind="stable")
        return _Edges(source[order], np.cumsum(degree) - degree, degree, None)

    def spread(self, reach: Array) -> Array:
        """What is within one step more."""
        if reach.shape[1] == 1:
            return np.bitwise_or.reduceat(reach[:, 0].take(self.target), self.begin)[:, None]
        return np.asarray(np.bitwise_or.reduceat(reach.take(self.target, 0), self.begin, axis=0))


def _distances(edges: _Edges, local: Array, inside: Array, first: int, unreachable: int) -> Array:
    """``[n, columns]``: distances to the nodes number ``first`` and following of each graph."""
    n, columns = inside.shape
    wide = distance_type(unreachable)
    # A graph has no more nodes there: reached from the start, so that nobody waits for them.
    start = np.ones((n, -(-columns // 64) * 64), bool)
    start[:, :columns] = ~inside
    own = np.flatnonzero((local >= first) & (local < first + columns))
    start[own, local[own] - first] = True
    reach = np.packbits(start, axis=1, bitorder="little").view(np.uint64)
    near = None
    if edges.table is not None:
        start[:, :columns] |= edges.table[:, first : first + columns]
        near = np.packbits(start, axis=1, bitorder="little").view(np.uint64)
    counter = _Counter()
    for steps in range(1, LEVELS + 1):
        missing = ~reach
        if not missing.any():
            break
        grown = near if steps == 1 and near is not None else edges.spread(reach)
        if np.array_equal(grown, reach):
            break
        if steps < unreachable:
            counter.add(missing)
        reach = grown
    else:
        # A long way to go: from here on few pairs are reached at a time, so these are followed one by one.
        new = _bits(reach & missing, columns).view(bool)
        far = _bits(missing, columns).view(bool)
        return _follow(edges.reversed(), counter.total((n, columns)).astype(wide), far, new, unreachable)
    distance = counter.total((n, columns))
    if missing.any():
        distance = distance.astype(wide)
        distance[_bits(missing, columns).view(bool)] = unreachable
    return distance


class _Counter:
    """One counter for each bit of an array of words, held as planes of binary digits."""

    def __init__(self) -> None:
        self.planes: list[Array] = []

    def add(self, ones: Array) -> None:
        """Count one more where there is a one."""
        carry = ones
        for i, plane in enumerate(self.planes):
            self.planes[i], carry = plane ^ carry, plane & carry
        if carry.any():
            self.planes.append(carry)

    def total(self, shape: tuple[int, int]) -> Array:
        """The counts, at most 255."""
        out = np.zeros(shape, np.uint8)
        for i, plane in enumerate(self.planes):
            digits = _bits(plane, shape[1])
            out += np.left_shift(digits, i, out=digits)
        return out


def _bits(words: Array, columns: int) -> Array:
    return np.unpackbits(words.view(np.uint8), axis=1, count=columns, bitorder="little")


def _follow(back: _Edges, distance: Array, missing: Array, new: Array, unreachable: int) -> Array:
    """Go on, against the edges, from pairs that were ``new`` in step ``LEVELS``; what stays missing has no path."""
    columns, steps = missing.shape[1], LEVELS
    missing = missing & ~new
    node, column = np.nonzero(new)
    while len(node):
        steps += 1
        count = back.degree[node]
        place = np.arange(count.sum()) + np.repeat(back.begin[node] - (np.cumsum(count) - count), count)
        pairs = np.unique(back.target[place] * columns + np.repeat(column, count))
        node, column = np.divmod(pairs, columns)
        fresh = missing[node, column]
        node, column = node[fresh], column[fresh]
        missing[node, column] = False
        distance[node, column] = min(steps, unreachable - 1)
    distance[missing] = unreachable
    return distance
