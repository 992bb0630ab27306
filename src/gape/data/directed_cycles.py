"""DIRECTED-CYCLES: detect a directed cycle of four nodes that the underlying undirected graph does not show."""

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from gape.data.dataset import Task
from gape.data.flat import Array, FlatGraphs
from gape.data.generation import PairedGraphs, check_even, shuffled_pairs

CYCLE_NODES = 4  # length of the cycle to detect
MIN_NODES, MAX_NODES = 12, 20
# Lengths of three paths between nodes 0 and 1. In both classes, a path from 0 to 1 has length 1, 2, 3 with probability
# 1/4, 1/2, 1/4, and so has a path from 1 to 0: only the two lengths together tell the classes apart.
PATH_LENGTHS = ((1, 2, 2), (1, 2, 3), (1, 2, 3), (2, 2, 3))


def draw_core(generator: np.random.Generator) -> tuple[Array, Array]:
    """Draw three paths between nodes 0 and 1, one from 0 to 1 and two back: with a directed 4-cycle, and without.

    In both cases node 0 has out-degree 1 and in-degree 2, node 1 has out-degree 2 and in-degree 1, and all other nodes
    have in- and out-degree 1.
    """
    lengths = PATH_LENGTHS[generator.integers(len(PATH_LENGTHS))]
    holds = [any(lengths[there] + lengths[back] == CYCLE_NODES for back in {0, 1, 2} - {there}) for there in range(3)]
    first = 2 + np.cumsum([0, *(length - 1 for length in lengths)])  # first inner node of each path
    stops = [[0, *range(first[i], first[i + 1]), 1] for i in range(3)]
    cores = []
    for label in (True, False):
        there = generator.choice([i for i in range(3) if holds[i] == label])
        paths = [stops[i] if i == there else stops[i][::-1] for i in range(3)]
        cores.append(np.array([edge for path in paths for edge in pairwise(path)]))
    return cores[0], cores[1]


def draw_pair(generator: np.random.Generator) -> tuple[int, Array, Array]:
    """Draw the number of nodes, the edges of a graph with a directed 4-cycle, and those of a graph without.

    The edges differ only in direction, and each node has the same in- and out-degree in both graphs. Node numbers are
    not shuffled.
    """
    with_cycle, without = draw_core(generator)
    nodes = int(generator.integers(MIN_NODES, MAX_NODES + 1))
    # Trees directed away from the core: every node has an incoming edge, leaves have no outgoing edge.
    new = np.arange(with_cycle.max() + 1, nodes)
    trees = np.stack([generator.integers(new), new], axis=1)
    return nodes, np.concatenate([with_cycle, trees]), np.concatenate([without, trees])


@dataclass(frozen=True)
class DirectedCycles(PairedGraphs):
    """Detect a directed 4-cycle. Not in the paper, which has no task on directed graphs.

    Graphs come in pairs, with a 4-cycle and without, that differ only in the directions of some edges: each node has
    the same in- and out-degree in both. Three paths form two cycles of 3, 4 or 5 nodes per graph, and random trees are
    directed away from them. Every node has an incoming edge, so that a transformer without encodings sees the same
    at every node and scores exactly 50 %; leaves have no outgoing edge, so walks end there.

    Return probabilities solve the task directly: after four steps they are positive on a directed 4-cycle and zero
    everywhere else. Runs into a node (GAPE) identify the node of in-degree 2, and the model has to learn the number of
    steps after which that node reaches itself.

    Args:
        symmetrized: store each edge in both directions. Then both graphs of a pair are isomorphic and have different
            labels, so that every method scores 50 % up to chance.
        train, val, test: numbers of graphs, even.
        seed: seed of the generator.

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

    @property
    def directed(self) -> bool:
        return not self.symmetrized

    def generate(self) -> FlatGraphs:
        generator = np.random.default_rng([self.seed, 0xD4])

        def draw() -> list[tuple[int, Array]]:
            nodes, *pair = draw_pair(generator)
            return [(nodes, edges) for edges in pair]

        return shuffled_pairs(generator, draw, self.pairs)
