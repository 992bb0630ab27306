"""The HTML page of ``gape bench --report``: table, learning curves, and the explorer on one graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gape._internal.files import replacing
from gape.data import load
from gape.encodings.base import Encoding
from gape.experiments.graph_tasks.cell import Cell
from gape.experiments.graph_tasks.checkpoint import Epoch, read_epochs
from gape.experiments.graph_tasks.registry import find_row, make_encoding
from gape.experiments.graph_tasks.settings import Settings
from gape.experiments.report.plots import render_page
from gape.experiments.report.table import Table

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
