r"""Hop distances between all pairs of nodes, by breadth-first search on bit sets of 64 targets.

Let reach_t(u) be the set of nodes within t steps of u, stored as bits. Then reach_t(u) is the union of reach_{t-1}(w)
over the edges u → w, one gather and one segmented OR for all nodes of all graphs, and the distance from u to v is the
number of t for which v is not in reach_t(u). On graphs with long paths this would take too many steps over all pairs;
after ``MAX_BIT_STEPS`` the few pairs reached per step are followed individually (an ordinary breadth-first search).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gape.linalg.integers import ranges

Array = np.ndarray[Any, Any]

# Words gathered at once.
GATHERED_WORDS = 1 << 22
# Up to this many nodes, a dense table of the edges sorts them faster than a sort.
MAX_TABLE_NODES = 2048
# Steps on bit sets; few graphs have longer shortest paths.
MAX_BIT_STEPS = 64


def distance_type(unreachable: int) -> type[np.signedinteger[Any]]:
    """Return the integer type of distances up to ``unreachable``."""
    return np.int32 if unreachable < 2**31 else np.int64


def hop_distances(edge_index: Array, sizes: Array, unreachable: int) -> Array:
    """Compute distances ``[Σ n²]`` from row to column within each graph; longer ones count as ``unreachable`` - 1.

    Uses tables with a row per node and as many columns as the largest graph has nodes.

    Args:
        edge_index: ``[2, E]``, edges of a batch of graphs.
        sizes: ``[graphs]``, numbers of nodes.
        unreachable: distance of pairs without a path.
    """
    n, largest = int(sizes.sum()), int(sizes.max(initial=0))
    if n == 0:
        return np.zeros(0, np.uint8)
    first = np.repeat(np.cumsum(sizes) - sizes, sizes)
    inside = np.arange(largest) < np.repeat(sizes, sizes)[:, None]
    edges = _Edges.of(edge_index, first, largest)
    words = -(-largest // 64)
    step = max(1, GATHERED_WORDS // max(1, len(edges.target)))
    tables = [
        _distances(edges, np.arange(n) - first, inside[:, 64 * w : 64 * (w + step)], 64 * w, unreachable)
        for w in range(0, words, step)
    ]
    table = tables[0] if len(tables) == 1 else np.concatenate(tables, 1)
    return np.asarray(table[inside])


@dataclass(frozen=True, eq=False)
class _Edges:
    """Edges in CSR form, with a self-loop at every node: targets sorted by source, offsets and out-degrees.

    ``table`` ``[n, largest]`` is the same as a dense mask, ``None`` for large graphs.
    """

    target: Array
    offset: Array
    degree: Array
    table: Array | None

    @classmethod
    def of(cls, edge_index: Array, first: Array, largest: int) -> _Edges:
        n, (source, target), table = len(first), edge_index, None
        if largest <= MAX_TABLE_NODES:
            # Mark (u, v) in a table of n rows; reading it row by row sorts the edges.
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
        """Reverse all edges."""
        source = np.repeat(np.arange(len(self.degree)), self.degree)
        degree = np.bincount(self.target, minlength=len(self.degree))
        order = np.argsort(self.target, kind="stable")
        return _Edges(source[order], np.cumsum(degree) - degree, degree, None)

    def spread(self, reach: Array) -> Array:
        """Extend the reachable sets by one step."""
        if reach.shape[1] == 1:
            return np.bitwise_or.reduceat(reach[:, 0].take(self.target), self.offset)[:, None]
        return np.asarray(np.bitwise_or.reduceat(reach.take(self.target, 0), self.offset, axis=0))


def _distances(edges: _Edges, local: Array, inside: Array, first: int, unreachable: int) -> Array:
    """Compute distances ``[n, columns]`` to the nodes number ``first``, ``first + 1``, … of each graph."""
    n, columns = inside.shape
    wide = distance_type(unreachable)
    # Padding counts as reached from the start, so that the search does not wait for it.
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
    for steps in range(1, MAX_BIT_STEPS + 1):
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
        # Long paths: from here on few pairs are reached per step, so they are followed individually.
        new = _bits(reach & missing, columns).view(bool)
        far = _bits(missing, columns).view(bool)
        return _follow(edges.reversed(), counter.total((n, columns)).astype(wide), far, new, unreachable)
    distance = counter.total((n, columns))
    if missing.any():
        distance = distance.astype(wide)
        distance[_bits(missing, columns).view(bool)] = unreachable
    return distance


class _Counter:
    """Counters for every bit of an array of words, stored as bit planes."""

    def __init__(self) -> None:
        self.planes: list[Array] = []

    def add(self, ones: Array) -> None:
        """Increment the counters of the bits that are set."""
        carry = ones
        for i, plane in enumerate(self.planes):
            self.planes[i], carry = plane ^ carry, plane & carry
        if carry.any():
            self.planes.append(carry)

    def total(self, shape: tuple[int, int]) -> Array:
        """Return the counts, at most 255."""
        out = np.zeros(shape, np.uint8)
        for i, plane in enumerate(self.planes):
            digits = _bits(plane, shape[1])
            out += np.left_shift(digits, i, out=digits)
        return out


def _bits(words: Array, columns: int) -> Array:
    return np.unpackbits(words.view(np.uint8), axis=1, count=columns, bitorder="little")


def _follow(back: _Edges, distance: Array, missing: Array, new: Array, unreachable: int) -> Array:
    """Continue against the edges from pairs first reached (``new``) in step ``MAX_BIT_STEPS``.

    Pairs still missing at the end have no path.
    """
    columns, steps = missing.shape[1], MAX_BIT_STEPS
    missing = missing & ~new
    node, column = np.nonzero(new)
    while len(node):
        steps += 1
        count = back.degree[node]
        place = ranges(back.offset[node], count)
        pairs = np.unique(back.target[place] * columns + np.repeat(column, count))
        node, column = np.divmod(pairs, columns)
        fresh = missing[node, column]
        node, column = node[fresh], column[fresh]
        missing[node, column] = False
        distance[node, column] = min(steps, unreachable - 1)
    distance[missing] = unreachable
    return distance
