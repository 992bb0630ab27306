"""What every encoding is: settings that validate themselves, called on graphs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from gape._internal.threads import map_threads
from gape._internal.validation import check_at_least, whole_number
from gape.encodings.pairs import Pairs
from gape.graph.convert import as_graph
from gape.graph.graph import Graph

FLOATS = (torch.float32, torch.float64)
INTEGERS = (torch.int16, torch.int32, torch.int64)


@dataclass(frozen=True)
class Encoding(ABC):
    """Settings of a position encoding, called on a graph or a batch of graphs.

    The ``repr`` is complete: two encodings with the same ``repr`` and ``version`` give the same numbers on the same
    graph. Work is done in float64 and rounded to ``dtype`` at the end, unless an encoding says otherwise.

    Args:
        dtype: of the result, ``torch.float32`` or ``torch.float64`` (or their names).
    """

    dtype: torch.dtype = field(default=torch.float32, kw_only=True)

    #: Goes up when the same settings give other numbers than before; part of a cache's key.
    version: ClassVar[int] = 1
    #: The types that ``dtype`` may be.
    dtypes: ClassVar[tuple[torch.dtype, ...]] = FLOATS

    def __post_init__(self) -> None:
        for item in fields(self):
            object.__setattr__(self, item.name, _plain(item.name, item.type, getattr(self, item.name)))
        dtype = getattr(torch, self.dtype, None) if isinstance(self.dtype, str) else self.dtype
        if dtype not in self.dtypes:
            known = ", ".join(str(known).removeprefix("torch.") for known in self.dtypes)
            raise ValueError(f"dtype must be one of {known}, got {self.dtype!r}")
        object.__setattr__(self, "dtype", dtype)
        if hasattr(self, "memory"):  # the setting of that name of encodings that work with dense matrices, in GiB
            check_at_least(0, memory=self.memory)

    @property
    def pairwise(self) -> bool:
        """Whether the result is a number for each pair of nodes (:class:`Pairs`) rather than a row for each node."""
        return False

    @abstractmethod
    def __call__(self, graph: Any) -> Tensor | Pairs:
        """Encode a graph, or anything :func:`gape.as_graph` takes."""


@dataclass(frozen=True)
class NodeEncoding(Encoding):
    """An encoding with a row for each node: ``[num_nodes, k]``, or ``[num_nodes, k, c]``."""

    def __call__(self, graph: Any) -> Tensor:
        graph = as_graph(graph)
        return self.concatenate(map_threads(self.rows, self.parts(graph)))

    def parts(self, graph: Graph) -> Sequence[Graph]:
        """The batch in parts of whole graphs that are encoded one by one, or side by side."""
        return graph.parts

    @abstractmethod
    def rows(self, graph: Graph) -> Tensor:
        """The rows of one part."""

    def concatenate(self, rows: list[Tensor]) -> Tensor:
        return (rows[0] if len(rows) == 1 else torch.cat(rows)).to(self.dtype)


@dataclass(frozen=True)
class PairEncoding(Encoding):
    """An encoding with a number for each pair of nodes of the same graph."""

    @property
    def pairwise(self) -> bool:
        return True

    @abstractmethod
    def __call__(self, graph: Any) -> Pairs: ...


def _plain(name: str, annotation: Any, value: Any) -> Any:
    """A setting as a plain number, so that equal settings have the same ``repr`` whatever they came as."""
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
    if isinstance(value, Tensor | np.ndarray):
        raise ValueError(f"{name} must not be an array: its repr is cut short and could not tell settings apart")
    return value
