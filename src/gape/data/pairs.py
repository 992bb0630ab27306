"""Data sets whose graphs come in pairs, one of each class."""

from collections.abc import Callable, Sequence

import numpy as np

from gape.data.flat import Array, FlatGraphs


def check_even(train: int, val: int, test: int) -> None:
    """Graphs come in pairs, so the parts must have even sizes."""
    for name, count in (("train", train), ("val", val), ("test", test)):
        if count < 2 or count % 2:
            raise ValueError(f"{name} must be an even number of graphs (they come in pairs), got {count}")


def shuffled_pairs(
    generator: np.random.Generator, draw: Callable[[], Sequence[tuple[int, Array]]], pairs: int
) -> FlatGraphs:
    """Pairs of a graph of class 1 and one of class 0, each as drawn (number of nodes, edges) but numbered at random."""
    sizes, edges = [], []
    for _ in range(pairs):
        for nodes, graph in draw():
            sizes.append(nodes)
            edges.append(generator.permutation(nodes)[graph])
    return FlatGraphs.from_edges(sizes, edges, y=np.tile([1, 0], pairs))
