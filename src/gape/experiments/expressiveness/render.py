"""The table of pairs told apart, as text, Markdown, CSV or JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable

from gape.experiments.expressiveness.comparison import Separation
from gape.experiments.report.table import Entry, Table

FORMATS = ("text", "markdown", "csv", "json")
#: The stored counts, in the folder of results.
FILE = "expressiveness.json"
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
        records = [_record(one, counts) | {"pairs": totals} for one, counts in rows]
        return "[\n" + ",\n".join(json.dumps(record, ensure_ascii=False) for record in records) + "\n]\n"
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


def stored_table(results: Path, methods: Sequence[str] | None = None, categories: Sequence[str] | None = None) -> Table:
    """Build a table of the counts stored in ``expressiveness.json``, of all or some methods and categories."""
    path = results / FILE
    if not path.is_file():
        raise FileNotFoundError(f"there is no {path}; write it with `gape expressiveness --format json -o {path}`")
    records = {record["method"]: record for record in json.loads(path.read_text(encoding="utf-8"))}
    pairs = next(iter(records.values()))["pairs"]
    rows, columns = (
        list(known if chosen is None else chosen) for known, chosen in ((records, methods), (pairs, categories))
    )
    for name, known in (*((row, records) for row in rows), *((column, pairs) for column in columns)):
        if name not in known:
            raise ValueError(f"{path} has no {name!r}; it has {', '.join(known)}")
    figures = {row: tuple(str(records[row][column]) for column in columns) for row in rows}
    return Table(
        name="expressiveness",
        title="Pairs of graphs of BREC that are told apart",
        columns=tuple(f"{column} {pairs[column]}" for column in columns),
        lines=tuple(
            (records[row]["title"], records[row]["certainty"], tuple(map(Entry, figures[row]))) for row in rows
        ),
        notes=(),
        brief=tuple((records[row]["title"].removesuffix(", all lengths"), figures[row]) for row in rows),
    )


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
    table = RichTable(padding=(0, 0, 0, 1))
    for place, name in enumerate(heading):
        words = place in (0, len(heading) - 2)
        table.add_column(name, justify="left" if words else "right", no_wrap=not words)
    for line in lines:
        table.add_row(*map(str, line))
    console = Console(record=True, file=io.StringIO())
    console.print(table)
    return console.export_text(styles=True)
