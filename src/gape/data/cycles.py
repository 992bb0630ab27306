"""CYCLES: does a graph hold a cycle of six nodes? A reconstruction."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from gape.data.cache import cached
from gape.data.dataset import GraphDataset
from gape.data.flat import Array, FlatGraphs
from gape.data.pairs import check_even, shuffled_pairs
from gape.data.split import Split
from gape.data.task import Task
from gape.data.unicyclic import degree_sequence, unicyclic

LENGTH = 6  # of the cycle that is looked for
OTHER_LENGTHS = (18, 28)  # of the cycle in graphs that do not hold one of six: uniform on this range
SMALLEST, LARGEST = 37, 65
_MEAN, _DEVIATION = 49.0, 4.0
_LEAF_SHARE = (0.05, 0.12)


def draw_size(generator: np.random.Generator) -> int:
    """A number of nodes: normal around 49, rounded, redrawn until it lies in 37..65."""
    while True:
        nodes = round(generator.normal(_MEAN, _DEVIATION))
        if SMALLEST <= nodes <= LARGEST:
            return nodes


def draw_pair(generator: np.random.Generator) -> tuple[Array, Array]:
    """Edges of a graph with a 6-cycle and of one with a longer cycle, of the same size and the same degrees.

    The cycle's edges come first. Node numbers are the same in both: leaves last; shuffle them before use.
    """
    nodes = draw_size(generator)
    leaves = round(nodes * generator.uniform(*_LEAF_SHARE))
    degrees = degree_sequence(generator, nodes, leaves)
    other = int(generator.integers(OTHER_LENGTHS[0], OTHER_LENGTHS[1] + 1))
    return unicyclic(generator, degrees, LENGTH), unicyclic(generator, degrees, other)


@dataclass(frozen=True)
class Cycles:
    """Does the graph hold a 6-cycle? Our reconstruction of a data set whose generator was never published.

    What is known of the original (made for Vignac et al. 2020): two balanced classes, 37 to 65 nodes, 49 on average,
    constant feature 1, and that a transformer without encodings scores exactly 50 %. Ours: connected graphs
    with one cycle and some trees on it, in pairs. Both graphs of a pair have the same number of nodes and
    edges and *the same degrees*; the cycle has six nodes in one and 18 to 28 in the other. So neither
    size, nor density, nor any statistic of the degrees tells the classes apart.

    The share of leaves (5 to 12 %) and the range 18 to 28 are a calibration, not a finding: of six settings tried we
    kept the one whose scores came nearest to the published order. Trials with the paper's kind of model, one seed, 60
    to 150 epochs, 1,000 test graphs, at best validation: no encoding 50.0, GAPE 76.8, LAPE 90.7, RW 100.0
    (published 50.0, 79.0, 97.1, 99.95). So a GAPE score near the published one is no evidence that this is
    the original set; over the six settings GAPE went from 72 to 95, and LAPE from 80 to 96.

    Args:
        train, val, test: numbers of graphs, even; the paper used 200 / 1,000 / 10,000.
        seed: of everything random.

    Example:
        >>> dataset = Cycles(train=4, val=2, test=2).build(cache=False)
        >>> dataset.targets.tolist()
        [1, 0, 1, 0, 1, 0, 1, 0]
        >>> bool((dataset.node_counts[0::2] == dataset.node_counts[1::2]).all())
        True
    """

    train: int = 200
    val: int = 1_000
    test: int = 10_000
    seed: int = 0

    TASK: ClassVar[Task] = Task("cycles", level="graph", metric="accuracy", num_classes=2)

    def __post_init__(self) -> None:
        check_even(self.train, self.val, self.test)

    def build(self, data_dir: str | Path | None = None, *, cache: bool = True) -> GraphDataset:
        """Generate the set, or read what was generated before. ``data_dir`` is not used."""
        graphs = cached(self, self._generate) if cache else self._generate()
        split = Split.contiguous(self.train, self.val, self.test)
        return GraphDataset(graphs, self.TASK, [split], f"generated (a reconstruction): {self!r}")

    def _generate(self) -> FlatGraphs:
        generator = np.random.default_rng([self.seed, 0xC7])

        def draw() -> list[tuple[int, Array]]:
            return [(len(edges), edges) for edges in draw_pair(generator)]  # one cycle: as many edges as nodes

        return shuffled_pairs(generator, draw, (self.train + self.val + self.test) // 2)
