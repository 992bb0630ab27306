"""Cut batches of graphs into parts, group them by size, and pad them to dense blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

if TYPE_CHECKING:
    from gape.graph.graph import Graph
    from gape.graph.walk_matrix import WalkMatrix

# Limits of one part: with so many edges and nodes a sparse product stays in the processor's cache, with so many padded
# pairs of nodes the dense matrices of its graphs stay within 256 MB.
MAX_PART_EDGES = 3 << 19
MAX_PART_NODES = 160_000
MAX_PART_PAIRS = 1 << 25
# Tables below this size are not cut to reduce padding.
MIN_TABLE_ELEMENTS = 1 << 20
# Overhead of one more group, in units of n³ of a dense factorisation.
GROUP_OVERHEAD = 2_500_000


def part_bounds(ptr: NDArray[np.int64], edge_ptr: NDArray[np.int64]) -> list[int]:
    """Return the first graph of each part, then the number of graphs; parts hold whole graphs and about equal work.

    Args:
        ptr: ``[graphs + 1]``, node offsets of the graphs.
        edge_ptr: ``[graphs + 1]``, edge offsets.

    Example:
        >>> graphs = np.arange(4)
        >>> part_bounds(100_000 * graphs, 200_000 * graphs)  # two graphs together have more than MAX_PART_NODES nodes
        [0, 1, 2, 3]
        >>> part_bounds(10 * graphs, 20 * graphs)
        [0, 3]
    """
    sizes, graphs = np.diff(ptr), len(ptr) - 1
    parts = int(max(np.ceil(edge_ptr[-1] / MAX_PART_EDGES), np.ceil(ptr[-1] / MAX_PART_NODES), 1))
    parts += parts % 2 if parts > 1 else 0  # an even number divides well among threads
    most_edges = min(MAX_PART_EDGES, int(1.02 * edge_ptr[-1] / parts) + 1)
    most_nodes = min(MAX_PART_NODES, int(1.02 * ptr[-1] / parts) + 1)
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
        padded |= largest**2 * count > MAX_PART_PAIRS
        if padded.any():
            stop = start + max(1, int(padded.argmax()))
        bounds.append(stop)
    return bounds


def padding_bounds(sizes: list[int]) -> list[int]:
    """Return the first graph of each group, then the number of graphs, such that at most half of a table is padding.

    The table of a group has a row per node and a column per node of its largest graph.

    Args:
        sizes: number of nodes of each graph.

    Example:
        >>> padding_bounds([10] * 2000 + [2000] + [1500])
        [0, 2000, 2002]
    """
    bounds, nodes, largest, pairs = [0], 0, 0, 0
    for graph, n in enumerate(sizes):
        nodes, largest, pairs = nodes + n, max(largest, n), pairs + n * n
        if nodes * largest > 2 * pairs + MIN_TABLE_ELEMENTS:
            bounds.append(graph)
            nodes, largest, pairs = n, n, n * n
    return [*bounds, len(sizes)]


def group_by_size(sizes: Tensor) -> list[Tensor]:
    """Group graphs that are padded together, where work grows with the cube of the largest.

    Take the cheapest of: one group, or size classes of one, half or a quarter octave.

    Args:
        sizes: ``[graphs]``, numbers of nodes.

    Example:
        >>> [len(group) for group in group_by_size(torch.tensor([10, 33, 11, 34] * 5000))]
        [10000, 10000]
        >>> group_by_size(torch.tensor([10, 40]))
        [tensor([0, 1])]
    """

    def cost(groups: list[Tensor]) -> int:
        return sum(len(group) * int(sizes[group].max()) ** 3 + GROUP_OVERHEAD for group in groups)

    choices = [[torch.arange(len(sizes), device=sizes.device)]]
    if cost(choices[0]) > 3 * GROUP_OVERHEAD:
        octave = sizes.clamp(min=1).to(torch.float64).log2()
        classes = [(octave * fineness).floor() for fineness in (1, 2, 4)]
        choices += [[(of == each).nonzero().flatten() for each in torch.unique(of)] for of in classes]
    return min(choices, key=cost)


def size_groups(sizes: Tensor, entries: int) -> list[tuple[Tensor, int]]:
    """Group graphs of similar size, so that the padded n × n matrices of a group have at most ``entries`` entries.

    Args:
        sizes: ``[graphs]``, numbers of nodes. Graphs without nodes are in no group.
        entries: limit per group; a graph that is larger by itself forms its own group.

    Returns:
        For each group the indices of its graphs, largest first and on the CPU, and n, the size of the largest.

    Example:
        >>> size_groups(torch.tensor([2, 0, 5, 3]), entries=30)
        [(tensor([2]), 5), (tensor([3, 0]), 3)]
    """
    ordered, order = sizes.cpu().sort(descending=True, stable=True)
    widths = ordered[ordered > 0].numpy()
    return [(order[first:last], int(widths[first])) for first, last in class_ranges(widths > 0, widths**2, entries)]


def class_ranges(classes: NDArray[Any], entries: NDArray[Any], limit: int) -> Iterator[tuple[int, int]]:
    """Cut graphs into ranges of one class, each with about ``limit`` entries or with one graph: first and last + 1.

    Args:
        classes: ``[graphs]``, graphs that may be together are neighbours and have the same number.
        entries: ``[graphs]``; each graph of a range counts as the first one does.
        limit: per range.

    Example:
        >>> list(class_ranges(np.array([1, 1, 1, 2]), np.array([4, 4, 4, 9]), limit=10))
        [(0, 2), (2, 3), (3, 4)]
    """
    start = 0
    for end in [*(np.flatnonzero(np.diff(classes)) + 1).tolist(), len(classes)]:
        while start < end:
            stop = min(end, start + max(1, limit // max(1, int(entries[start]))))
            yield start, stop
            start = stop


def offsets(counts: Tensor) -> Tensor:
    """Segment offsets (exclusive cumulative sum), like PyG's ``ptr``: ``[segments + 1]`` from ``[segments]`` counts.

    Example:
        >>> offsets(torch.tensor([3, 0, 2]))
        tensor([0, 3, 3, 5])
    """
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def members(ptr: Tensor, segments: Tensor) -> Tensor:
    """List the members of some ``segments``, one after the other: ``ptr[s]`` to ``ptr[s + 1] - 1`` of each.

    Example:
        >>> members(torch.tensor([0, 3, 3, 5]), torch.tensor([2, 0]))
        tensor([3, 4, 0, 1, 2])
    """
    counts = ptr.diff()[segments]
    starts = torch.repeat_interleave(ptr[segments] - offsets(counts)[:-1], counts)
    return starts + torch.arange(len(starts), device=ptr.device)


# Elements of the matrices in one block: a few blocks fit into the processor's cache.
BLOCK_ELEMENTS = 1 << 17
# Elements of the dense matrices that are built from the edges at once.
DENSE_PART_ELEMENTS = 1 << 22
# Graphs of at least so many elements are copied as one slice, others by index_copy.
MIN_COPIED_ELEMENTS = 1 << 12
# Minimum number of parts, so that two threads have work.
MIN_DENSE_PARTS = 2


@dataclass(frozen=True, eq=False)
class Block:
    """Graphs of a batch with (about) the same number of nodes.

    Args:
        graphs: ``[B]``, their numbers in the batch.
        nodes: ``[B, n]``, their nodes; -1 where a graph has fewer.
        matrices: ``[B, n, n]``, zero where a graph has fewer nodes.
    """

    graphs: Tensor
    nodes: Tensor
    matrices: Tensor


def blocks(
    walk: WalkMatrix,
    *,
    values: Tensor | None = None,
    dtype: torch.dtype = torch.float64,
    multiple: int = 1,
    entries: int = BLOCK_ELEMENTS,
) -> Iterator[Block]:
    """Yield the dense walk matrices of a batch, graphs of the same size together, about ``entries`` elements at a time.

    Args:
        values: other values of ``walk.entries()`` than its own.
        dtype: of the matrices.
        multiple: graphs are padded with zeros to a size that is a multiple of this. Keep 1 where padding would
            change the result, as it does for eigenvectors.
    """
    adjacency = walk.adjacency
    source, target, values = _entries(walk, values, dtype)
    sizes = adjacency.sizes
    rounded = (sizes + multiple - 1) // multiple * multiple
    order = torch.argsort(rounded, stable=True)
    squares = rounded[order].square()
    starts = torch.zeros_like(sizes)
    starts[order] = offsets(squares)[:-1]
    # Offset of row u, shifted so that adding the batch-wide number of v gives the position of (u, v).
    rows = starts[adjacency.batch] + adjacency.local * rounded[adjacency.batch] - adjacency.ptr[adjacency.batch]
    flat = torch.zeros(int(squares.sum()), dtype=dtype, device=values.device)
    flat.index_add_(0, rows.index_select(0, source).add_(target), values)
    for first, last in class_ranges(rounded[order].cpu().numpy(), squares.cpu().numpy(), entries):
        graphs = order[first:last]
        begin, n = int(starts[graphs[0]]), int(rounded[graphs[0]])
        if n == 0:
            continue
        slots = torch.arange(n, device=sizes.device)
        nodes = torch.where(slots < sizes[graphs, None], adjacency.ptr[graphs, None] + slots, -1)
        yield Block(graphs, nodes, flat[begin : begin + (last - first) * n * n].view(-1, n, n))


def dense_parts(graph: Graph) -> list[Graph]:
    """Cut a batch into parts of about ``DENSE_PART_ELEMENTS`` dense elements, at least ``MIN_DENSE_PARTS`` if possible.

    The number of threads has no say, since bytes depend on which graphs are computed together.
    """
    squares = graph.sizes.square().cumsum(0)
    total = int(squares[-1])
    parts = max(-(-total // DENSE_PART_ELEMENTS), min(MIN_DENSE_PARTS, graph.num_graphs))
    if parts == 1:
        return [graph]
    ends = torch.searchsorted(squares, torch.arange(1, parts, device=squares.device) * (total / parts))
    bounds = [0, *sorted({int(end) + 1 for end in ends.tolist()} - {graph.num_graphs}), graph.num_graphs]
    return [graph.slice(first, last) for first, last in pairwise(bounds)]


def isolate(graph: Graph, alone: Tensor) -> list[Graph]:
    """Cut a batch so that the graphs marked ``[graphs]`` are by themselves, those between two of them together.

    Example:
        >>> from gape import Graph
        >>> batch = Graph.union(Graph.from_edges([], num_nodes=n) for n in (1, 2, 9, 3))
        >>> [part.sizes.tolist() for part in isolate(batch, batch.sizes > 8)]
        [[1, 2], [9], [3]]
    """
    marked = alone.nonzero().flatten().tolist()
    bounds = sorted({0, graph.num_graphs, *marked, *(i + 1 for i in marked)})
    return [graph] if len(bounds) <= 2 else [graph.slice(first, last) for first, last in pairwise(bounds)]


def _entries(walk: WalkMatrix, values: Tensor | None, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    if values is None and walk.name == "adjacency" and not walk.adjacency.weighted:
        source, target = walk.adjacency.edge_index
        return source, target, torch.ones(1, dtype=dtype, device=source.device).expand(len(source))
    source, target, own = (part.detach() for part in walk.entries())
    return source, target, (own if values is None else values).to(dtype)


def scatter_rows(out: Tensor, block: Block, rows: Tensor) -> None:
    """Write ``rows`` ``[B, n, …]`` of a block to the rows of ``out`` ``[num_nodes, …]``, without padding."""
    nodes = block.nodes.flatten()
    rows = rows.flatten(0, 1)
    if bool((block.nodes[:, -1] < 0).any()):
        inside = nodes >= 0
        nodes, rows = nodes[inside], rows[inside]
    out.index_copy_(0, nodes, rows.to(out.dtype))


def scatter_pairs(out: Tensor, starts: Tensor, block: Block, matrices: Tensor) -> None:
    """Write ``matrices`` ``[B, n, n, …]`` of a block without padding to ``out`` ``[Σ n², …]``.

    Args:
        starts: ``[graphs + 1]``, the offset of each graph's pairs in ``out``.
    """
    rows = matrices.to(out.dtype).flatten(1, 2)
    count = rows.shape[1]
    if count * out[:1].numel() >= MIN_COPIED_ELEMENTS:
        for place, graph in zip(starts[block.graphs].tolist(), rows, strict=True):
            out[place : place + count] = graph
        return
    places = starts[block.graphs, None] + torch.arange(count, device=matrices.device)
    out.index_copy_(0, places.flatten(), rows.flatten(0, 1))


def symmetrised(block: Block, walk: WalkMatrix) -> Tensor:
    """``diag(c) M diag(1/c)`` of a block, symmetric, with c from ``walk.similarity``; its powers have M's diagonals."""
    matrices = block.matrices
    if not walk.symmetric:
        assert walk.similarity is not None
        c = walk.similarity[block.nodes]
        matrices = c.unsqueeze(2) * matrices / c.unsqueeze(1)
    return (matrices + matrices.mT) / 2


