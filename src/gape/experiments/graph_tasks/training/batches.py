"""The order in which graphs come: shuffled anew each epoch for training, always the same for evaluation."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from gape.experiments.graph_tasks.training.encoded import EncodedDataset
from gape.experiments.graph_tasks.training.graph_batch import GraphBatch

# Batches with their attention patterns stay in memory if there are at most so many edges in all.
KEEP_EDGES = 3_000_000


def mixed_seed(*numbers: int) -> int:
    """One seed from several numbers, different for different ones.

    >>> mixed_seed(41, 0, 1) == mixed_seed(41, 1, 0), mixed_seed(41) == mixed_seed(41)
    (False, True)
    """
    mixed = 0
    for number in numbers:
        # Multiplying by an odd constant and folding the high half back is a bijection at each step.
        mixed = ((mixed ^ number) * 0x9E3779B97F4A7C15 + 1) % 2**64
        mixed ^= mixed >> 32
    return mixed % 2**63


class TrainingBatches:
    """Shuffled batches; the order depends on the seed and the epoch and on nothing else.

    So a run that was interrupted goes on exactly as it would have. Processes that train together take every
    ``world``-th graph of each batch.

    Args:
        encoded: the data.
        graphs: numbers of the training graphs.
        size: graphs in a batch.
        seed: of the order.

    Example:
        >>> from gape.experiments.graph_tasks.protocol import settings
        >>> from gape.experiments.graph_tasks.training.encoded import encoded_dataset
        >>> data = encoded_dataset(settings("csl", "none"))
        >>> batches = TrainingBatches(data, data.dataset.splits[0].train, size=40, seed=41)
        >>> [batch.num_graphs for batch in batches]
        [40, 40, 10]
    """

    def __init__(self, encoded: EncodedDataset, graphs: Tensor, size: int, seed: int) -> None:
        self.encoded, self.graphs, self.size, self.seed = encoded, graphs, size, seed
        self.epoch, self.rank, self.world = 0, 0, 1

    def __len__(self) -> int:
        return -(-len(self.graphs) // self.size)

    def __iter__(self) -> Iterator[GraphBatch]:
        generator = torch.Generator().manual_seed(mixed_seed(self.seed, self.epoch))
        order = self.graphs[torch.randperm(len(self.graphs), generator=generator)]
        for batch in torch.split(order, self.size):
            # A process without a graph of its own would leave the others waiting: then all take the whole batch.
            world = self.world if len(batch) >= self.world else 1
            mine = batch[self.rank :: world] if world > 1 else batch
            yield self.encoded.batch(mine, weight=world * len(mine) / len(batch))


class FixedBatches:
    """Batches in the order of the data set, kept in memory with their attention patterns unless they are too large.

    Args:
        encoded: the data.
        graphs: numbers of the graphs.
        size: graphs in a batch.
    """

    def __init__(self, encoded: EncodedDataset, graphs: Tensor, size: int) -> None:
        self.encoded, self.graphs, self.size = encoded, graphs, size
        self.rank, self.world = 0, 1
        self._kept: list[GraphBatch] = []

    @property
    def _parts(self) -> list[Tensor]:
        return list(torch.split(self.graphs, self.size))[self.rank :: self.world] if len(self.graphs) else []

    def __len__(self) -> int:
        return len(self._parts)

    def __iter__(self) -> Iterator[GraphBatch]:
        if self._kept:
            yield from self._kept
            return
        edges = self.encoded.dataset.slices["edge_index"].diff()[self.graphs].sum()
        seen = []
        for part in self._parts:
            batch = self.encoded.batch(part)
            if edges <= KEEP_EDGES:
                seen.append(batch)
            yield batch
        self._kept = seen
