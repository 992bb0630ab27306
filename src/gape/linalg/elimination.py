"""Symbolic sparse elimination of many small matrices: minimum-degree order, fill, and a schedule by levels.

Gaussian elimination of a matrix with a symmetric pattern joins all later neighbours of a pivot with each other. The
order matters: molecules are nearly trees, and a minimum-degree order has almost no fill there. Everything here depends
on the pattern only, so one symbolic elimination serves any number of numeric ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gape.linalg.integers import offsets

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Elimination:
    """The filled patterns of a batch of graphs, sorted by graph, then by order of elimination.

    Args:
        sizes: ``[graphs]``, numbers of nodes.
        pivot, target: ``[entries]``, the nodes of each off-diagonal entry; ``pivot`` is eliminated before ``target``.
        rank: ``[nodes]``, the step at which each node of its graph is eliminated.
        level: ``[nodes]``, height in the elimination tree: nodes of one level do not depend on each other.
        entry_ptr: ``[graphs + 1]``, offsets of each graph's entries.
        work: ``[graphs]``, Σ (1 + c)² over the numbers c of entries per pivot: products of one factorisation.
    """

    sizes: Array
    pivot: Array
    target: Array
    rank: Array
    level: Array
    entry_ptr: Array
    work: Array

    @cached_property
    def node_ptr(self) -> Array:
        """``[graphs + 1]``, offsets of each graph's nodes."""
        return offsets(self.sizes)

    def schedule(self, start: int, stop: int) -> Schedule:
        """The steps of the graphs ``start`` to ``stop - 1``, nodes numbered from the first of these graphs."""
        entries = slice(self.entry_ptr[start], self.entry_ptr[stop])
        first, last = self.node_ptr[start], self.node_ptr[stop]
        return Schedule.of(
            self.pivot[entries] - first,
            self.target[entries] - first,
            self.rank[first:last],
            self.level[first:last],
        )


def eliminate(edge_index: Array, sizes: Array) -> Elimination:
    """Eliminate the nodes of every graph, one of smallest degree after another.

    All graphs take their t-th step together. Neighbourhoods are sets of bits, n² / 8 bytes per graph of n nodes.

    Args:
        edge_index: ``[2, E]``, edges within graphs, nodes of all graphs concatenated; direction, loops and repeats do
            not matter.
        sizes: ``[graphs]``, numbers of nodes.

    Example:
        >>> star = np.array([[0, 0, 0], [1, 2, 3]])
        >>> done = eliminate(star, np.array([4]))
        >>> done.rank.tolist(), done.level.tolist(), len(done.pivot)
        ([3, 0, 1, 2], [1, 0, 0, 0], 3)
    """
    graphs, n, largest = len(sizes), int(sizes.sum()), int(sizes.max(initial=0))
    starts = offsets(sizes)[:-1]
    batch = np.repeat(np.arange(graphs), sizes)
    local = np.arange(n) - starts[batch]
    neighbours, degree = _bit_rows(edge_index, local, largest)
    # One row per graph, larger graphs first, so that graphs with steps left are always the first rows.
    by_size = np.argsort(-sizes, kind="stable")
    row = np.empty(graphs, np.int64)
    row[by_size] = np.arange(graphs)
    table = np.full((graphs, largest), np.iinfo(np.int64).max)
    # Among nodes of equal degree the one of the lowest level: flat elimination trees have few levels.
    table[row[batch], local] = degree * (largest + 1)
    first, running = starts[by_size], np.searchsorted(-sizes[by_size], -np.arange(largest))
    rank, level = np.zeros(n, np.int64), np.zeros(n, np.int64)
    pivots, targets = [], []
    for step in range(largest):
        alive = np.arange(running[step])
        best = table[alive].argmin(1)
        table[alive, best] = np.iinfo(np.int64).max
        pivot = first[alive] + best
        rank[pivot] = step
        around = neighbours[pivot]
        owner, bit = np.nonzero(np.unpackbits(around.view(np.uint8), axis=1, bitorder="little"))
        target = first[owner] + bit
        joined = neighbours[target] | around[owner]
        every = np.arange(len(target))
        for gone in (bit, best[owner]):
            joined[every, gone >> 6] &= ~_single_bit(gone)
        neighbours[target] = joined
        level[target] = np.maximum(level[target], level[pivot[owner]] + 1)
        degree = np.unpackbits(joined.view(np.uint8), axis=1).sum(1, dtype=np.int64)
        table[owner, bit] = degree * (largest + 1) + level[target]
        pivots.append(pivot[owner])
        targets.append(target)
    pivot, target = np.concatenate(pivots or [rank[:0]]), np.concatenate(targets or [rank[:0]])
    # By graph, then by step and later node: the order does not depend on what else is in the batch.
    order = np.lexsort((rank[target], rank[pivot], batch[pivot]))
    pivot, target = pivot[order], target[order]
    counts = np.bincount(pivot, minlength=n)
    work = np.bincount(batch, weights=(1.0 + counts) ** 2, minlength=graphs)
    entry_ptr = offsets(np.bincount(batch[pivot], minlength=graphs))
    return Elimination(sizes, pivot, target, rank, level, entry_ptr, work)


