"""Positions from a table: row *i*, or a linear map of it, is added to token *i*."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gape.experiments.translation.model.positions.base import Positions


class TablePositions(Positions):
    """Adds row *i* of a fixed table to token *i*.

    The table is a buffer: it is saved with the model, so that a translation in another process uses the same one.

    Args:
        table: ``[limit, width]``, or ``[limit, k]`` with ``linear``.
        width: of the model.
        linear: put a learned linear map, with bias, between the table and the model.

    Example:
        >>> TablePositions(torch.ones(8, 4), width=4)(torch.zeros(1, 2, 4)).sum().item()
        8.0
    """

    table: Tensor

    def __init__(self, table: Tensor, width: int, *, linear: bool = False) -> None:
        super().__init__(len(table))
        if not linear and table.shape[1] != width:
            raise ValueError(f"a table added as it is needs the model's width {width}, got shape {list(table.shape)}")
        self.register_buffer("table", table.to(torch.float32))
        self.linear = nn.Linear(table.shape[1], width) if linear else None

    def forward(self, embedded: Tensor, lengths: Tensor | None = None, first: int = 0) -> Tensor:
        rows = self.table[first : self.check(embedded, first)]
        return embedded + (rows if self.linear is None else self.linear(rows))
