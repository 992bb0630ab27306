"""DIRECTED-CYCLES: is there a directed cycle of four nodes, when the graph without directions does not tell?"""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import numpy as np

from gape.data.cache import cached
from gape.data.dataset import GraphDataset
from gape.data.flat import Array, FlatGraphs
from gape.data.pairs import check_even, shuffled_pairs
from gape.data.split import Split
from gape.data.task import Task

LENGTH = 4  # of the cycle that is looked for
SMALLEST, LARGEST = 12, 20
# Lengths of three paths between nodes 0 and 1. So drawn, a path that leads there has length 1, 2, 3 with probability
# 1/4, 1/2, 1/4 in either class, and so has one that leads back: only a path there and one back, together, tell.
PATHS = ((1, 2, 2), (1, 2, 3), (1, 2, 3), (2, 2, 3))


def draw_core(generator: np.random.Generator) -> tuple[Array, Array]:
    """Three paths between nodes 0 and 1, of which one leads there and two lead back: with a 4-cycle, and without.

    Whichever path leads there, node 0 has one edge out and two in, node 1 has two out and one in, and all others have
    one of each.
    """
    lengths = PATHS[generator.integers(len(PATHS))]
    holds = [any(lengths[there] + lengths[back] == LENGTH for back in {0, 1, 2} - {there}) for there in range(3)]
    first = 2 + np.cumsum([0, *(length - 1 for length in lengths)])  # of the nodes inside each path
    stops = [[0, *range(first[i], first[i + 1]), 1] for i in range(3)]
    cores = []
    for label in (True, False):
        there = generator.choice([i for i in range(3) if holds[i] == label])
        paths = [stops[i] if i == there else stops[i][::-1] for i in range(3)]
        cores.append(np.array([edge for path in paths for edge in pairwise(path)]))
    return cores[0], cores[1]


def draw_pair(generator: np.random.Generator) -> tuple[int, Array, Array]:
    """The number of nodes, and edges of a graph with a directed 4-cycle and of one without.

    Both have the same edges but for their directions, and every node has the same in- and out-degree in both. Node
    numbers are the same in both; shuffle them before use.
    """
    with_cycle, without = draw_core(generator)
    nodes = int(generator.integers(SMALLEST, LARGEST + 1))
    # Trees that lead away from the core: nobody is without an edge in, the leaves are without an edge out.
    new = np.arange(with_cycle.max() + 1, nodes)
    trees = np.stack([generator.integers(new), new], axis=1)
    return nodes, np.concatenate([with_cycle, trees]), np.concatenate([without, trees])


@dataclass(frozen=True)
class DirectedCycles:
    """Is there a directed 4-cycle? Not in the paper, which has no task on directed graphs.

    Graphs come in pairs, with a 4-cycle and without, that differ only in the directions of some edges: every node
    has the same in- and out-degree in both. Three paths make the cycles (of 3, 4 or 5 nodes, two of them
    in each graph), random trees lead away from them. No node is without an edge in, so that a transformer without
    encodings sees the same at every node and scores exactly 50 %; leaves have no edge out, where a walk ends.

    Return probabilities answer the question at once: after four steps they are not zero on a directed 4-cycle and
    nowhere else. Runs into a node (GAPE) tell the node with two edges in, and the model has to find out after how
    many steps that node sees itself again.

    Args:
        symmetrized: store every edge in both directions. Then both graphs of a pair are the same, with different
            labels: no method scores other than 50 % but by chance.
        train, val, test: numbers of graphs, even.
        seed: of everything random.

    Example:
        >>> dataset = DirectedCycles(train=4, val=2, test=2).build(cache=False)
        >>> dataset.targets.tolist()
        [1, 0, 1, 0, 1, 0, 1, 0]
        >>> dataset.directed, DirectedCycles(symmetrized=True, train=4, val=2, test=2).build(cache=False).directed
        (True, False)
    """

    symmetrized: bool = False
    train: int = 200
    val: int = 1_000
    test: int = 10_000
    seed: int = 0

    TASK: ClassVar[Task] = Task("directed-cycles", level="graph", metric="accuracy", num_classes=2)

    def __post_init__(self) -> None:
        check_even(self.train, self.val, self.test)

    def build(self, data_dir: str | Path | None = None, *, cache: bool = True) -> GraphDataset:
        """Generate the set, or read what was generated before. ``data_dir`` is not used."""
        graphs = cached(self, self._generate) if cache else self._generate()
        split = Split.contiguous(self.train, self.val, self.test)
        return GraphDataset(graphs, self.TASK, [split], f"generated: {self!r}", directed=not self.symmetrized)

    def _generate(self) -> FlatGraphs:
        generator = np.random.default_rng([self.seed, 0xD4])

        def draw() -> list[tuple[int, Array]]:
            nodes, *pair = draw_pair(generator)
            return [(nodes, edges) for edges in pair]

        return shuffled_pairs(generator, draw, (self.train + self.val + self.test) // 2)
