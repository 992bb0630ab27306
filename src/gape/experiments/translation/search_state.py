"""What a search keeps of the tokens written so far."""

from __future__ import annotations

import torch
from torch import Tensor

from gape.experiments.translation.model import Transformer


class SearchState:
    """Keys and values of a batch of sentences with several hypotheses each.

    Hypotheses of one sentence stand side by side where a layer looks at the source, so the source's keys and values
    are there once a sentence, not once a hypothesis.

    Args:
        model: in evaluation mode.
        source: ``[sentences, n]``, padded at the end.
        width: hypotheses a sentence.
    """

    def __init__(self, model: Transformer, source: Tensor, width: int) -> None:
        self.model, self.width = model, width
        memory, self.mask = model.encode(source)
        self.source = [layer.source_attention.keys_values(memory) for layer in model.decoder_layers]
        self.past: list[tuple[Tensor, Tensor]] = []
        self.length = 0

    def step(self, tokens: Tensor) -> Tensor:
        """Read the next token of every hypothesis ``[sentences, width]``; log-probabilities of the one after it,
        ``[sentences, width, vocabulary]``.
        """
        x = self.model.embed_next(tokens, self.length)
        self.length += 1
        bias = self.model.positions.bias(1, self.length)
        past = []
        for i, layer in enumerate(self.model.decoder_layers):
            alone = x.flatten(0, 1).unsqueeze(1)
            normed = layer.self_norm(alone)
            kept = layer.self_attention.keys_values(normed)
            if self.past:
                kept = (torch.cat([self.past[i][0], kept[0]], 2), torch.cat([self.past[i][1], kept[1]], 2))
            past.append(kept)
            x = layer.attend_self(alone, normed, kept, bias).view_as(x)
            x = layer.attend_source(x, self.source[i], self.mask)
        self.past = past
        return self.model.logits(x).log_softmax(-1)

    def reorder(self, parents: Tensor) -> None:
        """Hypothesis *j* of sentence *i* now goes on from hypothesis ``parents[i, j]`` of the same sentence."""
        rows = (parents + torch.arange(len(parents), device=parents.device).unsqueeze(1) * self.width).flatten()
        self.past = [(keys[rows], values[rows]) for keys, values in self.past]

    def keep(self, sentences: Tensor) -> None:
        """Forget all other sentences."""
        columns = torch.arange(self.width, device=sentences.device)
        rows = (sentences.unsqueeze(1) * self.width + columns).flatten()
        self.past = [(keys[rows], values[rows]) for keys, values in self.past]
        self.source = [(keys[sentences], values[sentences]) for keys, values in self.source]
        self.mask = self.mask[sentences]
