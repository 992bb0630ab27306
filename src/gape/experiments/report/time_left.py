"""How long a run takes at least: the schedule is only over when the learning rate has been lowered often enough."""

from __future__ import annotations

import math
from collections.abc import Mapping

from gape.experiments.graph_tasks.settings import Settings


def halvings(settings: Settings, lr: float) -> int:
    """How often the learning rate must be lowered yet.

    >>> halvings(Settings("cycles", "none"), 5e-4), halvings(Settings("cycles", "none"), 0.9e-6)
    (9, 0)
    """
    if lr < settings.min_lr:
        return 0
    return math.floor(math.log(settings.min_lr / lr) / math.log(settings.factor) + 1e-9) + 1


def epochs_left(settings: Settings, line: Mapping[str, float]) -> int:
    """The least number of epochs that are left of a fold after the epoch of this line of ``metrics.csv``.

    >>> epochs_left(Settings("cycles", "none"), {"epoch": 10, "lr": 5e-4})
    99
    """
    by_schedule = halvings(settings, line["lr"]) * (settings.patience + 1)
    return max(0, min(by_schedule, settings.max_epochs - int(line["epoch"])))


def minutes_left(
    settings: Settings, fold: int, folds: int, line: Mapping[str, float], max_minutes: float | None
) -> float:
    """The least number of minutes that are left of a run, at the speed of this fold so far."""
    pace = line["minutes"] / line["epoch"]
    whole = min(settings.max_epochs, halvings(settings, settings.lr) * (settings.patience + 1))
    left = pace * (epochs_left(settings, line) + (folds - 1 - fold) * whole)
    if max_minutes is not None:
        share = max_minutes / folds
        left = min(left, max(0.0, share - line["minutes"]) + (folds - 1 - fold) * share)
    return left
