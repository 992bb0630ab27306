"""CYCLES-V: detect a cycle of 6 to 13 nodes, in graphs whose cycle lengths and sizes vary."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import ClassVar, Literal, get_args

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from gape.data.cycles import CYCLE_NODES, draw_disjointness_pair, draw_matched_pair
from gape.data.dataset import Task
from gape.data.flat import Array, FlatGraphs
from gape.data.generation import PairedGraphs, check_even, shuffled_pairs

Variant = Literal["clean", "released", "matched", "matched-released"]
MIN_ADDED_NODES, END_ADDED_NODES = 0, 8  # range of added nodes per cycle in the released script, without the end
_EXTRA_NODES = 20  # clean: attached paths have 0 to 19 nodes more than needed to make the sizes of a pair equal


def cycle_basis(nodes: int, edges: Array) -> list[list[int]]:
    """List the fundamental cycles of a spanning forest, one per edge outside the forest.

    The forest is grown with a stack, as in Paton's algorithm (1969), like in NetworkX. Each cycle starts with the two
    ends of the edge that closes it; the other nodes follow in the order of the cycle. Self-loops and repeated edges
    are not allowed.

    Example:
        >>> cycle_basis(5, np.array([[0, 1], [1, 2], [2, 3], [3, 0], [3, 4]]))
        [[1, 2, 3, 0]]
    """
    neighbours: list[list[int]] = [[] for _ in range(nodes)]
    for u, v in edges.tolist():
        neighbours[u].append(v)
        neighbours[v].append(u)
    parent, depth = [-1] * nodes, [0] * nodes
    for root in range(nodes):
        stack = [root] if parent[root] < 0 else []
        parent[root] = root if stack else parent[root]
        while stack:
            node = stack.pop()
            for other in neighbours[node]:
                if parent[other] < 0:
                    parent[other], depth[other] = node, depth[node] + 1
                    stack.append(other)
    closing = [(u, v) for u, v in edges.tolist() if parent[u] != v and parent[v] != u]
    return [_through_forest(u, v, parent, depth) for u, v in closing]


def _through_forest(start: int, end: int, parent: Sequence[int], depth: Sequence[int]) -> list[int]:
    """Return the nodes of the cycle that an edge closes: ``start``, ``end``, then the path back in the forest."""
    up, down = [end], [start]
    while up[-1] != down[-1]:
        if depth[up[-1]] >= depth[down[-1]]:
            up.append(parent[up[-1]])
        else:
            down.append(parent[down[-1]])
    return [start, *up, *down[-2:0:-1]]


def chords(nodes: int, edges: Array) -> list[int]:
    """Find the edges that close a cycle with earlier edges (by union-find); each cycle of the graph has at least one.

    Returns: positions in ``edges``, in order.

    Example:
        >>> chords(4, np.array([[0, 1], [1, 2], [2, 0], [2, 3]]))
        [2]
    """
    leader = list(range(nodes))

    def find(node: int) -> int:
        while leader[node] != node:
            leader[node] = leader[leader[node]]
            node = leader[node]
        return node

    closing = []
    for position, (u, v) in enumerate(edges.tolist()):
        first, second = find(u), find(v)
        if first == second:
            closing.append(position)
        leader[first] = second
    return closing


def subdivide(edges: Array, row: int, count: int, nodes: int) -> Array:
    """Replace one edge of a graph of ``nodes`` nodes by a path with ``count`` new inner nodes.

    >>> subdivide(np.array([[0, 1], [1, 2], [2, 0]]), row=1, count=1, nodes=3).tolist()
    [[0, 1], [2, 0], [1, 3], [3, 2]]
    """
    start, end = edges[row]
    stops = np.concatenate([[start], nodes + np.arange(count), [end]])
    return np.concatenate([np.delete(edges, row, axis=0), np.stack([stops[:-1], stops[1:]], axis=1)])


def attach_path(edges: Array, node: int, count: int, nodes: int) -> Array:
    """Attach a path of ``count`` new nodes to one node of a graph of ``nodes`` nodes."""
    stops = np.concatenate([[node], nodes + np.arange(count)])
    return np.concatenate([edges, np.stack([stops[:-1], stops[1:]], axis=1)])


def lengthen_as_released(nodes: int, edges: Array, count: int) -> tuple[int, Array]:
    """Lengthen each cycle of a basis by ``count`` nodes as the authors' script does, with its two mistakes.

    In the middle of each cycle an edge is replaced by a path; if an earlier cycle had the same edge, the path is added
    without removing an edge. The script skips a node number after each cycle, and the loader makes a node of every
    number: there is one isolated node per cycle except the last. With ``count`` 1 the new node gets a self-loop.

    Example:
        >>> lengthen_as_released(3, np.array([[0, 1], [1, 2], [2, 0]]), count=1)[1].tolist()
        [[0, 1], [1, 2], [2, 3], [3, 0], [3, 3]]
    """
    cycles = cycle_basis(nodes, edges) if count else []
    kept = dict.fromkeys((u, v) for u, v in edges.tolist())
    added: list[tuple[int, int]] = []
    first_new = nodes
    for cycle in cycles:
        start, end = cycle[len(cycle) // 2], cycle[len(cycle) // 2 + 1]
        kept.pop((start, end), None)
        kept.pop((end, start), None)
        added += pairwise([start, *range(first_new, first_new + count), end])
        if count == 1:
            added.append((first_new, first_new))
        first_new += count + 1
    return first_new - 1 if cycles else nodes, np.array([*kept, *added])


def lengthen(nodes: int, edges: Array, count: int) -> tuple[int, Array]:
    """Lengthen each cycle by ``count`` nodes per edge of it that closes a cycle with earlier edges."""
    for row in reversed(chords(nodes, edges)):
        edges = subdivide(edges, row, count, nodes)
        nodes += count
    return nodes, edges


def _leaf_of_largest(generator: np.random.Generator, nodes: int, edges: Array) -> int:
    """Draw a leaf of the largest component, or any node of it if it has no leaf."""
    matrix = coo_array((np.ones(len(edges)), edges.T), shape=(nodes, nodes))
    component = connected_components(matrix, directed=False)[1]
    largest = component == np.bincount(component).argmax()
    leaves = largest & (np.bincount(edges.ravel(), minlength=nodes) == 1)
    return int(generator.choice(np.flatnonzero(leaves if leaves.any() else largest)))


def _clean(generator: np.random.Generator, low: int, high: int) -> list[tuple[int, Array]]:
    """Lengthen the cycles of both graphs, beyond ``6 + high`` in the second, and attach paths to make sizes equal."""
    counts = generator.integers([low, high], [high, 2 * high])
    pair = []
    drawn = draw_disjointness_pair(generator)
    for (nodes, edges), known, count in zip(drawn, (CYCLE_NODES, 0), counts.tolist(), strict=True):
        # The six edges of the 6-cycle stay first: only the last of them is lengthened, so that it has 6 + count nodes.
        order = np.concatenate([np.arange(known), known + generator.permutation(len(edges) - known)])
        pair.append(lengthen(nodes, edges[order], count))
    size = max(nodes for nodes, _ in pair) + int(generator.integers(_EXTRA_NODES))
    return [
        (size, attach_path(edges, _leaf_of_largest(generator, nodes, edges), size - nodes, nodes))
        for nodes, edges in pair
    ]


def _released(generator: np.random.Generator, low: int, high: int) -> list[tuple[int, Array]]:
    """Change a pair of CYCLES as the authors' script does, see :class:`CyclesV`."""
    positive, negative = draw_disjointness_pair(generator)
    positive = lengthen_as_released(*positive, int(generator.integers(low, high)))
    pair = []
    for (nodes, edges), factor in ((positive, 2.4), (negative, 4.6)):
        tail = int(factor * (low if generator.random() < 0.5 else high))
        leaf = _leaf_of_largest(generator, nodes, edges)
        pair.append((nodes + tail, attach_path(edges, leaf, tail, nodes)))
    return pair


