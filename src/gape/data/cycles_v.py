"""CYCLES-V: does a graph hold a cycle of medium length, when lengths and sizes vary?"""

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import ClassVar, Literal, get_args

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from gape.data.cache import cached
from gape.data.cycle_basis import chords, cycle_basis
from gape.data.dataset import GraphDataset
from gape.data.disjointness import LENGTH, draw_pair
from gape.data.flat import Array, FlatGraphs
from gape.data.pairs import check_even, shuffled_pairs
from gape.data.split import Split
from gape.data.task import Task
from gape.data.unicyclic import draw_matched_pair

Variant = Literal["clean", "released", "matched", "matched-released"]
_LOW, _HIGH = 0, 8  # of the released script
_TAILS = 20  # the clean variant hangs paths of 0 to 19 nodes on both graphs, and what makes their sizes equal


def subdivide(edges: Array, row: int, count: int, nodes: int) -> Array:
    """Put ``count`` new nodes on one edge of a graph of ``nodes`` nodes.

    >>> subdivide(np.array([[0, 1], [1, 2], [2, 0]]), row=1, count=1, nodes=3).tolist()
    [[0, 1], [2, 0], [1, 3], [3, 2]]
    """
    start, end = edges[row]
    stops = np.concatenate([[start], nodes + np.arange(count), [end]])
    return np.concatenate([np.delete(edges, row, axis=0), np.stack([stops[:-1], stops[1:]], axis=1)])


def hang_path(edges: Array, node: int, count: int, nodes: int) -> Array:
    """Append a path of ``count`` new nodes to a node of a graph of ``nodes`` nodes."""
    stops = np.concatenate([[node], nodes + np.arange(count)])
    return np.concatenate([edges, np.stack([stops[:-1], stops[1:]], axis=1)])


def lengthen_as_released(nodes: int, edges: Array, count: int) -> tuple[int, Array]:
    """Lengthen every cycle of a basis by ``count`` nodes as the authors' script does, with its two mistakes.

    In the middle of each cycle an edge is replaced by a path; if a cycle before had the same edge, the path is added
    all the same. The script leaves out a node number after each cycle, and the loader makes a node of every number:
    there is an isolated node for every cycle but the last. With ``count`` 1 the new node gets a self-loop.

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
    """Lengthen every cycle, by ``count`` nodes for each edge of it that closes a cycle with edges before."""
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
    """Lengthen the cycles of both graphs, beyond ``6 + high`` in one, and make their sizes equal with paths."""
    counts = generator.integers([low, high], [high, 2 * high])
    pair = []
    for (nodes, edges), known, count in zip(draw_pair(generator), (LENGTH, 0), counts.tolist(), strict=True):
        # The six edges of the 6-cycle stay first: only the last of them is lengthened, so that it has 6 + count nodes.
        order = np.concatenate([np.arange(known), known + generator.permutation(len(edges) - known)])
        pair.append(lengthen(nodes, edges[order], count))
    size = max(nodes for nodes, _ in pair) + int(generator.integers(_TAILS))
    return [
        (size, hang_path(edges, _leaf_of_largest(generator, nodes, edges), size - nodes, nodes))
        for nodes, edges in pair
    ]


def _released(generator: np.random.Generator, low: int, high: int) -> list[tuple[int, Array]]:
    """Change a pair of CYCLES as the authors' script does: see :class:`CyclesV`."""
    positive, negative = draw_pair(generator)
    positive = lengthen_as_released(*positive, int(generator.integers(low, high)))
    pair = []
    for (nodes, edges), factor in ((positive, 2.4), (negative, 4.6)):
        tail = int(factor * (low if generator.random() < 0.5 else high))
        leaf = _leaf_of_largest(generator, nodes, edges)
        pair.append((nodes + tail, hang_path(edges, leaf, tail, nodes)))
    return pair


def _leaf(generator: np.random.Generator, edges: Array) -> int:
    return int(generator.choice(np.flatnonzero(np.bincount(edges.ravel()) == 1)))


def _matched(generator: np.random.Generator) -> list[tuple[int, Array]]:
    """Both graphs of a matched CYCLES pair get the same treatment, so sizes and degrees stay equal.

    0 to 9 nodes on one edge of the cycle (lengths 6..15, and 18..37 in the other class), then a path of 0 to 19 nodes
    on a random leaf.
    """
    longer, tail = int(generator.integers(0, 10)), int(generator.integers(0, 20))
    pair = []
    for edges in draw_matched_pair(generator):
        changed = subdivide(edges, row=int(generator.integers(6)), count=longer, nodes=len(edges))
        changed = hang_path(changed, _leaf(generator, changed), tail, nodes=len(changed))
        pair.append((len(changed), changed))
    return pair


