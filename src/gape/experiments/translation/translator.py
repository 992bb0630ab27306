"""Beam search, and translation of texts with a trained model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from gape.experiments.translation.batches import BatchPlan, source_batch
from gape.experiments.translation.settings import BeamSettings
from gape.experiments.translation.transformer import BEGIN, END, PAD, ModelSettings, Transformer
from gape.experiments.translation.vocabulary import Vocabulary


@dataclass(frozen=True)
class Hypothesis:
    """A translation: its pieces without begin and end, and its log-probability divided by the length penalty."""

    pieces: tuple[int, ...]
    score: float


def length_penalty(length: int, alpha: float) -> float:
    """Divisor of the scores of ``length`` tokens, end included (Wu et al., 2016, equation 14).

    >>> length_penalty(1, 0.6), round(length_penalty(25, 0.6), 3)
    (1.0, 2.627)
    """
    return float(((5 + length) / 6) ** alpha)


@torch.inference_mode()
def beam_search(model: Transformer, source: Tensor, settings: BeamSettings | None = None) -> list[Hypothesis]:
    """Find the best translation of each sentence.

    Each step extends every live hypothesis by every piece. Those among the best ``beam`` that end are finished; the
    best ``beam`` others stay live. A sentence leaves the batch when ``beam`` of its hypotheses have finished, when no
    live one can beat the best finished one (scores only fall, and the penalty is largest at the maximum length), or at
    its maximum length. Sentences do not influence each other.

    Args:
        model: in evaluation mode.
        source: ``[sentences, n]``, from :func:`gape.experiments.translation.batches.source_batch`.
        settings: beam size, length penalty, maximum length.
    """
    if model.training:
        raise ValueError("the model is in training mode, where dropout is on; call model.eval() first")
    search = _Search(model, source, settings or BeamSettings())
    while search.sentences:
        search.step()
    return [hypothesis for hypothesis in search.best if hypothesis is not None]


class _Search:
    """Live hypotheses of the unfinished sentences, and the best finished one of every sentence.

    ``sentences`` are the indices of the unfinished ones. ``tokens`` and ``scores`` ``[sentences, beam]`` are the last
    tokens and the log-probabilities of their live hypotheses; ``history`` ``[sentences, beam, length]`` has all tokens
    but begin.
    """

    def __init__(self, model: Transformer, source: Tensor, settings: BeamSettings) -> None:
        shape, device = (len(source), settings.beam), source.device
        self.beam, self.alpha = settings.beam, settings.length_penalty
        # Begin takes a position too.
        limit = model.settings.max_positions - 1
        self.max_length = ((source != PAD).sum(1) + settings.extra_length).clamp(max=limit).tolist()
        self.best: list[Hypothesis | None] = [None] * len(source)
        self.finished = [0] * len(source)
        self.sentences = list(range(len(source)))
        self.cache = _DecoderCache(model, source, settings.beam)
        self.scores = torch.full(shape, -torch.inf, device=device)
        self.scores[:, 0] = 0.0  # all hypotheses are equal at first, so one represents all
        self.history = torch.empty(*shape, 0, dtype=torch.long, device=device)
        self.tokens = torch.full(shape, BEGIN, device=device)

    @property
    def length(self) -> int:
        """Tokens of the live hypotheses, without begin."""
        return self.history.shape[2]

    def step(self) -> None:
        """Extend every live hypothesis by one token."""
        log_probabilities = self.cache.step(self.tokens)
        log_probabilities[..., [PAD, BEGIN]] = -torch.inf
        total = (self.scores.unsqueeze(-1) + log_probabilities).flatten(1)
        # At most ``beam`` candidates end, so among twice as many enough do not.
        top, flat = total.topk(min(2 * self.beam, total.shape[1]), dim=1)
        parents, pieces = flat // log_probabilities.shape[-1], flat % log_probabilities.shape[-1]
        self._finish(top, parents, pieces == END)
        self._extend(top, parents, pieces)
        self._select([i for i, score in enumerate(self.scores[:, 0].tolist()) if self._is_live(i, score)])

    def _finish(self, top: Tensor, parents: Tensor, ends: Tensor) -> None:
        """Record those of the best candidates that end."""
        penalty = length_penalty(self.length + 1, self.alpha)
        for i, j in (ends[:, : self.beam] & top[:, : self.beam].isfinite()).nonzero().tolist():
            sentence, score = self.sentences[i], top[i, j].item() / penalty
            self.finished[sentence] += 1
            best = self.best[sentence]
            if best is None or score > best.score:
                self.best[sentence] = Hypothesis(tuple(self.history[i, parents[i, j]].tolist()), score)

    def _extend(self, top: Tensor, parents: Tensor, pieces: Tensor) -> None:
        """Keep the best candidates that do not end as live hypotheses: a stable sort puts those that end last."""
        ends = pieces == END
        order = ends.to(torch.int8).argsort(dim=1, stable=True)[:, : self.beam]
        self.scores = top.gather(1, order).masked_fill(ends.gather(1, order), -torch.inf)
        parents, self.tokens = parents.gather(1, order), pieces.gather(1, order)
        history = self.history.gather(1, parents.unsqueeze(-1).expand(-1, -1, self.length))
        self.history = torch.cat([history, self.tokens.unsqueeze(-1)], 2)
        self.cache.reorder(parents)

    def _is_live(self, i: int, score: float) -> bool:
        """Tell if a sentence, whose best live hypothesis has this score, can still improve."""
        sentence = self.sentences[i]
        best, max_length = self.best[sentence], self.max_length[sentence]
        if self.length >= max_length:
            if best is None:  # none has ended, so the best live one is the result
                penalty = length_penalty(self.length, self.alpha)
                self.best[sentence] = Hypothesis(tuple(self.history[i, 0].tolist()), score / penalty)
            return False
        bound = score / length_penalty(max_length, self.alpha)
        return not (self.finished[sentence] >= self.beam or (best is not None and best.score >= bound))

    def _select(self, live: list[int]) -> None:
        """Remove all other sentences from the batch."""
        if len(live) == len(self.sentences):
            return
        rows = torch.tensor(live, dtype=torch.long, device=self.tokens.device)
        self.sentences = [self.sentences[i] for i in live]
        self.cache.select(rows)
        self.scores, self.tokens, self.history = self.scores[rows], self.tokens[rows], self.history[rows]


class _DecoderCache:
    """Keys and values of a batch of sentences with several hypotheses each.

    In cross-attention the hypotheses of a sentence are one sequence of queries, so the source's keys and values are
    stored once per sentence, not once per hypothesis.

    Args:
        model: in evaluation mode.
        source: ``[sentences, n]``, padded at the end.
        beam: hypotheses per sentence.
    """

    def __init__(self, model: Transformer, source: Tensor, beam: int) -> None:
        self.model, self.beam = model, beam
        memory, self.mask = model.encode(source)
        self.source = [layer.source_attention.keys_values(memory) for layer in model.decoder_layers]
        self.past: list[tuple[Tensor, Tensor]] = []
        self.length = 0

    def step(self, tokens: Tensor) -> Tensor:
        """Append a token to every hypothesis and compute log-probabilities of the next one.

        Args:
            tokens: ``[sentences, beam]``.

        Returns:
            ``[sentences, beam, vocabulary]``.
        """
        x = self.model.embed_next(tokens, self.length)
        self.length += 1
        bias = self.model.positions.bias(1, self.length)
        past = []
        for i, layer in enumerate(self.model.decoder_layers):
            single = x.flatten(0, 1).unsqueeze(1)
            normed = layer.self_norm(single)
            keys_values = layer.self_attention.keys_values(normed)
            if self.past:
                keys, values = self.past[i]
                keys_values = (torch.cat([keys, keys_values[0]], 2), torch.cat([values, keys_values[1]], 2))
            past.append(keys_values)
            x = layer.attend_self(single, normed, keys_values, bias).view_as(x)
            x = layer.attend_source(x, self.source[i], self.mask)
        self.past = past
        return self.model.logits(x).log_softmax(-1)

    def reorder(self, parents: Tensor) -> None:
        """Let hypothesis *j* of sentence *i* continue hypothesis ``parents[i, j]`` of the same sentence."""
        rows = (parents + torch.arange(len(parents), device=parents.device).unsqueeze(1) * self.beam).flatten()
        self.past = [(keys[rows], values[rows]) for keys, values in self.past]

    def select(self, sentences: Tensor) -> None:
        """Remove all other sentences."""
        columns = torch.arange(self.beam, device=sentences.device)
        rows = (sentences.unsqueeze(1) * self.beam + columns).flatten()
        self.past = [(keys[rows], values[rows]) for keys, values in self.past]
        self.source = [(keys[sentences], values[sentences]) for keys, values in self.source]
        self.mask = self.mask[sentences]


#: Source tokens per batch, times the beam size.
BATCH_TOKENS = 4096


def split_lines(vocabulary: Vocabulary, lines: Sequence[str], settings: ModelSettings, origin: str) -> list[list[int]]:
    """Split lines into pieces; raise ``ValueError`` for a line without pieces or too long for the model.

    Args:
        vocabulary: of the model.
        lines: sentences.
        settings: of the model.
        origin: of the lines, for error messages.
    """
    sentences, limit = vocabulary.encode_all(lines), settings.max_positions - 1
    for number, sentence in enumerate(sentences, 1):
        if not sentence:
            raise ValueError(f"{origin}, line {number}: {lines[number - 1]!r} contains no words; remove the line")
        if len(sentence) > limit:
            raise ValueError(
                f"{origin}, line {number}: {len(sentence)} pieces, but the model reads at most {limit} "
                f"(max_positions - 1); split the sentence {lines[number - 1][:60]!r}…"
            )
    return sentences


def translate(
    model: Transformer,
    vocabulary: Vocabulary,
    lines: Sequence[str],
    settings: BeamSettings | None = None,
    *,
    origin: str = "the text",
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[str]:
    """Translate lines, in their order.

    Args:
        model: set to evaluation mode during the call.
        vocabulary: that the model was trained with.
        lines: sentences, tokenised like the training text.
        settings: of the beam search.
        origin: of the lines, for error messages.
        progress: called with the number of sentences done so far, and of all.
    """
    settings = settings or BeamSettings()
    if not lines:
        return []
    sentences = split_lines(vocabulary, lines, model.settings, origin)
    plan = BatchPlan(tuple(len(sentence) + 1 for sentence in sentences), max(BATCH_TOKENS // settings.beam, 1))
    translations, done = [""] * len(lines), 0
    device, training = model.embedding.weight.device, model.training
    model.eval()
    try:
        for batch in reversed(plan.in_order()):  # longest first, so that a lack of memory shows at once
            hypotheses = beam_search(model, source_batch([sentences[i] for i in batch]).to(device), settings)
            for i, hypothesis in zip(batch, hypotheses, strict=True):
                translations[i] = vocabulary.decode(hypothesis.pieces)
            done += len(batch)
            progress(done, len(lines))
    finally:
        model.train(training)
    return translations
