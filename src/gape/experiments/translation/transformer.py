"""Encoder-decoder transformer (Vaswani et al., 2017) with interchangeable position encodings."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from gape._internal.validation import whole_number
from gape.experiments.translation.positions import Positions, check_encoding, make_positions
from gape.nn.feed_forward import dropped_steps, keep_mask, keep_scale

#: Rows of logits computed at once. A row has some thousand classes, so a block of this size stays in a CPU's cache.
BLOCK_ROWS = 256

#: Indices of the special pieces.
PAD, UNKNOWN, BEGIN, END = 0, 1, 2, 3


@dataclass(frozen=True)
class ModelSettings:
    """Sizes of the transformer. The defaults are the paper's (Witwicky's).

    Args:
        positions: name of the position encoding.
        layers: of the encoder, and of the decoder.
        width: of embeddings and layers.
        feed_forward: width of the feed-forward networks.
        heads: attention heads.
        dropout: on embeddings, residual branches and feed-forward networks.
        attention_dropout: on attention weights.
        word_dropout: probability that an input token is replaced by the unknown piece in training.
        max_positions: length of the longest sequence, in tokens.
        pieces: size of the vocabulary to train for the model. The model itself is given the size reached.
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


class Dropout(nn.Module):
    """Dropout whose probability is a multiple of 2⁻¹⁶, faster on a CPU than PyTorch's.

    PyTorch's dropout took a tenth of the time of a training step on a CPU.

    Args:
        p: probability that an entry is zeroed, at least 0 and less than 1.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise ValueError(f"p must be at least 0 and less than 1, got {p}")
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        dropped = dropped_steps(self.p)
        if not (self.training and dropped):
            return x
        return x * keep_mask(x, dropped).to(x.dtype).mul_(keep_scale(dropped))

    def extra_repr(self) -> str:
        return f"p={self.p}"


class Attention(nn.Module):
    """Multi-head scaled dot-product attention. Keys and values are computed separately, so that they can be cached."""

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.heads, self.dropout = settings.heads, settings.attention_dropout
        self.query = nn.Linear(settings.width, settings.width)
        self.key = nn.Linear(settings.width, settings.width)
        self.value = nn.Linear(settings.width, settings.width)
        self.output = nn.Linear(settings.width, settings.width)

    def keys_values(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Map ``[batch, n, width]`` to keys and values, each ``[batch, heads, n, width / heads]``."""
        return self._split(self.key(x)), self._split(self.value(x))

    def forward(self, x: Tensor, keys_values: tuple[Tensor, Tensor], mask: Tensor | None = None) -> Tensor:
        """Attend from the tokens ``x`` to keys.

        Args:
            x: ``[batch, n, width]``.
            keys_values: from :meth:`keys_values`.
            mask: broadcast to ``[batch, heads, n, keys]``: True where attention is allowed, or a bias, -inf where not.
        """
        keys, values = keys_values
        dropout = self.dropout if self.training else 0.0
        attended = F.scaled_dot_product_attention(self._split(self.query(x)), keys, values, mask, dropout)
        output: Tensor = self.output(attended.transpose(1, 2).flatten(2))
        return output

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)


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
    """Pre-norm self-attention and feed-forward network."""

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
    """Pre-norm self-attention, cross-attention to the source, and feed-forward network.

    The branches can be called separately, because beam search caches keys and values of earlier tokens.
    """

    def __init__(self, settings: ModelSettings) -> None:
        super().__init__()
        self.self_norm, self.self_attention = nn.LayerNorm(settings.width), Attention(settings)
        self.source_norm, self.source_attention = nn.LayerNorm(settings.width), Attention(settings)
        self.feed_forward_norm, self.feed_forward = nn.LayerNorm(settings.width), FeedForward(settings)
        self.dropout = Dropout(settings.dropout)

    def forward(self, x: Tensor, mask: Tensor, source: tuple[Tensor, Tensor], source_mask: Tensor) -> Tensor:
        normed = self.self_norm(x)
        x = self.attend_self(x, normed, self.self_attention.keys_values(normed), mask)
        return self.attend_source(x, source, source_mask)

    def attend_self(self, x: Tensor, normed: Tensor, keys_values: tuple[Tensor, Tensor], mask: Tensor | None) -> Tensor:
        """Apply self-attention: ``normed`` is ``self_norm(x)``, ``keys_values`` those of all tokens so far."""
        output: Tensor = x + self.dropout(self.self_attention(normed, keys_values, mask))
        return output

    def attend_source(self, x: Tensor, source: tuple[Tensor, Tensor], source_mask: Tensor) -> Tensor:
        """Apply cross-attention to the source's keys and values, then the feed-forward network."""
        x = x + self.dropout(self.source_attention(self.source_norm(x), source, source_mask))
        output: Tensor = x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))
        return output


