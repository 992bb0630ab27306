"""CYCLES: does a graph hold a cycle of six nodes?"""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from gape.data.cache import cached
from gape.data.dataset import GraphDataset
from gape.data.disjointness import draw_pair
from gape.data.flat import Array, FlatGraphs
from gape.data.pairs import check_even, shuffled_pairs
from gape.data.split import Split
from gape.data.task import Task
from gape.data.unicyclic import draw_matched_pair


@dataclass(frozen=True)
class Cycles:
    """Does the graph hold a 6-cycle? A reconstruction: neither the file nor its generator can be had.

    The original was made by A. Loukas and used by Vignac et al. (2020). What survives of it (sizes, numbers of edges,
    numbers of cycles, scores) fits graphs that ask whether two random sets are disjoint, the construction behind
    Loukas' lower bounds: see :func:`gape.data.disjointness.graph_of_sets`. They have 37 to 65 nodes, several
    components, several cycles and no isolated node. A cycle that is not one of six has eight nodes or more. Graphs
    with a 6-cycle are larger by two nodes on average, and the degrees of the two classes differ. ``docs/cycles.md`` has
    the evidence beside our figures.

    Args:
        variant: ``"disjointness"``, or ``"matched"``: connected graphs with one cycle and trees on it, in pairs of the
            same size and the same degrees; the cycle has six nodes in one and 18 to 28 in the other. That is a harder
            task, which no statistic of sizes or degrees solves. It was our reconstruction before the evidence was
            known, and its two free settings were chosen by scores.
        train, val, test: numbers of graphs, even; the paper used 200 / 1,000 / 10,000.
        seed: of everything random.

    Example:
        >>> dataset = Cycles(train=4, val=2, test=2).build(cache=False)
        >>> dataset.targets.tolist()
        [1, 0, 1, 0, 1, 0, 1, 0]
        >>> int(dataset[0].edge_index[0].bincount(minlength=dataset[0].num_nodes).min())  # no isolated node
        1
    """

    variant: Literal["disjointness", "matched"] = "disjointness"
    train: int = 200
    val: int = 1_000
    test: int = 10_000
    seed: int = 0

    TASK: ClassVar[Task] = Task("cycles", level="graph", metric="accuracy", num_classes=2)

    def __post_init__(self) -> None:
        if self.variant not in ("disjointness", "matched"):
            raise ValueError(f"variant must be 'disjointness' or 'matched', got {self.variant!r}")
        check_even(self.train, self.val, self.test)

    def build(self, data_dir: str | Path | None = None, *, cache: bool = True) -> GraphDataset:
        """Generate the set, or read what was generated before. ``data_dir`` is not used."""
        graphs = cached(self, self._generate) if cache else self._generate()
        split = Split.contiguous(self.train, self.val, self.test)
        return GraphDataset(graphs, self.TASK, [split], f"generated (a reconstruction): {self!r}")

    def _generate(self) -> FlatGraphs:
        matched = self.variant == "matched"
        generator = np.random.default_rng([self.seed, 0xC7 if matched else 0xC6])

        def draw() -> list[tuple[int, Array]]:
            if not matched:
                return list(draw_pair(generator))
            return [(len(edges), edges) for edges in draw_matched_pair(generator)]  # one cycle: as many edges as nodes

        return shuffled_pairs(generator, draw, (self.train + self.val + self.test) // 2)
