"""An encoder-decoder transformer for sequences, whose position encoding is exchanged."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gape._internal.validation import whole_number
from gape.experiments.translation.model.cross_entropy import cross_entropy
from gape.experiments.translation.model.dropout import Dropout
from gape.experiments.translation.model.layers import DecoderLayer, EncoderLayer
from gape.experiments.translation.model.pieces import END, PAD, UNKNOWN
from gape.experiments.translation.model.positions import Positions, make_positions
from gape.experiments.translation.model.settings import ModelSettings


class Transformer(nn.Module):
    """Pre-norm transformer (Vaswani et al., 2017) with one embedding for source, target and output.

    Embeddings are scaled by √width. Everything but the position encoding has the same initial weights for the same
    seed, whatever the encoding.

    Args:
        settings: shape and position encoding.
        vocabulary: number of pieces, of which 0 to 3 are padding, unknown, begin and end.
        seed: of the weights and of GAPE's automaton.

    Example:
        >>> model = Transformer(ModelSettings(layers=1, width=8, feed_forward=8, heads=2), vocabulary=10).eval()
        >>> model(torch.tensor([[4, 5, 3]]), torch.tensor([[2, 6]])).shape
        torch.Size([1, 2, 10])
    """

    embedding: nn.Embedding
    positions: Positions
    sayable: Tensor

    def __init__(self, settings: ModelSettings, vocabulary: int, *, seed: int = 0) -> None:
        super().__init__()
        if not isinstance(settings, ModelSettings):
            raise TypeError(f"settings must be ModelSettings(positions=…), got {settings!r}")
        whole_number(vocabulary, "vocabulary", at_least=END + 1)
        self.settings = settings
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.embedding = nn.Embedding(vocabulary, settings.width)
            self.encoder = nn.ModuleList(EncoderLayer(settings) for _ in range(settings.layers))
            self.encoder_norm = nn.LayerNorm(settings.width)
            self.decoder = nn.ModuleList(DecoderLayer(settings) for _ in range(settings.layers))
            self.decoder_norm = nn.LayerNorm(settings.width)
            for module in self.modules():
                if isinstance(module, nn.Linear):
                    nn.init.xavier_normal_(module.weight)
                    nn.init.zeros_(module.bias)
            nn.init.normal_(self.embedding.weight, std=settings.width**-0.5)
            # Last, since encodings differ in how many random numbers they draw.
            self.positions = _positions(settings, settings.positions, seed)
        self.dropout = Dropout(settings.dropout)
        self.register_buffer("sayable", torch.ones(vocabulary, dtype=torch.bool))

    def say_only(self, pieces: Iterable[int]) -> None:
        """Never say other pieces than these and the end: those of the target language, in a joint vocabulary."""
        self.sayable.fill_(False)
        self.sayable[[*pieces, END]] = True

    def exchange_positions(self, name: str, *, seed: int = 0) -> None:
        """Another position encoding in place of the trained one, all other weights kept.

        With the automaton of Proposition 1 in place of the sinusoids, nothing changes.

        Args:
            name: of an encoding that has nothing to learn.
            seed: of GAPE's automaton.
        """
        positions = _positions(self.settings, name, seed)
        if any(True for _ in positions.parameters()):
            raise ValueError(f"{name!r} has weights of its own, which this model never trained; train a model with it")
        self.positions = positions.to(self.embedding.weight.device)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Scores of the piece after each target piece.

        Args:
            source: ``[batch, n]``, padded at the end.
            target: ``[batch, m]``, from begin on, padded at the end.

        Returns:
            ``[batch, m, vocabulary]``.
        """
        return self.scores(self._decode(source, target))

    @property
    def decoder_layers(self) -> list[DecoderLayer]:
        return [layer for layer in self.decoder if isinstance(layer, DecoderLayer)]

    def loss(self, source: Tensor, target: Tensor, label_smoothing: float) -> Tensor:
        """Cross-entropy per target piece, with label smoothing (Szegedy et al., 2016) over what can be said."""
        expected = target[:, 1:]
        present = expected != PAD
        if not self.sayable[expected[present]].all():
            unsaid = sorted(set(expected[present & ~self.sayable[expected]].tolist()))
            raise ValueError(f"pieces {unsaid} are to be said, and say_only() left them out; name them there")
        x = self.decoder_norm(self._decode(source, target[:, :-1])[present])
        # Half of a joint vocabulary is never said, and scores of pieces are most of the work of a small model.
        rank = self.sayable.cumsum(0) - 1
        return cross_entropy(x, self.embedding.weight[self.sayable], rank[expected[present]], label_smoothing)

    def _decode(self, source: Tensor, target: Tensor) -> Tensor:
        if source.dim() != 2 or target.dim() != 2 or len(source) != len(target):
            raise ValueError(
                f"source and target must be [batch, length] with as many rows, got {list(source.shape)} and "
                f"{list(target.shape)}"
            )
        memory, source_mask = self.encode(source)
        x = self._embed(target)
        mask = self.causal_mask(target.shape[1])
        for layer in self.decoder_layers:
            x = layer(x, mask, layer.source_attention.keys_values(memory), source_mask)
        return x

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """``[batch, n, width]``, and the mask of the source's tokens ``[batch, 1, 1, n]``."""
        present = source != PAD
        source_mask = present[:, None, None, :]
        x = self._embed(source, lengths=present.sum(1))
        bias = self.positions.bias(source.shape[1], source.shape[1])
        mask = source_mask if bias is None else bias.masked_fill(~source_mask, -torch.inf)
        for layer in self.encoder:
            x = layer(x, mask)
        return self.encoder_norm(x), source_mask

    def causal_mask(self, length: int) -> Tensor:
        """Who may look where in the decoder: no later token, so no padding either, which comes last."""
        earlier = torch.ones(length, length, dtype=torch.bool, device=self.embedding.weight.device).tril()
        bias = self.positions.bias(length, length)
        return earlier if bias is None else bias.masked_fill(~earlier, -torch.inf)

    def embed_next(self, tokens: Tensor, position: int) -> Tensor:
        """Tokens ``[batch, n]`` that all stand at the same position, as the decoder reads them."""
        flat = self.embedding(tokens).flatten(0, -2).unsqueeze(1) * math.sqrt(self.settings.width)
        return self.positions(flat, None, position).view(*tokens.shape, -1)  # type: ignore[no-any-return]

    def scores(self, x: Tensor) -> Tensor:
        """From the last layer to scores of pieces, by the tied embedding; -inf for what is never said."""
        return F.linear(self.decoder_norm(x), self.embedding.weight).masked_fill(~self.sayable, -torch.inf)

    def _embed(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:
        if self.training and self.settings.word_dropout:
            dropped = torch.rand(tokens.shape, device=tokens.device) < self.settings.word_dropout
            # Begin, end and padding are no words.
            tokens = tokens.masked_fill(dropped & (tokens > END), UNKNOWN)
        embedded = self.embedding(tokens) * math.sqrt(self.settings.width)
        return self.dropout(self.positions(embedded, lengths))  # type: ignore[no-any-return]


def _positions(settings: ModelSettings, name: str, seed: int) -> Positions:
    return make_positions(name, width=settings.width, heads=settings.heads, limit=settings.max_positions, seed=seed)
