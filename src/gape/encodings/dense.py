"""Base of encodings that are functions of dense matrices, computed for graphs of equal size together."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args, get_type_hints

import torch
from torch import Tensor

from gape._internal.threads import map_threads
from gape._internal.validation import check_one_of
from gape.encodings.base import Encoding
from gape.encodings.pairs import Pairs
from gape.graph.batching import Block, check_memory, dense_parts, offsets, scatter_pairs, scatter_rows
from gape.graph.graph import Graph

#: The diagonal of a matrix, or all of it.
DenseReadout = Literal["closed", "pair"]
#: Yields the blocks of a part of a batch, each with the features of several encodings.
BlockFeatures = Callable[[Graph], Iterator[tuple[Block, Sequence[Tensor]]]]


@dataclass(frozen=True)
class DenseEncoding(Encoding):
    """Encoding with values per pair of nodes, or per node.

    Args:
        readout: "pair", the values of all pairs, or another name of the subclass's ``Literal``, values of nodes.
        memory: memory limit, in GiB, for the dense matrices of one graph and the pairs of all.
    """

    readout: str = field(default="pair", kw_only=True)
    memory: float = field(default=4.0, kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of(get_args(get_type_hints(type(self))["readout"]), readout=self.readout)

    @property
    def pairwise(self) -> bool:
        return self.readout == "pair"

    @property
    @abstractmethod
    def channels(self) -> int:
        """Number of features per node or pair."""

    @property
    @abstractmethod
    def matrices(self) -> int:
        """Number of float64 matrices of the largest graph that :meth:`features` holds at its peak, as measured."""

    @abstractmethod
    def features(self, part: Graph) -> Iterator[tuple[Block, Tensor]]:
        """Yield the blocks of a part of the batch with ``[B, n, channels]``, or ``[B, n, n, channels]`` for pairs."""

    def compute(self, graph: Graph) -> Tensor | Pairs:
        return compute_blocks(
            (self,), graph, lambda part: ((block, (values,)) for block, values in self.features(part))
        )[0]


def compute_blocks(encodings: Sequence[DenseEncoding], graph: Graph, features: BlockFeatures) -> list[Tensor | Pairs]:
    """Compute several encodings of a batch from one pass over its blocks."""
    for encoding in encodings:
        _check_memory(encoding, graph)

    parts = dense_parts(graph)
    pairs, nodes = [int(part.sizes.square().sum()) for part in parts], [part.num_nodes for part in parts]
    # Each part writes its own rows, all of them.
    outputs = [
        torch.empty(sum(pairs if e.pairwise else nodes), e.channels, dtype=e.dtype, device=graph.device)
        for e in encodings
    ]
    views = [torch.split(out, pairs if e.pairwise else nodes) for e, out in zip(encodings, outputs, strict=True)]

    def compute(number: int) -> None:
        starts = offsets(parts[number].sizes.square())
        for block, found in features(parts[number]):
            for encoding, out, values in zip(encodings, views, found, strict=True):
                if encoding.pairwise:
                    scatter_pairs(out[number], starts, block, values)
                else:
                    scatter_rows(out[number], block, values)

    map_threads(compute, range(len(parts)))
    return [
        Pairs(out, graph.sizes) if encoding.pairwise else out for encoding, out in zip(encodings, outputs, strict=True)
    ]


def _check_memory(encoding: DenseEncoding, graph: Graph) -> None:
    largest, pairs = int(graph.sizes.max()) if graph.num_graphs else 0, int(graph.sizes.square().sum())
    name = type(encoding).__name__
    check_memory(
        encoding.memory,
        8 * encoding.matrices * largest**2 + pairs * encoding.channels * encoding.dtype.itemsize * encoding.pairwise,
        f"{name} on {pairs} pairs of nodes" if encoding.pairwise else f"{name} on a graph of {largest} nodes",
        "encode fewer graphs at a time, or raise memory"
        if encoding.pairwise
        else "raise memory, or use 'gape' or 'lape', whose cost grows with the edges",
    )