@dataclass(frozen=True, eq=False)
class Level:
    """Nodes that are eliminated together: slices of rows, entries and pairs of a :class:`Schedule`."""

    rows: slice
    entries: slice
    pairs: slice


@dataclass(frozen=True, eq=False)
class Schedule:
    """Index arrays of a numeric elimination: rows are nodes sorted by level, entries likewise by pivot.

    Args:
        nodes: ``[n]``, the node of each row.
        pivot, target: ``[entries]``, rows of each off-diagonal entry of the filled pattern.
        first, second: ``[pairs]``, two entries of one pivot p, (p, i) and (p, j) with i eliminated before j.
        joint: ``[pairs]``, the entry (i, j) that they change.
        levels: what is done together, in order.
    """

    nodes: Tensor
    pivot: Tensor
    target: Tensor
    first: Tensor
    second: Tensor
    joint: Tensor
    levels: tuple[Level, ...]

    @classmethod
    def of(cls, pivot: Array, target: Array, rank: Array, level: Array) -> Schedule:
        n = len(rank)
        nodes = np.lexsort((rank, level))
        row = np.empty(n, np.int64)
        row[nodes] = np.arange(n)
        order = np.lexsort((rank[target], row[pivot]))
        pivot, target = row[pivot[order]], row[target[order]]
        # Within a pivot every entry meets all entries before it.
        counts = np.bincount(pivot, minlength=n)
        before = np.arange(len(pivot)) - np.repeat(offsets(counts)[:-1], counts)
        second = np.repeat(np.arange(len(pivot)), before)
        first = np.arange(len(second)) - np.repeat(offsets(before)[:-1] - (np.arange(len(pivot)) - before), before)
        keys = pivot * n + target
        by_key = np.argsort(keys, kind="stable")
        joint = by_key[np.searchsorted(keys, target[first] * n + target[second], sorter=by_key)]
        steps = int(level.max(initial=-1)) + 1
        row_ends = np.cumsum(np.bincount(level, minlength=steps))
        entry_ends = np.searchsorted(pivot, row_ends)
        pair_ends = np.searchsorted(second, entry_ends)
        ends = np.stack([row_ends, entry_ends, pair_ends], 1).tolist()
        levels = [
            Level(*(slice(begin, end) for begin, end in zip(before_, now, strict=True)))
            for before_, now in zip([[0, 0, 0], *ends], ends, strict=False)
        ]
        tensor = torch.from_numpy
        return cls(
            tensor(nodes),
            tensor(pivot),
            tensor(target),
            tensor(first),
            tensor(second),
            tensor(joint),
            tuple(levels),
        )

    @property
    def num_nodes(self) -> int:
        return len(self.nodes)

    @property
    def num_entries(self) -> int:
        return len(self.pivot)


def _bit_rows(edge_index: Array, local: Array, largest: int) -> tuple[Array, Array]:
    """Neighbours of each node as bits, ``[n, words]``, without the node itself, and their numbers ``[n]``."""
    words = max(1, -(-largest // 64))
    bits = np.zeros((len(local), words), np.uint64)
    source, target = edge_index[:, edge_index[0] != edge_index[1]]
    for here, there in ((source, target), (target, source)):
        np.bitwise_or.at(bits, (here, local[there] >> 6), _single_bit(local[there]))
    return bits, np.unpackbits(bits.view(np.uint8), axis=1).sum(1, dtype=np.int64)


def _single_bit(number: Array) -> Array:
    return np.left_shift(np.uint64(1), (number & 63).astype(np.uint64))