class Transformer(nn.Module):
    """Pre-norm transformer with one embedding for source, target and output.

    Embeddings are scaled by √width. For the same seed, all weights but those of the position encoding have the same
    initial values, whatever the encoding.

    Args:
        settings: sizes and position encoding.
        vocabulary: number of pieces, of which 0 to 3 are padding, unknown, begin and end.
        seed: of the weights and of GAPE's automaton.

    Example:
        >>> model = Transformer(ModelSettings(layers=1, width=8, feed_forward=8, heads=2), vocabulary=10).eval()
        >>> model(torch.tensor([[4, 5, 3]]), torch.tensor([[2, 6]])).shape
        torch.Size([1, 2, 10])
    """

    embedding: nn.Embedding
    positions: Positions
    output_mask: Tensor

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
            # Last, because encodings draw different numbers of random numbers.
            self.positions = _make_positions(settings, settings.positions, seed)
        self.dropout = Dropout(settings.dropout)
        self.register_buffer("output_mask", torch.ones(vocabulary, dtype=torch.bool))

    def restrict_output(self, pieces: Iterable[int]) -> None:
        """Generate only these pieces and the end: of a joint vocabulary, those of the target language."""
        self.output_mask.fill_(False)
        self.output_mask[[*pieces, END]] = True

    def replace_positions(self, name: str, *, seed: int = 0) -> None:
        """Replace the trained position encoding by another one; all other weights stay.

        Replacing the sinusoids by the automaton of Proposition 1 changes nothing.

        Args:
            name: of an encoding without learned parameters.
            seed: of GAPE's automaton.
        """
        positions = _make_positions(self.settings, name, seed)
        if any(True for _ in positions.parameters()):
            raise ValueError(
                f"{name!r} has learned parameters, which were not trained with this model; choose an encoding without, "
                f"such as sinusoidal, or train a model with {name!r}"
            )
        self.positions = positions.to(self.embedding.weight.device)

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        """Compute the logits of the piece after each target piece.

        Args:
            source: ``[batch, n]``, padded at the end.
            target: ``[batch, m]``, starting with begin, padded at the end.

        Returns:
            ``[batch, m, vocabulary]``.
        """
        return self.logits(self._decode(source, target))

    @property
    def decoder_layers(self) -> list[DecoderLayer]:
        """The layers of the decoder, typed."""
        return [layer for layer in self.decoder if isinstance(layer, DecoderLayer)]

    def loss(self, source: Tensor, target: Tensor, label_smoothing: float) -> Tensor:
        """Cross-entropy per target piece, with label smoothing (Szegedy et al., 2016) over the pieces of the output."""
        expected = target[:, 1:]
        present = expected != PAD
        if not self.output_mask[expected[present]].all():
            excluded = sorted(set(expected[present & ~self.output_mask[expected]].tolist()))
            raise ValueError(f"target contains pieces {excluded}, which restrict_output() excluded; include them there")
        x = self.decoder_norm(self._decode(source, target[:, :-1])[present])
        # Half of a joint vocabulary is never generated, and logits are most of the work of a small model.
        rank = self.output_mask.cumsum(0) - 1
        return cross_entropy(x, self.embedding.weight[self.output_mask], rank[expected[present]], label_smoothing)

    def _decode(self, source: Tensor, target: Tensor) -> Tensor:
        if source.dim() != 2 or target.dim() != 2 or len(source) != len(target):
            raise ValueError(
                f"source and target must be [batch, length] with equal batch sizes, got {list(source.shape)} and "
                f"{list(target.shape)}"
            )
        memory, source_mask = self.encode(source)
        x = self._embed(target)
        mask = self.causal_mask(target.shape[1])
        for layer in self.decoder_layers:
            x = layer(x, mask, layer.source_attention.keys_values(memory), source_mask)
        return x

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Encode the source to ``[batch, n, width]``, and return the mask of its tokens ``[batch, 1, 1, n]`` too."""
        present = source != PAD
        source_mask = present[:, None, None, :]
        x = self._embed(source, lengths=present.sum(1))
        bias = self.positions.bias(source.shape[1], source.shape[1])
        mask = source_mask if bias is None else bias.masked_fill(~source_mask, -torch.inf)
        for layer in self.encoder:
            x = layer(x, mask)
        return self.encoder_norm(x), source_mask

    def causal_mask(self, length: int) -> Tensor:
        """Mask of the decoder's self-attention. Padding comes last, so masking later tokens masks it too."""
        earlier = torch.ones(length, length, dtype=torch.bool, device=self.embedding.weight.device).tril()
        bias = self.positions.bias(length, length)
        return earlier if bias is None else bias.masked_fill(~earlier, -torch.inf)

    def embed_next(self, tokens: Tensor, position: int) -> Tensor:
        """Embed tokens ``[batch, n]`` that all have the same position, for a step of the decoder."""
        flat = self.embedding(tokens).flatten(0, -2).unsqueeze(1) * math.sqrt(self.settings.width)
        return self.positions(flat, None, position).view(*tokens.shape, -1)  # type: ignore[no-any-return]

    def logits(self, x: Tensor) -> Tensor:
        """Map the last layer's states to logits by the tied embedding; -inf for excluded pieces."""
        return F.linear(self.decoder_norm(x), self.embedding.weight).masked_fill(~self.output_mask, -torch.inf)

    def _embed(self, tokens: Tensor, lengths: Tensor | None = None) -> Tensor:
        if self.training and self.settings.word_dropout:
            dropped = torch.rand(tokens.shape, device=tokens.device) < self.settings.word_dropout
            # Begin, end and padding are not words.
            tokens = tokens.masked_fill(dropped & (tokens > END), UNKNOWN)
        embedded = self.embedding(tokens) * math.sqrt(self.settings.width)
        return self.dropout(self.positions(embedded, lengths))  # type: ignore[no-any-return]


