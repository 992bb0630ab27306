"""Read text tables with line numbers, and collect errors that quote them."""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
MAX_SHOWN_ROWS = 5


@dataclass
class BadRows:
    """Collects the invalid rows of a table, to report them all at once.

    Args:
        path: the file.
        unit: what a row is called in errors, line or row.
        found: the errors.
    """

    path: Path
    unit: str = "line"
    found: list[str] = field(default_factory=list)

    def add(self, number: int, content: Sequence[Any], problem: str) -> None:
        text = ",".join("" if value is None else str(value) for value in content)
        self.found.append(f"{self.unit} {number}, {text!r}: {problem}")

    def stop_if_any(self) -> None:
        """Raise if a bad row was found."""
        if self.found:
            rows = "1 bad row" if len(self.found) == 1 else f"{len(self.found)} bad rows"
            more = f"; and {len(self.found) - MAX_SHOWN_ROWS} more" if len(self.found) > MAX_SHOWN_ROWS else ""
            raise ValueError(f"{self.path}: {rows}. {'; '.join(self.found[:MAX_SHOWN_ROWS])}{more}")


def read_table(path: Path, delimiter: str) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """Return the header of a csv or tsv file (also ``.gz``, ``.xz``, ``.bz2``) and its rows with line numbers.

    Empty lines are skipped and values stripped. A row that spans several lines has the number of the first.
    """
    rows = _lines(path, delimiter)
    _, header = next(rows, (0, []))
    if not header:
        raise ValueError(f"{path} is empty; its first line must name the columns, such as source,target")
    return header, rows


def _lines(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    first = 1
    try:
        with _OPENERS.get(path.suffix.lower(), open)(path, "rt", encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file, delimiter=delimiter)
            for row in reader:
                if row:
                    yield first, [value.strip() for value in row]
                first = reader.line_num + 1
    except UnicodeDecodeError as error:
        line, content = _not_utf8(path)
        raise ValueError(f"{path}: line {line} is not UTF-8 text: {content[:80]!r}; save it as UTF-8") from error
    except csv.Error as error:
        raise ValueError(
            f"{path} cannot be read as a table, line {first}: {error}; is a quotation mark open?"
        ) from error
    except (EOFError, lzma.LZMAError, zlib.error, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # an error of the file system, not of the content
        raise ValueError(f"{path} cannot be read as a table: {error}") from error


def _not_utf8(path: Path) -> tuple[int, bytes]:
    """Return number and content of the first line that is not UTF-8."""
    with _OPENERS.get(path.suffix.lower(), open)(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number, line.rstrip(b"\r\n")
    raise AssertionError(f"{path} changed while it was read")
