"""Small batches of graphs for the tests of the models."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

RandomBatch = Callable[..., tuple[Tensor, Tensor]]


@pytest.fixture
def random_batch() -> RandomBatch:
    """Makes ``edge_index`` and ``batch`` of random directed graphs without self-loops, edges in random order."""

    def make(sizes: list[int], density: float, seed: int = 0) -> tuple[Tensor, Tensor]:
        generator = torch.Generator().manual_seed(seed)
        edges, first = [torch.empty(2, 0, dtype=torch.long)], 0
        for n in sizes:
            adjacency = (torch.rand(n, n, generator=generator) < density).fill_diagonal_(False)
            edges.append(adjacency.nonzero().T + first)
            first += n
        edge_index = torch.cat(edges, 1)
        shuffled = edge_index[:, torch.randperm(edge_index.shape[1], generator=generator)]
        return shuffled, torch.repeat_interleave(torch.tensor(sizes))

    return make
