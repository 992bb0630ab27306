"""SA for sentences: spectral attention on a cycle."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gape.encodings import CycleSpectrum
from gape.nn import AttentionPattern, SpectralAttention
from gape.translation.positions.base import Positions
from gape.translation.positions.sentence import SentenceRows


class SpectralPositions(Positions):
    """A learned summary of the eigenvector entries and eigenvalues of the sentence's cycle, beside narrower tokens.

    Kreuzer et al. (2021), with the sizes of Soga & Chiang's translation runs: 20 eigenpairs, 16 channels, feed-forward
    networks of width 16, and tokens mapped to ``width - 16`` channels.

    Args:
        encoding: number of eigenpairs.
        width: of the model.
        limit: longest sequence.
        channels: of the summary.
        dropout: within spectral attention.
    """

    def __init__(
        self, encoding: CycleSpectrum, width: int, limit: int, *, channels: int = 16, dropout: float = 0.1
    ) -> None:
        super().__init__(limit)
        if width <= channels:
            raise ValueError(f"the model's width must be more than the {channels} channels of positions, got {width}")
        self.rows = SentenceRows(encoding, limit)
        self.narrow = nn.Linear(width, width - channels)
        self.attention = SpectralAttention(channels, heads=4, feed_forward=16, dropout=dropout)

    def forward(self, embedded: Tensor, lengths: Tensor | None = None, first: int = 0) -> Tensor:
        rows, which = self.rows(lengths, first, self.check(embedded, first))
        flat = rows.flatten(0, 1)
        alone = AttentionPattern(torch.empty(2, 0, dtype=torch.long, device=flat.device), num_nodes=len(flat), heads=1)
        encoded: Tensor = self.attention(flat, alone).view(*rows.shape[:2], -1)
        encoded = encoded.expand(len(embedded), -1, -1) if which is None else encoded[which]
        return torch.cat([self.narrow(embedded), encoded], -1)
