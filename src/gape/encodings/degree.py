"""In- and out-degrees, the centrality of SPD+C."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from gape._internal.validation import check_at_least
from gape.encodings.base import INTEGERS, NodeEncoding
from gape.graph.graph import Graph


@dataclass(frozen=True)
class Degree(NodeEncoding):
    """Number of edges into and out of each node, for embedding tables (the centrality of Ying et al., 2021).

    Counts edges and ignores weights; a self-loop counts as one edge in and one edge out.

    Args:
        cap: largest degree, above which degrees are clipped; ``None`` for no limit.
        dtype: of the degrees, ``torch.int16``, ``torch.int32`` or ``torch.int64``.

    Returns, when called on a graph: ``[num_nodes, 2]`` integers, in-degree and out-degree.

    Example:
        >>> Degree()(Graph.from_edges([(0, 1), (0, 2)]))
        tensor([[0, 2],
                [1, 0],
                [1, 0]])
    """

    cap: int | None = None
    dtype: torch.dtype = field(default=torch.int64, kw_only=True)

    dtypes: ClassVar[tuple[torch.dtype, ...]] = INTEGERS

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cap is not None:
            check_at_least(1, cap=self.cap)

    def rows(self, graph: Graph) -> Tensor:
        source, target = graph.edge_index
        counts = [torch.bincount(end, minlength=graph.num_nodes) for end in (target, source)]
        degrees = torch.stack(counts, 1)
        if self.cap is not None:
            degrees = degrees.clamp(max=self.cap)
        limit, largest = torch.iinfo(self.dtype).max, int(degrees.max()) if degrees.numel() else 0
        if largest > limit:
            kind = str(self.dtype).removeprefix("torch.")
            raise ValueError(f"a degree of {largest} does not fit into {kind}; set cap={limit}, or dtype='int64'")
        return degrees