def _leaf(generator: np.random.Generator, edges: Array) -> int:
    """Draw a leaf."""
    return int(generator.choice(np.flatnonzero(np.bincount(edges.ravel()) == 1)))


def _matched(generator: np.random.Generator) -> list[tuple[int, Array]]:
    """Change both graphs of a matched CYCLES pair in the same way, so that sizes and degrees stay equal.

    Puts 0 to 9 nodes on one edge of the cycle (lengths 6..15, and 18..37 in the other class) and attaches a path of
    0 to 19 nodes to a random leaf.
    """
    longer, tail = int(generator.integers(0, 10)), int(generator.integers(0, 20))
    pair = []
    for edges in draw_matched_pair(generator):
        changed = subdivide(edges, row=int(generator.integers(6)), count=longer, nodes=len(edges))
        changed = attach_path(changed, _leaf(generator, changed), tail, nodes=len(changed))
        pair.append((len(changed), changed))
    return pair


def _matched_released(generator: np.random.Generator) -> list[tuple[int, Array]]:
    """Change a matched CYCLES pair as the authors' script does; with one cycle there are no isolated nodes."""
    positive, negative = draw_matched_pair(generator)
    longer = int(generator.integers(0, 8))
    changed = subdivide(positive, row=3, count=longer, nodes=len(positive))
    size = len(changed)
    if longer == 1:  # the script adds a self-loop
        changed = np.concatenate([changed, [[size - 1, size - 1]]])
    tail = 19 * int(generator.integers(2))
    changed = attach_path(changed, _leaf(generator, positive), tail, nodes=size)
    other_tail = 36 * int(generator.integers(2))
    other = attach_path(negative, _leaf(generator, negative), other_tail, nodes=len(negative))
    return [(size + tail, changed), (len(negative) + other_tail, other)]


