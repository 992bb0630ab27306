"""Batches of sentences of similar length, in an order that depends on the seed and the epoch alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gape.experiments.translation.model import BEGIN, END, PAD

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Batch:
    """Sentences and translations, padded at the end.

    Args:
        source: ``[batch, source length]``: pieces, then end.
        target: ``[batch, target length + 1]``: begin, pieces, end. The decoder reads all but the last column and is
            to say all but the first.
    """

    source: Tensor
    target: Tensor


@dataclass(frozen=True)
class BatchPlan:
    """Which pairs go together.

    Shuffled pairs are sorted by length within pools of about ``pool`` batches and cut so that no batch has more than
    ``tokens`` tokens, padding counted, on either side; then the batches are shuffled.

    Args:
        lengths: longer side of each pair, in tokens.
        tokens: largest number of tokens in a batch; a longer pair is a batch of its own.
        seed: of the shuffles.
        pool: batches in a pool. Larger pools have less padding and less chance.

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
            raise ValueError("there are no sentences to make batches of")

    def epoch(self, number: int) -> list[list[int]]:
        """The batches of one pass over the data: the same for the same seed and number, in every process."""
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
        """Every pair once, by length, without chance: for evaluation."""
        lengths = np.asarray(self.lengths)
        return self._cut(np.argsort(lengths, kind="stable"), lengths, np.zeros(len(lengths), dtype=np.int64))

    def _cut(self, order: Integers, lengths: Integers, pools: Integers) -> list[list[int]]:
        batches: list[list[int]] = []
        last = -1
        for i, pool in zip(order.tolist(), pools.tolist(), strict=True):
            # Lengths ascend within a pool, so the newest is the longest.
            if pool != last or (len(batches[-1]) + 1) * int(lengths[i]) > self.tokens:
                batches.append([])
            batches[-1].append(i)
            last = pool
        return batches

    def steps(self, first: int, count: int) -> list[list[int]]:
        """Batches ``first`` to ``first + count - 1`` of epoch after epoch: training as one long sequence of steps."""
        found: list[list[int]] = []
        number, passed = 0, 0
        while len(found) < count:
            batches = self.epoch(number)
            start = max(0, first - passed)
            found += batches[start : start + count - len(found)]
            passed += len(batches)
            number += 1
        return found


def pad(rows: Sequence[Sequence[int]]) -> Tensor:
    """
    >>> pad([[5, 6], [7]])
    tensor([[5, 6],
            [7, 0]])
    """
    out = torch.full((len(rows), max(map(len, rows))), PAD)
    for i, row in enumerate(rows):
        out[i, : len(row)] = torch.tensor(row)
    return out


def source_batch(sentences: Sequence[Sequence[int]]) -> Tensor:
    """Sentences as the encoder reads them: each with its end."""
    return pad([[*sentence, END] for sentence in sentences])


def target_batch(sentences: Sequence[Sequence[int]]) -> Tensor:
    """Sentences as the decoder reads and says them: from begin to end."""
    return pad([[BEGIN, *sentence, END] for sentence in sentences])
