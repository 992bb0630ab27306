"""Figures as files, for print and for the browser, written whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from gape.atomic import replacing

SUFFIXES = (".png", ".pdf", ".html")
#: Of figures in the browser: no row of buttons, which lies over titles; dragging zooms, a double click goes back.
CONFIG = {"displayModeBar": False, "responsive": True}


def check_suffix(path: Path) -> None:
    """Refuse a file that no figure can be written to."""
    if path.suffix not in SUFFIXES:
        raise ValueError(f"a figure is a {', '.join(SUFFIXES)} file, got {path.name!r}")


def write(path: Path, for_print: Callable[[], Any], for_browser: Callable[[], Any]) -> None:
    """Write a PNG or PDF file, or a page of its own with all that it needs.

    Args:
        path: its ending says which.
        for_print: makes the figure for Matplotlib.
        for_browser: makes the figure for Plotly.
    """
    check_suffix(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".html":
        page = for_browser().to_html(include_plotlyjs=True, full_html=True, config=CONFIG)
        with replacing(path) as temporary:
            temporary.write_text(page, encoding="utf-8")
    else:
        figure = for_print()
        with replacing(path) as temporary:
            figure.savefig(temporary, dpi=160, format=path.suffix.removeprefix("."))


def blank(width: float, height: float) -> Any:
    """An empty figure for print, in inches: Matplotlib's own and not pyplot's, so no window and no global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure
