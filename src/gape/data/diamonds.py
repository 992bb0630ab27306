"""DIAMONDS: detect two directed paths of two steps between the same nodes, in graphs that look alike locally."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, get_args

import numpy as np

from gape._internal.validation import check_one_of
from gape.data.dataset import Task
from gape.data.flat import Array, FlatGraphs
from gape.data.generation import PairedGraphs, check_even, shuffled_pairs

Edges = Literal["directed", "both", "undirected"]

# Direction of the edges around a ring, repeated: +1 along it, -1 against it. On a ring of four nodes the first one is
# a diamond; each node of a ring of eight sees the same around it as a node of a ring of four with the same pattern.
DIAMOND, ZIGZAG = (1, 1, -1, -1), (1, -1, 1, -1)
MAX_TREE_NODES = 2  # on every node of a ring
MIN_OTHER_NODES, MAX_OTHER_NODES = 2, 16


def ring(nodes: int, pattern: tuple[int, ...]) -> Array:
    """Return the directed edges of a ring, ``[nodes, 2]``."""
    here = np.arange(nodes)
    edges = np.stack([here, (here + 1) % nodes], axis=1)
    against = np.resize(pattern, nodes) < 0
    edges[against] = edges[against, ::-1]
    return edges


def draw_tree(generator: np.random.Generator, nodes: int) -> Array:
    """Draw a tree on so many nodes, node 0 among them, with random directions: ``[nodes - 1, 2]``."""
    new = np.arange(1, nodes)
    edges = np.stack([generator.integers(new), new], axis=1)
    return generator.permuted(edges, axis=1)


def draw_pair(generator: np.random.Generator) -> tuple[int, Array, Array]:
    """Draw the number of nodes, the edges of a graph with a diamond, and those of a graph without.

    Both have two rings of four nodes and one of eight, a copy of one tree on every node of a ring, and another tree
    apart. In the first the rings of four are diamonds and the ring of eight is a zigzag; in the second it is the other
    way round. The edges differ only in direction. Node numbers are not shuffled.
    """
    sizes = (4, 4, 8)
    core = sum(sizes)
    tree = draw_tree(generator, 1 + int(generator.integers(MAX_TREE_NODES + 1)))
    # Node i of the tree on ring node v has number v + i · core.
    trees = (tree[None] * core + np.arange(core)[:, None, None]).reshape(-1, 2)
    first = core * (len(tree) + 1)
    other = draw_tree(generator, int(generator.integers(MIN_OTHER_NODES, MAX_OTHER_NODES + 1)))
    same = [trees, other + first]
    starts = np.cumsum((0, *sizes[:-1]))
    graphs = []
    for small, large in ((DIAMOND, ZIGZAG), (ZIGZAG, DIAMOND)):
        rings = [ring(n, small if n == 4 else large) + start for n, start in zip(sizes, starts, strict=True)]
        graphs.append(np.concatenate(rings + same))
    return first + len(other) + 1, graphs[0], graphs[1]


@dataclass(frozen=True)
class Diamonds(PairedGraphs):
    """Detect a diamond: two directed paths of two steps from one node to another. Not in the paper.

    Graphs are acyclic, so no walk returns and the return probabilities of RW are all zero. Graphs of a pair, with
    diamonds and without, differ only in the directions of some edges, and they have the same neighbourhoods in
    the sense of 1-WL, with directions: degrees and runs into a node (GAPE) are the same. A closed walk that goes two
    steps along edges and two steps against them tells the classes apart, if it knows which way it goes.

    Args:
        edges: "directed"; "both", every edge in both directions, of type 0 along it and of type 1 against it; or
            "undirected", the same without types. Without types the graphs of a pair are isomorphic.
        train, val, test: numbers of graphs, even.
        seed: seed of the generator.

    Example:
        >>> dataset = Diamonds(train=4, val=2, test=2).build(cache=False)
        >>> dataset.directed, dataset.targets.tolist()
        (True, [1, 0, 1, 0, 1, 0, 1, 0])
    """

    edges: Edges = "directed"
    train: int = 1_000
    val: int = 400
    test: int = 2_000
    seed: int = 0

    TASK: ClassVar[Task] = Task("diamonds", level="graph", metric="accuracy", num_classes=2, edge_categories=2)

    def __post_init__(self) -> None:
        check_one_of(get_args(Edges), edges=self.edges)
        check_even(self.train, self.val, self.test)

    @property
    def directed(self) -> bool:
        return self.edges != "undirected"

    def generate(self) -> FlatGraphs:
        generator = np.random.default_rng([self.seed, 0xD1])

        def draw() -> list[tuple[int, Array]]:
            nodes, *pair = draw_pair(generator)
            if self.edges == "both":
                pair = [np.concatenate([edges, edges[:, ::-1]]) for edges in pair]
            return [(nodes, edges) for edges in pair]

        graphs = shuffled_pairs(generator, draw, self.pairs)
        if self.edges != "both":
            return graphs
        types = [np.repeat([0, 1], count // 2) for count in graphs.edge_counts]
        return replace(graphs, edge_attr=np.concatenate(types))
