"""Beam search: the likeliest translations, for many sentences at once."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gape.experiments.translation.model import BEGIN, END, PAD, Transformer
from gape.experiments.translation.search_state import SearchState
from gape.experiments.translation.settings import BeamSettings


@dataclass(frozen=True)
class Hypothesis:
    """A translation: its pieces without begin and end, and its log-probability over the length penalty."""

    pieces: tuple[int, ...]
    score: float


def length_penalty(length: int, alpha: float) -> float:
    """What scores of ``length`` tokens, the end counted, are divided by (Wu et al., 2016, equation 14).

    >>> length_penalty(1, 0.6), round(length_penalty(25, 0.6), 3)
    (1.0, 2.627)
    """
    return float(((5 + length) / 6) ** alpha)


@torch.inference_mode()
def beam_search(model: Transformer, source: Tensor, settings: BeamSettings | None = None) -> list[Hypothesis]:
    """The best translation found of each sentence.

    Each step extends every live hypothesis by every piece. Those that end among the best ``beam`` are finished and set
    aside; the best ``beam`` others live on. A sentence leaves the batch when ``beam`` of its hypotheses have finished,
    when no live one could still beat the best finished one (scores only fall, and the penalty is largest at the longest
    length), or at its longest length. Sentences do not influence each other.

    Args:
        model: in evaluation mode.
        source: ``[sentences, n]``, as of :func:`gape.experiments.translation.batches.source_batch`.
        settings: beam, length penalty, longest length.
    """
    if model.training:
        raise ValueError("the model is in training mode, where dropout is on; call model.eval() first")
    search = _Search(model, source, settings or BeamSettings())
    while search.numbers:
        search.step()
    return [hypothesis for hypothesis in search.best if hypothesis is not None]


class _Search:
    """The sentences that are searched on, by their ``numbers``, with their live hypotheses, and what has finished.

    Live are ``tokens`` and ``scores`` ``[sentences, beam]``, the last tokens and the log-probabilities so far, and
    ``history`` ``[sentences, beam, length]``, all tokens but begin.
    """

    def __init__(self, model: Transformer, source: Tensor, settings: BeamSettings) -> None:
        shape, device = (len(source), settings.beam), source.device
        self.beam, self.alpha = settings.beam, settings.length_penalty
        # Begin takes a position too.
        most = model.settings.max_positions - 1
        self.longest = ((source != PAD).sum(1) + settings.extra_length).clamp(max=most).tolist()
        self.best: list[Hypothesis | None] = [None] * len(source)
        self.finished = [0] * len(source)
        self.numbers = list(range(len(source)))
        self.state = SearchState(model, source, settings.beam)
        self.scores = torch.full(shape, -torch.inf, device=device)
        self.scores[:, 0] = 0.0  # all hypotheses are the same at first, so one of them stands for all
        self.history = torch.empty(*shape, 0, dtype=torch.long, device=device)
        self.tokens = torch.full(shape, BEGIN, device=device)

    @property
    def length(self) -> int:
        """Tokens of the live hypotheses, begin not counted."""
        return self.history.shape[2]

    def step(self) -> None:
        """One more token for every live hypothesis."""
        added = self.state.step(self.tokens)
        added[..., [PAD, BEGIN]] = -torch.inf
        total = (self.scores.unsqueeze(-1) + added).flatten(1)
        # At most ``beam`` candidates end, so among twice as many there are enough that do not.
        top, flat = total.topk(min(2 * self.beam, total.shape[1]), dim=1)
        parents, pieces = flat // added.shape[-1], flat % added.shape[-1]
        self._set_aside(top, parents, pieces == END)
        self._go_on(top, parents, pieces)
        self._keep([i for i, score in enumerate(self.scores[:, 0].tolist()) if self._lives(i, score)])

    def _set_aside(self, top: Tensor, parents: Tensor, ends: Tensor) -> None:
        """Those among the best that end are finished."""
        penalty = length_penalty(self.length + 1, self.alpha)
        for i, j in (ends[:, : self.beam] & top[:, : self.beam].isfinite()).nonzero().tolist():
            number, score = self.numbers[i], top[i, j].item() / penalty
            self.finished[number] += 1
            known = self.best[number]
            if known is None or score > known.score:
                self.best[number] = Hypothesis(tuple(self.history[i, parents[i, j]].tolist()), score)

    def _go_on(self, top: Tensor, parents: Tensor, pieces: Tensor) -> None:
        """The live ones, best first: a stable sort puts those that end last."""
        ends = pieces == END
        order = ends.to(torch.int8).argsort(dim=1, stable=True)[:, : self.beam]
        self.scores = top.gather(1, order).masked_fill(ends.gather(1, order), -torch.inf)
        parents, self.tokens = parents.gather(1, order), pieces.gather(1, order)
        history = self.history.gather(1, parents.unsqueeze(-1).expand(-1, -1, self.length))
        self.history = torch.cat([history, self.tokens.unsqueeze(-1)], 2)
        self.state.reorder(parents)

    def _lives(self, i: int, score: float) -> bool:
        """Whether the sentence, whose best live hypothesis has this score, has anything left to find."""
        number = self.numbers[i]
        known, longest = self.best[number], self.longest[number]
        if self.length >= longest:
            if known is None:  # nothing has ended: the best that there is
                penalty = length_penalty(self.length, self.alpha)
                self.best[number] = Hypothesis(tuple(self.history[i, 0].tolist()), score / penalty)
            return False
        bound = score / length_penalty(longest, self.alpha)
        return not (self.finished[number] >= self.beam or (known is not None and known.score >= bound))

    def _keep(self, live: list[int]) -> None:
        """Forget all other sentences."""
        if len(live) == len(self.numbers):
            return
        kept = torch.tensor(live, dtype=torch.long, device=self.tokens.device)
        self.numbers = [self.numbers[i] for i in live]
        self.state.keep(kept)
        self.scores, self.tokens, self.history = self.scores[kept], self.tokens[kept], self.history[kept]
