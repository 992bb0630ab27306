"""Results of runs, gathered into small files that are kept with the code: one line a run."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gape.atomic import replacing
from gape.bench.cell import Cell

Result = dict[str, Any]
#: What is read of every result.
NEEDED = (
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


def read_results(*folders: Path) -> list[Result]:
    """Results under the folders, :func:`latest` of each cell: ``result.json`` of runs and lines of ``*.jsonl``."""
    found: list[Result] = []
    for folder in folders:
        for path in sorted(folder.glob("**/result.json")):
            found.append(parse_result(path.read_text(encoding="utf-8"), path))
        for path in sorted(folder.glob("*.jsonl")):
            lines = path.read_text(encoding="utf-8").splitlines()
            records = [parse_record(line, path) for line in lines if line.strip()]
            # Runtimes and translations lie beside them.
            found += [_whole(record, path) for record in records if "task" in record]
    return latest(found)


def latest(results: Iterable[Result]) -> list[Result]:
    """One result a cell: of those that the schedule ended, or else of those with most time, the last one.

    >>> old = {"task": "csl", "encoding": "rw", "seed": 41, "overrides": {}, "stopped": "lr", "finished": "2024"}
    >>> brief = {**old, "stopped": "time", "max_minutes": 1.0, "finished": "2026"}
    >>> latest([old, {**old, "finished": "2025"}, brief, {**old, "seed": 95}])[0]["finished"]
    '2025'
    """
    kept: dict[str, Result] = {}
    for result in results:
        key = identity(result)
        if key not in kept or _rank(kept[key]) < _rank(result):
            kept[key] = result
    return [kept[key] for key in sorted(kept)]


def _rank(result: Result) -> tuple[float, str]:
    return result["max_minutes"] if result["stopped"] == "time" else math.inf, result["finished"]


def goes_on(result: Result, cell: Cell) -> bool:
    """Whether time ended the run, and the cell is now asked for with more.

    >>> goes_on({"stopped": "time", "max_minutes": 30.0}, Cell("csl", "rw", max_minutes=60.0))
    True
    """
    return result["stopped"] == "time" and (cell.max_minutes is None or cell.max_minutes > result["max_minutes"])


def identity(result: Mapping[str, Any]) -> str:
    """The cell that a result is of, as text."""
    return json.dumps([result[name] for name in ("task", "encoding", "overrides", "seed")], sort_keys=True)


def collect(runs: Path, results: Path) -> dict[Path, int]:
    """Merge the results of all runs into ``results/<task>.jsonl``, sorted; say how many lines each file has."""
    written = {}
    everything = read_results(runs, results)
    results.mkdir(parents=True, exist_ok=True)
    for task in sorted({result["task"] for result in everything}):
        lines = [json.dumps(result, ensure_ascii=False) for result in everything if result["task"] == task]
        path = results / f"{task}.jsonl"
        with replacing(path) as temporary:
            temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
        written[path] = len(lines)
    return written


def parse_result(text: str, path: Path) -> Result:
    """The record in a file, or a complaint that names the file."""
    return _whole(parse_record(text, path), path)


def _whole(result: Result, path: Path) -> Result:
    if absent := [name for name in NEEDED if name not in result]:
        raise ValueError(f"{path} is not a result: it has no {', '.join(absent)}. Remove it, and run its cell again")
    return result


def parse_record(text: str, path: Path) -> dict[str, Any]:
    """A JSON object in a file, or a complaint that names the file."""
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is damaged: {error}. Remove it, and run its cell again") from error
    if not isinstance(record, dict):
        raise ValueError(f"{path} is damaged: expected an object, got {text[:40]!r}. Remove it, and run its cell again")
    return record
