"""Which graphs of a set are for training, which for validation, which for testing."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor


def _indices(values: Sequence[int] | Tensor) -> Tensor:
    return torch.as_tensor(values, dtype=torch.int64).reshape(-1)


@dataclass(frozen=True, eq=False)
class Split:
    """Graph numbers of the training, validation and test part; no graph may be in two of them, unless allowed.

    Args:
        train, val, test: int64 tensors of graph numbers (sequences are converted). ``test`` may be empty,
            for sets whose test targets are secret.
        disjoint: refuse graphs that are in more than one part.

    Example:
        >>> Split([0, 1, 2], [3], [4])
        Split(train=3, val=1, test=1)
        >>> Split([0, 1], [1], [2])
        Traceback (most recent call last):
        ValueError: graph 1 is in more than one part of the split; every graph may be used once
    """

    train: Tensor
    val: Tensor
    test: Tensor
    disjoint: bool = field(default=True, kw_only=True)

    def __post_init__(self) -> None:
        for part in ("train", "val", "test"):
            object.__setattr__(self, part, _indices(getattr(self, part)))
        everything = torch.cat([self.train, self.val, self.test])
        if everything.numel() and int(everything.min()) < 0:
            raise ValueError(f"graph numbers start at 0, got {int(everything.min())}")
        groups = [everything] if self.disjoint else [self.train, self.val, self.test]
        for group in groups:
            graphs, uses = torch.unique(group, return_counts=True)
            if (uses > 1).any():
                twice, where = int(graphs[uses > 1][0]), "part of the split" if self.disjoint else "place of one part"
                raise ValueError(f"graph {twice} is in more than one {where}; every graph may be used once")

    @classmethod
    def contiguous(cls, train: int, val: int, test: int) -> "Split":
        """The first ``train`` graphs, then ``val``, then ``test``.

        >>> Split.contiguous(2, 1, 1).test
        tensor([3])
        """
        order = torch.arange(train + val + test)
        return cls(order[:train], order[train : train + val], order[train + val :])

    @classmethod
    def reshuffled(cls, train: int, val: int, test: int, seed: int) -> "Split":
        """Cut each part from a shuffled order of its own, as the authors' loader of PLANAR does by mistake.

        A graph of the test part is in the training part with probability ``train / (train + val + test)``.

        >>> split = Split.reshuffled(700, 150, 150, seed=0)
        >>> split, 0.6 < float(torch.isin(split.test, split.train).float().mean()) < 0.8
        (Split(train=700, val=150, test=150), True)
        """
        generator = torch.Generator().manual_seed(seed)
        orders = [torch.randperm(train + val + test, generator=generator) for _ in range(3)]
        return cls(orders[0][:train], orders[1][train : train + val], orders[2][train + val :], disjoint=False)

    def some_of_train(self, share: float) -> Tensor:
        """That share of the training graphs, at least one, in their order: drawn at random, always the same ones.

        >>> Split.contiguous(10, 1, 1).some_of_train(0.3).tolist()
        [1, 4, 7]
        """
        count = max(1, round(share * len(self.train)))
        drawn = torch.randperm(len(self.train), generator=torch.Generator().manual_seed(0))[:count]
        return self.train[drawn.sort().values]

    @property
    def parts(self) -> tuple[Tensor, Tensor, Tensor]:
        """The three parts in the order train, val, test."""
        return self.train, self.val, self.test

    def __repr__(self) -> str:
        return f"Split(train={len(self.train)}, val={len(self.val)}, test={len(self.test)})"