@dataclass(frozen=True)
class CyclesV(PairedGraphs):
    """Detect a cycle of 6 to 13 nodes in graphs made from CYCLES.

    Args:
        variant: ``"released"`` changes graphs of :class:`~gape.data.Cycles` as the authors' script does. In graphs that
            have a 6-cycle, each cycle of a basis is lengthened by m nodes, ``low <= m < high``, and a path of
            ``2.4 low`` or ``2.4 high`` nodes is attached; in the others, a path of ``4.6 low`` or ``4.6 high`` nodes.
            The script's mistakes are kept: with m > 0 and c cycles there are c - 1 isolated nodes, which no graph of
            the other class has, and with m = 1 the new nodes have self-loops. The label is that of the CYCLES graph;
            cycles of the other class (8 nodes or more) are not lengthened. ``"clean"`` has no isolated nodes and no
            self-loops: the 6-cycle is lengthened by m nodes, all cycles of the other class have more than ``6 + high``
            nodes, and attached paths make the sizes of a pair equal. As in CYCLES, graphs with a short cycle have more
            edges on average. ``"matched"`` and ``"matched-released"`` are made from ``Cycles(variant="matched")``:
            the first has cycles of 6 to 15 nodes against 18 or more, with equal sizes and degrees in each pair; the
            second applies the script to these graphs of one cycle, so that the classes differ in size and no node is
            isolated.
        low, high: range of m for ``"released"`` and ``"clean"``. The released script has 0 and 8. The file that the
            paper used has isolated nodes in every graph with two cycles or more, so its ``low`` was above 0.
        train, val, test: numbers of graphs, even; the paper used 200 / 1,000 / 10,000.
        seed: seed of the generator.

    Example:
        >>> dataset = CyclesV(train=4, val=2, test=2).build(cache=False)
        >>> bool((dataset.node_counts[0::2] == dataset.node_counts[1::2]).all())
        True
    """

    variant: Variant = "clean"
    low: int = MIN_ADDED_NODES
    high: int = END_ADDED_NODES
    train: int = 200
    val: int = 1_000
    test: int = 10_000
    seed: int = 0

    ORIGIN: ClassVar[str] = "generated (a reconstruction)"
    TASK: ClassVar[Task] = Task("cycles-v", level="graph", metric="accuracy", num_classes=2)

    def __post_init__(self) -> None:
        if self.variant not in get_args(Variant):
            raise ValueError(f"variant must be one of {', '.join(get_args(Variant))}, got {self.variant!r}")
        if not 0 <= self.low < self.high:
            raise ValueError(f"low and high must satisfy 0 <= low < high, got low={self.low} and high={self.high}")
        if self.variant.startswith("matched") and (self.low, self.high) != (MIN_ADDED_NODES, END_ADDED_NODES):
            raise ValueError(
                f"low and high are for variant='clean' and 'released', got variant={self.variant!r} with "
                f"low={self.low} and high={self.high}: leave them out"
            )
        check_even(self.train, self.val, self.test)

    def generate(self) -> FlatGraphs:
        pairs = self.pairs
        if self.variant.startswith("matched"):
            generator = np.random.default_rng([self.seed, 0xC7, 0xF])
            draw = partial(_matched if self.variant == "matched" else _matched_released, generator)
        else:
            generator = np.random.default_rng([self.seed, 0xC6, 0xF])
            draw = partial(_clean if self.variant == "clean" else _released, generator, self.low, self.high)
        return shuffled_pairs(generator, draw, pairs)
