"""A table of figures drawn: a panel for each column, a line for each row, a dot for each kind of figure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gape.bench.report.files import blank, write
from gape.bench.tables.summary import RULES
from gape.bench.tables.table import LOGS, PAPER, Entry, Table

#: Panels side by side.
ACROSS = 4


@dataclass(frozen=True)
class _Look:
    """Of one kind of figure: name, colour, filled or hollow, and the shape in Matplotlib's and in Plotly's words."""

    name: str
    colour: str
    filled: bool
    printed: str
    browser: str


_OURS, _THEIRS = "#1f5fa8", "#d9730d"
# Filled at best validation, hollow at the last epoch, which is what the paper prints.
_LOOKS = {
    RULES["best_validation"]: _Look("ours, best validation", _OURS, True, "o", "circle"),
    RULES["last_epoch"]: _Look("ours, last epoch", _OURS, False, "o", "circle-open"),
    LOGS: _Look(LOGS, _THEIRS, True, "D", "diamond"),
    PAPER: _Look(PAPER, _THEIRS, False, "D", "diamond-open"),
}
# Ours stand a little above the line of their row and the others below it, so that neither hides the other.
_APART = 0.15
# Of axes of errors, which are logarithmic.
_TICKS = [digit * 10.0**power for power in range(-4, 3) for digit in (1, 2, 5)]


def draw_table(table: Table, path: Path) -> None:
    """Write a PNG or PDF file, or a page of its own, of a table of test figures.

    Args:
        table: of graph tasks, see :func:`gape.bench.tables.table.comparison`.
        path: its ending says which.
    """
    write(path, lambda: printed(table), lambda: interactive(table))


def dots(table: Table, column: int) -> Iterator[tuple[str, list[tuple[str, Entry]]]]:
    """Of one column, for each kind of figure, the rows that have one.

    >>> entries = (Entry("80.00 [1]", value=80.0),), (Entry("missing"),)
    >>> lines = (("RW", "paper", entries[0]), ("LAPE", "paper", entries[1]))
    >>> [(kind, [row for row, _ in found]) for kind, found in dots(Table("t", "", ("CSL ↑",), lines, ()), 0)]
    [('paper', ['RW'])]
    """
    for kind in _LOOKS:
        found = [(row, entries[column]) for row, what, entries in table.lines if what == kind]
        if shown := [(row, entry) for row, entry in found if entry.number is not None]:
            yield kind, shown


def _rows(table: Table) -> list[str]:
    return list(dict.fromkeys(row for row, *_ in table.lines))


def _spread(entry: Entry) -> float:
    """Half the length of the bar through a dot."""
    return 0.0 if entry.summary is None else entry.summary.deviation or 0.0


def _errors(table: Table, column: int) -> bool:
    """Whether the column has errors, which are drawn on a logarithmic scale, and not percentages."""
    return table.columns[column].endswith("↓")


def printed(table: Table) -> Any:
    """As a Matplotlib figure."""
    from matplotlib.ticker import FixedLocator, StrMethodFormatter

    rows, count = _rows(table), len(table.columns)
    across, down = min(ACROSS, count), -(-count // ACROSS)
    figure = blank(1.6 + 2.5 * across, 0.9 + down * (0.8 + 0.24 * len(rows)))
    grid = figure.subplots(down, across, sharey=True, squeeze=False)
    named: dict[str, Any] = {}
    for place, axes in enumerate(grid.flat):
        if place >= count:
            axes.set_visible(False)
            continue
        axes.set_title(table.columns[place], fontsize=10)
        axes.set_yticks(range(len(rows)), rows)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.grid(color="#e4e4e4", linewidth=0.7)
        axes.set_axisbelow(True)
        if _errors(table, place):
            axes.set_xscale("log")
            axes.minorticks_off()
            axes.xaxis.set_major_locator(FixedLocator(_TICKS))
            axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        for kind, shown in dots(table, place):
            look = _LOOKS[kind]
            above = -_APART if look.colour == _OURS else _APART
            named[look.name], *_ = axes.errorbar(
                [entry.number for _, entry in shown],
                [rows.index(row) + above for row, _ in shown],
                xerr=[_spread(entry) for _, entry in shown],
                fmt=look.printed,
                color=look.colour,
                markersize=5 if look.filled else 7,
                markerfacecolor=look.colour if look.filled else "none",
                elinewidth=1,
            )
    figure.suptitle(table.title, fontsize=11)
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=len(named), frameon=False)
    return figure


def interactive(table: Table) -> Any:
    """As a Plotly figure, which tells the figure of a dot under the pointer."""
    from plotly import graph_objects
    from plotly.subplots import make_subplots

    rows, count = _rows(table), len(table.columns)
    across, down = min(ACROSS, count), -(-count // ACROSS)
    figure = make_subplots(
        down, across, subplot_titles=table.columns, shared_yaxes=True, horizontal_spacing=0.03, vertical_spacing=0.1
    )
    named: set[str] = set()
    for place in range(count):
        where = {"row": place // ACROSS + 1, "col": place % ACROSS + 1}
        for kind, shown in dots(table, place):
            look = _LOOKS[kind]
            trace = graph_objects.Scatter(
                x=[entry.number for _, entry in shown],
                y=[row for row, _ in shown],
                error_x={"array": [_spread(entry) for _, entry in shown], "width": 0},
                mode="markers",
                marker={"symbol": look.browser, "color": look.colour, "size": 8 if look.filled else 11},
                text=[f"{row}, {look.name}: {entry.text}" for row, entry in shown],
                hoverinfo="text",
                name=look.name,
                legendgroup=kind,
                showlegend=kind not in named,
            )
            named.add(kind)
            figure.add_trace(trace, **where)
        if _errors(table, place):
            figure.update_xaxes(type="log", tickvals=_TICKS, **where)
    figure.update_yaxes(categoryorder="array", categoryarray=rows, autorange="reversed")
    figure.update_layout(title=table.title, template="plotly_white", height=160 + down * (60 + 26 * len(rows)))
    return figure
