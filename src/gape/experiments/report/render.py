"""Tables as text, Markdown (long or brief), LaTeX or CSV, and the HTML page of ``gape bench --report``."""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from gape._internal.files import replacing
from gape.data import load
from gape.encodings.base import Encoding
from gape.experiments.graph_tasks.cell import Cell
from gape.experiments.graph_tasks.checkpoint import Epoch, read_epochs
from gape.experiments.graph_tasks.registry import find_row, make_encoding
from gape.experiments.graph_tasks.settings import Settings
from gape.experiments.report.numbers import RULES
from gape.experiments.report.plots import render_page
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


# No row of buttons, which would cover titles; dragging zooms, a double click resets.
_PLOTLY_CONFIG = {"displayModeBar": False, "responsive": True}
# Distinguishable also without colour vision (Okabe and Ito).
_COLOURS = ("#000000", "#E69F00", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#F0E442")


def write_report(
    path: Path,
    table: Table,
    cells: Sequence[Cell],
    results: Sequence[dict[str, Any]],
    runs: Path,
    show: Callable[[Any, Mapping[str, Encoding]], str],
    data_dir: Path | None = None,
) -> Path:
    """Write the page; it needs no other file.

    Args:
        path: of the page.
        table: to show.
        cells: all of one task.
        results: of the cells.
        runs: folder of all runs.
        show: turns a PyG graph and encodings by title into HTML.
        data_dir: folder with real data.
    """
    from plotly.offline import get_plotlyjs

    task = cells[0].task
    dataset = load(task, data_dir, **cells[0].settings.data)
    encodings = encodings_to_show([cell.settings for cell in cells])
    page = render_page(
        "report.html",
        title=f"gape: position encodings on {task}",
        plotly_js=get_plotlyjs(),
        provenance=dataset.provenance,
        table=table,
        curves=_html(learning_curves(cells, runs, dataset.task.key)),
        explorer=show(dataset[0], encodings),
        cells=[_facts(result) for result in results],
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return path


def _html(figure: Any) -> str:
    code: str = figure.to_html(full_html=False, include_plotlyjs=False, config=_PLOTLY_CONFIG)
    return code


def _facts(result: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of a result in the table of runs."""
    counts = result["certificates"] or {}
    return {
        "encoding": find_row(result["encoding"]).title,
        "seed": result["seed"],
        "epochs": sum(result["epochs"]),
        "time": f"{result['minutes']:.1f} min",
        "stopped by": result["stopped"],
        "parameters": f"{result['parameters']:,}",
        "encoded in": f"{result['encoding_seconds']:.2f} s",
        "certificates": ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in counts.items()),
    }


def learning_curves(cells: Sequence[Cell], runs: Path, metric: str) -> Any:
    """Draw metric and losses per epoch as a Plotly figure; of the first fold if there are several."""
    from plotly import graph_objects
    from plotly.subplots import make_subplots

    titles = [f"validation {metric.replace('_', ' ')}", "training (dotted) and validation loss"]
    figure = make_subplots(1, 2, subplot_titles=titles)
    for place, cell in enumerate(cells):
        epochs = _epochs(cell.folder(runs))
        if not epochs:
            continue
        name, colour = find_row(cell.encoding).title, _COLOURS[place % len(_COLOURS)]
        for column, key, dash in ((1, f"val_{metric}", "solid"), (2, "val_loss", "solid"), (2, "train_loss", "dot")):
            figure.add_trace(
                graph_objects.Scatter(
                    x=[line["epoch"] for line in epochs],
                    y=[line[key] for line in epochs],
                    name=f"{name}, seed {cell.seed}",
                    legendgroup=cell.name,
                    showlegend=column == 1,
                    line={"color": colour, "dash": dash, "width": 1.5},
                ),
                row=1,
                col=column,
            )
    figure.update_xaxes(title_text="epoch")
    # With batch norm, the validation loss jumps by orders of magnitude.
    figure.update_yaxes(type="log", row=1, col=2)
    # The page's style sheet colours text and grid.
    ground = dict.fromkeys(("paper_bgcolor", "plot_bgcolor"), "rgba(0, 0, 0, 0)")
    figure.update_layout(template="plotly_white", height=430, margin={"t": 40, "b": 40}, **ground)
    return figure


def _epochs(folder: Path) -> list[Epoch]:
    path = folder / "metrics.csv"
    return read_epochs(path if path.exists() else folder / "fold-0" / "metrics.csv")


def encodings_to_show(chosen: Sequence[Settings]) -> dict[str, Encoding]:
    """Make the encodings of cells that have fixed features per node, by title.

    >>> from gape.experiments.graph_tasks.settings import protocol_settings
    >>> list(encodings_to_show([protocol_settings("cycles", name) for name in ("none", "rw", "gape")]))
    ['RW', 'GAPE']
    """
    rows = {settings.encoding: (find_row(settings.encoding), settings) for settings in chosen}
    return {
        row.title: make_encoding(settings.encoding, **settings.encoding_options)
        for row, settings in rows.values()
        if row.encoder in ("linear", "signed")
    }
