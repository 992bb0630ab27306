"""A batch cut into parts: runs of whole graphs small enough to work on in cache, or graphs of nearly the same size."""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

# A part has at most about so many edges and nodes: a sparse product then stays inside the processor's cache.
# And so many pairs of nodes, padded: dense matrices of its graphs then stay within 256 MB.
PART_EDGES = 3 << 19
PART_NODES = 160_000
PART_PAIRS = 1 << 25
# Entries of a table that are too few to be worth a cut.
FEW_ENTRIES = 1 << 20
# What work of its own for one more group costs, in the n³ of a dense matrix.
GROUP_COST = 2_500_000


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


def even_bounds(sizes: list[int]) -> list[int]:
    """Where each run of graphs begins, and their number, so that a table of a run is not mostly padding.

    A table has a row for each node of the run and a column for each node of its largest graph. It gets no more than
    twice the entries that belong to pairs of nodes, and some that do not count.

    Args:
        sizes: numbers of nodes.

    Example:
        >>> even_bounds([10] * 2000 + [2000] + [1500])
        [0, 2000, 2002]
    """
    bounds, nodes, largest, pairs = [0], 0, 0, 0
    for graph, n in enumerate(sizes):
        nodes, largest, pairs = nodes + n, max(largest, n), pairs + n * n
        if nodes * largest > 2 * pairs + FEW_ENTRIES:
            bounds.append(graph)
            nodes, largest, pairs = n, n, n * n
    return [*bounds, len(sizes)]


def near_sizes(sizes: Tensor) -> list[Tensor]:
    """Which graphs to pad together where work grows with the cube of the largest.

    Of all graphs together and of classes by octaves, halves and quarters of octaves the cheapest.

    Args:
        sizes: ``[graphs]``, numbers of nodes.

    Example:
        >>> [len(group) for group in near_sizes(torch.tensor([10, 33, 11, 34] * 5000))]
        [10000, 10000]
        >>> near_sizes(torch.tensor([10, 40]))
        [tensor([0, 1])]
    """

    def cost(groups: list[Tensor]) -> int:
        return sum(len(group) * int(sizes[group].max()) ** 3 + GROUP_COST for group in groups)

    choices = [[torch.arange(len(sizes), device=sizes.device)]]
    if cost(choices[0]) > 3 * GROUP_COST:
        octave = sizes.clamp(min=1).to(torch.float64).log2()
        classes = [(octave * fineness).floor() for fineness in (1, 2, 4)]
        choices += [[(of == each).nonzero().flatten() for each in torch.unique(of)] for of in classes]
    return min(choices, key=cost)
