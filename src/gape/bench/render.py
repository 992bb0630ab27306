"""A table as text, Markdown, LaTeX or CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from gape.bench.tables import Table


def render(table: Table, how: str) -> str:
    """The table in one of the formats.

    >>> render(Table("t", "A table", ("CSL",), (), ()), "html")
    Traceback (most recent call last):
    ValueError: format must be one of text, markdown, latex, csv, got 'html'
    """
    if how not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {how!r}")
    return FORMATS[how](table)


def text(table: Table) -> str:
    """With a frame, for the terminal."""
    width = max(100, 50 + 19 * len(table.columns))
    console = Console(width=width, record=True, file=io.StringIO(), force_terminal=True)
    shown = RichTable("encoding", "figure", *table.columns, title=table.title)
    for place, (row, kind, entries) in enumerate(table.lines):
        styles = ("bold" if entry.bold else "dim" if entry.summary is None else "" for entry in entries)
        cells = [Text(entry.text, style=style) for entry, style in zip(entries, styles, strict=True)]
        last = place + 1 == len(table.lines) or table.lines[place + 1][0] != row
        shown.add_row(_label(table, place), kind, *cells, end_section=last)
    console.print(shown)
    for note in table.notes:
        console.print(note, style="dim", highlight=False, markup=False)
    return console.export_text(styles=True)


def markdown(table: Table) -> str:
    """With ``**`` around what is best."""
    lines = [f"**{table.title}**", "", _bar(["encoding", "figure", *table.columns])]
    lines.append(_bar(["---", "---", *("---:" for _ in table.columns)]))
    for place, (_, kind, entries) in enumerate(table.lines):
        cells = (f"**{entry.text}**" if entry.bold else entry.text for entry in entries)
        lines.append(_bar([_label(table, place).replace("*", r"\*"), kind, *cells]))
    return "\n".join([*lines, "", *(f"{note}  " for note in table.notes)]) + "\n"


def latex(table: Table) -> str:
    """For ``booktabs``."""
    arrows = str.maketrans({"↑": r"$\uparrow$", "↓": r"$\downarrow$"})
    plain = str.maketrans({"±": r"$\pm$", "†": r"$^\dagger$", "*": r"$\ast$", "%": r"\%", "_": r"\_", "–": "--"})
    lines = [rf"\begin{{tabular}}{{ll{'r' * len(table.columns)}}}", r"\toprule"]
    lines += [" & ".join(["encoding", "figure", *(name.translate(arrows) for name in table.columns)]) + r" \\"]
    for place, (row, kind, entries) in enumerate(table.lines):
        if place == 0 or table.lines[place - 1][0] != row:
            lines.append(r"\midrule")
        cells = (rf"\textbf{{{e.text}}}" if e.bold else e.text for e in entries)
        lines.append(" & ".join([_label(table, place), kind, *cells]).translate(plain) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    return "\n".join(lines + [f"% {note}" for note in table.notes]) + "\n"


def comma_separated(table: Table) -> str:
    """One line a figure, with the numbers behind it."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["table", "encoding", "figure", "column", "text", "mean", "deviation", "seeds", "best", "by_time"])
    for row, kind, entries in table.lines:
        for column, entry in zip(table.columns, entries, strict=True):
            found = entry.summary
            numbers = ["", "", ""] if found is None else [found.mean, found.deviation, len(found.values)]
            flags = [entry.bold, False if found is None else found.by_time]
            writer.writerow([table.name, row, kind, column[:-2], entry.text, *numbers, *flags])
    return out.getvalue()


FORMATS: dict[str, Callable[[Table], str]] = {
    "text": text,
    "markdown": markdown,
    "latex": latex,
    "csv": comma_separated,
}


def _label(table: Table, place: int) -> str:
    """The row's name on its first line."""
    row = table.lines[place][0]
    return "" if place and table.lines[place - 1][0] == row else row


def _bar(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
