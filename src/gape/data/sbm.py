"""PATTERN and CLUSTER: find a planted pattern, or the communities, of stochastic block models."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import ClassVar, Literal, get_args

import numpy as np

from gape.data.dataset import GraphDataset, Split, Task
from gape.data.flat import Array, FlatGraphs
from gape.data.generation import cached, progress
from gape.data.raw_files import data_folder, missing_file, pyg_sbm

MIN_BLOCK_NODES, MAX_BLOCK_NODES = 5, 34  # sizes of communities and patterns are uniform on this range
Source = Literal["generate", "pyg"]
Graph = tuple[Array, Array, Array]  # edges, one feature per node, one target per node


@lru_cache(maxsize=256)
def _pairs(nodes: int) -> tuple[Array, Array]:
    first, second = np.triu_indices(nodes, k=1)
    return first.astype(np.uint8), second.astype(np.uint8)


def block_model(generator: np.random.Generator, block: Array, probability: Array) -> Array:
    """Draw edges ``[num_edges, 2]`` of a stochastic block model, with ``probability[block[u], block[v]]`` for (u, v).

    >>> certain = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> block_model(np.random.default_rng(0), np.array([0, 1, 0, 1]), certain).tolist()
    [[0, 2], [1, 3]]
    """
    first, second = _pairs(len(block))
    joined = generator.random(len(first)) < probability[block[first], block[second]]
    return np.stack([first[joined], second[joined]], axis=1)


def _sizes(generator: np.random.Generator, count: int) -> Array:
    return generator.integers(MIN_BLOCK_NODES, MAX_BLOCK_NODES + 1, size=count)


def _join(graphs: list[Graph]) -> FlatGraphs:
    edges, features, targets = zip(*graphs, strict=True)
    sizes = [len(target) for target in targets]
    return FlatGraphs.from_edges(sizes, edges, y=np.concatenate(targets), x=np.concatenate(features)[:, None])


def _published(name: str, data_dir: str | Path | None, task: Task) -> GraphDataset:
    folder = data_folder(data_dir)
    try:
        return pyg_sbm(name, folder, task)
    except OSError as error:
        raise missing_file(
            task.name,
            folder,
            (f"pyg/{name}/raw/{name}_v2.pt",),
            f"PyG's GNNBenchmarkDataset downloads {name}_v2.zip to pyg/{name}/raw; or use source='generate'.",
            error,
        ) from error


class BlockModelGraphs(ABC):
    """Base of PATTERN and CLUSTER: graphs that are generated, or read from the published file by PyG."""

    source: Source
    TASK: ClassVar[Task]

    @property
    @abstractmethod
    def counts(self) -> tuple[int, int, int]:
        """Numbers of graphs for training, validation and testing."""

    @abstractmethod
    def generate(self, show: bool) -> FlatGraphs:
        """Generate the graphs of all three parts; with a progress bar if ``show``."""

    def __post_init__(self) -> None:
        for setting in ("train", "val", "test", "patterns"):
            if getattr(self, setting, 1) < 1:
                raise ValueError(f"{setting} must be at least 1, got {getattr(self, setting)}")
        if self.source not in get_args(Source):
            raise ValueError(f"source must be 'generate' or 'pyg' (the published file), got {self.source!r}")

    def build(self, data_dir: str | Path | None = None, *, cache: bool = True, show: bool = True) -> GraphDataset:
        """Generate the graphs or read them from the cache; with ``source="pyg"``, load the published file."""
        if self.source == "pyg":
            return _published(self.TASK.name.upper(), data_dir, self.TASK)
        make = partial(self.generate, show)
        graphs = cached(self, make) if cache else make()
        return GraphDataset(graphs, self.TASK, [Split.contiguous(*self.counts)], f"generated: {self!r}")


@dataclass(frozen=True)
class Pattern(BlockModelGraphs):
    """Find the nodes of a planted pattern (Dwivedi et al. 2020).

    There are 100 patterns, each a random graph (edge probability 0.5) of 5 to 34 nodes with its own features. A graph
    consists of five communities of 5 to 34 nodes (edge probability 0.5 inside, 0.35 between) and one pattern, whose
    nodes are joined to all other nodes with probability 0.5. Features are uniform on {0, 1, 2}; nodes are shuffled.

    Args:
        train, val, test: graphs *per pattern*; published 100, 20, 20, so 10,000 / 2,000 / 2,000 in all.
        patterns: number of patterns; the same ones occur in all three parts.
        seed: seed of the generator.
        source: ``"generate"``, or ``"pyg"`` for the published file.

    Example:
        >>> dataset = Pattern(train=2, val=1, test=1, patterns=3).build(cache=False, show=False)
        >>> len(dataset), dataset.level, dataset.node_categories, dataset.num_classes
        (12, 'node', (3,), 2)
    """

    train: int = 100
    val: int = 20
    test: int = 20
    patterns: int = 100
    seed: int = 0
    source: Source = "generate"

    TASK: ClassVar[Task] = Task("pattern", level="node", metric="macro-recall", num_classes=2, node_categories=(3,))

    @property
    def counts(self) -> tuple[int, int, int]:
        return self.patterns * self.train, self.patterns * self.val, self.patterns * self.test

    def generate(self, show: bool) -> FlatGraphs:
        generator = np.random.default_rng([self.seed, 0x9A7])
        probability = np.full((6, 6), 0.35)
        np.fill_diagonal(probability, 0.5)
        probability[5, :] = probability[:, 5] = 0.5
        probability[5, 5] = 0.0  # the pattern's inner edges are drawn once and shared by its graphs
        planted = []
        for size in _sizes(generator, self.patterns):
            inner = block_model(generator, np.zeros(size, dtype=np.int64), np.array([[0.5]]))
            planted.append((inner, generator.integers(0, 3, size=size)))
        order = [p for part in (self.train, self.val, self.test) for p in planted for _ in range(part)]
        drawn = []
        with progress("PATTERN: drawing graphs", total=len(order), show=show) as advance:
            for inner, signal in order:
                drawn.append(_pattern_graph(generator, probability, inner, signal))
                advance(1)
        return _join(drawn)


def _pattern_graph(generator: np.random.Generator, probability: Array, inner: Array, signal: Array) -> Graph:
    community = np.repeat(np.arange(5), _sizes(generator, 5))
    block = np.append(community, np.full(len(signal), 5))
    edges = np.concatenate([block_model(generator, block, probability), inner + len(community)])
    place = generator.permutation(len(block)).astype(np.uint8)
    feature, target = np.empty((2, len(block)), dtype=np.uint8)
    feature[place] = np.append(generator.integers(0, 3, size=len(community)), signal)
    target[place] = block == 5
    return place[edges], feature, target


@dataclass(frozen=True)
class Cluster(BlockModelGraphs):
    """Find the community of each node, out of six of which one member each is known (Dwivedi et al. 2020).

    The communities have 5 to 34 nodes and edge probability 0.55 inside and 0.25 between; nodes are shuffled. One random
    node of community r has feature r + 1, all other nodes have feature 0.

    Args:
        train, val, test: numbers of graphs; published 10,000 / 1,000 / 1,000.
        seed: seed of the generator.
        source: ``"generate"``, or ``"pyg"`` for the published file.

    Example:
        >>> dataset = Cluster(train=3, val=1, test=1).build(cache=False, show=False)
        >>> sorted(dataset[0].x[dataset[0].x > 0].tolist()), dataset.num_classes
        ([1, 2, 3, 4, 5, 6], 6)
    """

    train: int = 10_000
    val: int = 1_000
    test: int = 1_000
    seed: int = 0
    source: Source = "generate"

    TASK: ClassVar[Task] = Task("cluster", level="node", metric="macro-recall", num_classes=6, node_categories=(7,))

    @property
    def counts(self) -> tuple[int, int, int]:
        return self.train, self.val, self.test

    def generate(self, show: bool) -> FlatGraphs:
        generator = np.random.default_rng([self.seed, 0xC1])
        probability = np.full((6, 6), 0.25)
        np.fill_diagonal(probability, 0.55)
        total = sum(self.counts)
        drawn = []
        with progress("CLUSTER: drawing graphs", total=total, show=show) as advance:
            for _ in range(total):
                drawn.append(_cluster_graph(generator, probability))
                advance(1)
        return _join(drawn)


def _cluster_graph(generator: np.random.Generator, probability: Array) -> Graph:
    community = np.repeat(np.arange(6), _sizes(generator, 6))
    generator.shuffle(community)
    # The first member of each community in a random order of the nodes is a random member.
    order = generator.permutation(len(community))
    known = order[np.unique(community[order], return_index=True)[1]]
    feature = np.zeros(len(community), dtype=np.uint8)
    feature[known] = community[known] + 1
    return block_model(generator, community, probability), feature, community.astype(np.uint8)
