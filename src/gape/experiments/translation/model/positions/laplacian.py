"""LAPE for sentences: Laplacian eigenvectors of a path or cycle through a linear map."""

from __future__ import annotations

from torch import Tensor, nn

from gape.encodings import SequenceLaplacian
from gape.experiments.translation.model.positions.base import Positions
from gape.experiments.translation.model.positions.sentence import SentenceRows


class LaplacianPositions(Positions):
    """Adds a learned linear map of the eigenvectors of the sentence's path (LAPE-P) or cycle (LAPE-C).

    Signs are fixed: the eigenvectors are cosines and sines whose signs are the same for all lengths, so there is
    nothing that random flips could teach, and flipping when translating would destroy the encoding.

    Args:
        encoding: which graph and how many eigenvectors.
        width: of the model.
        limit: longest sequence.
    """

    def __init__(self, encoding: SequenceLaplacian, width: int, limit: int) -> None:
        super().__init__(limit)
        self.rows = SentenceRows(encoding, limit)
        self.linear = nn.Linear(encoding.vectors, width)

    def forward(self, embedded: Tensor, lengths: Tensor | None = None, first: int = 0) -> Tensor:
        rows, which = self.rows(lengths, first, self.check(embedded, first))
        encoded: Tensor = self.linear(rows.nan_to_num(0.0))
        return embedded + (encoded if which is None else encoded[which])
