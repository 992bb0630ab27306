"""Beam search: the likeliest translations, for many sentences at once."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gape.nn.sequence import Transformer
from gape.nn.sequence.pieces import BEGIN, END, PAD
from gape.translation.search_state import SearchState
from gape.translation.settings import BeamSettings


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
        source: ``[sentences, n]``, as of :func:`gape.translation.batches.source_batch`.
        settings: beam, length penalty, longest length.
    """
    if model.training:
        raise ValueError("the model is in training mode, where dropout is on; call model.eval() first")
    settings = settings or BeamSettings()
    beam, device = settings.beam, source.device
    # Begin takes a position too.
    longest = ((source != PAD).sum(1) + settings.extra_length).clamp(max=model.settings.max_positions - 1).tolist()
    best: list[Hypothesis | None] = [None] * len(source)
    finished = [0] * len(source)
    numbers = list(range(len(source)))  # the sentences still in the batch
    state = SearchState(model, source, beam)
    scores = torch.full((len(source), beam), -torch.inf, device=device)
    scores[:, 0] = 0.0  # all hypotheses are the same at first, so one of them stands for all
    history = torch.empty(len(source), beam, 0, dtype=torch.long, device=device)
    tokens = torch.full((len(source), beam), BEGIN, device=device)
    while numbers:
        added = state.step(tokens)
        added[..., [PAD, BEGIN]] = -torch.inf
        total = (scores.unsqueeze(-1) + added).flatten(1)
        # At most ``beam`` candidates end, so among twice as many there are enough that do not.
        top, flat = total.topk(min(2 * beam, total.shape[1]), dim=1)
        parents, pieces = flat // added.shape[-1], flat % added.shape[-1]
        ends = pieces == END
        penalty = length_penalty(history.shape[2] + 1, settings.length_penalty)
        for i, j in (ends[:, :beam] & top[:, :beam].isfinite()).nonzero().tolist():
            number, score = numbers[i], top[i, j].item() / penalty
            finished[number] += 1
            known = best[number]
            if known is None or score > known.score:
                best[number] = Hypothesis(tuple(history[i, parents[i, j]].tolist()), score)
        # The live ones, best first: a stable sort puts those that end last.
        order = ends.to(torch.int8).argsort(dim=1, stable=True)[:, :beam]
        scores = top.gather(1, order).masked_fill(ends.gather(1, order), -torch.inf)
        parents, tokens = parents.gather(1, order), pieces.gather(1, order)
        history = history.gather(1, parents.unsqueeze(-1).expand(-1, -1, history.shape[2]))
        history = torch.cat([history, tokens.unsqueeze(-1)], 2)
        state.reorder(parents)

        live = []
        for i, (number, score) in enumerate(zip(numbers, scores[:, 0].tolist(), strict=True)):
            known, bound = best[number], score / length_penalty(longest[number], settings.length_penalty)
            if history.shape[2] >= longest[number]:
                if known is None:  # nothing has ended: the best that there is
                    penalty = length_penalty(history.shape[2], settings.length_penalty)
                    best[number] = Hypothesis(tuple(history[i, 0].tolist()), score / penalty)
            elif not (finished[number] >= beam or (known is not None and known.score >= bound)):
                live.append(i)
        if len(live) < len(numbers):
            kept = torch.tensor(live, dtype=torch.long, device=device)
            numbers = [numbers[i] for i in live]
            state.keep(kept)
            scores, tokens, history = scores[kept], tokens[kept], history[kept]
    return [hypothesis for hypothesis in best if hypothesis is not None]
