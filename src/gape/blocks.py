"""Dense matrices of many small graphs, together with those of the same size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from gape.graph import Graph
from gape.walk import WalkMatrix

# Entries of the matrices that are worked on together: a few of them fit into a processor's cache.
ENTRIES = 1 << 17
# Entries of the matrices that are made from the edges at once.
PART_ENTRIES = 1 << 24


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
    entries: int = ENTRIES,
) -> Iterator[Block]:
    """The walk matrices of a batch, graphs of the same size together, at most about ``entries`` numbers at a time.

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
    starts[order] = squares.cumsum(0) - squares
    # Row u of its graph's matrix begins so that adding the number of v in the batch gives the place of (u, v).
    rows = starts[adjacency.batch] + adjacency.local * rounded[adjacency.batch] - adjacency.ptr[adjacency.batch]
    flat = torch.zeros(int(squares.sum()), dtype=dtype, device=values.device)
    flat.index_add_(0, rows.index_select(0, source).add_(target), values)
    for first, last, n in _runs(rounded[order].tolist(), entries):
        graphs = order[first:last]
        begin = int(starts[graphs[0]])
        slots = torch.arange(n, device=sizes.device)
        nodes = torch.where(slots < sizes[graphs, None], adjacency.ptr[graphs, None] + slots, -1)
        yield Block(graphs, nodes, flat[begin : begin + (last - first) * n * n].view(-1, n, n))


def dense_parts(graph: Graph) -> list[Graph]:
    """The batch in parts whose dense matrices have about ``PART_ENTRIES`` entries, if possible one for each thread."""
    squares = graph.sizes.square().cumsum(0)
    total = int(squares[-1])
    parts = max(-(-total // PART_ENTRIES), min(torch.get_num_threads(), graph.num_graphs))
    if parts == 1:
        return [graph]
    ends = torch.searchsorted(squares, torch.arange(1, parts, device=squares.device) * (total / parts))
    bounds = [0, *sorted({int(end) + 1 for end in ends.tolist()} - {graph.num_graphs}), graph.num_graphs]
    return [graph.slice(first, last) for first, last in pairwise(bounds)]


def _entries(walk: WalkMatrix, values: Tensor | None, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    if values is None and walk.name == "adjacency" and not walk.adjacency.weighted:
        source, target = walk.adjacency.edge_index
        return source, target, torch.ones(1, dtype=dtype, device=source.device).expand(len(source))
    source, target, own = (part.detach() for part in walk.entries())
    return source, target, (own if values is None else values).to(dtype)


def _runs(sizes: list[int], entries: int) -> Iterator[tuple[int, int, int]]:
    """Cut a sorted list into runs of equal entries n with at most ``entries`` / n² members; n = 0 is left out."""
    first = 0
    while first < len(sizes):
        n = sizes[first]
        last = first
        room = max(1, entries // max(1, n * n))
        while last < len(sizes) and sizes[last] == n and last - first < room:
            last += 1
        if n:
            yield first, last, n
        first = last


def spread_rows(out: Tensor, block: Block, rows: Tensor) -> None:
    """Write ``rows`` ``[B, n, …]`` to the rows of ``out`` ``[num_nodes, …]`` that belong to the block's nodes."""
    nodes = block.nodes.flatten()
    rows = rows.flatten(0, 1)
    if bool((block.nodes[:, -1] < 0).any()):
        inside = nodes >= 0
        nodes, rows = nodes[inside], rows[inside]
    out.index_copy_(0, nodes, rows.to(out.dtype))


def refuse_above(limit: float, needed: float, what: str, way_out: str) -> None:
    """Raise before allocating if ``needed`` bytes are more than ``limit`` GiB."""
    if needed > limit * 2**30:
        raise ValueError(f"{what} needs {_gib(needed)} GiB and memory is limited to {limit:g} GiB; {way_out}")


def _gib(count: float) -> str:
    """Bytes in GiB: three digits, and never an exponent.

    >>> _gib(1640 * 2**30), _gib(2**28)
    ('1,640', '0.25')
    """
    size = count / 2**30
    return f"{size:,.0f}" if size >= 100 else f"{size:.3g}"
