"""Results of runs, gathered into small files that are kept with the code: one line a run."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gape._internal.files import file_lock, replacing
from gape.experiments.graph_tasks.cell import Cell

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
            # Runtimes and translations lie beside them.
            found += [_whole(record, where) for where, record in read_lines(path) if "task" in record]
    return latest(found)


def read_lines(path: Path) -> list[tuple[str, dict[str, Any]]]:
    """The records of a file that has one a line, each with where it stands."""
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
    placed = [(f"line {number} of {path}", line) for number, line in lines if line.strip()]
    return [(where, parse_record(line, where)) for where, line in placed]


def latest(results: Iterable[Result]) -> list[Result]:
    """One result a cell and data set: of those of today's settings, if there are any, and then of those that the
    schedule ended, or else of those with most time, the last one.

    >>> old = {"task": "csl", "encoding": "rw", "seed": 41, "overrides": {}, "settings": {},
    ...     "stopped": "lr", "finished": "2024"}
    >>> brief = {**old, "stopped": "time", "max_minutes": 1.0, "finished": "2026"}
    >>> latest([old, {**old, "finished": "2025"}, brief, {**old, "seed": 95}])[0]["finished"]
    '2025'
    """
    kept: dict[str, Result] = {}
    for result in results:
        key = _key(result)
        if key not in kept or _rank(kept[key]) < _rank(result):
            kept[key] = result
    return [kept[key] for key in sorted(kept)]


def replaced(collected: Iterable[Result], shown: Iterable[Result]) -> int:
    """How many of the collected results are not shown, since a later run of the same cell has another figure."""
    figures = {_key(result): (result["best_validation"], result["last_epoch"]) for result in shown}
    return sum(figures[_key(old)] != (old["best_validation"], old["last_epoch"]) for old in collected)


def _key(result: Result) -> str:
    return json.dumps([identity(result), data_of(result)])


def _rank(result: Result) -> tuple[bool, float, str]:
    minutes = result["max_minutes"] if result["stopped"] == "time" else math.inf
    return of_today(result), minutes, result["finished"]


def of_today(result: Mapping[str, Any]) -> bool:
    """Whether the run has the settings that its cell has by now: a protocol may change, and results stay."""
    try:
        cell = Cell(result["task"], result["encoding"], result["seed"], result["overrides"])
    except ValueError:  # of a setting or an encoding that is no more
        return False
    return not cell.changed_since(result["settings"])


def data_of(result: Mapping[str, Any]) -> str:
    """The data that a run was trained and tested on, in words; empty for a record that does not say."""
    if "data" not in result:
        return ""
    parts = " / ".join(f"{number:,}" for number in result["graphs"])
    return f"{parts} graphs for training, validation and test; {result['data']}"


def both_figures(result: Mapping[str, Any]) -> str:
    """The test metric by both rules, in words."""
    values = (result[rule][result["metric"]] for rule in ("best_validation", "last_epoch"))
    best, last = ("not finite" if value is None else f"{value:.4f}" for value in values)
    return f"{best} at best validation, {last} at the last epoch"


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
    """Merge the results of all runs into ``results/<task>.jsonl``, sorted; say how many lines each file has.

    One process at a time, so that none overwrites what another has added since it read.
    """
    written = {}
    results.mkdir(parents=True, exist_ok=True)
    with file_lock(results / ".lock"):
        everything = read_results(runs, results)
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


def _whole(result: Result, where: str | Path) -> Result:
    if absent := [name for name in NEEDED if name not in result]:
        raise ValueError(f"{where} is not a result: it has no {', '.join(absent)}. Remove it, and run its cell again")
    return result


def parse_record(text: str, where: str | Path) -> dict[str, Any]:
    """A JSON object, or a complaint that names the file, or the line of a file, where it stands."""
    try:
        record = json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"{where} is damaged: {error}. Remove it, and run its cell again") from error
    if not isinstance(record, dict):
        raise ValueError(
            f"{where} is damaged: expected an object, got {text[:40]!r}. Remove it, and run its cell again"
        )
    return record
