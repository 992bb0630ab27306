"""Steps of walks on a graph on disk whose rows are split over processes."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gape.graph.spectral_radius import STOCHASTIC
from gape.native import kernel
from gape.scale.disk_graph import DiskGraph
from gape.scale.ranks import Ranks

# Entries that NumPy gathers at a time.
NUMPY_ENTRIES = 1 << 20
# Rows of float32 whose scalar product is taken at a time, in float64.
DOT_ROWS = 1 << 16
# Half a unit in the last place of 1 in float32, and its smallest number.
ROUNDING_FLOAT32, SMALLEST_FLOAT32 = 2.0**-24, 2.0**-149
_SIGNATURE = (*[ctypes.c_int64] * 5, *[ctypes.c_void_p] * 5)


@dataclass(frozen=True)
class RowProduct:
    """``Aᵀ x`` in the rows ``first … last``, by several threads with equally many edges each.

    Sums are in float64 and in the order of the edges, so they do not depend on ``first``, ``last`` and the threads.

    Args:
        graph: the graph on disk.
        first, last: the rows.
        threads: their number; ``None`` for PyTorch's.
    """

    graph: DiskGraph
    first: int
    last: int
    threads: int | None = None

    def __call__(self, x: NDArray[Any], out: NDArray[Any]) -> NDArray[Any]:
        """Write the product with ``x`` ``[nodes, m]`` to ``out`` ``[last - first, m]``, of the same type."""
        threads = self.threads or torch.get_num_threads()
        bounds = self.graph.rows_by_edges(threads, self.first, self.last)
        compiled = kernel("pull_f32" if x.dtype == np.float32 else "pull_f64", *_SIGNATURE)
        assert x.flags.c_contiguous
        assert out.flags.c_contiguous
        assert x.dtype == out.dtype

        def part(i: int) -> None:
            first, last = bounds[i], bounds[i + 1]
            y = out[first - self.first : last - self.first]
            if compiled is None:
                _numpy_product(self.graph, first, last, x, y)
                return
            g = self.graph
            weights = None if g.weights is None else g.weights.ctypes.data
            arrays = (g.offsets.ctypes.data, g.columns.ctypes.data, weights, x.ctypes.data, y.ctypes.data)
            if compiled(first, last, len(x), len(g.columns), x.shape[1], *arrays):
                raise g.damaged()

        if threads == 1:
            part(0)
        else:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(part, range(threads)))
        return out


def _numpy_product(graph: DiskGraph, first: int, last: int, x: NDArray[Any], out: NDArray[Any]) -> None:
    parts = max(1, int(graph.offsets[last] - graph.offsets[first]) // NUMPY_ENTRIES)
    bounds = graph.rows_by_edges(parts, first, last)
    for low, high in pairwise(bounds):
        offsets = graph.offsets[low : high + 1]
        entries = slice(int(offsets[0]), int(offsets[-1]))
        columns = graph.columns[entries]
        if len(columns) and not 0 <= int(columns.min()) <= int(columns.max()) < len(x):
            raise graph.damaged()
        found = x[columns].astype(np.float64)
        if graph.weights is not None:
            found *= graph.weights[entries, None]
        rows = out[low - first : high - first]
        rows[:] = 0.0
        # reduceat has no empty segments.
        filled = np.flatnonzero(np.diff(offsets))
        if len(filled):
            rows[filled] = np.add.reduceat(found, offsets[filled] - offsets[0], axis=0)


# Walk matrices that divide by the degrees of the sources, and of the targets; symmetric ones by roots of both.
BY_OUT_DEGREE, BY_IN_DEGREE = ("random_walk", "symmetric"), ("random_walk_in", "symmetric")
MATRICES = ("adjacency", "random_walk", "random_walk_in", "symmetric")

Array = NDArray[np.float64]


class SplitWalk:
    """One step along the edges, ``Mᵀ x`` with M = diag(l) A diag(r), on the rows of this rank.

    A step has one product and one exchange of x. Rows are split by edges.

    Args:
        graph: the graph on disk.
        matrix: adjacency, random_walk, random_walk_in or symmetric, see :mod:`gape.graph.walk_matrix`.
        ranks: the processes.
        columns: of x.
        dtype: of x, float64 or float32.
        threads: of each process; ``None`` for PyTorch's.
    """

    def __init__(
        self,
        graph: DiskGraph,
        matrix: str,
        ranks: Ranks,
        *,
        columns: int = 1,
        dtype: str = "float64",
        threads: int | None = None,
    ) -> None:
        if matrix not in MATRICES:
            raise ValueError(f"a graph on disk is walked by one of {', '.join(MATRICES)}, got matrix={matrix!r}")
        self.graph, self.matrix, self.ranks, self.columns = graph, matrix, ranks, columns
        self.bounds = graph.rows_by_edges(ranks.size)
        self.first, self.last = self.bounds[ranks.rank], self.bounds[ranks.rank + 1]
        self.product = RowProduct(graph, self.first, self.last, threads)
        self.dtype = np.dtype(dtype)
        self.steps = 0
        self._whole = np.zeros((graph.nodes, columns), dtype=self.dtype)
        root = matrix == "symmetric"
        self._left = _inverse(graph.out_degree[self.first : self.last], root) if matrix in BY_OUT_DEGREE else None
        self._right = _inverse(self.in_degree(), root) if matrix in BY_IN_DEGREE else None

    @property
    def rows(self) -> int:
        return self.last - self.first

    def in_degree(self) -> Array:
        """``[rows]``: sum of the weights of the edges into each node of this rank."""
        if self.graph.weights is None:
            return np.diff(self.graph.offsets[self.first : self.last + 1]).astype(np.float64)
        ones = np.ones((self.graph.nodes, 1))
        return self.product(ones, np.empty((self.rows, 1)))[:, 0]

    def step(self, x: NDArray[Any], out: NDArray[Any] | None = None) -> NDArray[Any]:
        """Compute the rows ``[rows, columns]`` of Mᵀx of this rank from those of x."""
        mine = self._whole[self.first : self.last]
        np.multiply(x, 1.0 if self._left is None else self._left[:, None], out=mine, casting="same_kind")
        self.ranks.exchange(self._whole, self.bounds)
        out = self.product(self._whole, np.empty_like(x) if out is None else out)
        if self._right is not None:
            np.multiply(out, self._right[:, None], out=out, casting="same_kind")
        self.steps += 1
        return out

    def norm_bound(self) -> float:
        """An upper bound of ρ from the degrees: the smaller of the largest row and column sums."""
        if self.matrix in STOCHASTIC:
            return 1.0
        largest = self.ranks.max(_largest(self.in_degree()), _largest(self.graph.out_degree[self.first : self.last]))
        return min(largest)

    def rounding(self) -> tuple[float, float]:
        """Bound how far rounding to float32 moves a step of nonnegative counts; zeros for float64.

        The first number is relative to each count of the result. The second is added to each count: what is lost below
        the range of float32. Sums and factors are in float64, whose rounding is left out.
        """
        if self.dtype == np.float64:
            return 0.0, 0.0
        # Counts are rounded after the product and after each factor; a thousandth more covers products of the errors.
        roundings = 1 + (self._left is not None) + (self._right is not None)
        into = _largest(self.in_degree())
        factor = 1.0 if self._right is None else _largest(self._right)
        largest_into, largest_factor = self.ranks.max(into, factor)
        lost = SMALLEST_FLOAT32 * (1.0 + (largest_into + 1.0) * largest_factor)
        return 1.001 * roundings * ROUNDING_FLOAT32, lost

    def dot(self, *pairs: tuple[NDArray[Any], NDArray[Any]]) -> list[float]:
        return self.ranks.sum(*(_dot(a, b) for a, b in pairs))


def _dot(a: NDArray[Any], b: NDArray[Any]) -> float:
    """The scalar product in float64."""
    if a.dtype == np.float64:
        return float(np.vdot(a, b))
    parts = (slice(first, first + DOT_ROWS) for first in range(0, len(a), DOT_ROWS))
    return sum(float(np.vdot(a[rows].astype(np.float64), b[rows].astype(np.float64))) for rows in parts)


def _largest(x: Array) -> float:
    return float(x.max()) if len(x) else 0.0


def _inverse(degree: Array, root: bool) -> Array:
    """Return 1/degree, or its square root; 0 for degree 0."""
    out = np.zeros(len(degree))
    np.divide(1.0, degree, out=out, where=degree > 0)
    return np.sqrt(out) if root else out
