"""CYCLES-V: does a graph hold a cycle of medium length, when lengths and sizes vary?"""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from gape.data.cache import cached
from gape.data.cycles import draw_pair
from gape.data.dataset import GraphDataset
from gape.data.flat import Array, FlatGraphs
from gape.data.pairs import check_even, shuffled_pairs
from gape.data.split import Split
from gape.data.task import Task


def subdivide(edges: Array, row: int, count: int) -> Array:
    """Put ``count`` new nodes on one edge. There must be as many nodes as edges (one cycle, connected).

    >>> subdivide(np.array([[0, 1], [1, 2], [2, 0]]), row=1, count=1).tolist()
    [[0, 1], [2, 0], [1, 3], [3, 2]]
    """
    start, end = edges[row]
    stops = np.concatenate([[start], len(edges) + np.arange(count), [end]])
    return np.concatenate([np.delete(edges, row, axis=0), np.stack([stops[:-1], stops[1:]], axis=1)])


def hang_path(edges: Array, node: int, count: int, nodes: int) -> Array:
    """Append a path of ``count`` new nodes to a node of a graph of ``nodes`` nodes."""
    stops = np.concatenate([[node], nodes + np.arange(count)])
    return np.concatenate([edges, np.stack([stops[:-1], stops[1:]], axis=1)])


def _leaf(generator: np.random.Generator, edges: Array) -> int:
    return int(generator.choice(np.flatnonzero(np.bincount(edges.ravel()) == 1)))


def _clean(generator: np.random.Generator) -> list[tuple[int, Array]]:
    """Both graphs of a CYCLES pair get the same treatment, so sizes and degrees stay equal.

    0 to 9 nodes on one edge of the cycle (lengths 6..15, and 18..37 in the other class), then a path of 0 to 19 nodes
    on a random leaf.
    """
    longer, tail = int(generator.integers(0, 10)), int(generator.integers(0, 20))
    pair = []
    for edges in draw_pair(generator):
        changed = subdivide(edges, row=int(generator.integers(6)), count=longer)
        changed = hang_path(changed, _leaf(generator, changed), tail, nodes=len(changed))
        pair.append((len(changed), changed))
    return pair


def _as_released(generator: np.random.Generator) -> list[tuple[int, Array]]:
    """What the published script does, its two mistakes included: see :class:`CyclesV`."""
    positive, negative = draw_pair(generator)
    longer = int(generator.integers(0, 8))
    changed = subdivide(positive, row=3, count=longer)
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
    """CYCLES with varying lengths: is there a cycle of 6 to 15 nodes?

    Args:
        variant: ``"clean"`` stretches the cycle of *both* graphs of a CYCLES pair by the same 0 to 9 nodes and hangs
            a path of the same 0 to 19 nodes on both, so that cycles have 6 to 15 nodes against 18 or more
            and nothing else differs: sizes and degrees are equal within a pair, there are no self-loops
            and no isolated nodes. ``"as-released"`` does what the published script does to our CYCLES graphs:
            6-cycles are stretched by 0 to 7 nodes (so 6 to 13, not 15) and a path of 0 or 19 nodes is hung on,
            the others get a path of 0 or 36, so that size tells much; where one node is put in, it gets a
            self-loop. (Its other mistake, isolated nodes, needs two cycles; our graphs have one.)
        train, val, test: numbers of graphs, even; the paper used 200 / 1,000 / 10,000.
        seed: of everything random.

    Example:
        >>> dataset = CyclesV(train=4, val=2, test=2).build(cache=False)
        >>> len(dataset), dataset.num_classes
        (8, 2)
    """

    variant: Literal["clean", "as-released"] = "clean"
    train: int = 200
    val: int = 1_000
    test: int = 10_000
    seed: int = 0

    TASK: ClassVar[Task] = Task("cycles-v", level="graph", metric="accuracy", num_classes=2)

    def __post_init__(self) -> None:
        if self.variant not in ("clean", "as-released"):
            raise ValueError(f"variant must be 'clean' or 'as-released', got {self.variant!r}")
        check_even(self.train, self.val, self.test)

    def build(self, data_dir: str | Path | None = None, *, cache: bool = True) -> GraphDataset:
        """Generate the set, or read what was generated before. ``data_dir`` is not used."""
        graphs = cached(self, self._generate) if cache else self._generate()
        split = Split.contiguous(self.train, self.val, self.test)
        return GraphDataset(graphs, self.TASK, [split], f"generated (a reconstruction): {self!r}")

    def _generate(self) -> FlatGraphs:
        generator = np.random.default_rng([self.seed, 0xC7, 0xF])
        draw = _clean if self.variant == "clean" else _as_released
        return shuffled_pairs(generator, partial(draw, generator), (self.train + self.val + self.test) // 2)
