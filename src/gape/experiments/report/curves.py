"""Learning curves of some runs in one figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gape.experiments.graph_tasks.cell import Cell
from gape.experiments.graph_tasks.registry import find_row
from gape.experiments.graph_tasks.training.checkpoint import Epoch, read_epochs

# Distinct also without colour vision (Okabe and Ito).
COLOURS = ("#000000", "#E69F00", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#F0E442")


def learning_curves(cells: Sequence[Cell], runs: Path, metric: str) -> Any:
    """A Plotly figure: metric and losses epoch by epoch; of the first fold where there are several."""
    from plotly import graph_objects
    from plotly.subplots import make_subplots

    titles = [f"validation {metric.replace('_', ' ')}", "training (dotted) and validation loss"]
    figure = make_subplots(1, 2, subplot_titles=titles)
    for place, cell in enumerate(cells):
        epochs = _epochs(cell.folder(runs))
        if not epochs:
            continue
        name, colour = find_row(cell.encoding).title, COLOURS[place % len(COLOURS)]
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
    # Batch norm lets the validation loss jump by orders of magnitude.
    figure.update_yaxes(type="log", row=1, col=2)
    figure.update_layout(template="plotly_white", height=430, margin={"t": 40, "b": 40})
    return figure


def _epochs(folder: Path) -> list[Epoch]:
    path = folder / "metrics.csv"
    return read_epochs(path if path.exists() else folder / "fold-0" / "metrics.csv")
