"""Cells of the comparison: a task, an encoding, a seed, and settings that differ from the protocol."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from gape import data
from gape._internal.validation import parse_setting
from gape.experiments.graph_tasks.protocol import SEEDS
from gape.experiments.graph_tasks.registry import find_row, learned, make_encoding
from gape.experiments.graph_tasks.settings import (
    RENAMED,
    Settings,
    current_names,
    full_record,
    override_text,
    protocol_changes,
    protocol_settings,
    settings_record,
    task_protocol,
)
from gape.experiments.runs.settings import override_key, parse_pairs, read_queue

_QUEUE_LINE = "TASK ENCODING [seed=N] [minutes=M] [key=value ...]"


@dataclass(frozen=True)
class Cell:
    """One training of the comparison.

    Args:
        task: name of the task.
        encoding: name of the row.
        seed: of everything random.
        overrides: settings that differ from the protocol, as text.
        max_minutes: of training; None for the whole schedule. Not part of the cell's identity.

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
        find_row(self.encoding)
        if self.max_minutes is not None and not self.max_minutes > 0:
            raise ValueError(f"max-minutes must be above 0, got {self.max_minutes}")
        # Sorted, in one spelling, and without what the protocol says anyway: one cell, one name.
        plain, kept = full_record(protocol_settings(self.task, self.encoding, self.seed)), {}
        for key, text in sorted(current_names(self.overrides).items()):
            changed = protocol_settings(self.task, self.encoding, self.seed, {key: text})
            if full_record(changed) != plain:
                kept[key] = override_text(changed, key)
        object.__setattr__(self, "overrides", kept)
        check_settings(self.settings)

    @property
    def settings(self) -> Settings:
        """The protocol's settings with the overrides."""
        return protocol_settings(self.task, self.encoding, self.seed, self.overrides)

    def changes_since(self, recorded: Mapping[str, Any]) -> list[str]:
        """Describe how recorded settings differ from those of this cell; empty if they are equal."""
        return protocol_changes(recorded, settings_record(self.settings))

    @property
    def variant(self) -> str:
        """The overrides in one string, empty if there are none."""
        return override_key(self.overrides)

    @property
    def name(self) -> str:
        """Name for people."""
        return " ".join(filter(None, [self.task, self.encoding, self.variant.replace(",", " "), f"seed {self.seed}"]))

    def folder(self, runs: Path) -> Path:
        """Return the folder of the cell under the folder of all runs; an existing one with earlier names is kept."""
        earlier = {new: old for old, new in RENAMED.items()}
        names = [self.variant, override_key({earlier.get(key, key): text for key, text in self.overrides.items()})]
        paths = [runs / self.task / self._row_folder(name) / f"seed-{self.seed}" for name in names]
        return next((path for path in paths if path.exists()), paths[0])

    def _row_folder(self, variant: str) -> str:
        row = ",".join(filter(None, [self.encoding, variant]))
        if len(row) > 120 or not re.fullmatch(r"[\w.,=*+-]+", row):
            row = f"{self.encoding},{hashlib.sha256(row.encode()).hexdigest()[:12]}"
        return row


def check_settings(settings: Settings) -> None:
    """Validate combinations of settings before anything is computed.

    Example:
        >>> check_settings(Settings("cycles", "rw", pooling="node"))
        Traceback (most recent call last):
        ValueError: pooling=node is for targets of nodes, and cycles has targets of graphs: use pooling=sum or mean
    """
    if settings.hidden % settings.heads:
        raise ValueError(f"heads must divide hidden, got heads={settings.heads} and hidden={settings.hidden}")
    data.check(settings.task, **settings.data)
    level = data.task_of(settings.task).level
    if (settings.pooling == "node") != (level == "node"):
        wanted = "node" if level == "node" else "sum or mean"
        kind = "nodes" if settings.pooling == "node" else "graphs"
        raise ValueError(
            f"pooling={settings.pooling} is for targets of {kind}, and {settings.task} has targets of {level}s: "
            f"use pooling={wanted}"
        )
    kind, walks = find_row(settings.encoding).encoder, 0
    if kind == "learned":
        automata = learned(settings.encoding, **settings.encoding_options)
        automata.check(data.task_of(settings.task).edge_categories)
        walks = automata.walks
    elif kind != "none":
        encoding = make_encoding(settings.encoding, **settings.encoding_options)
        if encoding.pairwise and kind != "degree-distance":
            raise ValueError(f"{settings.encoding!r} encodes pairs of nodes; the comparison is of node encodings")
    if settings.scaling != "none" and kind != "linear" and not walks:
        raise ValueError(
            f"scaling={settings.scaling} is for fixed encodings that enter by a linear layer, got {settings.encoding}"
            + ("; set encoding.scaling" if kind == "learned" else "")
        )
    if settings.width and kind != "linear":
        raise ValueError(
            f"width={settings.width} is for fixed encodings that enter by a linear layer, got {settings.encoding}"
        )


def read_cells(path: Path, max_minutes: float | None = None) -> list[Cell]:
    """Read the cells of a queue file; see :func:`parse_cells` for its lines.

    No cell gets more than ``max_minutes``, whatever its line says.
    """
    return read_queue(path, partial(parse_cells, max_minutes=max_minutes), _QUEUE_LINE)


def parse_cells(line: str, max_minutes: float | None = None) -> list[Cell]:
    """Parse ``TASK ENCODING[,ENCODING…] [seed=N[,N…]] [minutes=M] [key=value …]`` into cells.

    >>> [cell.name for cell in parse_cells("cycles rw,gape seed=41,95 minutes=40 layers=4")]
    ['cycles rw layers=4 seed 41', 'cycles gape layers=4 seed 41', 'cycles rw layers=4 seed 95', \
'cycles gape layers=4 seed 95']
    >>> parse_cells("cycles")
    Traceback (most recent call last):
    ValueError: expected TASK ENCODING [seed=N] [minutes=M] [key=value ...], got 'cycles'
    """
    words = line.split()
    if len(words) < 2 or "=" in words[0] or "=" in words[1]:
        raise ValueError(f"expected {_QUEUE_LINE}, got {line.strip()!r}")
    pairs = parse_pairs(words[2:])
    seeds = [parse_setting(text, int, "seed") for text in pairs.pop("seed", str(SEEDS[0])).split(",")]
    minutes = pairs.pop("minutes", None)
    limits = [max_minutes, None if minutes is None else parse_setting(minutes, float, "minutes")]
    allowed = min((limit for limit in limits if limit is not None), default=None)
    return [Cell(words[0], row, seed, pairs, allowed) for seed in seeds for row in words[1].split(",")]
