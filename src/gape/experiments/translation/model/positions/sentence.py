"""Rows of an encoding that depends on how long the sentence is."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from gape.encodings import CycleSpectrum, SequenceLaplacian


class SentenceRows(nn.Module):
    """Rows of the sentence's own path or cycle where its length is known, else of the one of ``limit`` nodes.

    The eigenvectors of a path or cycle of n nodes change with n (§4.1 of the paper). The encoder knows n. The decoder
    does not: it gets the graph of the longest sequence, whose table is a buffer. The tables of shorter ones are
    closed forms, made when a sentence of that length first comes by.

    Args:
        encoding: with ``length=None``.
        limit: longest sequence.

    Example:
        >>> rows = SentenceRows(SequenceLaplacian(vectors=2, shape="cycle"), limit=8)
        >>> table, which = rows(torch.tensor([3, 4, 3]), first=0, last=4)
        >>> table.shape, which.tolist()
        (torch.Size([2, 4, 2]), [0, 1, 0])
    """

    table: Tensor

    def __init__(self, encoding: SequenceLaplacian | CycleSpectrum, limit: int) -> None:
        super().__init__()
        if encoding.length is not None:
            raise ValueError(f"an encoding of length {encoding.length} is the same for all sentences: use its table")
        self.encoding = encoding
        self.register_buffer("table", replace(encoding, length=limit).table(limit).to(torch.float32))
        self._known: dict[int, Tensor] = {}

    def forward(self, lengths: Tensor | None, first: int, last: int) -> tuple[Tensor, Tensor | None]:
        """Rows ``first`` to ``last - 1`` of each different length ``[different, last - first, …]``, and which
        of them each sentence has ``[batch]``; one for all, and None, if the lengths are unknown. NaN past the end.
        """
        if lengths is None:
            return self.table[first:last].unsqueeze(0), None
        different, which = torch.unique(lengths, return_inverse=True)
        shape = (len(different), last - first, *self.table.shape[1:])
        rows = torch.full(shape, torch.nan, dtype=self.table.dtype, device=self.table.device)
        for i, length in enumerate(different.tolist()):
            own = self._own(length)[first:last]
            rows[i, : len(own)] = own
        return rows, which

    def _own(self, length: int) -> Tensor:
        if length not in self._known:
            self._known[length] = self.encoding.table(length).to(torch.float32)
        return self._known[length].to(self.table.device)
