"""A row of heat maps, drawn for print and for the browser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gape.experiments.report.files import blank, write


@dataclass(frozen=True, eq=False)
class Panel:
    """One heat map.

    Args:
        title: above it.
        values: ``[rows, columns]``.
        across, down: what columns and rows are.
        first: number of the first column.
    """

    title: str
    values: NDArray[np.floating[Any]]
    across: str
    down: str
    first: int = 1


def draw(panels: Sequence[Panel], title: str, path: Path) -> None:
    """Write a PNG or PDF file, or a page of its own with all that it needs."""
    write(path, lambda: _printed(panels, title), lambda: interactive(panels, title))


def interactive(panels: Sequence[Panel], title: str) -> Any:
    """The same as a Plotly figure."""
    from plotly import graph_objects
    from plotly.subplots import make_subplots

    # Every panel has a gap to its right, in which its colour bar stands.
    share, gap = 1 / len(panels), 0.13
    figure = make_subplots(1, len(panels), subplot_titles=[panel.title for panel in panels])
    for place, panel in enumerate(panels, start=1):
        steps = list(range(panel.first, panel.first + panel.values.shape[1]))
        left, right = (place - 1) * share, place * share - gap
        figure.update_xaxes(domain=[left, right], row=1, col=place)
        figure.layout.annotations[place - 1].x = (left + right) / 2
        bar = {"x": right + 0.005, "thickness": 12}
        figure.add_trace(
            graph_objects.Heatmap(z=panel.values, x=steps, colorscale="Viridis", colorbar=bar), row=1, col=place
        )
        figure.update_xaxes(title_text=panel.across, row=1, col=place)
        figure.update_yaxes(title_text=panel.down, autorange="reversed", row=1, col=place)
    figure.update_layout(title=title, template="plotly_white", height=620)
    return figure


def _printed(panels: Sequence[Panel], title: str) -> Any:
    from matplotlib.ticker import MaxNLocator

    figure = blank(4.2 * len(panels), 5.0)
    for place, panel in enumerate(panels, start=1):
        axes = figure.add_subplot(1, len(panels), place)
        rows, columns = panel.values.shape
        extent = (panel.first - 0.5, panel.first + columns - 0.5, rows - 0.5, -0.5)
        image = axes.imshow(panel.values, aspect="auto", interpolation="nearest", cmap="viridis", extent=extent)
        axes.set(title=panel.title, xlabel=panel.across, ylabel=panel.down)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        figure.colorbar(image, ax=axes)
    figure.suptitle(title)
    return figure
