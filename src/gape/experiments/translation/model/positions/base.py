"""How the positions of tokens enter the translation model: one interface for encoder and decoder."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import Tensor, nn


class Positions(nn.Module, ABC):
    """Tells the model where its tokens stand. The same object serves the encoder and the decoder.

    Args:
        limit: longest sequence, in tokens.
    """

    def __init__(self, limit: int) -> None:
        super().__init__()
        if limit < 3:
            raise ValueError(f"limit must be at least 3 positions, got {limit}")
        self.limit = limit

    @abstractmethod
    def forward(self, embedded: Tensor, lengths: Tensor | None = None, first: int = 0) -> Tensor:
        """Embedded tokens with their positions.

        Args:
            embedded: ``[batch, count, width]``, tokens ``first`` to ``first + count - 1`` of their sequences.
            lengths: ``[batch]``, lengths of the sequences, where they are known: in the encoder. The decoder writes
                its sequence, so it cannot know how long it will be, and must not be told in training.
            first: position of the first token, counted from 0.
        """

    def bias(self, queries: int, keys: int) -> Tensor | None:
        """Added to the attention scores of the last ``queries`` of ``keys`` tokens: ``[heads, queries, keys]``."""
        return None

    def check(self, embedded: Tensor, first: int) -> int:
        """The position after the last; an error if there is none such."""
        last = first + embedded.shape[1]
        if last > self.limit:
            raise ValueError(
                f"a sequence of {last} tokens is longer than the {self.limit} positions of this model; shorten the "
                f"sentence, or train with more max_positions"
            )
        return last


class NoPositions(Positions):
    """No encoding: the encoder sees a bag of tokens, the decoder has its causal mask only."""

    def forward(self, embedded: Tensor, lengths: Tensor | None = None, first: int = 0) -> Tensor:
        self.check(embedded, first)
        return embedded