def _matched_released(generator: np.random.Generator) -> list[tuple[int, Array]]:
    """Apply the authors' script to a matched CYCLES pair: one cycle, so that there are no isolated nodes."""
    positive, negative = draw_matched_pair(generator)
    longer = int(generator.integers(0, 8))
    changed = subdivide(positive, row=3, count=longer, nodes=len(positive))
    size = len(changed)
    if longer == 1:  # the script closes the new node upon itself
        changed = np.concatenate([changed, [[size - 1, size - 1]]])
    tail = 19 * int(generator.integers(2))
    changed = hang_path(changed, _leaf(generator, positive), tail, nodes=size)
    other_tail = 36 * int(generator.integers(2))
    other = hang_path(negative, _leaf(generator, negative), other_tail, nodes=len(negative))
    return [(size + tail, changed), (len(negative) + other_tail, other)]


@dataclass(frozen=True)
class CyclesV:
    """CYCLES with varying lengths: is there a cycle of 6 to 13 nodes?

    Args:
        variant: ``"released"`` changes graphs of :class:`~gape.data.Cycles` as the authors' script does. Every cycle
            of a basis is lengthened by m nodes, ``low <= m < high``, in graphs that have a 6-cycle; then a path of
            ``2.4 low`` or ``2.4 high`` nodes is hung on, in the others one of ``4.6 low`` or ``4.6 high``. Its mistakes
            are kept: with m > 0 and c cycles there are c - 1 isolated nodes, which no graph of the other class has,
            and with m = 1 the new nodes have self-loops. The label is that of the CYCLES graph; cycles of the other
            class (8 nodes or more) are not lengthened. ``"clean"`` has no isolated nodes and no self-loops: the 6-cycle
            is lengthened by m nodes, all cycles of the other class have more than ``6 + high`` nodes, and
            paths make the sizes of the two graphs of a pair equal. As in CYCLES, graphs with a short cycle have more
            edges on average. ``"matched"`` and ``"matched-released"`` are made from ``Cycles(variant="matched")``:
            lengths 6 to 15 against 18 or more, sizes and degrees equal in each pair; and the script applied to
            graphs of one cycle, where size tells much and nothing is isolated.
        low, high: of m, for ``"released"`` and ``"clean"``. The released script has 0 and 8. The file that the paper
            used has isolated nodes in every graph with two cycles or more, so its ``low`` was above 0.
        train, val, test: numbers of graphs, even; the paper used 200 / 1,000 / 10,000.
        seed: of everything random.

    Example:
        >>> dataset = CyclesV(train=4, val=2, test=2).build(cache=False)
        >>> bool((dataset.node_counts[0::2] == dataset.node_counts[1::2]).all())
        True
    """

    variant: Variant = "clean"
    low: int = _LOW
    high: int = _HIGH
    train: int = 200
    val: int = 1_000
    test: int = 10_000
    seed: int = 0

    TASK: ClassVar[Task] = Task("cycles-v", level="graph", metric="accuracy", num_classes=2)

    def __post_init__(self) -> None:
        if self.variant not in get_args(Variant):
            raise ValueError(f"variant must be one of {', '.join(get_args(Variant))}, got {self.variant!r}")
        if not 0 <= self.low < self.high:
            raise ValueError(f"low and high must satisfy 0 <= low < high, got low={self.low} and high={self.high}")
        if self.variant.startswith("matched") and (self.low, self.high) != (_LOW, _HIGH):
            raise ValueError(
                f"low and high are for variant='clean' and 'released', got variant={self.variant!r} with "
                f"low={self.low} and high={self.high}: leave them out"
            )
        check_even(self.train, self.val, self.test)

    def build(self, data_dir: str | Path | None = None, *, cache: bool = True) -> GraphDataset:
        """Generate the set, or read what was generated before. ``data_dir`` is not used."""
        graphs = cached(self, self._generate) if cache else self._generate()
        split = Split.contiguous(self.train, self.val, self.test)
        return GraphDataset(graphs, self.TASK, [split], f"generated (a reconstruction): {self!r}")

    def _generate(self) -> FlatGraphs:
        pairs = (self.train + self.val + self.test) // 2
        if self.variant.startswith("matched"):
            generator = np.random.default_rng([self.seed, 0xC7, 0xF])
            draw = partial(_matched if self.variant == "matched" else _matched_released, generator)
        else:
            generator = np.random.default_rng([self.seed, 0xC6, 0xF])
            draw = partial(_clean if self.variant == "clean" else _released, generator, self.low, self.high)
        return shuffled_pairs(generator, draw, pairs)
