"""Cells of the comparison and their results.

A cell is a task, an encoding, a seed, and settings that differ from the protocol. Results are read from run folders and
from ``results/*.jsonl``, chosen among several of one cell, and collected.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Mapping
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
from gape.experiments.runs.folder import (
    Record,
    RunFolder,
    read_lines,
    read_record,
    require_keys,
    results_lock,
    write_lines,
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


#: Keys that every result has.
REQUIRED_KEYS = (
    "task",
    "encoding",
    "seed",
    "overrides",
    "settings",
    "metric",
    "best_validation",
    "last_epoch",
    "stopped",
    "finished",
)
# Generated data as results described it before CYCLES and CYCLES-V had these variants, and as they do now.
_DESCRIPTIONS = {
    "Cycles(train=": "Cycles(variant='matched', train=",
    "CyclesV(variant='clean', train=": "CyclesV(variant='matched', low=0, high=8, train=",
    "CyclesV(variant='as-released', train=": "CyclesV(variant='matched-released', low=0, high=8, train=",
}


def read_results(*folders: Path) -> list[Record]:
    """Read ``result.json`` of runs and lines of ``*.jsonl`` under the folders; :func:`latest` of each cell."""
    found: list[Record] = []
    for folder in folders:
        for path in sorted(folder.glob("**/result.json")):
            found.append(require_keys(read_record(path), REQUIRED_KEYS, path))
        for path in sorted(folder.glob("*.jsonl")):
            # Runtimes and translations are in the same folder.
            found += [require_keys(line, REQUIRED_KEYS, where) for where, line in read_lines(path) if "task" in line]
    return latest(with_variant(result) for result in found)


def with_variant(result: Record) -> Record:
    """Attach a result on the first reconstruction of CYCLES or CYCLES-V to the variant that it is now.

    >>> old = {"overrides": {}, "settings": {"data": {}}, "data": "generated: Cycles(train=200, seed=0)"}
    >>> new = with_variant(old)
    >>> new["overrides"], new["settings"]
    ({'data.variant': 'matched'}, {'data': {'variant': 'matched'}})
    >>> new["data"]
    "generated: Cycles(variant='matched', train=200, seed=0)"
    """
    for then, now in _DESCRIPTIONS.items():
        if f" {then}" in result.get("data", ""):
            variant, settings = now.split("'")[1], result["settings"]
            return {
                **result,
                "overrides": {**result["overrides"], "data.variant": variant},
                "settings": {**settings, "data": {**settings["data"], "variant": variant}},
                "data": result["data"].replace(then, now),
            }
    return result


def latest(results: Iterable[Record]) -> list[Record]:
    """Choose one result per cell and dataset.

    Results with the current settings come first, then those ended by the schedule or by the longest limit of time,
    then the last one.

    >>> old = {"task": "csl", "encoding": "rw", "seed": 41, "overrides": {}, "settings": {},
    ...     "stopped": "lr", "finished": "2024"}
    >>> brief = {**old, "stopped": "time", "max_minutes": 1.0, "finished": "2026"}
    >>> latest([old, {**old, "finished": "2025"}, brief, {**old, "seed": 95}])[0]["finished"]
    '2025'
    """
    kept: dict[str, Record] = {}
    for result in results:
        key = _key(result)
        if key not in kept or _rank(kept[key]) < _rank(result):
            kept[key] = result
    return [kept[key] for key in sorted(kept)]


def count_replaced(collected: Iterable[Record], shown: Iterable[Record]) -> int:
    """Count the collected results whose cell is shown with other figures, from a later run."""
    figures = {_key(result): (result["best_validation"], result["last_epoch"]) for result in shown}
    return sum(figures[_key(old)] != (old["best_validation"], old["last_epoch"]) for old in collected)


def _key(result: Record) -> str:
    return json.dumps([cell_key(result), describe_data(result)])


def _rank(result: Record) -> tuple[bool, float, str]:
    minutes = result["max_minutes"] if result["stopped"] == "time" else math.inf
    return matches_current_protocol(result), minutes, result["finished"]


def matches_current_protocol(result: Mapping[str, Any]) -> bool:
    """Return True if a result has the settings that its cell has now: the protocol may change, and results stay."""
    try:
        cell = Cell(result["task"], result["encoding"], result["seed"], result["overrides"])
    except ValueError:  # a setting or an encoding that was removed
        return False
    return not cell.changes_since(result["settings"])


def describe_data(result: Mapping[str, Any]) -> str:
    """Describe the data that a cell was trained and tested on; empty if its result does not say."""
    if "data" not in result:
        return ""
    parts = " / ".join(f"{number:,}" for number in result["graphs"])
    return f"{parts} graphs for training, validation and test; {result['data']}"


def describe_metric(result: Mapping[str, Any]) -> str:
    """Describe the test metric by both rules."""
    values = (result[rule][result["metric"]] for rule in ("best_validation", "last_epoch"))
    best, last = ("not finite" if value is None else f"{value:.4f}" for value in values)
    return f"{best} at best validation, {last} at the last epoch"


def should_resume(result: Record, cell: Cell) -> bool:
    """Return True if a time limit ended the training and the cell now has a later one.

    >>> should_resume({"stopped": "time", "max_minutes": 30.0}, Cell("csl", "rw", max_minutes=60.0))
    True
    """
    return result["stopped"] == "time" and (cell.max_minutes is None or cell.max_minutes > result["max_minutes"])


def finished_result(cell: Cell, runs: Path) -> Record | None:
    """Return the result of a cell unless training should resume; refuse one with other settings."""
    folder = RunFolder(cell.folder(runs))
    result = folder.result()
    if result is None:
        return None
    require_keys(result, REQUIRED_KEYS, folder.path / "result.json")
    folder.refuse(cell.changes_since(with_variant(result)["settings"]))
    return None if should_resume(result, cell) else result


def missing_cells(cells: Iterable[Cell], results: Path) -> list[Cell]:
    """Return the cells without a collected result, or only with results of other settings or of less time."""
    known: dict[str, list[Record]] = {}
    for result in read_results(results):
        known.setdefault(cell_key(result), []).append(result)
    return [
        cell
        for cell in cells
        if all(
            should_resume(result, cell) or cell.changes_since(result["settings"])
            for result in known.get(cell_key(vars(cell)), [])
        )
    ]


def cell_key(result: Mapping[str, Any]) -> str:
    """Return a string that identifies the cell of a result."""
    identity = [result["task"], result["encoding"], current_names(result["overrides"]), result["seed"]]
    return json.dumps(identity, sort_keys=True)


def collect(runs: Path, results: Path) -> dict[Path, int]:
    """Merge the results of all runs into ``results/<task>.jsonl``, sorted; return the number of lines per file."""
    written = {}
    with results_lock(results):
        everything = read_results(runs, results)
        for task in sorted({result["task"] for result in everything}):
            lines = [result for result in everything if result["task"] == task]
            path = results / f"{task}.jsonl"
            write_lines(path, lines)
            written[path] = len(lines)
    return written
