"""Features of several node encodings side by side."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gape.encodings.base import Encoding
from gape.encodings.pairs import Pairs
from gape.graph.graph import Graph


@dataclass(frozen=True)
class Concatenated(Encoding):
    """Features of several node encodings side by side, in the order given.

    By name: ``gape.encodings.make("rw+gape-rooted")``, with settings such as ``{"rw.length": 16}``.

    Args:
        parts: the encodings, each with one row per node.

    Returns, when called on a graph: ``[num_nodes, Σ k]``.

    Example:
        >>> from gape.encodings import RandomWalk, RootedGAPE
        >>> triangle = Graph.from_edges([(0, 1), (1, 2), (2, 0)], undirected=True)
        >>> Concatenated((RandomWalk(5), RootedGAPE(machines=2, layers=1)))(triangle).shape
        torch.Size([3, 9])
    """

    parts: tuple[Encoding, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.parts) < 2:
            raise ValueError(f"Concatenated needs at least two encodings, got {len(self.parts)}")
        for part in self.parts:
            if part.pairwise:
                raise ValueError(f"{part!r} encodes pairs of nodes; only encodings of nodes stand side by side")
        # Versions only grow, so the sum of those of all parts changes with any of them.
        object.__setattr__(self, "version", sum(part.version for part in self.parts))

    def compute(self, graph: Graph) -> Tensor:
        columns = []
        for part in self.parts:
            found = part.compute(graph)
            if isinstance(found, Pairs) or found.dim() != 2:
                raise ValueError(f"{part!r} does not give one row of features per node")
            columns.append(found.to(self.dtype))
        return torch.cat(columns, 1)
