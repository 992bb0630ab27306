"""Layers of the encoder and of the decoder, normalised before each branch."""

from __future__ import annotations

from torch import Tensor, nn

from gape.experiments.translation.model.attention import Attention
from gape.experiments.translation.model.dropout import Dropout
from gape.experiments.translation.model.settings import ModelSettings


class FeedForward(nn.Sequential):
    """Linear, ReLU, dropout, linear."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__(
            nn.Linear(settings.width, settings.feed_forward),
            nn.ReLU(),
            Dropout(settings.dropout),
            nn.Linear(settings.feed_forward, settings.width),
        )


class EncoderLayer(nn.Module):
    """Self-attention and a feed-forward network."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.attention_norm, self.attention = nn.LayerNorm(settings.width), Attention(settings)
        self.feed_forward_norm, self.feed_forward = nn.LayerNorm(settings.width), FeedForward(settings)
        self.dropout = Dropout(settings.dropout)

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        normed = self.attention_norm(x)
        x = x + self.dropout(self.attention(normed, self.attention.keys_values(normed), mask))
        output: Tensor = x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))
        return output


class DecoderLayer(nn.Module):
    """Self-attention, attention to the source, and a feed-forward network.

    The three branches can be taken apart, since a search that keeps keys and values of earlier tokens needs it.
    """

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.self_norm, self.self_attention = nn.LayerNorm(settings.width), Attention(settings)
        self.source_norm, self.source_attention = nn.LayerNorm(settings.width), Attention(settings)
        self.feed_forward_norm, self.feed_forward = nn.LayerNorm(settings.width), FeedForward(settings)
        self.dropout = Dropout(settings.dropout)

    def forward(self, x: Tensor, mask: Tensor, source: tuple[Tensor, Tensor], source_mask: Tensor) -> Tensor:
        normed = self.self_norm(x)
        x = self.look_back(x, normed, self.self_attention.keys_values(normed), mask)
        return self.look_at_source(x, source, source_mask)

    def look_back(self, x: Tensor, normed: Tensor, kept: tuple[Tensor, Tensor], mask: Tensor | None) -> Tensor:
        """The self-attention branch: ``normed`` is ``self_norm(x)``, ``kept`` the keys and values of all so far."""
        output: Tensor = x + self.dropout(self.self_attention(normed, kept, mask))
        return output

    def look_at_source(self, x: Tensor, source: tuple[Tensor, Tensor], source_mask: Tensor) -> Tensor:
        """The other two branches."""
        x = x + self.dropout(self.source_attention(self.source_norm(x), source, source_mask))
        output: Tensor = x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))
        return output
