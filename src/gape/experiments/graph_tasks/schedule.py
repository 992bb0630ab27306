"""The training schedule of a cell: a quick variant, and a lower bound on the time that is left."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

from gape.experiments.graph_tasks.settings import Settings

#: Overrides for a quick comparison on CYCLES: fewer graphs to evaluate, a learning rate that falls sooner.
QUICK_SCHEDULE: Mapping[str, str] = MappingProxyType(
    {"data.val": "400", "data.test": "2000", "patience": "8", "min_lr": "1e-5", "max_epochs": "90"}
)
#: Minutes of training per cell at most; four such cells, two at a time, take less than five minutes.
QUICK_MINUTES = 2.2


def halvings_left(settings: Settings, lr: float) -> int:
    """Count how often the learning rate must still be reduced before training ends.

    >>> halvings_left(Settings("cycles", "none"), 5e-4), halvings_left(Settings("cycles", "none"), 0.9e-6)
    (9, 0)
    """
    if lr < settings.min_lr:
        return 0
    return math.floor(math.log(settings.min_lr / lr) / math.log(settings.factor) + 1e-9) + 1


def epochs_left(settings: Settings, line: Mapping[str, float]) -> int:
    """Return the least number of epochs left of a fold after the epoch of this line of ``metrics.csv``.

    >>> epochs_left(Settings("cycles", "none"), {"epoch": 10, "lr": 5e-4})
    99
    """
    by_schedule = halvings_left(settings, line["lr"]) * (settings.patience + 1)
    return max(0, min(by_schedule, settings.max_epochs - int(line["epoch"])))


def minutes_left(
    settings: Settings, fold: int, folds: int, line: Mapping[str, float], max_minutes: float | None
) -> float:
    """Return the least number of minutes left of a cell, at the speed of this fold so far."""
    pace = line["minutes"] / line["epoch"]
    whole = min(settings.max_epochs, halvings_left(settings, settings.lr) * (settings.patience + 1))
    left = pace * (epochs_left(settings, line) + (folds - 1 - fold) * whole)
    if max_minutes is not None:
        share = max_minutes / folds
        left = min(left, max(0.0, share - line["minutes"]) + (folds - 1 - fold) * share)
    return left
