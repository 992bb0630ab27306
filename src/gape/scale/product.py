"""Products of rows of a graph on disk with a few dense columns: compiled, or by NumPy without the library."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gape.native import kernel
from gape.scale.disk_graph import DiskGraph

# Entries that NumPy gathers at a time.
NUMPY_ENTRIES = 1 << 20
_SIGNATURE = (*[ctypes.c_int64] * 3, *[ctypes.c_void_p] * 5)


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
            compiled(first, last, x.shape[1], *arrays)

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
        found = x[graph.columns[entries]].astype(np.float64)
        if graph.weights is not None:
            found *= graph.weights[entries, None]
        rows = out[low - first : high - first]
        rows[:] = 0.0
        # reduceat has no empty segments.
        filled = np.flatnonzero(np.diff(offsets))
        if len(filled):
            rows[filled] = np.add.reduceat(found, offsets[filled] - offsets[0], axis=0)
