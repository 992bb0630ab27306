"""Settings as ``key=value`` text: parsing, one spelling per value, differences between records, queue files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from gape._internal.validation import did_you_mean

Item = TypeVar("Item")


def parse_pairs(words: Iterable[str]) -> dict[str, str]:
    """Parse ``key=value`` words into a dictionary.

    >>> parse_pairs(["lr=0.001", "data.test = 2000"])
    {'lr': '0.001', 'data.test': '2000'}
    >>> parse_pairs(["lr"])
    Traceback (most recent call last):
    ValueError: expected key=value, got 'lr'
    """
    pairs: dict[str, str] = {}
    for word in words:
        key, equals, value = (part.strip() for part in word.partition("="))
        if not equals or not key or not value:
            raise ValueError(f"expected key=value, got {word!r}")
        if pairs.get(key, value) != value:
            raise ValueError(f"{key} was set twice, to {pairs[key]!r} and to {value!r}")
        pairs[key] = value
    return pairs


def check_known(keys: Iterable[str], known: Sequence[str]) -> None:
    """Raise on the first key that is no setting.

    >>> check_known(["hiden"], ["layers", "hidden"])
    Traceback (most recent call last):
    ValueError: there is no setting 'hiden'; there are layers, hidden; did you mean 'hidden'?
    """
    for key in keys:
        if key not in known:
            raise ValueError(f"there is no setting {key!r}; there are {', '.join(known)}{did_you_mean(key, known)}")


def override_key(overrides: Mapping[str, str]) -> str:
    """Join overrides into one string that identifies them, for folder names and table lookups.

    >>> override_key({"norm": "layer", "lr": "0.001"})
    'lr=0.001,norm=layer'
    """
    return ",".join(f"{key}={text}" for key, text in sorted(overrides.items()))


def value_text(value: Any) -> str:
    """Format a setting's value the one way it is spelled in overrides.

    >>> value_text(2e-05), value_text(True), value_text(None)
    ('2e-05', 'true', 'none')
    """
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def describe_changes(recorded: Mapping[str, Any], current: Mapping[str, Any]) -> list[str]:
    """Describe the settings in which a recorded run differs from the current one; empty if in none.

    >>> describe_changes({"layers": 2, "lr": 0.1}, {"layers": 3, "lr": 0.1})
    ['layers is 2 there and 3 here']
    """
    return [
        f"{key} is {recorded.get(key)!r} there and {value!r} here"
        for key, value in current.items()
        if recorded.get(key) != value
    ]


def read_queue(path: Path, parse_line: Callable[[str], Iterable[Item]], form: str) -> list[Item]:
    """Read the runs of a queue file, in order; empty lines and text after ``#`` are ignored.

    Args:
        path: the file.
        parse_line: turns one line into one or more runs; its errors get the file and line number.
        form: the form of a line, quoted if the file is missing.
    """
    if not path.is_file():
        raise ValueError(f"there is no file {str(path)!r}; a queue has lines {form}")
    found: list[Item] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if text := line.partition("#")[0].strip():
            try:
                found += parse_line(text)
            except ValueError as error:
                raise ValueError(f"{path}, line {number}: {error}") from error
    return found
