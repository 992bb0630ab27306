"""metrics.csv: one line an epoch, kept in step with the checkpoint."""

from __future__ import annotations

import csv
from pathlib import Path

from gape._internal.files import replacing

Epoch = dict[str, float]


class EpochTable:
    """The lines of a run's ``metrics.csv``; the first column is the number of epochs done.

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
        """Drop the epochs that a checkpoint after ``after`` epochs does not know of."""
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
    """All lines of a ``metrics.csv``."""
    if not path.exists():
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return [{name: float(value) for name, value in line.items()} for line in csv.DictReader(file)]
