"""Files of a training cell: the checkpoint to resume from, and ``metrics.csv`` with one line per epoch."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gape._internal.files import replacing
from gape.experiments.runs.folder import load_checkpoint

Weights = dict[str, Tensor]
Epoch = dict[str, float]


@dataclass
class Checkpoint:
    """The state of training after some number of epochs.

    Args:
        epoch: epochs done.
        minutes: of training, over all sessions.
        weights: of the network.
        optimizer, scheduler: their states.
        best_epoch: number of epochs after which validation was best.
        best_score: by which it was best: the metric (larger is better), then the loss (negated).
        best_weights: of the network at that epoch.
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
        """Write the checkpoint; the file is whole or absent."""
        with replacing(path) as temporary, open(temporary, "wb") as file:
            torch.save(vars(self), file)

    @classmethod
    def load(cls, path: Path) -> Checkpoint | None:
        """Read a checkpoint (tensors and plain values only); None if there is no file."""
        return load_checkpoint(path, lambda content: cls(**content)) if path.exists() else None


def copy_weights(network: torch.nn.Module) -> Weights:
    """Copy the weights and buffers of a network."""
    return {name: tensor.detach().cpu().clone() for name, tensor in network.state_dict().items()}


class EpochTable:
    """Writes ``metrics.csv``; its first column is the number of epochs done.

    Args:
        path: of the file. Lines that are there are kept.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     table = EpochTable(Path(folder, "metrics.csv"))
        ...     table.append({"epoch": 1, "train_loss": 0.5})
        ...     table.append({"epoch": 2, "train_loss": 0.25})
        ...     table.cut(after=1)
        ...     read_epochs(table.path)
        [{'epoch': 1.0, 'train_loss': 0.5}]
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, epoch: Epoch) -> None:
        """Write one more line, and the column names before the first one."""
        new = not self.path.exists()
        with open(self.path, "a", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(epoch))
            if new:
                writer.writeheader()
            writer.writerow({name: f"{value:.9g}" for name, value in epoch.items()})

    def cut(self, after: int) -> None:
        """Drop epochs later than a checkpoint that was written after ``after`` epochs."""
        if not self.path.exists():
            return
        lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True)
        # A line cut short by a crash is later than the checkpoint, which is written after the line.
        kept = lines[: 1 + after] if after else []
        if not kept:
            self.path.unlink()
            return
        with replacing(self.path) as temporary:
            temporary.write_text("".join(kept), encoding="utf-8")


def read_epochs(path: Path) -> list[Epoch]:
    """Read all lines of a ``metrics.csv``; empty if there is no file."""
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return [{name: float(value) for name, value in line.items()} for line in csv.DictReader(file)]
