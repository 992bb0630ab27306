"""Text in, translated text out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gape.experiments.translation.batches import BatchPlan, source_batch
from gape.experiments.translation.beam import beam_search
from gape.experiments.translation.model import ModelSettings, Transformer
from gape.experiments.translation.settings import BeamSettings
from gape.experiments.translation.vocabulary import Vocabulary

#: Source tokens translated at once, times the beam.
TOKENS = 4096


def readable(vocabulary: Vocabulary, lines: Sequence[str], settings: ModelSettings, where: str) -> list[list[int]]:
    """The lines in pieces; one that says nothing, or more than a model of these settings can read, is refused."""
    sentences, limit = vocabulary.encode_all(lines), settings.max_positions - 1
    for number, sentence in enumerate(sentences, 1):
        if not sentence:
            raise ValueError(f"{where}, line {number}: {lines[number - 1]!r} has no words; leave it out")
        if len(sentence) > limit:
            raise ValueError(
                f"{where}, line {number}: {len(sentence)} pieces, the model reads at most {limit}, one less than "
                f"max_positions: {lines[number - 1][:60]!r}…; split it"
            )
    return sentences


def translate(
    model: Transformer,
    vocabulary: Vocabulary,
    lines: Sequence[str],
    settings: BeamSettings | None = None,
    *,
    where: str = "the text",
    progress: Callable[[int], None] = lambda done: None,
) -> list[str]:
    """Translations of lines, in their order.

    Args:
        model: is put into evaluation mode for the time.
        vocabulary: that the model was trained with.
        lines: sentences, tokenised as the training text was.
        settings: of the search.
        where: the lines come from, for messages.
        progress: told how many more sentences are done.
    """
    settings = settings or BeamSettings()
    if not lines:
        return []
    sentences = readable(vocabulary, lines, model.settings, where)
    plan = BatchPlan(tuple(len(sentence) + 1 for sentence in sentences), max(TOKENS // settings.beam, 1))
    out = [""] * len(lines)
    device, training = model.embedding.weight.device, model.training
    model.eval()
    try:
        for batch in reversed(plan.in_order()):  # the longest first: if memory is short, it shows at once
            found = beam_search(model, source_batch([sentences[i] for i in batch]).to(device), settings)
            for i, hypothesis in zip(batch, found, strict=True):
                out[i] = vocabulary.decode(hypothesis.pieces)
            progress(len(batch))
    finally:
        model.train(training)
    return out
