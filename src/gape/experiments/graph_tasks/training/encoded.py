"""A data set together with its encodings, computed once, and how long and how well that went."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from gape.data import GraphDataset, load
from gape.encodings import Pairs, make
from gape.encodings.store import Store
from gape.experiments.graph_tasks.learned import LearnedEncoding, learned
from gape.experiments.graph_tasks.rows import find
from gape.experiments.graph_tasks.settings import Settings
from gape.experiments.graph_tasks.training.graph_batch import GraphBatch
from gape.graph.convert import as_graph
from gape.graph.graph import Graph
from gape.nn import WalkInput
from gape.solvers import AlgebraicOnlyWarning


@dataclass(frozen=True, eq=False)
class EncodedDataset:
    """A data set and the encodings of its nodes, or of its pairs of nodes.

    Args:
        dataset: the whole set; carries node encodings as the attribute ``pe``.
        pairs: encodings of pairs of nodes.
        learned: automata to be trained with the model; the data set then carries what they need of the graphs.
        certificates: how many graphs ended in which status, for encodings that solve an equation.
        seconds: what computing the encodings took, or finding them where they were kept.
    """

    dataset: GraphDataset
    pairs: Pairs | None = None
    learned: LearnedEncoding | None = None
    certificates: dict[str, int] | None = None
    seconds: float = 0.0

    @property
    def width(self) -> int:
        """Number of features k of a node; 0 without encoding."""
        return int(self.dataset._data.pe.shape[1]) if "pe" in self.dataset.slices else 0

    def batch(self, graphs: Tensor, weight: float = 1.0) -> GraphBatch:
        """The graphs of those numbers."""
        found = self.dataset.batch(graphs)
        encoding: Tensor | WalkInput | None = found.pe if "pe" in self.dataset.slices else None
        if self.learned is not None:
            encoding = self.learned.given(found)
        elif self.pairs is not None:
            encoding = _select(self.pairs, graphs).padded(fill=-1).transpose(1, 2)
        return GraphBatch(found.x, found.edge_index, found.batch, found.y, encoding, len(graphs), weight)


def encoded_dataset(settings: Settings, data_dir: str | Path | None = None) -> EncodedDataset:
    """Load the data set of a run and encode all its graphs at once.

    Args:
        settings: of the run.
        data_dir: folder with real data, see :func:`gape.data.load`.

    Encodings that are slow to compute are kept in the default store; those with certificates are always computed.

    Example:
        >>> from gape.experiments.graph_tasks.protocol import settings
        >>> small = {"data.train": "4", "data.val": "2", "data.test": "2"}
        >>> encoded = encoded_dataset(settings("cycles", "gape", overrides=small))
        >>> encoded.width, encoded.certificates
        (32, {'run_sum': 8})
    """
    dataset = load(settings.task, data_dir, **settings.data)
    row = find(settings.encoding)
    if row.how == "none" or (row.how == "degree-distance" and settings.attention == "neighbours"):
        # Neighbours are at distance 1: the model counts degrees itself and needs nothing computed in advance.
        return EncodedDataset(dataset)
    started = time.perf_counter()
    if row.how == "learned":
        automata = learned(settings.encoding, **settings.encoding_options)
        prepared = automata.prepare(dataset, dataset.node_categories)
        return EncodedDataset(prepared, learned=automata, seconds=time.perf_counter() - started)
    encoding = make(settings.encoding, **settings.encoding_options)
    graph: Graph = as_graph(dataset.batch())
    certificates = None
    with warnings.catch_warnings(action="ignore", category=AlgebraicOnlyWarning):  # the counts say it
        if hasattr(encoding, "solve"):
            solution = encoding.solve(graph)
            certificates = {status.name.lower(): count for status, count in solution.counts().items()}
            found = solution.weights
        else:
            found = Store().encode(graph, encoding)
    seconds = time.perf_counter() - started
    if isinstance(found, Pairs):
        return EncodedDataset(dataset, pairs=found, seconds=seconds)
    if not bool(torch.isfinite(found).all()) and row.how != "spectral":
        raise ValueError(f"{encoding!r} gives values that are not finite on {dataset!r}; see `gape encode`")
    return EncodedDataset(dataset.with_node_attribute("pe", found), certificates=certificates, seconds=seconds)


def _select(pairs: Pairs, graphs: Tensor) -> Pairs:
    """The matrices of some of the graphs."""
    counts = pairs.sizes[graphs].square()
    first = pairs.ptr[graphs] - (counts.cumsum(0) - counts)
    rows = torch.arange(int(counts.sum())) + torch.repeat_interleave(first, counts)
    return Pairs(pairs.values[rows], pairs.sizes[graphs])
