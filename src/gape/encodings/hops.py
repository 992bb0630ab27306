r"""Hop distances between all pairs of nodes, 64 targets at a time.

Let reach_t(u) be the set of nodes within t steps of u, held as bits. Then reach_t(u) is the union of reach_{t-1}(w)
over the edges u → w, one gather and one segmented OR for all nodes of all graphs, and the distance from u to v is the
number of steps t at which v is not yet in reach_t(u).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

Array = np.ndarray[Any, Any]

# Words gathered at a time.
ROOM = 1 << 22


def hop_distances(edge_index: Array, sizes: Array, unreachable: int) -> Array:
    """``[Σ n²]``: distances from row to column within each graph, graph after graph; at most ``unreachable`` - 1.

    Args:
        edge_index: ``[2, E]``, edges within graphs that lie behind each other.
        sizes: ``[graphs]``, numbers of nodes.
        unreachable: the distance of pairs without a path.
    """
    n, largest = int(sizes.sum()), int(sizes.max(initial=0))
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    local = np.arange(n) - np.repeat(starts, sizes)
    # SciPy's conversion is a counting sort.
    ones = np.ones(edge_index.shape[1], np.int8)
    rows = scipy.sparse.csr_array((ones, (edge_index[0], edge_index[1])), shape=(n, n))
    target = rows.indices
    leaving = np.flatnonzero(np.diff(rows.indptr))
    firsts = rows.indptr[leaving]
    words = max(1, -(-largest // 64))
    step = max(1, ROOM // max(1, len(target)))
    columns = [
        _within(local, first * 64, min(step, words - first), target, leaving, firsts, unreachable)
        for first in range(0, words, step)
    ]
    table = columns[0] if len(columns) == 1 else np.concatenate(columns, 1)
    inside = np.arange(table.shape[1]) < np.repeat(sizes, sizes)[:, None]
    return np.asarray(table[inside])


def _within(
    local: Array, first: int, words: int, target: Array, leaving: Array, firsts: Array, unreachable: int
) -> Array:
    """``[n, 64 · words]``: distances to the nodes number ``first`` and following of each graph."""
    n = len(local)
    reach = np.zeros((n, words), np.uint64)
    own = np.flatnonzero((local >= first) & (local < first + 64 * words))
    bit = (local[own] - first).astype(np.uint64)
    reach[own, (bit >> np.uint64(6)).astype(np.int64)] = np.uint64(1) << (bit & np.uint64(63))
    distance = np.zeros((n, 64 * words), np.uint8)
    steps = 0
    while True:
        missing = np.unpackbits((~reach).view(np.uint8), axis=1, bitorder="little")
        distance += missing
        grown = reach.copy()
        if len(target):
            grown[leaving] |= np.bitwise_or.reduceat(reach[target], firsts, axis=0)
        steps += 1
        if steps == 255:
            distance = distance.astype(np.int32)
        if np.array_equal(grown, reach) or steps >= unreachable:
            break
        reach = grown
    # Not reached after the last step: either never, or farther than the cap tells apart.
    far = missing.astype(bool)
    distance = distance.astype(np.int32) if unreachable > 255 else distance
    if np.array_equal(grown, reach):
        distance[far] = unreachable
        return distance
    distance[far] = unreachable - 1
    return _mark_unreachable(distance, grown, target, leaving, firsts, unreachable)


def _mark_unreachable(
    distance: Array, reach: Array, target: Array, leaving: Array, firsts: Array, unreachable: int
) -> Array:
    """Go on to the end, beyond the cap, only to know which pairs have no path at all."""
    while True:
        grown = reach.copy()
        grown[leaving] |= np.bitwise_or.reduceat(reach[target], firsts, axis=0)
        if np.array_equal(grown, reach):
            break
        reach = grown
    missing = np.unpackbits((~reach).view(np.uint8), axis=1, bitorder="little").astype(bool)
    distance[missing] = unreachable
    return distance
