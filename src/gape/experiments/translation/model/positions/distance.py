"""SPD+C for sentences: distances on the path as attention bias, and degrees."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gape.experiments.translation.model.positions.base import Positions


class DistancePositions(Positions):
    """A learned attention bias for each distance |i - j| and head, and an embedding of each token's degree.

    Graphormer's encodings (Ying et al., 2021) on the path of ``limit`` nodes, in the encoder's and the decoder's
    self-attention alike, when training and when translating. Of the two degrees of a path, only the first position has
    the smaller one (and the last of ``limit``).

    Args:
        width: of the model.
        heads: of the model.
        limit: longest sequence.
        distances: rows of the table; larger distances share the last.

    Example:
        >>> DistancePositions(width=8, heads=2, limit=16).bias(1, 5).shape
        torch.Size([2, 1, 5])
    """

    def __init__(self, width: int, heads: int, limit: int, *, distances: int = 256) -> None:
        super().__init__(limit)
        if distances < 2:
            raise ValueError(f"distances must be at least 2, got {distances}")
        self.distance = nn.Embedding(distances, heads)
        self.degree = nn.Embedding(2, width)
        nn.init.normal_(self.distance.weight, std=0.02)
        nn.init.normal_(self.degree.weight, std=0.02)

    def forward(self, embedded: Tensor, lengths: Tensor | None = None, first: int = 0) -> Tensor:
        position = torch.arange(first, self.check(embedded, first), device=embedded.device)
        inner = (position > 0) & (position < self.limit - 1)
        added: Tensor = self.degree(inner.long())
        return embedded + added

    def bias(self, queries: int, keys: int) -> Tensor:
        key = torch.arange(keys, device=self.distance.weight.device)
        apart = (key[keys - queries :, None] - key).abs().clamp(max=self.distance.num_embeddings - 1)
        return self.distance(apart).permute(2, 0, 1)  # type: ignore[no-any-return]
