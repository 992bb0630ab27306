"""Figures as files, for print and for the browser, written whole or not at all."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gape._internal.files import check_writable, replacing

SUFFIXES = (".png", ".pdf", ".html")
#: Of figures in the browser: no row of buttons, which lies over titles; dragging zooms, a double click goes back.
CONFIG = {"displayModeBar": False, "responsive": True}


def check_figure(path: Path) -> None:
    """Refuse, before the work, a file that no figure can be written to.

    >>> check_figure(Path("figure.svg"))
    Traceback (most recent call last):
    ValueError: a figure is a .png, .pdf, .html file, got 'figure.svg'
    """
    if path.suffix not in SUFFIXES:
        raise ValueError(f"a figure is a {', '.join(SUFFIXES)} file, got {path.name!r}")
    check_writable(path)


def write(path: Path, for_print: Callable[[], Any], for_browser: Callable[[], Any], notes: Sequence[str] = ()) -> None:
    """Write a PNG or PDF file, or a page of its own with all that it needs.

    Args:
        path: its ending says which.
        for_print: makes the figure for Matplotlib.
        for_browser: makes the figure for Plotly.
        notes: paragraphs below the figure in the browser.
    """
    check_figure(path)
    if path.suffix == ".html":
        page: str = for_browser().to_html(include_plotlyjs=True, full_html=True, config=CONFIG)
        below = "".join(f'<p style="font: 13px sans-serif; margin: .4em 6em">{html.escape(note)}</p>' for note in notes)
        head, end, tail = page.rpartition("</body>")
        with replacing(path) as temporary:
            temporary.write_text(f"{head}{below}{end}{tail}", encoding="utf-8")
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
