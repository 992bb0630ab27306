"""Base classes of encodings: frozen dataclasses of validated settings, called on graphs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, fields
from math import isfinite
from typing import Any, ClassVar, Literal, get_args, get_type_hints

import numpy as np
import torch
from torch import Tensor

from gape._internal.threads import map_threads
from gape._internal.validation import check_at_least, check_one_of, finite_numbers, whole_number
from gape._internal.warnings import warn_caller
from gape.encodings.pairs import Pairs
from gape.graph.batching import Block, check_memory, dense_parts, offsets, scatter_pairs, scatter_rows
from gape.graph.convert import as_graph
from gape.graph.graph import Graph

FLOATS = (torch.float32, torch.float64)
INTEGERS = (torch.int16, torch.int32, torch.int64)
# Rows that differ by less than this fraction of the largest value count as the same.
EQUAL_ROWS = 1e-6
# Rows compared before all are: those of most graphs differ.
SAMPLED_ROWS = 256
#: The diagonal of a matrix, or all of it.
DenseReadout = Literal["closed", "pair"]
#: Yields the blocks of a part of a batch, each with the features of several encodings.
BlockFeatures = Callable[[Graph], Iterator[tuple[Block, Sequence[Tensor]]]]


@dataclass(frozen=True)
class Encoding(ABC):
    """Settings of a position encoding, called on a graph or a batch of graphs.

    To write an encoding, derive from :class:`NodeEncoding` or :class:`PairEncoding`, or implement :meth:`compute`.

    The ``repr`` is complete: two encodings with the same ``repr`` and ``version`` give the same numbers on the same
    graph. Encodings compute in float64 and round to ``dtype`` at the end, unless their docstring says otherwise.

    Args:
        dtype: of the result, ``torch.float32`` or ``torch.float64`` (or their names).
    """

    dtype: torch.dtype = field(default=torch.float32, kw_only=True)

    #: Version of the algorithm, part of cache keys; raise it when the same settings give other numbers than before.
    version: ClassVar[int] = 1
    #: Allowed values of ``dtype``.
    dtypes: ClassVar[tuple[torch.dtype, ...]] = FLOATS
    #: Encodings suggested when all rows are equal.
    alternatives: ClassVar[str] = "'rw' or 'gape-rooted'"

    def __post_init__(self) -> None:
        for item in fields(self):
            object.__setattr__(self, item.name, _plain(item.name, item.type, getattr(self, item.name)))
        dtype = getattr(torch, self.dtype, None) if isinstance(self.dtype, str) else self.dtype
        if dtype not in self.dtypes:
            known = ", ".join(str(known).removeprefix("torch.") for known in self.dtypes)
            raise ValueError(f"dtype must be one of {known}, got {self.dtype!r}")
        object.__setattr__(self, "dtype", dtype)
        if hasattr(self, "memory"):  # memory limit in GiB of encodings that use dense matrices
            check_at_least(0, memory=self.memory)

    @property
    def pairwise(self) -> bool:
        """True if the result has values per pair of nodes (:class:`Pairs`), False if it has a row per node."""
        return False

    def __call__(self, graph: Any) -> Tensor | Pairs:
        """Encode a graph, or anything :func:`gape.as_graph` takes."""
        return self.compute(as_graph(graph))

    @abstractmethod
    def compute(self, graph: Graph) -> Tensor | Pairs:
        """Encode a graph or batch that is already a :class:`gape.Graph`."""

    def warn_if_zero(self, values: Tensor, graph: Graph) -> bool:
        """Warn if all values of graphs with edges are 0; True if they are."""
        zero = graph.num_edges > 0 and not bool(values.any())
        if zero:
            hint = f"try {self.alternatives}"
            if not graph.undirected:
                hint = (
                    "if each edge stands for both directions, add the reverse edges (Graph.from_edges(..., "
                    f"undirected=True), torch_geometric.transforms.ToUndirected(), --undirected); otherwise {hint}"
                )
            warn_caller(f"all values of {type(self).__name__} on these {graph.num_edges} edges are 0: {hint}")
        return zero

    def warn_if_uninformative(self, values: Tensor, graph: Graph) -> None:
        """Warn if values of nodes are infinite, if all are 0, or if all rows, three or more, are the same.

        One pass over the values, unless there is something to warn about.
        """
        values = values.detach()
        low, high = map(float, values.aminmax()) if values.numel() else (0.0, 0.0)
        if low == high == 0.0:
            self.warn_if_zero(values, graph)
        elif self.pairwise:
            return
        elif not (isfinite(low) and isfinite(high)):  # a NaN anywhere makes both NaN
            infinite = int(values.isinf().sum())
            way_out = "scale the edge weights" + (", or take dtype='float64'" if self.dtype == torch.float32 else "")
            kind = str(self.dtype).removeprefix("torch.")
            if infinite:
                warn_caller(f"{infinite} values of {type(self).__name__} are beyond the range of {kind}: {way_out}")
        elif len(values) >= 3 and _equal_rows(values, EQUAL_ROWS * max(-low, high)):
            warn_caller(
                f"all {len(values)} rows are the same: {type(self).__name__} tells no node of these graphs from "
                f"another; try {self.alternatives}, or give nodes labels"
            )


@dataclass(frozen=True)
class NodeEncoding(Encoding):
    """Encoding with a row per node: ``[num_nodes, k]``, or ``[num_nodes, k, c]``."""

    def __call__(self, graph: Any) -> Tensor:
        return self.compute(as_graph(graph))

    def compute(self, graph: Graph) -> Tensor:
        rows = map_threads(self.rows, self.parts(graph))
        return (rows[0] if len(rows) == 1 else torch.cat(rows)).to(self.dtype)

    def parts(self, graph: Graph) -> Sequence[Graph]:
        """Split the batch into parts of whole graphs, which are encoded separately, in parallel threads."""
        return graph.parts

    @abstractmethod
    def rows(self, graph: Graph) -> Tensor:
        """Compute the rows of one part of the batch."""


@dataclass(frozen=True)
class PairEncoding(Encoding):
    """Encoding with values per pair of nodes of the same graph."""

    @property
    def pairwise(self) -> bool:
        return True

    def __call__(self, graph: Any) -> Pairs:
        return self.compute(as_graph(graph))

    @abstractmethod
    def compute(self, graph: Graph) -> Pairs: ...


@dataclass(frozen=True)
class DenseEncoding(Encoding):
    """Encoding made of dense matrices, with values per pair of nodes or per node; equal sizes are computed together.

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


def _equal_rows(values: Tensor, tolerance: float) -> bool:
    """True if no value differs by more than ``tolerance`` from that of the first row; looks at a sample first."""
    sample = values[:: max(1, len(values) // SAMPLED_ROWS)]
    return all(bool((rows - values[0]).abs().max() <= tolerance) for rows in (sample, values))


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


def _plain(name: str, annotation: Any, value: Any) -> Any:
    """Convert a setting to a plain Python number, so that equal settings have equal ``repr`` whatever their type."""
    kind = str(getattr(annotation, "__name__", annotation))
    if kind == "int" or (kind == "int | None" and value is not None):
        return whole_number(value, name, -(2**63))
    if kind == "float":
        try:
            return float(value)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} must be a number, got {value!r}") from error
    if kind == "bool":
        if not isinstance(value, bool | np.bool_):
            raise ValueError(f"{name} must be True or False, got {value!r}")
        return bool(value)
    if kind == "tuple[float, ...]":
        return finite_numbers(value, name)
    if isinstance(value, Tensor | np.ndarray):
        raise ValueError(f"{name} must not be an array, whose repr is abbreviated and cannot identify the setting")
    return value