class MemoryLimitError(ValueError):
    """Work needs more memory than the user allowed."""


def check_memory(limit: float, needed: float, what: str, way_out: str) -> None:
    """Raise :class:`MemoryLimitError` if ``needed`` bytes exceed ``limit`` GiB; call it before allocating."""
    if needed > limit * 2**30:
        raise MemoryLimitError(f"{what} needs {_gib(needed)} GiB and memory is limited to {limit:g} GiB; {way_out}")


def _gib(count: float) -> str:
    """Format bytes in GiB with three digits and no exponent.

    >>> _gib(1640 * 2**30), _gib(2**28)
    ('1,640', '0.25')
    """
    size = count / 2**30
    return f"{size:,.0f}" if size >= 100 else f"{size:.3g}"


class NodeLayout(Protocol):
    """Node layout that :class:`Padding` needs: ``sizes [graphs]``, and each node's graph and number within it."""

    @property
    def sizes(self) -> Tensor: ...
    @property
    def num_nodes(self) -> int: ...
    @property
    def batch(self) -> Tensor: ...
    @property
    def local(self) -> Tensor: ...


class Padding:
    """Convert between flat ``[n, …]``, all nodes in a row, and padded ``[graphs, n_max, …]``.

    Example:
        >>> from gape import Graph
        >>> padding = Padding(Graph(torch.empty(2, 0, dtype=torch.int64), 3, ptr=torch.tensor([0, 1, 3])).adjacency)
        >>> padding.pad(torch.tensor([1, 2, 3]), fill=-1)
        tensor([[ 1, -1],
                [ 2,  3]])
    """

    def __init__(self, batch: NodeLayout) -> None:
        self.graphs, self.size = len(batch.sizes), int(batch.sizes.max())
        full = self.graphs * self.size == batch.num_nodes
        self._slots = None if full else batch.batch * self.size + batch.local

    def pad(self, x: Tensor, fill: float = 0.0, nodes: Tensor | None = None) -> Tensor:
        """``[n, …]`` to ``[graphs, n_max, …]``; row i of ``x`` is that of node ``nodes[i]`` if they are given."""
        slots = nodes if self._slots is None else self._slots if nodes is None else self._slots[nodes]
        shape = (self.graphs, self.size, *x.shape[1:])
        if slots is None:
            return x.reshape(shape)
        out = x.new_full((self.graphs * self.size, *x.shape[1:]), fill)
        return out.index_copy_(0, slots, x).reshape(shape)

    def unpad(self, x: Tensor) -> Tensor:
        """``[graphs, n_max, …]`` to ``[n, …]``."""
        flat = x.reshape(self.graphs * self.size, *x.shape[2:])
        if self._slots is None:
            return flat
        if flat.shape[1:] == (1,):
            return flat.squeeze(1).index_select(0, self._slots).unsqueeze(1)  # three times faster
        return flat.index_select(0, self._slots)
