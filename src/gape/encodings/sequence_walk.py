"""Random walks on a path as an encoding of sequences."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gape.encodings.base import at_least
from gape.encodings.sequence import SequenceEncoding, path_eigenpairs


@dataclass(frozen=True)
class PathRandomWalk(SequenceEncoding):
    """Return probabilities of a random walk on a path, by the node's number, whatever the edges.

    The RW row of the translation experiment of Soga & Chiang (2023, §4.1). Only positions within half of ``steps``
    of an end differ from those in the middle. Depends on the order of the nodes.

    Args:
        steps: number of steps, and so of features.
        length: number of nodes of the path; ``None`` for that of the sequence itself.

    Returns, when called on a graph: ``[num_nodes, steps]``.

    Example:
        >>> from gape import Graph
        >>> PathRandomWalk(steps=2, length=None)(Graph.from_edges([(0, 1), (1, 2)]))
        tensor([[0.0000, 0.5000],
                [0.0000, 1.0000],
                [0.0000, 0.5000]])
    """

    steps: int = 20
    length: int | None = 1024

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, steps=self.steps)
        if self.length is not None:
            at_least(1, length=self.length)

    @property
    def depends_on_length(self) -> bool:
        return self.length is None

    def table(self, positions: int) -> Tensor:
        nodes = positions if self.length is None else self.length
        if positions > nodes:
            raise ValueError(f"a sequence of {positions} does not fit on a path of {nodes} nodes; raise length")
        if nodes < 2:
            return torch.zeros(positions, self.steps, dtype=torch.float64)
        # Only the nearer end matters, and beyond ``steps`` not even that: a short path has all the rows there are.
        short = min(nodes, 2 * self.steps + 1)
        place = torch.arange(positions)
        row = torch.minimum(place, nodes - 1 - place).clamp(max=(short - 1) // 2)
        # D⁻¹A has the diagonal powers of D^(-1/2) A D^(-1/2), whose eigenvalues on a path are cos(πj/(n-1)).
        _, vectors = path_eigenpairs(short, "normalized", short)
        cosines = (math.pi * torch.arange(short, dtype=torch.float64) / (short - 1)).cos().unsqueeze(1)
        table = vectors.square() @ cosines ** torch.arange(1, self.steps + 1)
        # An odd number of steps never leads back on a path; rounding would leave some 1e-17.
        table[:, ::2] = 0.0
        return table.clamp(min=0.0)[row]
