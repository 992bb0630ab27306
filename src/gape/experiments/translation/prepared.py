"""Text turned into numbers, ready for training."""

from __future__ import annotations

from dataclasses import dataclass

from gape.experiments.translation.batches import Batch, BatchPlan, source_batch, target_batch
from gape.experiments.translation.corpus import Corpus
from gape.experiments.translation.settings import TrainingSettings
from gape.experiments.translation.vocabulary import Vocabulary


@dataclass(frozen=True)
class Prepared:
    """A corpus in pieces, pair by pair.

    Args:
        source, target: pieces of each sentence, and of its translation.
        left_out: pairs of the corpus that were too long.
    """

    source: tuple[tuple[int, ...], ...]
    target: tuple[tuple[int, ...], ...]
    left_out: int = 0

    def __len__(self) -> int:
        return len(self.source)

    def batch(self, indices: list[int]) -> Batch:
        """Those pairs, padded."""
        return Batch(
            source_batch([self.source[i] for i in indices]),
            target_batch([self.target[i] for i in indices]),
        )

    def plan(self, settings: TrainingSettings) -> BatchPlan:
        """Batches of pairs of similar length; begin or end counted."""
        lengths = tuple(max(len(a), len(b)) + 1 for a, b in zip(self.source, self.target, strict=True))
        return BatchPlan(lengths, settings.tokens, settings.seed)


def prepare(corpus: Corpus, vocabulary: Vocabulary, *, longest: int) -> Prepared:
    """A corpus in pieces. Pairs with more than ``longest`` pieces on a side are left out, as they fit no model."""
    pairs = [
        (tuple(source), tuple(target))
        for source, target in zip(
            vocabulary.encode_all(corpus.source), vocabulary.encode_all(corpus.target), strict=True
        )
        if max(len(source), len(target)) <= longest
    ]
    if not pairs:
        raise ValueError(f"{corpus!r} has no pair of at most {longest} pieces a side")
    left_out = len(corpus) - len(pairs)
    return Prepared(tuple(source for source, _ in pairs), tuple(target for _, target in pairs), left_out)
