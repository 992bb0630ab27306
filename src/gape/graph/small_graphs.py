"""Batches of small graphs and their walk matrix, as the compiled kernels take them."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import c_double, c_void_p
from typing import Any

from torch import Tensor

from gape._internal.threads import map_threads
from gape.graph.scan import graph_ranges
from gape.graph.walk_matrix import WalkMatrix


class Batch(ctypes.Structure):
    """The graphs and their walk matrix, as ``batch`` in ``native/small_graphs.h``."""

    _fields_ = [
        *((name, c_void_p) for name in ("ptr", "edge_ptr", "source", "target", "weight", "left", "right", "diagonal")),
        ("sign", c_double),
        ("chosen", c_void_p),
    ]


class SmallGraphs:
    """A walk matrix on small graphs, as the kernels take it. Keeps the tensors alive to which they get pointers.

    Args:
        walk: of graphs that were scanned, see :mod:`gape.graph.scan`.
        chosen: ``[graphs]``, which graphs; all if ``None``.
    """

    def __init__(self, walk: WalkMatrix, chosen: Tensor | None = None) -> None:
        adjacency, scan = walk.adjacency, walk.adjacency.scan
        assert scan is not None
        weight = None if adjacency.edge_weight is None else adjacency.weights.detach().contiguous()
        vectors = [None if x is None else x.detach().contiguous() for x in (walk.left, walk.right, walk.diagonal)]
        source, target = adjacency.edge_index
        self._alive = (adjacency.ptr, scan.edge_ptr, source, target, weight, *vectors)
        self._chosen = None if chosen is None else chosen.contiguous()
        self.batch = Batch(*map(address, self._alive), walk.sign, address(self._chosen))
        self.ptr = adjacency.ptr

    def run(self, kernel: Callable[..., int], *arguments: Any) -> int:
        """Call a kernel for all graphs; the largest number it returns."""
        batch = ctypes.byref(self.batch)
        codes = map_threads(lambda bounds: kernel(batch, *bounds, *arguments), graph_ranges(self.ptr))
        if min(codes) < 0:
            raise MemoryError(f"no memory for the kernel on graphs of up to {int(self.ptr.diff().max())} nodes")
        return max(codes)


def address(tensor: Tensor | None) -> int | None:
    """Pointer to the data of a tensor."""
    return None if tensor is None else tensor.data_ptr()
