"""Attention with several heads, on PyTorch's kernels."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from gape.experiments.translation.model.settings import ModelSettings


class Attention(nn.Module):
    """Scaled dot-product attention (Vaswani et al., 2017). Keys and values are made apart, so that they can be kept.

    Args:
        settings: of the model.
    """

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.heads, self.dropout = settings.heads, settings.attention_dropout
        self.query = nn.Linear(settings.width, settings.width)
        self.key = nn.Linear(settings.width, settings.width)
        self.value = nn.Linear(settings.width, settings.width)
        self.output = nn.Linear(settings.width, settings.width)

    def keys_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """``[batch, n, width]`` to twice ``[batch, heads, n, width / heads]``."""
        return self._split(self.key(x)), self._split(self.value(x))

    def forward(self, x: Tensor, kept: tuple[Tensor, Tensor], mask: Tensor | None = None) -> Tensor:
        """What the tokens ``x`` find among the keys.

        Args:
            x: ``[batch, n, width]``.
            kept: keys and values.
            mask: broadcast to ``[batch, heads, n, keys]``: True where looking is allowed, or a bias, -inf where not.
        """
        keys, values = kept
        dropout = self.dropout if self.training else 0.0
        found = F.scaled_dot_product_attention(self._split(self.query(x)), keys, values, mask, dropout)
        output: Tensor = self.output(found.transpose(1, 2).flatten(2))
        return output

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)
