"""Order, symmetry and degrees of a batch of small graphs, by one compiled pass over its edges."""

from __future__ import annotations

from ctypes import c_int64, c_void_p
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from gape._internal.threads import map_threads, num_threads
from gape.native import kernel as find_kernel

# Kernels keep a graph of at most this size in cache; larger ones gain from products over the whole batch instead.
MAX_SMALL_NODES = 4096
# Nodes for which another thread is worth its start.
NODES_PER_THREAD = 8192

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
    codes = map_threads(lambda bounds: kernel(*fixed, *bounds, *results), graph_ranges(ptr))
    return None if any(codes) else Scan(*found)


def small_on_cpu(edge_index: Tensor, ptr: Tensor) -> bool:
    """True if kernels for small graphs can read the tensors, and no graph is too large for them."""
    if edge_index.device.type != "cpu" or ptr.device.type != "cpu":
        return False
    in_rows = edge_index.shape[1] < 2 or edge_index.stride(1) == 1
    return in_rows and ptr.is_contiguous() and int(ptr.diff().max()) <= MAX_SMALL_NODES


def graph_ranges(ptr: Tensor) -> list[tuple[int, int]]:
    """Cut the graphs into ranges of about as many nodes each, a few per thread, so that no thread waits for long."""
    nodes = int(ptr[-1])
    pieces = min(4 * num_threads(), nodes // NODES_PER_THREAD) if num_threads() > 1 else 1
    if pieces < 2:
        return [(0, len(ptr) - 1)]
    cuts = np.searchsorted(ptr.numpy(), np.arange(1, pieces) * (nodes / pieces))
    bounds = sorted({0, *cuts.tolist(), len(ptr) - 1})
    return list(pairwise(bounds))
