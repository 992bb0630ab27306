"""Batches of sentence pairs of similar length, in an order that depends only on the seed and the epoch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gape.experiments.translation.corpus import Corpus
from gape.experiments.translation.transformer import BEGIN, END, PAD
from gape.experiments.translation.vocabulary import Vocabulary

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class BatchPlan:
    """Assignment of pairs to batches.

    Shuffled pairs are sorted by length within pools of about ``pool`` batches and cut so that no batch has more than
    ``tokens`` tokens, padding included, on either side. Then the batches are shuffled.

    Args:
        lengths: longer side of each pair, in tokens.
        tokens: maximum number of tokens per batch; a longer pair is a batch of its own.
        seed: of the shuffles.
        pool: batches per pool. Larger pools have less padding and less randomness.

    Example:
        >>> plan = BatchPlan(lengths=(3, 9, 3, 9), tokens=9)
        >>> sorted(map(sorted, plan.epoch(0)))
        [[0, 2], [1], [3]]
    """

    lengths: tuple[int, ...]
    tokens: int = 4096
    seed: int = 0
    pool: int = 50

    def __post_init__(self) -> None:
        if self.tokens < 1 or self.pool < 1:
            raise ValueError(f"tokens and pool must be at least 1, got tokens={self.tokens} and pool={self.pool}")
        if not self.lengths:
            raise ValueError("lengths must not be empty; there are no sentences to batch")

    def epoch(self, number: int) -> list[list[int]]:
        """Return the batches of one epoch: the same for the same seed and number, in every process."""
        key = np.array([self.seed % 2**64, number], dtype=np.uint64)
        random = np.random.Generator(np.random.Philox(key=key))
        lengths = np.asarray(self.lengths)
        order = random.permutation(len(lengths))
        pools = lengths[order].cumsum() // (self.pool * self.tokens)
        # A stable sort by pool, then length: pairs of the same length stay in their random order.
        order = order[np.lexsort((lengths[order], pools))]
        batches = self._cut(order, lengths, np.sort(pools))
        return [batches[i] for i in random.permutation(len(batches))]

    def in_order(self) -> list[list[int]]:
        """Return batches with every pair once, sorted by length, for evaluation."""
        lengths = np.asarray(self.lengths)
        return self._cut(np.argsort(lengths, kind="stable"), lengths, np.zeros(len(lengths), dtype=np.int64))

    def _cut(self, order: Integers, lengths: Integers, pools: Integers) -> list[list[int]]:
        batches: list[list[int]] = []
        last = -1
        for i, pool in zip(order.tolist(), pools.tolist(), strict=True):
            # Lengths ascend within a pool, so the newest pair is the longest.
            if pool != last or (len(batches[-1]) + 1) * int(lengths[i]) > self.tokens:
                batches.append([])
            batches[-1].append(i)
            last = pool
        return batches

    def steps(self, first: int, count: int) -> list[list[int]]:
        """Return batches ``first`` to ``first + count - 1`` of all epochs concatenated."""
        batches: list[list[int]] = []
        number, passed = 0, 0
        while len(batches) < count:
            epoch = self.epoch(number)
            start = max(0, first - passed)
            batches += epoch[start : start + count - len(batches)]
            passed += len(epoch)
            number += 1
        return batches


def pad(rows: Sequence[Sequence[int]]) -> Tensor:
    """
    >>> pad([[5, 6], [7]])
    tensor([[5, 6],
            [7, 0]])
    """
    padded = torch.full((len(rows), max(map(len, rows))), PAD)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = torch.tensor(row)
    return padded


def source_batch(sentences: Sequence[Sequence[int]]) -> Tensor:
    """Pad sentences for the encoder, each with its end."""
    return pad([[*sentence, END] for sentence in sentences])


def target_batch(sentences: Sequence[Sequence[int]]) -> Tensor:
    """Pad sentences for the decoder, each with begin and end."""
    return pad([[BEGIN, *sentence, END] for sentence in sentences])


@dataclass(frozen=True, eq=False)
class Batch:
    """Sentences and translations, padded at the end.

    Args:
        source: ``[batch, source length]``: pieces, then end.
        target: ``[batch, target length + 1]``: begin, pieces, end. The decoder's input is all but the last column, its
            expected output all but the first.
    """

    source: Tensor
    target: Tensor


@dataclass(frozen=True)
class PieceCorpus:
    """A corpus as piece indices.

    Args:
        source: pieces of each sentence.
        target: pieces of each translation.
        dropped: number of pairs of the corpus that were too long.
    """

    source: tuple[tuple[int, ...], ...]
    target: tuple[tuple[int, ...], ...]
    dropped: int = 0

    @classmethod
    def from_corpus(cls, corpus: Corpus, vocabulary: Vocabulary, *, max_pieces: int) -> PieceCorpus:
        """Split a corpus into pieces; drop pairs with more than ``max_pieces`` on a side."""
        pairs = [
            (tuple(source), tuple(target))
            for source, target in zip(
                vocabulary.encode_all(corpus.source), vocabulary.encode_all(corpus.target), strict=True
            )
            if max(len(source), len(target)) <= max_pieces
        ]
        if not pairs:
            raise ValueError(
                f"{corpus!r} has no pair of at most {max_pieces} pieces per side; raise max_positions "
                f"(--set max_positions=…) or split the sentences"
            )
        dropped = len(corpus) - len(pairs)
        return cls(tuple(source for source, _ in pairs), tuple(target for _, target in pairs), dropped)

    def __len__(self) -> int:
        return len(self.source)

    def batch(self, indices: list[int]) -> Batch:
        """Pad the pairs of these indices."""
        return Batch(
            source_batch([self.source[i] for i in indices]),
            target_batch([self.target[i] for i in indices]),
        )

    def plan(self, tokens: int, seed: int) -> BatchPlan:
        """Plan batches of pairs of similar length, begin or end included."""
        lengths = tuple(max(len(a), len(b)) + 1 for a, b in zip(self.source, self.target, strict=True))
        return BatchPlan(lengths, tokens, seed)
