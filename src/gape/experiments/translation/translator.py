"""Translate lines of text with a trained model."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from gape.experiments.translation.batches import BatchPlan, source_batch
from gape.experiments.translation.beam import beam_search
from gape.experiments.translation.model import ModelSettings, Transformer
from gape.experiments.translation.settings import BeamSettings
from gape.experiments.translation.vocabulary import Vocabulary

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
