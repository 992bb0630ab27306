"""What an interrupted run needs to go on: weights, optimiser, schedule, and the best weights so far."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gape._internal.files import replacing

Weights = dict[str, Tensor]


@dataclass
class Checkpoint:
    """The state of a run after some number of epochs.

    Args:
        epoch: epochs done.
        minutes: they took, over all sessions.
        weights: of the network.
        optimizer, scheduler: their states.
        best_epoch: number of epochs after which validation was best.
        best_score: by which it was best: the metric (larger is better), then the loss (negated).
        best_weights: of the network then.
        stopped: why training ended: "lr", "epochs" or "time"; None while it has not.
    """

    epoch: int = 0
    minutes: float = 0.0
    weights: Weights = field(default_factory=dict)
    optimizer: dict[str, Any] = field(default_factory=dict)
    scheduler: dict[str, Any] = field(default_factory=dict)
    best_epoch: int = 0
    best_score: tuple[float, float] = (float("-inf"), float("-inf"))
    best_weights: Weights = field(default_factory=dict)
    stopped: str | None = None

    @property
    def lr(self) -> float:
        """Learning rate after the last epoch."""
        return float(self.optimizer["param_groups"][0]["lr"])

    def save(self, path: Path) -> None:
        """Write it, whole or not at all."""
        with replacing(path) as temporary:
            torch.save(vars(self), temporary)

    @classmethod
    def load(cls, path: Path) -> Checkpoint | None:
        """Read it, tensors and plain values only; None if there is none."""
        if not path.exists():
            return None
        try:
            return cls(**torch.load(path, weights_only=True, map_location="cpu"))
        except (EOFError, RuntimeError, TypeError, pickle.UnpicklingError) as error:
            raise ValueError(
                f"{path} is damaged: {error or type(error).__name__}. Remove it, and the run begins anew"
            ) from error


def copied(network: torch.nn.Module) -> Weights:
    """The weights and buffers of a network as they are now."""
    return {name: tensor.detach().cpu().clone() for name, tensor in network.state_dict().items()}
