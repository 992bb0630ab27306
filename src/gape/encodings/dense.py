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

    def compute(part: Graph) -> list[Tensor]:
        squares = part.sizes.square()
        starts, pairs = offsets(squares), int(squares.sum())
        outputs = [
            torch.zeros(pairs if e.pairwise else part.num_nodes, e.channels, dtype=e.dtype, device=part.device)
            for e in encodings
        ]
        for block, found in features(part):
            for encoding, out, values in zip(encodings, outputs, found, strict=True):
                if encoding.pairwise:
                    scatter_pairs(out, starts, block, values)
                else:
                    scatter_rows(out, block, values)
        return outputs

    found = map_threads(compute, dense_parts(graph))
    columns = found[0] if len(found) == 1 else [torch.cat(values) for values in zip(*found, strict=True)]
    return [
        Pairs(values, graph.sizes) if encoding.pairwise else values
        for encoding, values in zip(encodings, columns, strict=True)
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
