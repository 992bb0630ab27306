"""A page about some runs that needs nothing else: table, learning curves, encodings drawn on a graph."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gape._internal.files import replacing
from gape.data import load
from gape.experiments.graph_tasks.cell import Cell
from gape.experiments.graph_tasks.registry import find_row
from gape.experiments.report.curves import learning_curves
from gape.experiments.report.drawing import drawn_encodings
from gape.experiments.report.files import CONFIG
from gape.experiments.report.table import Table

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 2em auto; padding: 0 1em; color: #222; }
table { border-collapse: collapse; } th, td { padding: .25em .9em; text-align: right; }
th { border-bottom: 2px solid #444; } td:nth-child(-n+2), th:nth-child(-n+2) { text-align: left; }
tr.first td { border-top: 1px solid #bbb; } .note, .quiet { color: #666; font-size: 90%; }
"""


def write_report(
    path: Path,
    table: Table,
    cells: Sequence[Cell],
    results: Sequence[dict[str, Any]],
    runs: Path,
    data_dir: Path | None = None,
) -> Path:
    """Write the page; the script that makes it interactive is in it.

    Args:
        path: of the page.
        table: to show.
        cells: the runs, all of one task.
        results: of the same.
        runs: folder of all runs.
        data_dir: folder with real data.
    """
    from plotly.offline import get_plotlyjs

    task = cells[0].task
    dataset = load(task, data_dir, **cells[0].settings.data)
    curves = _figure(learning_curves(cells, runs, dataset.task.key))
    drawing = _figure(drawn_encodings(dataset[0], [cell.settings for cell in cells if cell.seed == cells[0].seed]))
    title = f"gape: position encodings on {html.escape(task)}"
    page = f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>
<script>{get_plotlyjs()}</script></head><body>
<h1>{title}</h1>
<p>{html.escape(dataset.provenance)}</p>
<h2>Test figures</h2>
{_html_table(table)}
<h2>Learning curves</h2>
{curves}
<h2>Encodings of one graph</h2>
{drawing}
<h2>Runs</h2>
{_runs(results)}
</body></html>
"""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8")
    return path


def _figure(figure: Any) -> str:
    code: str = figure.to_html(full_html=False, include_plotlyjs=False, config=CONFIG)
    return code


def _html_table(table: Table) -> str:
    head = "".join(f"<th>{html.escape(name)}</th>" for name in ("encoding", "figure", *table.columns))
    rows, before = [], None
    for row, kind, entries in table.lines:
        texts = (f"<b>{html.escape(entry.text)}</b>" if entry.bold else html.escape(entry.text) for entry in entries)
        cells = "".join(f"<td>{text}</td>" for text in texts)
        first, label = (' class="first"', row) if row != before else ("", "")
        rows.append(f"<tr{first}><td>{html.escape(label)}</td><td>{html.escape(kind)}</td>{cells}</tr>")
        before = row
    notes = "".join(f"<p class=note>{html.escape(note)}</p>" for note in table.notes)
    return f"<table><tr>{head}</tr>{''.join(rows)}</table>{notes}"


def _runs(results: Sequence[dict[str, Any]]) -> str:
    rows = []
    for result in results:
        certificates = ", ".join(
            f"{count} {name.replace('_', ' ')}" for name, count in (result["certificates"] or {}).items()
        )
        values = (
            find_row(result["encoding"]).title,
            result["seed"],
            sum(result["epochs"]),
            f"{result['minutes']:.1f} min",
            result["stopped"],
            f"{result['parameters']:,}",
            f"{result['encoding_seconds']:.2f} s",
            certificates,
        )
        rows.append("<tr>" + "".join(f"<td>{html.escape(str(value))}</td>" for value in values) + "</tr>")
    names = ("encoding", "seed", "epochs", "time", "stopped by", "parameters", "encoded in", "certificates")
    head = "".join(f"<th>{name}</th>" for name in names)
    return f"<table><tr>{head}</tr>{''.join(rows)}</table>"
