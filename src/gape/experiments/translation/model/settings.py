"""The shape of the sequence transformer."""

from __future__ import annotations

from dataclasses import dataclass

from gape._internal.validation import whole_number
from gape.experiments.translation.model.positions.registry import check_encoding


@dataclass(frozen=True)
class ModelSettings:
    """Shape of the transformer. The defaults are the paper's (Witwicky's).

    Args:
        positions: name of the position encoding.
        layers: of the encoder, and of the decoder.
        width: of embeddings and layers.
        feed_forward: width of the feed-forward networks.
        heads: attention heads.
        dropout: of embeddings, residual branches and feed-forward networks.
        attention_dropout: of attention weights.
        word_dropout: share of the tokens read that are replaced by the unknown piece in training.
        max_positions: longest sequence, in tokens.
        pieces: size of the vocabulary that is trained for the model; the model itself takes its real size.
    """

    positions: str = "sinusoidal"
    layers: int = 6
    width: int = 512
    feed_forward: int = 2048
    heads: int = 8
    dropout: float = 0.3
    attention_dropout: float = 0.3
    word_dropout: float = 0.1
    max_positions: int = 1024
    pieces: int = 8000

    def __post_init__(self) -> None:
        check_encoding(self.positions)
        for name in ("layers", "width", "feed_forward", "heads", "max_positions", "pieces"):
            whole_number(getattr(self, name), name, at_least=1)
        if self.width % self.heads:
            raise ValueError(f"heads must divide width, got heads={self.heads} and width={self.width}")
        if self.width % 2:
            raise ValueError(f"width must be even, got {self.width}")
        for name in ("dropout", "attention_dropout", "word_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 0 and less than 1, got {getattr(self, name)}")
