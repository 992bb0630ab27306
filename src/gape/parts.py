"""A batch cut into parts: runs of whole graphs that are small enough to work on in cache."""

import numpy as np
from numpy.typing import NDArray

# A part has at most about so many edges and nodes: a sparse product then stays inside the processor's cache.
# And so many pairs of nodes, padded: dense matrices of its graphs then stay within 256 MB.
PART_EDGES = 3 << 19
PART_NODES = 160_000
PART_PAIRS = 1 << 25


def part_bounds(ptr: NDArray[np.int64], edge_ptr: NDArray[np.int64]) -> list[int]:
    """Where each part begins, in graphs, and the number of graphs: whole graphs, in parts of about the same work.

    Args:
        ptr: ``[graphs + 1]``, where the nodes of each graph begin.
        edge_ptr: ``[graphs + 1]``, where its edges begin.

    Example:
        >>> graphs = np.arange(4)
        >>> part_bounds(100_000 * graphs, 200_000 * graphs)  # two graphs together have more than PART_NODES nodes
        [0, 1, 2, 3]
        >>> part_bounds(10 * graphs, 20 * graphs)
        [0, 3]
    """
    sizes, graphs = np.diff(ptr), len(ptr) - 1
    parts = int(max(np.ceil(edge_ptr[-1] / PART_EDGES), np.ceil(ptr[-1] / PART_NODES), 1))
    parts += parts % 2 if parts > 1 else 0  # an even number shares out well among threads
    most_edges = min(PART_EDGES, int(1.02 * edge_ptr[-1] / parts) + 1)
    most_nodes = min(PART_NODES, int(1.02 * ptr[-1] / parts) + 1)
    bounds = [0]
    while bounds[-1] < graphs:
        start = bounds[-1]
        stop = min(
            int(np.searchsorted(edge_ptr, edge_ptr[start] + most_edges, "right")) - 1,
            int(np.searchsorted(ptr, ptr[start] + most_nodes, "right")) - 1,
        )
        stop = min(max(stop, start + 1), graphs)
        # Stop before the first graph that would pad the others too much, or make dense matrices of all too large.
        largest, count = np.maximum.accumulate(sizes[start:stop]), np.arange(1, stop - start + 1)
        padded = largest * count > 4 * (ptr[start + 1 : stop + 1] - ptr[start]) + 4096
        padded |= largest**2 * count > PART_PAIRS
        if padded.any():
            stop = start + max(1, int(padded.argmax()))
        bounds.append(stop)
    return bounds
