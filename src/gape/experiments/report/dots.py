"""A table of figures drawn: a panel for each column, a line for each row, a dot for each kind of figure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gape.experiments.report.files import blank, write
from gape.experiments.report.summary import RULES
from gape.experiments.report.table import LOGS, PAPER, Table

#: Panels side by side.
ACROSS = 4
# Errors that differ by more than this factor are drawn on a logarithmic axis, with ticks at 1, 2 and 5 times 10ⁿ.
_WIDE = 5.0
_TICKS = [digit * 10.0**power for power in range(-9, 10) for digit in (1, 2, 5)]


@dataclass(frozen=True)
class _Look:
    """How one kind of figure is drawn: ours as circles, those of others as diamonds; filled or hollow."""

    name: str
    ours: bool
    filled: bool

    @property
    def colour(self) -> str:
        return "#1f5fa8" if self.ours else "#d9730d"

    @property
    def below(self) -> float:
        """How far below the line of its row: ours a little above, so that neither hides the other."""
        return -0.15 if self.ours else 0.15

    @property
    def printed(self) -> str:
        return "o" if self.ours else "D"

    @property
    def in_browser(self) -> str:
        return f"{'circle' if self.ours else 'diamond'}{'' if self.filled else '-open'}"


# Filled at best validation, hollow at the last epoch, which is what the paper prints.
_LOOKS = {
    RULES["best_validation"]: _Look("ours, best validation", ours=True, filled=True),
    RULES["last_epoch"]: _Look("ours, last epoch", ours=True, filled=False),
    LOGS: _Look(LOGS, ours=False, filled=True),
    PAPER: _Look(PAPER, ours=False, filled=False),
}


@dataclass(frozen=True)
class Dots:
    """The figures of one kind in one column: their rows, and of each the number, half its bar and the text.

    Only figures at best validation have bars, of their deviation over seeds: two in one place would look like one.
    """

    kind: str
    rows: list[str]
    numbers: list[float]
    spreads: list[float]
    texts: list[str]

    @property
    def look(self) -> _Look:
        return _LOOKS[self.kind]


def dots(table: Table, column: int) -> list[Dots]:
    """What one column shows, kind by kind, without what is missing or not finite.

    >>> from gape.experiments.report.table import Entry
    >>> lines = (("RW", "paper", (Entry("80.00", value=80.0),)), ("LAPE", "paper", (Entry("missing"),)))
    >>> [(found.kind, found.rows, found.numbers) for found in dots(Table("t", "", ("CSL ↑",), lines, ()), 0)]
    [('paper', ['RW'], [80.0])]
    """
    drawn = []
    for kind in _LOOKS:
        found = Dots(kind, [], [], [], [])
        for row, what, entries in table.lines:
            entry = entries[column]
            if what == kind and entry.number is not None:
                found.rows.append(row)
                found.numbers.append(entry.number)
                spread = entry.summary.deviation if entry.summary is not None and found.look.filled else None
                found.spreads.append(spread or 0.0)
                found.texts.append(f"{row}, {found.look.name}: {entry.text}")
        if found.rows:
            drawn.append(found)
    return drawn


def draw_table(table: Table, path: Path) -> None:
    """Write a PNG or PDF file, or a page of its own with the notes, of a table of test figures.

    Args:
        table: of graph tasks, see :func:`gape.experiments.report.table.comparison`.
        path: its ending says which.
    """
    if not any(dots(table, column) for column in range(len(table.columns))):
        raise ValueError(f"the table {table.name} has no figure to draw: train with `gape bench` first")
    write(path, lambda: printed(table), lambda: interactive(table), table.notes)


def printed(table: Table) -> Any:
    """As a Matplotlib figure."""
    from matplotlib.ticker import FixedLocator, StrMethodFormatter

    rows, (down, across) = _rows(table), _grid(table)
    labels = 0.3 + 0.08 * max(map(len, rows))
    figure = blank(max(7.0, labels + 2.5 * across), 0.9 + down * (1.0 + 0.24 * len(rows)))
    named: dict[str, Any] = {}
    for place, axes in enumerate(figure.subplots(down, across, sharey=True, squeeze=False).flat):
        if place >= len(table.columns):
            axes.set_visible(False)
            continue
        shown = dots(table, place)
        axes.set_title("\n".join(_heading(table, place)), fontsize=10)
        axes.set_yticks(range(len(rows)), rows)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.grid(color="#e4e4e4", linewidth=0.7)
        axes.set_axisbelow(True)
        if _logarithmic(table.columns[place], shown):
            axes.set_xscale("log")
            axes.minorticks_off()
            axes.xaxis.set_major_locator(FixedLocator(_TICKS))
            axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        for found in shown:
            look = found.look
            named[look.name], *_ = axes.errorbar(
                found.numbers,
                [rows.index(row) + look.below for row in found.rows],
                xerr=found.spreads,
                fmt=look.printed,
                color=look.colour,
                markersize=5 if look.filled else 7,
                markerfacecolor=look.colour if look.filled else "none",
                elinewidth=1,
            )
    figure.suptitle(f"{table.title} (no bar: one seed, or no difference)", fontsize=11)
    figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=len(named), frameon=False)
    return figure


def interactive(table: Table) -> Any:
    """As a Plotly figure, which tells the figure of a dot under the pointer."""
    from plotly import graph_objects
    from plotly.subplots import make_subplots

    rows, (down, across) = _rows(table), _grid(table)
    headings = ["<br>".join(_heading(table, place)) for place in range(len(table.columns))]
    figure = make_subplots(
        down, across, subplot_titles=headings, shared_yaxes=True, horizontal_spacing=0.03, vertical_spacing=0.12
    )
    named: set[str] = set()
    for place, heading in enumerate(table.columns):
        where = {"row": place // ACROSS + 1, "col": place % ACROSS + 1}
        shown = dots(table, place)
        for found in shown:
            look = found.look
            trace = graph_objects.Scatter(
                x=found.numbers,
                y=[rows.index(row) + look.below for row in found.rows],
                error_x={"array": found.spreads, "width": 0},
                mode="markers",
                marker={"symbol": look.in_browser, "color": look.colour, "size": 8 if look.filled else 11},
                text=found.texts,
                hoverinfo="text",
                name=look.name,
                legendgroup=look.name,
                showlegend=look.name not in named,
            )
            named.add(look.name)
            figure.add_trace(trace, **where)
        if _logarithmic(heading, shown):
            figure.update_xaxes(type="log", tickvals=_TICKS, **where)
    figure.update_yaxes(range=[len(rows) - 0.5, -0.5], tickvals=list(range(len(rows))), ticktext=rows, zeroline=False)
    figure.update_layout(title=table.title, template="plotly_white", height=160 + down * (60 + 26 * len(rows)))
    return figure


def _rows(table: Table) -> list[str]:
    return list(dict.fromkeys(row for row, *_ in table.lines))


def _heading(table: Table, place: int) -> list[str]:
    """The name of a column and, below, what our figures of it are of."""
    return [table.columns[place], *([table.remarks[place]] if table.remarks else [])]


def _grid(table: Table) -> tuple[int, int]:
    """Panels below each other, and side by side."""
    return -(-len(table.columns) // ACROSS), min(ACROSS, len(table.columns))


def _logarithmic(heading: str, shown: list[Dots]) -> bool:
    """Whether a column has errors, not percentages, of very different sizes, and all bars end above zero."""
    if not heading.endswith("↓"):
        return False
    ends = [number - spread for found in shown for number, spread in zip(found.numbers, found.spreads, strict=True)]
    largest = max((number for found in shown for number in found.numbers), default=0.0)
    return min(ends, default=0.0) > 0 and largest > _WIDE * min(ends)
