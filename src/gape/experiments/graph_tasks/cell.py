"""One run of the comparison: a task, an encoding, a seed, and what is set otherwise than in the protocol."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gape.experiments.graph_tasks.check import check
from gape.experiments.graph_tasks.overrides import spelled
from gape.experiments.graph_tasks.protocol import SEEDS, changes, complete, described, settings, task_protocol
from gape.experiments.graph_tasks.rows import find
from gape.experiments.graph_tasks.settings import Settings


@dataclass(frozen=True)
class Cell:
    """What to run.

    Args:
        task: name of the task.
        encoding: name of the row.
        seed: of everything random.
        overrides: settings that differ from the protocol, as text.
        max_minutes: of training; None for the whole schedule. Not part of the cell itself.

    Example:
        >>> cell = Cell("cycles", "gape", 41, {"encoding.states": "8"})
        >>> cell.name, str(cell.folder(Path("runs")))
        ('cycles gape encoding.states=8 seed 41', 'runs/cycles/gape,encoding.states=8/seed-41')
    """

    task: str
    encoding: str
    seed: int = SEEDS[0]
    overrides: Mapping[str, str] = field(default_factory=dict)
    max_minutes: float | None = None

    def __post_init__(self) -> None:
        task_protocol(self.task)
        find(self.encoding)
        if self.max_minutes is not None and not self.max_minutes > 0:
            raise ValueError(f"max-minutes must be above 0, got {self.max_minutes}")
        # Sorted, in one spelling, and what the protocol says anyway left out: one cell, one name.
        plain, seen = complete(settings(self.task, self.encoding, self.seed)), {}
        for key, text in sorted(self.overrides.items()):
            changed = settings(self.task, self.encoding, self.seed, {key: text})
            if complete(changed) != plain:
                seen[key] = spelled(changed, key)
        object.__setattr__(self, "overrides", seen)
        check(self.settings)

    @property
    def settings(self) -> Settings:
        """The protocol's settings with the overrides."""
        return settings(self.task, self.encoding, self.seed, self.overrides)

    def changed_since(self, held: Mapping[str, Any]) -> str:
        """In which settings a run of these was another one than this, in words; empty if in none."""
        return changes(described(self.settings), held)

    @property
    def variant(self) -> str:
        """The overrides in one word, empty if there are none."""
        return in_one_word(self.overrides)

    @property
    def name(self) -> str:
        """For people."""
        return " ".join(filter(None, [self.task, self.encoding, self.variant.replace(",", " "), f"seed {self.seed}"]))

    def folder(self, runs: Path) -> Path:
        """Where the run lives."""
        row = ",".join(filter(None, [self.encoding, self.variant]))
        if len(row) > 120 or not re.fullmatch(r"[\w.,=*+-]+", row):
            row = f"{self.encoding},{hashlib.sha256(row.encode()).hexdigest()[:12]}"
        return runs / self.task / row / f"seed-{self.seed}"


def in_one_word(overrides: Mapping[str, str]) -> str:
    """
    >>> in_one_word({"norm": "layer", "lr": "0.001"})
    'lr=0.001,norm=layer'
    """
    return ",".join(f"{key}={text}" for key, text in sorted(overrides.items()))