def _make_positions(settings: ModelSettings, name: str, seed: int) -> Positions:
    return make_positions(
        name, width=settings.width, heads=settings.heads, max_positions=settings.max_positions, seed=seed
    )


def cross_entropy(x: Tensor, weight: Tensor, target: Tensor, smoothing: float = 0.0) -> Tensor:
    """Mean cross-entropy of the logits ``x @ weight.T``, with label smoothing (Szegedy et al., 2016).

    Equals :func:`torch.nn.functional.cross_entropy` on those logits, in less time and memory. The logits of a batch
    are larger than everything else in a small model, so they are computed in blocks, and each block is reduced to its
    contribution to the gradient at once.

    Args:
        x: ``[n, width]``.
        weight: ``[classes, width]``.
        target: ``[n]``, the class of each row.
        smoothing: probability mass spread evenly over all classes.

    Example:
        >>> x, weight = torch.eye(2), torch.tensor([[9.0, 0.0], [0.0, 9.0], [0.0, 0.0]])
        >>> round(cross_entropy(x, weight, torch.tensor([0, 1])).item(), 4)
        0.0002
    """
    loss: Tensor = _CrossEntropy.apply(x, weight, target, smoothing)  # type: ignore[no-untyped-call]
    return loss


class _CrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, target: Tensor, smoothing: float) -> Tensor:
        # The loss of a row is -(1 - ε) log p(target) - ε mean log p; its gradient with respect to the logits is
        # p - (1 - ε) [target] - ε / classes.
        classes, loss = len(weight), x.new_zeros(())
        x_gradient, weight_gradient = torch.empty_like(x), torch.zeros_like(weight)
        for start in range(0, len(x), BLOCK_ROWS):
            rows, correct = x[start : start + BLOCK_ROWS], target[start : start + BLOCK_ROWS, None]
            block = (rows @ weight.T).log_softmax(-1)
            loss -= (1 - smoothing) * block.gather(1, correct).sum() + smoothing / classes * block.sum()
            block.exp_().sub_(smoothing / classes)
            block.scatter_add_(1, correct, block.new_full(correct.shape, smoothing - 1))
            torch.mm(block, weight, out=x_gradient[start : start + BLOCK_ROWS])
            weight_gradient.addmm_(block.T, rows)
        ctx.save_for_backward(x_gradient, weight_gradient)
        ctx.rows = len(x)
        return loss / len(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        x_gradient, weight_gradient = ctx.saved_tensors
        scale = gradients[0] / ctx.rows
        return x_gradient * scale, weight_gradient * scale, None, None
