"""Count the pairs of graphs that encodings and Weisfeiler-Leman tests tell apart."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import torch

from gape.data import load
from gape.data.brec import CATEGORIES
from gape.encodings import Encoding, Pairs
from gape.experiments.expressiveness import invariants
from gape.experiments.expressiveness.invariants import Array, Multisets
from gape.graph.convert import as_graph
from gape.graph.graph import Graph
from gape.linalg.weisfeiler_leman import pairs_differ
from gape.solvers import AlgebraicOnlyWarning

#: Relative difference of float64 features above which graphs count as told apart, and how many times more it must be
#: than what renumbering the nodes of a graph makes.
TOLERANCE = 1e-10
TIMES_NOISE = 100.0
# More than this is not rounding: the encoding depends on the order of the nodes.
MAX_NOISE = 1e-6
# Random projections of features to numbers that can be sorted.
PROJECTIONS = 8


@dataclass(frozen=True, eq=False)
class PairSet:
    """Pairs of graphs: graphs 2i and 2i + 1 of the batch are pair i.

    Args:
        graph: all graphs.
        categories: the category of each pair.
    """

    graph: Graph
    categories: Sequence[str]

    def __post_init__(self) -> None:
        if self.graph.num_graphs != 2 * len(self.categories):
            raise ValueError(f"{len(self.categories)} pairs need twice as many graphs, got {self.graph.num_graphs}")

    @classmethod
    def brec(cls, data_dir: str | Path | None = None) -> PairSet:
        """Read the 400 pairs of BREC."""
        dataset = load("brec", data_dir)
        return cls(as_graph(dataset.batch()), [CATEGORIES[number] for number in dataset.targets[::2].tolist()])

    @cached_property
    def walks(self) -> dict[str, Multisets]:
        """Walks of all lengths by readout."""
        return invariants.walks(self.graph)


@dataclass(frozen=True, eq=False)
class Separation:
    """The pairs that one method tells apart.

    Args:
        name: of the method.
        told_apart: ``[pairs]`` of bools.
        seconds: time that it took.
        gaps: ``[pairs]``, relative differences of float64 features; ``None`` for exact arithmetic.
        noise: the largest relative difference between a graph and itself with its nodes in another order.
    """

    name: str
    told_apart: Array
    seconds: float
    gaps: Array | None = None
    noise: float = 0.0

    def counts(self, categories: Sequence[str]) -> dict[str, int]:
        """Count the pairs told apart by category, and of all."""
        of = np.asarray(categories)
        by_category = {name: int(self.told_apart[of == name].sum()) for name in dict.fromkeys(categories)}
        return {**by_category, "all": int(self.told_apart.sum())}

    @property
    def certainty(self) -> str:
        """Say how sure the counts are.

        >>> Separation("x", np.array([True, False]), 0.1, np.array([1e-3, 1e-15]), 2e-16).certainty
        'float64: told apart from 1.0e-03, not up to 1.0e-15, rounding 2.0e-16'
        """
        if self.gaps is None:
            return "exact"
        apart, alike = self.gaps[self.told_apart], self.gaps[~self.told_apart]
        parts = [f"told apart from {apart.min():.1e}"] if len(apart) else []
        parts += [f"not up to {alike.max():.1e}"] if len(alike) else []
        return f"float64: {', '.join([*parts, f'rounding {self.noise:.1e}'])}"


#: Exact methods by name.
METHODS: dict[str, Callable[[PairSet], Multisets]] = {
    "1-WL": lambda pairs: invariants.colours(pairs.graph),
    "degree": lambda pairs: invariants.degrees(pairs.graph),
    "gape": lambda pairs: pairs.walks["node"],
    "spd": lambda pairs: invariants.distances(pairs.graph),
    "rw": lambda pairs: invariants.random_walks(pairs.graph),
    "gape-closed": lambda pairs: pairs.walks["closed"],
    "gape-pair": lambda pairs: pairs.walks["pair"],
    "gape-rooted-3": lambda pairs: invariants.rooted_walks(pairs.graph, 3),
    "gape-rooted-6": lambda pairs: invariants.rooted_walks(pairs.graph, 6),
    "gape-rooted-10": lambda pairs: invariants.rooted_walks(pairs.graph, 10),
}
#: The order of the table; 3-WL refines each pair of graphs on its own.
NAMES = (*METHODS, "3-WL")


def check_method(name: str) -> None:
    """Validate the name of an exact method."""
    if name not in NAMES:
        raise ValueError(f"there is no method {name!r}; there are {', '.join(NAMES)}, and encodings with --encoding")


def separate(name: str, pairs: PairSet) -> Separation:
    """Run one of the exact methods.

    Example:
        >>> ring = Graph.from_edges([(i, (i + 1) % 6) for i in range(6)], undirected=True)
        >>> triangles = Graph.from_edges([(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)], undirected=True)
        >>> pairs = PairSet(Graph.union([ring, triangles]), ["toy"])
        >>> [name for name in NAMES if separate(name, pairs).told_apart.all()][:3]
        ['spd', 'rw', 'gape-closed']
    """
    check_method(name)
    started = time.perf_counter()
    if name == "3-WL":
        apart = np.array([pairs_differ(*matrices) for matrices in _adjacency_pairs(pairs.graph)])
    else:
        found = METHODS[name](pairs)
        apart = np.array([not np.array_equal(a, b) for a, b in zip(found[::2], found[1::2], strict=True)])
    return Separation(name, apart.astype(bool), time.perf_counter() - started)


def separate_by_features(name: str, encoding: Encoding, pairs: PairSet) -> Separation:
    """Compare the multisets of float64 features of nodes, or of pairs of nodes, of an encoding.

    Features are divided by their largest absolute value and mapped to numbers by random projections, which are sorted;
    the gap of two graphs is the largest difference, over projections, at the same position. Raises for encodings that
    depend on the order of the nodes, or on the choice of eigenvectors.
    """
    started = time.perf_counter()
    features = _sorted_features(encoding, pairs.graph)
    shuffled = _sorted_features(encoding, _shuffled(pairs.graph))
    noise = max(_gap(a, b) for a, b in zip(features, shuffled, strict=True))
    if noise > MAX_NOISE:
        raise ValueError(
            f"{name} gives other features when nodes are numbered otherwise (relative difference {noise:.1e}), so it "
            "is no invariant of graphs; leave it out"
        )
    gaps = np.array([_gap(a, b) for a, b in zip(features[::2], features[1::2], strict=True)])
    apart = gaps > max(TOLERANCE, TIMES_NOISE * noise)
    return Separation(name, apart, time.perf_counter() - started, gaps, noise)


def _sorted_features(encoding: Encoding, graph: Graph) -> list[torch.Tensor]:
    """``[n, projections]`` for each graph, or ``[n², projections]``, columns sorted."""
    with warnings.catch_warnings(action="ignore", category=AlgebraicOnlyWarning):
        found = encoding(graph)
    values, sizes = (found.values, found.sizes.square()) if isinstance(found, Pairs) else (found, graph.sizes)
    features = torch.nan_to_num(values.to(torch.float64).reshape(len(values), -1))
    largest = features.abs().amax(0)
    generator = torch.Generator().manual_seed(0)
    directions = torch.randn(features.shape[1], PROJECTIONS, dtype=torch.float64, generator=generator)
    projected = (features / torch.where(largest > 0, largest, 1.0)) @ directions
    return [block.sort(0).values for block in torch.split(projected, sizes.tolist())]


def _shuffled(graph: Graph) -> Graph:
    """The same graphs with the nodes of each in a random order."""
    random = torch.rand(graph.num_nodes, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    order = torch.argsort(random + graph.batch)
    place = torch.empty_like(order)
    place[order] = torch.arange(graph.num_nodes)
    return Graph(place[graph.edge_index], graph.num_nodes, ptr=graph.ptr)


def _gap(first: torch.Tensor, second: torch.Tensor) -> float:
    if first.shape != second.shape:
        return float("inf")
    size = max(float(first.abs().max()), float(second.abs().max()), 1e-300)
    return float((first - second).abs().max()) / size


def _adjacency_pairs(graph: Graph) -> Iterable[tuple[Array, Array]]:
    matrices: dict[int, Array] = {}
    for group in invariants.by_size(graph, invariants.BLOCK_ELEMENTS):
        matrices |= dict(zip(group.numbers.tolist(), group.matrices, strict=True))
    return ((matrices[i], matrices[i + 1]) for i in range(0, graph.num_graphs, 2))
