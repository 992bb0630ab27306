"""Small graphs: facts from one pass over the edges, batches as compiled kernels take them, and one as a matrix."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from ctypes import c_double, c_int64, c_void_p
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gape._internal.threads import num_threads, share_kernel
from gape.native import kernel as find_kernel

if TYPE_CHECKING:
    from gape.graph.graph import Graph
    from gape.graph.walk_matrix import WalkMatrix

#: Largest graph for :func:`single_matrix`: beyond it the work outweighs the calls.
MAX_SINGLE_NODES = 64
# Kernels keep a graph of at most this size in cache; larger ones gain from products over the whole batch instead.
MAX_SMALL_NODES = 4096
# Minimum nodes per kernel call; calls per thread.
MIN_RANGE_NODES, RANGES_PER_THREAD = 8192, 12

# What a kernel returns for an edge that is not within its graph, as in native/small_graphs.h.
EDGE_OUTSIDE = -2

_ARGUMENTS = (c_void_p, c_void_p, c_int64, c_void_p, c_int64, c_int64, c_int64, *[c_void_p] * 5)


@dataclass(frozen=True, eq=False)
class Scan:
    """Facts about a batch whose edges are stored graph by graph.

    Args:
        edge_ptr: ``[graphs + 1]``, edge offsets of the graphs.
        sorted_by_source: ``[graphs]``, whether its edges are.
        symmetric: ``[graphs]``, whether A = Aᵀ, edge weights left out.
        most_out, most_in: ``[graphs]``, the largest number of edges out of and into a node.
    """

    edge_ptr: Tensor
    sorted_by_source: Tensor
    symmetric: Tensor
    most_out: Tensor
    most_in: Tensor

    @cached_property
    def all_sorted(self) -> bool:
        return bool(self.sorted_by_source.all())

    @cached_property
    def all_symmetric(self) -> bool:
        return bool(self.symmetric.all())

    def slice(self, start: int, stop: int) -> Scan:
        """The facts about graphs ``start`` to ``stop - 1``."""
        return Scan(
            self.edge_ptr[start : stop + 1] - self.edge_ptr[start],
            *(values[start:stop] for values in (self.sorted_by_source, self.symmetric, self.most_out, self.most_in)),
        )


def scan(edge_index: Tensor, ptr: Tensor) -> Scan | None:
    """Scan a batch; ``None`` without the kernel, for large graphs, and if an edge is not within its graph's edges."""
    kernel = find_kernel("scan", *_ARGUMENTS)
    if kernel is None or not small_on_cpu(edge_index, ptr):
        return None
    source, target = edge_index
    graphs = len(ptr) - 1
    edge_ptr = torch.empty(graphs + 1, dtype=torch.int64)
    sorted_by_source, symmetric = torch.empty(2, graphs, dtype=torch.bool)
    most_out, most_in = torch.empty(2, graphs, dtype=torch.float64)
    found = (edge_ptr, sorted_by_source, symmetric, most_out, most_in)
    fixed = (source.data_ptr(), target.data_ptr(), edge_index.shape[1], ptr.data_ptr(), graphs)
    results = [x.data_ptr() for x in found]
    codes = share_kernel(lambda bounds: kernel(*fixed, *bounds, *results), graph_ranges(ptr))
    return None if any(codes) else Scan(*found)


def small_on_cpu(edge_index: Tensor, ptr: Tensor) -> bool:
    """True if kernels for small graphs can read the tensors, and no graph is too large for them."""
    if edge_index.device.type != "cpu" or ptr.device.type != "cpu":
        return False
    in_rows = edge_index.shape[1] < 2 or edge_index.stride(1) == 1
    return in_rows and ptr.is_contiguous() and int(ptr.diff().max()) <= MAX_SMALL_NODES


def graph_ranges(ptr: Tensor) -> list[tuple[int, int]]:
    """Cut the graphs into ranges of about as many nodes each, several per thread, so that no thread waits for long."""
    nodes = int(ptr[-1])
    pieces = min(RANGES_PER_THREAD * num_threads(), nodes // MIN_RANGE_NODES) if num_threads() > 1 else 1
    if pieces < 2:
        return [(0, len(ptr) - 1)]
    cuts = np.searchsorted(ptr.numpy(), np.arange(1, pieces) * (nodes / pieces))
    bounds = sorted({0, *cuts.tolist(), len(ptr) - 1})
    return list(pairwise(bounds))


class BatchPointers(ctypes.Structure):
    """Pointers to the graphs and their walk matrix, as ``batch`` in ``native/small_graphs.h``."""

    _fields_ = [
        *((name, c_void_p) for name in ("ptr", "edge_ptr", "source", "target", "weight", "left", "right", "diagonal")),
        ("sign", c_double),
        ("chosen", c_void_p),
    ]


class SmallGraphs:
    """A walk matrix on small graphs, as the kernels take it. Keeps the tensors alive to which they get pointers.

    Args:
        walk: of graphs that were scanned, see :func:`scan`.
        chosen: ``[graphs]``, which graphs; all if ``None``.
    """

    def __init__(self, walk: WalkMatrix, chosen: Tensor | None = None) -> None:
        adjacency, scan = walk.adjacency, walk.adjacency.scan
        assert scan is not None
        weight = None if adjacency.edge_weight is None else adjacency.weights.detach().contiguous()
        vectors = [
            None if x is None else x.detach().double().contiguous() for x in (walk.left, walk.right, walk.diagonal)
        ]
        source, target = adjacency.edge_index
        self._alive = (adjacency.ptr, scan.edge_ptr, source, target, weight, *vectors)
        self._chosen = None if chosen is None else chosen.contiguous()
        self.batch = BatchPointers(*map(address, self._alive), walk.sign, address(self._chosen))
        self.ptr = adjacency.ptr

    def run(self, kernel: Callable[..., int], *arguments: Any) -> int:
        """Call a kernel for all graphs; the largest number it returns."""
        batch = ctypes.byref(self.batch)
        codes = share_kernel(lambda bounds: kernel(batch, *bounds, *arguments), graph_ranges(self.ptr))
        if min(codes) == EDGE_OUTSIDE:
            raise IndexError(
                "an edge leaves its graph: edge_index was changed after the graph was made from it; make a new graph"
            )
        if min(codes) < 0:
            # Not left to PyTorch: its padded batches need more memory than a kernel's work space for one graph, and the
            # kernel's other ranges have already written their results.
            raise MemoryError(f"no memory for the kernel on graphs of up to {int(self.ptr.diff().max())} nodes")
        return max(codes)


def address(tensor: Tensor | None) -> int | None:
    """Pointer to the data of a tensor."""
    return None if tensor is None else tensor.data_ptr()


def single_matrix(graph: Graph) -> NDArray[np.float64] | None:
    """Return A ``[n, n]`` of one small graph without weights on the CPU, ``None`` for anything else.

    For the direct path of encodings: PyG's ``transform`` and ``pre_transform`` see one graph at a time. On a molecule a
    NumPy call costs a microsecond, a call of PyTorch several, and the work itself little more, so the general path for
    batches is mostly calls.

    Example:
        >>> from gape import Graph
        >>> single_matrix(Graph.from_edges([(0, 1), (0, 1)]))
        array([[0., 2.],
               [0., 0.]])
    """
    n = graph.num_nodes
    if not 0 < n <= MAX_SINGLE_NODES or graph.num_graphs > 1 or graph.edge_weight is not None:
        return None
    if graph.edge_index.device.type != "cpu":
        return None
    source, target = graph.edge_index.numpy()
    return np.bincount(source * n + target, minlength=n * n).reshape(n, n).astype(np.float64)
