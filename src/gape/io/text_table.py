"""Read text tables with line numbers, and collect errors that quote them."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

_OPENERS: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
#: Extensions of compressed text.
PACKED = tuple(_OPENERS)
MAX_SHOWN_ROWS = 5
#: The name that stands for standard input or output.
STANDARD_STREAM = Path("-")
# Separators of text tables, most common first.
_DELIMITERS = (",", "\t", ";")


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


def read_table(path: Path, delimiter: str | None = None) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """Return the first row of a text table (also ``.gz``, ``.xz``, ``.bz2``, or ``-``) and the others, by line number.

    Empty lines are skipped and values stripped. A row that spans several lines has the number of the first.

    Args:
        path: the file.
        delimiter: what separates the columns; ``None`` for the one of comma, tab and semicolon that the first line
            has most of.
    """
    rows = _rows(path, delimiter)
    _, header = next(rows, (0, []))
    if not header:
        raise ValueError(f"{path} is empty; its first line must name the columns, such as source,target")
    return header, rows


def read_words(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines of a file split at white space, with their numbers; ``#`` and ``%`` start comments.

    No line is split into more than three words, so that what follows two nodes stays together.
    """
    with _text(path) as lines:
        for number, line in enumerate(lines, start=1):
            words = line.split(maxsplit=2)
            if words and words[0][0] not in "#%":
                yield number, [word.strip() for word in words]


def _rows(path: Path, delimiter: str | None) -> Iterator[tuple[int, list[str]]]:
    first = 1
    with _text(path) as lines:
        start = list(_through_first(lines))
        chosen = delimiter or max(_DELIMITERS, key=start[-1].count if start else "".count)
        reader = csv.reader(chain(start, lines), delimiter=chosen)
        try:
            for row in reader:
                if row:
                    yield first, [value.strip() for value in row]
                first = reader.line_num + 1
        except csv.Error as error:
            raise ValueError(
                f"{path} cannot be read as a table, line {first}: {error}; is a quotation mark open?"
            ) from error


def _through_first(lines: Iterator[str]) -> Iterator[str]:
    """Yield the lines up to the first that is not blank."""
    for line in lines:
        yield line
        if line.strip():
            return


@contextmanager
def _text(path: Path) -> Iterator[Iterator[str]]:
    """Open a text file, packed or not, or standard input; errors while it is read name the line."""
    try:
        with _opened(path) as file:
            yield iter(file)
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: {_not_utf8(path)}; save it as UTF-8") from error
    except (EOFError, lzma.LZMAError, zlib.error, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # an error of the file system, not of the content
        raise ValueError(f"{path} cannot be read as a table: {error}") from error


def _opened(path: Path) -> Any:
    if path == STANDARD_STREAM:
        return io.TextIOWrapper(io.BytesIO(sys.stdin.buffer.read()), encoding="utf-8-sig", newline="")
    return _OPENERS.get(path.suffix.lower(), open)(path, "rt", encoding="utf-8-sig", newline="")


def _not_utf8(path: Path) -> str:
    """Describe the first line that is not UTF-8."""
    if path == STANDARD_STREAM:
        return "it is not UTF-8 text"
    number = 0
    try:
        with _OPENERS.get(path.suffix.lower(), open)(path, "rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    line.decode()
                except UnicodeDecodeError:
                    return f"line {number} is not UTF-8 text: {line.rstrip()[:80]!r}"
    except (EOFError, lzma.LZMAError, zlib.error, OSError) as error:
        return f"it is damaged after line {number}, and not UTF-8 text: {error}"
    raise AssertionError(f"{path} changed while it was read")
