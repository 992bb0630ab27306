"""TYPED-WALKS: detect a closed walk whose edge types spell a word, in graphs that differ only in the types of edges."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from gape.data.dataset import Task
from gape.data.flat import Array, FlatGraphs
from gape.data.generation import PairedGraphs, check_even, shuffled_pairs

TYPES = "abc"  # letters of edge types 0, 1, 2
MIN_NODES, MAX_NODES = 16, 24
MAX_SWAPS = 40  # before another graph is drawn


def draw_colouring(generator: np.random.Generator, nodes: int) -> Array:
    """Draw a cubic graph whose edges have three types, one of each at every node.

    Returns:
        ``[3, nodes]``, the neighbour of each node along the edge of each type.
    """
    while True:
        neighbours = np.empty((len(TYPES), nodes), dtype=np.int64)
        for row in neighbours:
            ends = generator.permutation(nodes).reshape(-1, 2)
            row[ends[:, 0]], row[ends[:, 1]] = ends[:, 1], ends[:, 0]
        if all((neighbours[i] != neighbours[i - 1]).all() for i in range(len(TYPES))):  # no parallel edges
            return neighbours


def swap_types(generator: np.random.Generator, neighbours: Array) -> Array:
    """Exchange two types along one cycle of edges of these types (a Kempe change): the same graph, other types."""
    one, other = generator.choice(len(TYPES), size=2, replace=False)
    changed, node = neighbours.copy(), int(generator.integers(neighbours.shape[1]))
    cycle = [node]
    while (following := int(neighbours[(one, other)[len(cycle) % 2], cycle[-1]])) != node:
        cycle.append(following)
    changed[one, cycle], changed[other, cycle] = neighbours[other, cycle], neighbours[one, cycle]
    return changed


def spells(neighbours: Array, word: str) -> bool:
    """Return True if a closed walk of the graph spells the word. From each node, one walk does."""
    start = np.arange(neighbours.shape[1])
    end = start
    for letter in word:
        end = neighbours[TYPES.index(letter), end]
    return bool((end == start).any())


def draw_pair(generator: np.random.Generator, word: str) -> tuple[Array, Array]:
    """Draw the types of a graph with a closed walk that spells the word, and those of the same graph without one."""
    while True:
        known = draw_colouring(generator, int(2 * generator.integers(MIN_NODES // 2, MAX_NODES // 2 + 1)))
        found: dict[bool, Array] = {}
        for _ in range(MAX_SWAPS):
            found[spells(known, word)] = known
            if len(found) == 2:
                return found[True], found[False]
            known = swap_types(generator, known)


@dataclass(frozen=True)
class TypedWalks(PairedGraphs):
    """Detect a closed walk whose edge types spell a word. Not in the paper, whose automata do not read edge types.

    Graphs come in pairs that differ only in the types of their edges. Every node has one edge of each of three types,
    so types cannot be told by counting them, at a node, in its neighbourhood or in the graph: without types the two
    graphs are isomorphic, and with types 1-WL sees the same at all nodes of both. The word has no two equal letters in
    a row, so a closed walk that spells it goes round a cycle.

    Args:
        word: types of the edges of the closed walk, in order, as letters a, b and c.
        train, val, test: numbers of graphs, even.
        seed: seed of the generator.

    Example:
        >>> dataset = TypedWalks(train=4, val=2, test=2).build(cache=False)
        >>> dataset[0].edge_attr.bincount().tolist() == dataset[1].edge_attr.bincount().tolist()
        True
        >>> TypedWalks(word="aab")
        Traceback (most recent call last):
        ValueError: word must be of letters a, b, c, each unlike the one before, got 'aab'
    """

    word: str = "abacbc"
    train: int = 1_000
    val: int = 400
    test: int = 2_000
    seed: int = 0

    TASK: ClassVar[Task] = Task(
        "typed-walks", level="graph", metric="accuracy", num_classes=2, edge_categories=len(TYPES)
    )

    def __post_init__(self) -> None:
        check_even(self.train, self.val, self.test)
        repeated = any(one == other for one, other in zip(self.word, self.word[1:], strict=False))
        if repeated or set(self.word) - set(TYPES):
            raise ValueError(
                f"word must be of letters {', '.join(TYPES)}, each unlike the one before, got {self.word!r}"
            )
        if len(self.word) < 4 or len(set(self.word)) < 2:
            raise ValueError(f"word must have at least 4 letters, got {self.word!r}")

    def generate(self) -> FlatGraphs:
        generator = np.random.default_rng([self.seed, 0x7E])
        types: list[Array] = []

        def draw() -> list[tuple[int, Array]]:
            pair = []
            for neighbours in draw_pair(generator, self.word):
                kind, node = np.nonzero(neighbours > np.arange(neighbours.shape[1]))  # each edge once
                types.append(kind)
                pair.append((neighbours.shape[1], np.stack([node, neighbours[kind, node]], axis=1)))
            return pair

        graphs = shuffled_pairs(generator, draw, self.pairs)
        return replace(graphs, edge_attr=np.concatenate(types))
