"""Encoded datasets and their batches: shuffled each epoch for training, in a fixed order for evaluation."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gape.data import GraphDataset, load
from gape.encodings import Pairs
from gape.encodings.store import Store
from gape.experiments.graph_tasks.registry import LearnedEncoding, find_row, learned, make_encoding
from gape.experiments.graph_tasks.settings import Settings
from gape.graph.batching import members
from gape.graph.convert import as_graph
from gape.graph.graph import Graph
from gape.nn import AttentionPattern, WalkInput
from gape.solvers import AlgebraicOnlyWarning

# Evaluation batches stay in memory, with their attention patterns, if they have at most this many edges in all.
MAX_KEPT_EDGES = 3_000_000


@dataclass(eq=False)
class GraphBatch:
    """Some graphs of a dataset as the tensors that the model takes, with their attention pattern once it is made.

    Args:
        x: node features.
        edge_index: ``[2, num_edges]``.
        batch: ``[num_nodes]``, the graph of every node.
        y: targets.
        encoding: input of the model's encoder, if it has one.
        num_graphs: number of graphs.
        weight: of the loss. It differs from 1 if processes share a batch unequally, so that the mean over processes
            of their weighted losses is the mean over the graphs.
        pattern: the pairs of nodes that attend to each other.
    """

    x: Tensor
    edge_index: Tensor
    batch: Tensor
    y: Tensor
    encoding: Tensor | WalkInput | None
    num_graphs: int
    weight: float = 1.0
    pattern: AttentionPattern | None = None

    def to(self, device: torch.device | str, non_blocking: bool = False) -> GraphBatch:
        """Return the batch on another device; itself if it is there already."""
        if self.x.device == torch.device(device):
            return self
        moved: dict[str, Any] = {
            name: value.to(device, non_blocking=non_blocking)
            for name, value in vars(self).items()
            if isinstance(value, Tensor | WalkInput)
        }
        return replace(self, **moved, pattern=None)


@dataclass(frozen=True, eq=False)
class EncodedDataset:
    """A dataset with the encodings of its nodes, or of its pairs of nodes.

    Args:
        dataset: the whole dataset; has node encodings as the attribute ``pe``.
        pairs: encodings of pairs of nodes.
        learned: automata trained with the model; the dataset then has what they need to know of the graphs.
        certificates: number of graphs per status, for encodings that solve an equation.
        seconds: time to compute the encodings, or to find them in the cache.
    """

    dataset: GraphDataset
    pairs: Pairs | None = None
    learned: LearnedEncoding | None = None
    certificates: dict[str, int] | None = None
    seconds: float = 0.0

    @property
    def width(self) -> int:
        """Number of features k per node; 0 without encoding."""
        return int(self.dataset._data.pe.shape[1]) if "pe" in self.dataset.slices else 0

    def batch(self, graphs: Tensor, weight: float = 1.0) -> GraphBatch:
        """Return a batch of the graphs with these indices."""
        found = self.dataset.batch(graphs)
        encoding: Tensor | WalkInput | None = found.pe if "pe" in self.dataset.slices else None
        if self.learned is not None:
            encoding = self.learned.encoder_input(found)
        elif self.pairs is not None:
            encoding = _select(self.pairs, graphs).padded(fill=-1).transpose(1, 2)
        return GraphBatch(found.x, found.edge_index, found.batch, found.y, encoding, len(graphs), weight)


def encoded_dataset(settings: Settings, data_dir: str | Path | None = None) -> EncodedDataset:
    """Load the dataset of a cell and encode all its graphs at once.

    Encodings that are slow to compute are cached; those with certificates are always computed.

    Args:
        settings: of the cell.
        data_dir: folder with real data, see :func:`gape.data.load`.

    Example:
        >>> from gape.experiments.graph_tasks.settings import protocol_settings
        >>> small = {"data.train": "4", "data.val": "2", "data.test": "2"}
        >>> encoded = encoded_dataset(protocol_settings("cycles", "gape", overrides=small))
        >>> encoded.width, encoded.certificates
        (32, {'run_sum': 8})
    """
    dataset = load(settings.task, data_dir, **settings.data)
    kind = find_row(settings.encoding).encoder
    if kind == "none" or (kind == "degree-distance" and settings.attention == "neighbours"):
        # Neighbours are at distance 1: the model counts degrees itself and needs nothing computed in advance.
        return EncodedDataset(dataset)
    started = time.perf_counter()
    if kind == "learned":
        automata = learned(settings.encoding, **settings.encoding_options)
        prepared = automata.prepare(dataset, dataset.node_categories, dataset.task.edge_categories)
        return EncodedDataset(prepared, learned=automata, seconds=time.perf_counter() - started)
    encoding = make_encoding(settings.encoding, **settings.encoding_options)
    graph: Graph = as_graph(dataset.batch())
    certificates = None
    with warnings.catch_warnings(action="ignore", category=AlgebraicOnlyWarning):  # the certificates count them
        if hasattr(encoding, "solve"):
            solution = encoding.solve(graph)
            certificates = {status.name.lower(): count for status, count in solution.counts().items()}
            found = solution.weights
        else:
            found = Store().encode(graph, encoding)
    seconds = time.perf_counter() - started
    if isinstance(found, Pairs):
        return EncodedDataset(dataset, pairs=found, seconds=seconds)
    if not bool(torch.isfinite(found).all()) and kind != "spectral":
        raise ValueError(f"{encoding!r} gives values that are not finite on {dataset!r}; see `gape encode`")
    return EncodedDataset(dataset.with_node_attribute("pe", found), certificates=certificates, seconds=seconds)


def _select(pairs: Pairs, graphs: Tensor) -> Pairs:
    """Return the matrices of some of the graphs."""
    return Pairs(pairs.values[members(pairs.ptr, graphs)], pairs.sizes[graphs])


def mix_seeds(*numbers: int) -> int:
    """Hash several integers into one seed.

    >>> mix_seeds(41, 0, 1) == mix_seeds(41, 1, 0), mix_seeds(41) == mix_seeds(41)
    (False, True)
    """
    mixed = 0
    for number in numbers:
        # Multiplying by an odd constant and folding the high half back is a bijection at each step.
        mixed = ((mixed ^ number) * 0x9E3779B97F4A7C15 + 1) % 2**64
        mixed ^= mixed >> 32
    return mixed % 2**63


class TrainingBatches:
    """Shuffled batches; the order depends on the seed and the epoch only, so that interrupted training resumes exactly.

    Processes that train together take every ``world``-th graph of each batch.

    Args:
        encoded: the data.
        graphs: indices of the training graphs.
        size: graphs per batch.
        seed: of the order.

    Example:
        >>> from gape.experiments.graph_tasks.settings import protocol_settings
        >>> data = encoded_dataset(protocol_settings("csl", "none"))
        >>> batches = TrainingBatches(data, data.dataset.splits[0].train, size=40, seed=41)
        >>> [batch.num_graphs for batch in batches]
        [40, 40, 10]
    """

    def __init__(self, encoded: EncodedDataset, graphs: Tensor, size: int, seed: int) -> None:
        self.encoded, self.graphs, self.size, self.seed = encoded, graphs, size, seed
        self.epoch, self.rank, self.world = 0, 0, 1

    def __len__(self) -> int:
        return -(-len(self.graphs) // self.size)

    def __iter__(self) -> Iterator[GraphBatch]:
        generator = torch.Generator().manual_seed(mix_seeds(self.seed, self.epoch))
        order = self.graphs[torch.randperm(len(self.graphs), generator=generator)]
        for batch in torch.split(order, self.size):
            # A process without a graph would leave the others waiting: then all take the whole batch.
            world = self.world if len(batch) >= self.world else 1
            mine = batch[self.rank :: world] if world > 1 else batch
            yield self.encoded.batch(mine, weight=world * len(mine) / len(batch))


class FixedBatches:
    """Batches in the order of the dataset, kept in memory with their attention patterns unless they are too large.

    Args:
        encoded: the data.
        graphs: indices of the graphs.
        size: graphs per batch.
    """

    def __init__(self, encoded: EncodedDataset, graphs: Tensor, size: int) -> None:
        self.encoded, self.graphs, self.size = encoded, graphs, size
        self.rank, self.world = 0, 1
        self._kept: list[GraphBatch] = []

    @property
    def _parts(self) -> list[Tensor]:
        return list(torch.split(self.graphs, self.size))[self.rank :: self.world] if len(self.graphs) else []

    def __len__(self) -> int:
        return len(self._parts)

    def __iter__(self) -> Iterator[GraphBatch]:
        if self._kept:
            yield from self._kept
            return
        edges = self.encoded.dataset.slices["edge_index"].diff()[self.graphs].sum()
        seen = []
        for part in self._parts:
            batch = self.encoded.batch(part)
            if edges <= MAX_KEPT_EDGES:
                seen.append(batch)
            yield batch
        self._kept = seen
