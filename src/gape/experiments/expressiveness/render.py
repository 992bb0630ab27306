"""The table of pairs told apart, as text, Markdown, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from gape.experiments.expressiveness.comparison import Separation

FORMATS = ("text", "markdown", "csv", "json")
#: Names in tables of what is compared.
TITLES = {
    "1-WL": "1-WL",
    "3-WL": "3-WL (2-FWL)",
    "degree": "degrees",
    "gape": "GAPE (one label), all lengths",
    "spd": "shortest paths",
    "rw": "RW, 20 steps",
    "gape-closed": "GAPE closed, all lengths",
    "gape-pair": "GAPE pair, all lengths",
    "gape-rooted-3": "rooted, 3 layers, all lengths",
    "gape-rooted-6": "rooted, 6 layers, all lengths",
    "gape-rooted-10": "rooted, 10 layers, all lengths",
}


# Names of categories in a terminal.
_SHORT = {
    "strongly-regular": "strongly",
    "extension": "extens.",
    "4-vertex-condition": "4-vertex",
    "distance-regular": "distance",
}


def render(separations: Sequence[Separation], categories: Sequence[str], format_: str) -> str:
    """Render the counts by category in one of :data:`FORMATS`.

    Example:
        >>> import numpy as np
        >>> print(render([Separation("1-WL", np.array([True, False]), 0.5)], ["cfi", "cfi"], "csv"), end="")
        method,cfi,all,certainty,seconds
        1-WL,1,1,exact,0.5
    """
    check_format(format_)
    totals = {name: list(categories).count(name) for name in dict.fromkeys(categories)}
    totals["all"] = len(categories)
    rows = [(one, one.counts(categories)) for one in separations]
    if format_ == "json":
        return json.dumps([_record(one, counts) for one, counts in rows], indent=1, ensure_ascii=False) + "\n"
    heading = ["method", *totals, "certainty", "seconds"]
    lines: list[list[Any]] = [
        [_title(one), *counts.values(), one.certainty, f"{one.seconds:.1f}"] for one, counts in rows
    ]
    if format_ == "csv":
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([heading, *lines])
        return out.getvalue()
    sized = ["method", *(f"{name} {count}" for name, count in totals.items()), "certainty"]
    if format_ == "markdown":
        rule = ["---", *("---:" for _ in totals), "---"]
        shown = [sized, rule, *(line[:-1] for line in lines)]
        return "".join(f"| {' | '.join(map(str, line))} |\n" for line in shown)
    short = ["method", *(f"{_SHORT.get(name, name)}\n{count}" for name, count in totals.items()), "certainty", "s"]
    return _framed(short, lines)


def check_format(format_: str) -> None:
    """Validate ``format_``.

    >>> check_format("html")
    Traceback (most recent call last):
    ValueError: format must be one of text, markdown, csv, json, got 'html'
    """
    if format_ not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {format_!r}")


def _title(one: Separation) -> str:
    return TITLES.get(one.name, one.name) if one.gaps is None else one.name


def _record(one: Separation, counts: dict[str, int]) -> dict[str, Any]:
    found = {"method": one.name, "title": _title(one), **counts, "certainty": one.certainty}
    return {**found, "seconds": round(one.seconds, 2)}


def _framed(heading: Sequence[str], lines: Sequence[Sequence[Any]]) -> str:
    table = Table(padding=(0, 0, 0, 1))
    for place, name in enumerate(heading):
        words = place in (0, len(heading) - 2)
        table.add_column(name, justify="left" if words else "right", no_wrap=not words)
    for line in lines:
        table.add_row(*map(str, line))
    console = Console(record=True, file=io.StringIO())
    console.print(table)
    return console.export_text(styles=True)
