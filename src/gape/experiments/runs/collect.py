"""Result files with one JSON record per line, kept with the code; several processes may add to them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gape._internal.files import file_lock, replacing
from gape.experiments.runs.folder import Record, parse_record


def read_lines(path: Path) -> list[tuple[str, Record]]:
    """Read the records of a file, each with its position for error messages; empty if there is no file."""
    if not path.is_file():
        return []
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
    placed = [(f"line {number} of {path}", line) for number, line in lines if line.strip()]
    return [(where, parse_record(line, where)) for where, line in placed]


def require_keys(record: Record, keys: Iterable[str], where: str | Path) -> Record:
    """Return the record if it has all keys; else raise an error that names its position.

    >>> require_keys({"task": "csl"}, ("task", "seed"), "line 3 of csl.jsonl")
    Traceback (most recent call last):
    ValueError: line 3 of csl.jsonl is not a result: it has no seed; remove it, and train that run again
    """
    if absent := [key for key in keys if key not in record]:
        raise ValueError(f"{where} is not a result: it has no {', '.join(absent)}; remove it, and train that run again")
    return record


def write_lines(path: Path, records: Iterable[Record]) -> None:
    """Write records, one per line; the file is whole or absent. Hold :func:`results_lock` from before reading."""
    with replacing(path) as temporary:
        text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
        temporary.write_text(text, encoding="utf-8")


@contextmanager
def results_lock(folder: Path) -> Iterator[None]:
    """Create a folder of result files and hold its lock, so that no process overwrites what another one adds."""
    folder.mkdir(parents=True, exist_ok=True)
    with file_lock(folder / ".lock"):
        yield


def update_lines(path: Path, change: Callable[[list[Record]], Iterable[Record]]) -> list[Record]:
    """Replace the records of one file by ``change(records)`` while holding the lock of its folder."""
    with results_lock(path.parent):
        records = list(change([record for _, record in read_lines(path)]))
        write_lines(path, records)
    return records
