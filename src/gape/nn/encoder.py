"""How a position encoding enters the graph transformer: the interface, and the usual way."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from gape.nn.attention.pattern import AttentionPattern
from gape.nn.scaling import FeatureScaling, Scaling


class Encoder(nn.Module, ABC):
    """Turns what was computed about positions into channels of the first node states, and maybe a bias.

    Attributes:
        concatenated: number of channels that stand beside the embedded node features, which then get that
            many channels fewer; 0 if the channels are added to them instead.
    """

    concatenated: int = 0

    @abstractmethod
    def forward(self, encoding: Tensor | None, pattern: AttentionPattern) -> Tensor | None:
        """``[num_nodes, hidden]`` to be added, or ``[num_nodes, concatenated]`` to stand beside; None for nothing."""

    def fit_scaling(self, batches: Iterable[tuple[Any, AttentionPattern]]) -> None:
        """Take scales from the training set, before training, where the encoder has any that come from there.

        Args:
            batches: of the training set: encoding and pattern as for :meth:`forward`.
        """
        return

    def bias(self, encoding: Tensor | None, pattern: AttentionPattern) -> Tensor | None:
        """Attention bias for every layer, in either shape of :func:`gape.nn.attention.bias.fit_bias`, or None."""
        return None


class LinearEncoder(Encoder):
    """Adds a linear map, with bias, of the encoding to the embedded node features.

    This is how GAPE, random-walk and Laplacian encodings enter (Soga & Chiang, 2023).

    Args:
        channels: width k of the encoding.
        hidden: width of the model.
        flip_signs: in training, multiply each column by a random sign, one per batch: for eigenvectors,
            whose sign means nothing.
        scaling: of the columns: "none", or from the training set, see :meth:`fit_scaling`: "fixed" to mean 0 and
            variance 1, "whitened" to uncorrelated columns of variance 1, see :class:`gape.nn.FeatureScaling`.

    Example:
        >>> pattern = AttentionPattern(torch.tensor([[0], [1]]), num_nodes=2, heads=8)
        >>> LinearEncoder(channels=32)(torch.randn(2, 32), pattern).shape
        torch.Size([2, 80])
    """

    def __init__(self, channels: int, hidden: int = 80, *, flip_signs: bool = False, scaling: Scaling = "none") -> None:
        super().__init__()
        self.channels, self.flip_signs = channels, flip_signs
        self.scaling = FeatureScaling(channels, scaling)
        self.linear = nn.Linear(channels, hidden)

    def forward(self, encoding: Tensor | None, pattern: AttentionPattern) -> Tensor:
        """``[num_nodes, channels]`` to ``[num_nodes, hidden]``."""
        if encoding is None or list(encoding.shape) != [pattern.num_nodes, self.channels]:
            got = "None" if encoding is None else f"shape {list(encoding.shape)}"
            raise ValueError(f"encoding must have shape [{pattern.num_nodes}, {self.channels}], got {got}")
        encoding = self.scaling(encoding).to(self.linear.weight.dtype)
        if self.flip_signs and self.training:
            signs = torch.randint(0, 2, (self.channels,), device=encoding.device) * 2 - 1
            encoding = encoding * signs
        output: Tensor = self.linear(encoding)
        return output

    def fit_scaling(self, batches: Iterable[tuple[Any, AttentionPattern]]) -> None:
        if self.scaling.from_training_set:
            self.scaling.fit(torch.cat([encoding for encoding, _ in batches]))
