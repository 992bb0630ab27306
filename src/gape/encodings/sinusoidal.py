"""The sinusoids of the Transformer."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gape.encodings.sequence import SequenceEncoding


@dataclass(frozen=True)
class Sinusoidal(SequenceEncoding):
    """Sines and cosines of the node's number in its graph (Vaswani et al., 2017), for sequences.

    Equal to :meth:`gape.Automaton.sinusoidal` walking a directed path (Proposition 1 of Soga & Chiang, 2023).
    Depends on the order of the nodes and on nothing else.

    Args:
        width: number of features k, even: sines in columns 0, 2, …, cosines in columns 1, 3, ….

    Returns, when called on a graph: ``[num_nodes, width]``.

    Example:
        >>> from gape import Graph
        >>> Sinusoidal(width=2)(Graph.from_edges([(0, 1)]))
        tensor([[0.0000, 1.0000],
                [0.8415, 0.5403]])
    """

    width: int = 512

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width < 2 or self.width % 2:
            raise ValueError(f"sinusoids come in pairs, so width must be even and at least 2, got {self.width}")

    def table(self, positions: int) -> Tensor:
        frequency = 10000.0 ** (-torch.arange(0, self.width, 2, dtype=torch.float64) / self.width)
        angle = torch.arange(positions, dtype=torch.float64).unsqueeze(1) * frequency
        return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)
