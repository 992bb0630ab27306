"""Results of cells: reading them, choosing among several of one cell, collecting them into ``results/*.jsonl``."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gape.experiments.graph_tasks.cell import Cell
from gape.experiments.graph_tasks.settings import current_names
from gape.experiments.runs.folder import (
    Record,
    RunFolder,
    read_lines,
    read_record,
    require_keys,
    results_lock,
    write_lines,
)

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
