"""Graphs cut into parts for rooted automata: whole graphs with all their roots, or a ball around every root."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gape.graph.batching import Padding, check_memory, class_ranges
from gape.graph.graph import Graph
from gape.linalg.elimination import Elimination, Schedule, eliminate
from gape.linalg.hops import hop_distances
from gape.linalg.integers import offsets, ranges

Array = np.ndarray[Any, Any]

# Numbers in one array of a part, measured: fewer cost more calls, more fall out of the cache.
PART_ELEMENTS = 1 << 20
# Graphs of up to so many nodes have one elimination pattern for all roots, even if a radius leaves nodes out.
MAX_SHARED_PATTERN_NODES = 64
# Roots are padded to a multiple of this, so that graphs of similar sizes share a part.
ROOT_MULTIPLE = 4
# Balls of one part differ in size by less than a quarter.
SIZE_CLASS_OCTAVES = 0.32
# Dense matrices are faster with more edges than this share of n², or more products of a factorisation than this share
# of n³.
MAX_SPARSE_EDGE_SHARE = 1 / 4
MAX_SPARSE_WORK_SHARE = 1 / 8
# Nodes of balls that are searched together, if they are of more than one root.
MAX_SEARCH_BATCH_NODES = 1 << 20
# Nodes of balls that are searched for the largest one: about a second.
MAX_SEARCHED_NODES = 1 << 19
# Products per second on one core, measured, with sparse factorisations and with dense inverses.
SPARSE_PRODUCTS_PER_SECOND = 2e8
DENSE_PRODUCTS_PER_SECOND = 3e9
# Estimated time for one graph, or for one ball, above which it is refused.
MAX_SECONDS = 600.0
# Arrays with a number for every entry and lane that exist at the same time.
LIVE_ARRAYS = 8


@dataclass(frozen=True, eq=False)
class RootedPart:
    """Graphs, or balls cut out of graphs, each with the same number R of roots.

    Args:
        sizes: ``[B]``, numbers of nodes; the nodes of all graphs are concatenated, N together.
        source, target: ``[E]``, edges, no two of them the same, sorted by source and target.
        weight: ``[E]``, A / ρ.
        labels: ``[N, R]``, label of each node for each root of its graph, ``layers`` for nodes left out.
        roots: ``[B, R]``, the row of the result that belongs to each root, -1 for none.
        graphs: ``[B]``, the graph of the batch to which each belongs.
        layers: number of labels that count, L + 1.
        symmetric: whether all matrices are symmetric.
        schedule: of a sparse elimination; ``None`` for dense matrices.
    """

    sizes: Tensor
    source: Tensor
    target: Tensor
    weight: Tensor
    labels: Tensor
    roots: Tensor
    graphs: Tensor
    layers: int
    symmetric: bool
    schedule: Schedule | None

    @property
    def num_nodes(self) -> int:
        return len(self.labels)

    @cached_property
    def batch(self) -> Tensor:
        """``[N]``: the graph of each node, from 0."""
        return torch.repeat_interleave(self.sizes)

    @cached_property
    def local(self) -> Tensor:
        """``[N]``: the number of each node in its graph."""
        return torch.arange(self.num_nodes) - (self.sizes.cumsum(0) - self.sizes)[self.batch]

    @cached_property
    def padding(self) -> Padding:
        return Padding(self)


@dataclass(frozen=True)
class Shape:
    """Sizes that decide how graphs are cut.

    Args:
        layers: number of labels, L + 1.
        machines: number of machines K.
        radius: nodes further away from the root do not exist; ``None`` to keep all.
        dense: dense matrices for all graphs.
        memory: largest memory, in GiB, for one root.
    """

    layers: int
    machines: int
    radius: int | None = None
    dense: bool = False
    memory: float = 4.0

    def labels(self, distance: Array, cap: int) -> Array:
        """Convert distances to labels; the distance ``cap`` means that there is no path."""
        limit = cap - 1 if self.radius is None else self.radius
        return np.where(distance > limit, self.layers, np.minimum(distance, self.layers - 1))

    def bytes_per_root(self, entries: int) -> int:
        """Memory for one root whose ball has that many matrix entries."""
        return 8 * LIVE_ARRAYS * self.machines * entries


@dataclass(frozen=True, eq=False)
class RootedGraphs:
    """Graphs, or balls cut out of them, as sorted edge lists in NumPy.

    Args:
        sizes: ``[B]``, numbers of nodes; N together.
        source, target: ``[E]``, sorted by source, then target; no two the same.
        weight: ``[E]``, A / ρ.
        nodes: ``[N]``, numbers of the nodes in the batch that all this was taken from.
        graphs: ``[B]``, numbers of the graphs there.
        symmetric: whether A is.
    """

    sizes: Array
    source: Array
    target: Array
    weight: Array
    nodes: Array
    graphs: Array
    symmetric: bool

    @classmethod
    def of(cls, graph: Graph, scale: Array, first_node: int = 0, first_graph: int = 0) -> RootedGraphs:
        """All graphs of a batch, weights times ``scale`` ``[graphs]``; parallel edges are added up.

        ``first_node`` and ``first_graph``: where the batch begins in a larger one.
        """
        n = graph.num_nodes
        keys, place = torch.unique(graph.edge_index[0] * n + graph.edge_index[1], return_inverse=True)
        weight = torch.zeros(len(keys), dtype=torch.float64, device=keys.device)
        weight.index_add_(0, place, graph.adjacency.weights.detach())
        source, target = np.divmod(keys.cpu().numpy(), max(n, 1))
        weights = weight.cpu().numpy() * scale[graph.batch.cpu().numpy()[source]]
        nodes, graphs = first_node + np.arange(n), first_graph + np.arange(graph.num_graphs)
        return cls(graph.sizes.cpu().numpy(), source, target, weights, nodes, graphs, graph.undirected)

    @cached_property
    def node_ptr(self) -> Array:
        return offsets(self.sizes)

    @cached_property
    def edge_ptr(self) -> Array:
        return np.searchsorted(self.source, self.node_ptr)

    @cached_property
    def out_ptr(self) -> Array:
        """``[N + 1]``: offsets of the edges that leave each node."""
        return np.searchsorted(self.source, np.arange(len(self.nodes) + 1))

    @property
    def density(self) -> Array:
        """``[B]``: edges in relation to n²."""
        return np.asarray(np.diff(self.edge_ptr) / np.maximum(self.sizes, 1) ** 2)

    def select(self, graphs: Array) -> RootedGraphs:
        """Select graphs by number, in the given order."""
        first, counts = self.edge_ptr[graphs], np.diff(self.edge_ptr)[graphs]
        sizes = self.sizes[graphs]
        edges, nodes = ranges(first, counts), ranges(self.node_ptr[graphs], sizes)
        shift = np.repeat(offsets(sizes)[:-1] - self.node_ptr[graphs], counts)
        return RootedGraphs(
            sizes,
            self.source[edges] + shift,
            self.target[edges] + shift,
            self.weight[edges],
            self.nodes[nodes],
            self.graphs[graphs],
            self.symmetric,
        )

    def by_size(self) -> RootedGraphs:
        """Drop graphs without nodes and sort the others by size, smallest first."""
        order = np.argsort(self.sizes, kind="stable")
        return self.select(order[self.sizes[order] > 0])


def whole_parts(graphs: RootedGraphs, shape: Shape) -> Iterator[RootedPart]:
    """Yield parts of whole graphs, with all their nodes as roots: one elimination pattern for all roots of a graph."""
    for some, elimination in _by_density(graphs, shape):
        largest = int(some.sizes.max())
        check_memory(
            shape.memory,
            8 * largest**2 + shape.bytes_per_root(_most_entries(some, elimination)),
            f"rooted runs on a graph of {largest} nodes, all of them in the ball of each,",
            "set radius, such as radius=2, to cut out a ball around each root, or raise memory",
        )
        check_time(some, elimination, some.sizes * shape.machines, "in the ball of each node", "radius=2")
        # Distances beyond the cap count as cap - 1, which has to exceed the radius.
        cap = max(shape.layers, (shape.radius or 0) + 1) + 1
        labels = shape.labels(hop_distances(np.stack([some.source, some.target]), some.sizes, cap), cap)
        pair_ptr = offsets(some.sizes**2)
        width = -(-some.sizes // ROOT_MULTIPLE) * ROOT_MULTIPLE
        for start, stop, first, last in _pieces(_entries(some, elimination) * shape.machines, width, width):
            sizes = some.sizes[start:stop]
            batch = np.repeat(np.arange(start, stop), sizes)
            node, root = np.arange(len(batch)) - np.repeat(offsets(sizes)[:-1], sizes), np.arange(first, last)
            pair = (pair_ptr[batch] + node)[:, None] + root * some.sizes[batch, None]
            exists = root < some.sizes[batch, None]
            found = np.where(exists, labels[np.where(exists, pair, 0)], shape.layers)
            present = root < sizes[:, None]
            roots = np.where(present, some.nodes[np.where(present, some.node_ptr[start:stop, None] + root, 0)], -1)
            yield _part(some, elimination, start, stop, found, roots, shape)


def ball_parts(graph: RootedGraphs, roots: Array, shape: Shape) -> Iterator[RootedPart]:
    """Yield parts of balls, one around each of these roots of one graph."""
    radius = shape.radius or 0
    found = cut_balls(graph, roots, radius, MAX_SEARCH_BATCH_NODES if len(roots) > 1 else None)
    if found is None:
        for half in np.array_split(roots, 2):
            yield from ball_parts(graph, half, shape)
        return
    balls, distance = found
    labels = np.minimum(distance, shape.layers - 1)
    for some, elimination in _by_density(balls, shape):
        entries = _entries(some, elimination)
        most = int(entries.argmax())
        check_memory(
            shape.memory,
            shape.bytes_per_root(int(entries[most])),
            f"the ball of radius {radius} around node {graph.nodes[roots[some.graphs[most]]]}, "
            f"of {some.sizes[most]} nodes,",
            "choose a smaller radius or fewer machines, or raise memory",
        )
        machines, one = np.full(len(some.sizes), shape.machines), np.ones_like(some.sizes)
        check_time(some, elimination, machines, f"in a ball of radius {radius}", "a smaller one")
        classes = np.floor(np.log2(some.sizes) / SIZE_CLASS_OCTAVES)
        for start, stop, _, _ in _pieces(entries * machines, one, classes):
            of_node = labels[some.nodes[some.node_ptr[start] : some.node_ptr[stop]], None]
            of_root = graph.nodes[roots[some.graphs[start:stop]], None]
            yield _part(some, elimination, start, stop, of_node, of_root, shape, int(graph.graphs[0]))


def cut_balls(
    graph: RootedGraphs, roots: Array, radius: int, most: int | None = None
) -> tuple[RootedGraphs, Array] | None:
    """Cut out the subgraphs of all nodes within ``radius`` steps of each root, and the distance of each of their nodes.

    ``None`` if they have more than ``most`` nodes together.

    Example:
        >>> path = Graph.from_edges([(0, 1), (1, 2), (2, 3)], undirected=True)
        >>> balls, distance = cut_balls(RootedGraphs.of(path, np.ones(1)), np.array([0, 2]), radius=1)
        >>> balls.sizes.tolist(), balls.source.tolist(), balls.target.tolist(), distance.tolist()
        ([2, 3], [0, 1, 2, 3, 3, 4], [1, 0, 3, 2, 4, 3], [0, 1, 1, 0, 1])
    """
    n = len(graph.nodes)
    pairs, distance = _search_balls(graph, roots, radius, most)
    if most is not None and len(pairs) > most:
        return None
    edges, owner = _edges_of(graph.out_ptr, pairs % n)
    wanted = pairs[owner] // n * n + graph.target[edges]
    place = np.searchsorted(pairs, wanted)
    inside = pairs[np.minimum(place, len(pairs) - 1)] == wanted
    balls = RootedGraphs(
        np.bincount(pairs // n, minlength=len(roots)),
        owner[inside],
        place[inside],
        graph.weight[edges[inside]],
        np.arange(len(pairs)),
        np.arange(len(roots)),
        graph.symmetric,
    )
    return balls, distance


def largest_ball(graph: RootedGraphs, radius: int) -> int:
    """Find the node of one graph whose ball has the most nodes.

    A ball has at most as many nodes as there are walks of at most ``radius`` steps from its root. Roots are searched in
    the order of this bound until no other can have a larger ball. After :data:`MAX_SEARCHED_NODES` nodes the search
    ends, with the largest ball so far.

    Example:
        >>> edges = [(0, 1), (0, 2), (0, 3), (4, 5), (5, 6), (6, 7), (7, 8)]
        >>> graph = RootedGraphs.of(Graph.from_edges(edges, undirected=True), np.ones(1))
        >>> largest_ball(graph, radius=1), largest_ball(graph, radius=2)
        (0, 6)
    """
    n = len(graph.nodes)
    walks = bound = np.ones(n)
    for _ in range(radius):
        walks = np.minimum(np.bincount(graph.source, weights=walks[graph.target], minlength=n), n)
        bound = np.minimum(bound + walks, n)
    order = np.argsort(-bound, kind="stable")
    root, largest, first, searched = 0, 0, 0, 0
    while first < n and bound[order[first]] > largest and searched < MAX_SEARCHED_NODES:
        # One root, then as many as before, as far as their balls surely fit.
        roots = order[first : first + max(1, first)]
        roots = roots[: max(1, int((np.cumsum(bound[roots]) <= MAX_SEARCH_BATCH_NODES).sum()))]
        pairs, _ = _search_balls(graph, roots, radius)
        sizes = np.bincount(pairs // n, minlength=len(roots))
        if sizes.max() > largest:
            root, largest = int(roots[sizes.argmax()]), int(sizes.max())
        first, searched = first + len(roots), searched + len(pairs)
    return root


def _search_balls(graph: RootedGraphs, roots: Array, radius: int, most: int | None = None) -> tuple[Array, Array]:
    """Breadth-first search from each root: the nodes of all balls in order, and their distances.

    A node in the ball of ``roots[i]`` is the number i · n + node. The search ends early with more than ``most`` nodes.
    """
    n = len(graph.nodes)
    front = np.arange(len(roots)) * n + roots
    pairs, distance = front, np.zeros(len(roots), np.int64)
    for step in range(1, radius + 1):
        edges, owner = _edges_of(graph.out_ptr, front % n)
        front = np.setdiff1d(front[owner] // n * n + graph.target[edges], pairs)
        pairs, distance = np.append(pairs, front), np.append(distance, np.full(len(front), step))
        if not len(front) or (most is not None and len(pairs) > most):
            break
    order = np.argsort(pairs, kind="stable")
    return pairs[order], distance[order]


def _edges_of(ptr: Array, nodes: Array) -> tuple[Array, Array]:
    """List the edges that leave each of the nodes, and for each edge the position of its node in ``nodes``."""
    counts = ptr[nodes + 1] - ptr[nodes]
    return ranges(ptr[nodes], counts), np.repeat(np.arange(len(nodes)), counts)


def _by_density(graphs: RootedGraphs, shape: Shape) -> Iterator[tuple[RootedGraphs, Elimination | None]]:
    """Split graphs into those for a sparse factorisation, with its pattern, and for dense matrices, smallest first."""
    graphs = graphs.by_size()
    dense = (graphs.density > MAX_SPARSE_EDGE_SHARE) | shape.dense
    while not dense.all():
        sparse = graphs.select(np.flatnonzero(~dense))
        elimination = eliminate(np.stack([sparse.source, sparse.target]), sparse.sizes)
        filled = elimination.work > sparse.sizes**3 * MAX_SPARSE_WORK_SHARE + sparse.sizes
        if not filled.any():
            yield sparse, elimination
            break
        dense[np.flatnonzero(~dense)[filled]] = True
    if dense.any():
        yield graphs.select(np.flatnonzero(dense)), None


def _entries(graphs: RootedGraphs, elimination: Elimination | None) -> Array:
    """``[B]``: numbers that a matrix on each graph is held in."""
    return graphs.sizes**2 if elimination is None else graphs.sizes + 2 * np.diff(elimination.entry_ptr)


def _most_entries(graphs: RootedGraphs, elimination: Elimination | None) -> int:
    return int(_entries(graphs, elimination).max())


def check_time(graphs: RootedGraphs, elimination: Elimination | None, lanes: Array, where: str, radius: str) -> None:
    """Raise if one of the graphs would take more than :data:`MAX_SECONDS`; ``lanes``: matrices on each."""
    if elimination is None:
        seconds = graphs.sizes.astype(float) ** 3 / DENSE_PRODUCTS_PER_SECOND * lanes
    else:
        seconds = elimination.work / SPARSE_PRODUCTS_PER_SECOND * lanes
    if len(seconds) and seconds.max() > MAX_SECONDS:
        raise ValueError(
            f"rooted runs with {graphs.sizes[seconds.argmax()]} nodes {where} would take about "
            f"{seconds.max() / 60:,.0f} minutes for one graph, and {MAX_SECONDS / 60:g} are the limit; set radius, "
            f"such as {radius}, to cut out a ball around each root, or take fewer machines"
        )


def _pieces(entries: Array, roots: Array, classes: Array) -> Iterator[tuple[int, int, int, int]]:
    """Yield first and last graph, first and last root of pieces of about ``PART_ELEMENTS`` numbers.

    Args:
        entries: ``[B]``, numbers per root.
        roots: ``[B]``, the same for all graphs of a class.
        classes: ``[B]``, classes of graphs of similar size.
    """
    for start, stop in class_ranges(classes, entries * roots, PART_ELEMENTS):
        most, each = max(1, PART_ELEMENTS // int(entries[start])), int(roots[start])
        for first in range(0, each, most):
            yield start, stop, first, min(each, first + most)


def _part(
    graphs: RootedGraphs,
    elimination: Elimination | None,
    start: int,
    stop: int,
    labels: Array,
    roots: Array,
    shape: Shape,
    graph: int | None = None,
) -> RootedPart:
    """The graphs ``start`` to ``stop - 1``; ``graph``: the one of the batch from which all were cut."""
    edges, first = slice(graphs.edge_ptr[start], graphs.edge_ptr[stop]), graphs.node_ptr[start]
    of = graphs.graphs[start:stop] if graph is None else np.full(stop - start, graph)
    tensor = torch.from_numpy
    return RootedPart(
        sizes=tensor(graphs.sizes[start:stop]),
        source=tensor(graphs.source[edges] - first),
        target=tensor(graphs.target[edges] - first),
        weight=tensor(graphs.weight[edges]),
        labels=tensor(labels.astype(np.int32)),
        roots=tensor(roots),
        graphs=tensor(of),
        layers=shape.layers,
        symmetric=graphs.symmetric,
        schedule=None if elimination is None else elimination.schedule(start, stop),
    )
