"""Tables as text, Markdown (long or brief), LaTeX or CSV."""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from gape.experiments.report.numbers import RULES
from gape.experiments.report.table import PAPER, Table

# The longest kind of figure, "authors' logs, best validation", needs two lines of this width.
_KIND_WIDTH = 15


def render(table: Table, how: str) -> str:
    """Format a table.

    >>> render(Table("t", "A table", ("CSL",), (), ()), "html")
    Traceback (most recent call last):
    ValueError: format must be one of text, markdown, brief, latex, csv, got 'html'
    """
    if how not in FORMATS:
        raise ValueError(f"format must be one of {', '.join(FORMATS)}, got {how!r}")
    return FORMATS[how](table)


def text(table: Table) -> str:
    """Format with frames for the terminal; columns that do not fit go into further tables below."""
    width = max(80, shutil.get_terminal_size((100, 24)).columns)
    console = Console(width=width, record=True, file=io.StringIO(), force_terminal=True)
    console.print(table.title, style="italic", highlight=False, markup=False)
    for columns in _column_groups(table, width):
        console.print(_framed(table, columns))
    for note in table.notes:
        console.print(note, style="dim", highlight=False, markup=False)
    return console.export_text(styles=True)


def _framed(table: Table, columns: range) -> RichTable:
    shown = RichTable("encoding")
    shown.add_column("figure", max_width=_KIND_WIDTH)
    for column in columns:
        shown.add_column(table.columns[column], no_wrap=True)
    for place, (row, kind, entries) in enumerate(table.lines):
        chosen = [entries[column] for column in columns]
        styles = ("bold" if entry.bold else "dim" if entry.summary is None else "" for entry in chosen)
        cells = [Text(entry.text, style=style) for entry, style in zip(chosen, styles, strict=True)]
        last = place + 1 == len(table.lines) or table.lines[place + 1][0] != row
        shown.add_row(_label(table, place), kind, *cells, end_section=last)
    return shown


def _column_groups(table: Table, width: int) -> list[range]:
    """Group the columns so that each group fits into the width, at least one per group."""
    # A cell has a space on both sides and a line on one; the table has one line more.
    labels = 1 + max((len(row) for row, *_ in table.lines), default=0) + 3 + _KIND_WIDTH + 3
    groups: list[range] = []
    start, used = 0, labels
    for column, heading in enumerate(table.columns):
        needed = 3 + max(len(heading), *(len(entries[column].text) for _, _, entries in table.lines), 0)
        if column > start and used + needed > width:
            groups.append(range(start, column))
            start, used = column, labels
        used += needed
    return [*groups, range(start, len(table.columns))]


def markdown(table: Table) -> str:
    """Format as Markdown, the best figures bold."""
    lines = [f"**{table.title}**", "", _bar(["encoding", "figure", *table.columns])]
    lines.append(_bar(["---", "---", *("---:" for _ in table.columns)]))
    for place, (_, kind, entries) in enumerate(table.lines):
        cells = (f"**{entry.text}**" if entry.bold else entry.text for entry in entries)
        lines.append(_bar([_label(table, place).replace("*", r"\*"), kind, *cells]))
    return "\n".join([*lines, "", *(f"{note}  " for note in table.notes)]) + "\n"


def brief(table: Table) -> str:
    """Format as Markdown with one line per row, without notes."""
    lines = [_bar(["encoding", *table.columns]), _bar(["---", *("---:" for _ in table.columns)])]
    for row, cells in _best_validation(table) if table.brief is None else table.brief:
        lines.append(_bar([row.replace("*", r"\*"), *cells]))
    return "\n".join(lines) + "\n"


def _best_validation(table: Table) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield our figures at best validation per row, the paper's in brackets."""
    kinds = {(row, kind): entries for row, kind, entries in table.lines}
    ours = RULES["best_validation"]
    if any((row, ours) not in kinds for row, *_ in table.lines):
        raise ValueError(
            f"brief shows figures at best validation, and the table {table.name} has others; take markdown"
        )
    for row in dict.fromkeys(row for row, *_ in table.lines):
        cells = [f"**{entry.text}**" if entry.bold else entry.text for entry in kinds[row, ours]]
        for place, entry in enumerate(kinds.get((row, PAPER), ())):
            cells[place] += "" if entry.text == "–" else f" ({entry.text})"
        yield row, tuple(cells)


def latex(table: Table) -> str:
    """Format for LaTeX with ``booktabs``."""
    lines = [rf"\begin{{tabular}}{{ll{'r' * len(table.columns)}}}", r"\toprule"]
    lines.append(" & ".join(map(_escaped, ["encoding", "figure", *table.columns])) + r" \\")
    for place, (row, kind, entries) in enumerate(table.lines):
        if place == 0 or table.lines[place - 1][0] != row:
            lines.append(r"\midrule")
        cells = (rf"\textbf{{{_escaped(e.text)}}}" if e.bold else _escaped(e.text) for e in entries)
        lines.append(" & ".join([_escaped(_label(table, place)), _escaped(kind), *cells]) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    return "\n".join(lines + [f"% {note}" for note in table.notes]) + "\n"


_LATEX = str.maketrans(
    {
        **{character: rf"\{character}" for character in "%_&#${}"},
        "↑": r"$\uparrow$",
        "↓": r"$\downarrow$",
        "±": r"$\pm$",
        "†": r"$^\dagger$",
        "*": r"$\ast$",
        "–": "--",
        "×": r"$\times$",
        "γ": r"$\gamma$",
        "μ": r"$\mu$",
        "ρ": r"$\rho$",
    }
)


def _escaped(words: str) -> str:
    r"""Escape for LaTeX.

    >>> print(_escaped("a_b & 5 % ↑"))
    a\_b \& 5 \% $\uparrow$
    """
    return words.translate(_LATEX)


def comma_separated(table: Table) -> str:
    """Format as CSV, one line per figure with its numbers."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["table", "encoding", "figure", "column", "text", "mean", "deviation", "seeds", "best", "by_time"])
    for row, kind, entries in table.lines:
        for column, entry in zip(table.columns, entries, strict=True):
            found = entry.summary
            mean = "" if entry.value is None else entry.value
            numbers = [mean, "", ""] if found is None else [found.mean, found.deviation, len(found.values)]
            flags = [entry.bold, False if found is None else found.by_time]
            writer.writerow([table.name, row, kind, column.rstrip(" ↑↓"), entry.text, *numbers, *flags])
    return out.getvalue()


FORMATS: dict[str, Callable[[Table], str]] = {
    "text": text,
    "markdown": markdown,
    "brief": brief,
    "latex": latex,
    "csv": comma_separated,
}


def _label(table: Table, place: int) -> str:
    """Return the row's name on its first line, else an empty string."""
    row = table.lines[place][0]
    return "" if place and table.lines[place - 1][0] == row else row


def _bar(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
