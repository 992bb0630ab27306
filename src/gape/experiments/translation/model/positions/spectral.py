"""SA for sentences: spectral attention on a cycle."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gape.encodings import CycleSpectrum
from gape.experiments.translation.model.positions.base import Positions
from gape.experiments.translation.model.positions.sentence import SentenceRows


class SpectralPositions(Positions):
    """A learned summary of the eigenvector entries and eigenvalues of the sentence's cycle, beside narrower tokens.

    Kreuzer et al. (2021), with the sizes of Soga & Chiang's translation runs: 20 eigenpairs, 16 channels, two
    transformer layers over the eigenpairs with feed-forward networks of width 16, and tokens mapped to ``width - 16``
    channels. With more layers than :class:`gape.nn.SpectralAttention`, which is what they use for graphs.

    Args:
        encoding: number of eigenpairs.
        width: of the model.
        limit: longest sequence.
        channels: of the summary.
        layers: of the small transformer over the eigenpairs.
        dropout: within it.
    """

    def __init__(
        self,
        encoding: CycleSpectrum,
        width: int,
        limit: int,
        *,
        channels: int = 16,
        layers: int = 2,
        dropout: float = 0.1,
    ) -> None:
        super().__init__(limit)
        if width <= channels:
            raise ValueError(f"the model's width must be more than the {channels} channels of positions, got {width}")
        self.rows = SentenceRows(encoding, limit)
        self.narrow = nn.Linear(width, width - channels)
        self.pair = nn.Linear(2, channels)
        layer = nn.TransformerEncoderLayer(
            channels, nhead=4, dim_feedforward=channels, dropout=dropout, batch_first=True
        )
        self.attention = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, embedded: Tensor, lengths: Tensor | None = None, first: int = 0) -> Tensor:
        rows, which = self.rows(lengths, first, self.check(embedded, first))
        encoded = self._summary(rows.flatten(0, 1)).view(*rows.shape[:2], -1)
        encoded = encoded.expand(len(embedded), -1, -1) if which is None else encoded[which]
        return torch.cat([self.narrow(embedded), encoded], -1)

    def _summary(self, pairs: Tensor) -> Tensor:
        """``[n, k, 2]``, NaN where a pair does not exist, to ``[n, channels]``: a sum over the pairs."""
        missing = pairs.isnan().any(-1)
        # A softmax over nothing is NaN; past a sentence's end, where no pair exists, one looks at all and sums none.
        hidden = missing & ~missing.all(-1, keepdim=True)
        states = self.attention(self.pair(pairs.nan_to_num(0.0)), src_key_padding_mask=hidden)
        return states.masked_fill(missing.unsqueeze(-1), 0.0).sum(1)  # type: ignore[no-any-return]
