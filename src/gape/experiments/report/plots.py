"""Dot plots of tables and the paper's figures, drawn with Matplotlib: as PNG, PDF, or an HTML page with an SVG."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import torch
from jinja2 import Environment, PackageLoader, StrictUndefined
from numpy.typing import NDArray

from gape._internal.files import check_writable, page_style, replacing
from gape._internal.validation import did_you_mean
from gape.data import Cycles
from gape.data.csl import NODES, circular_skip_link
from gape.encodings import GAPE, make
from gape.experiments.report.numbers import RULES
from gape.experiments.report.table import LOGS, PAPER, Table
from gape.graph.graph import Graph

#: File formats of figures.
SUFFIXES = (".png", ".pdf", ".html")
#: Panels per line.
PANELS_PER_LINE = 4
# Errors that differ by more than this factor are drawn on a logarithmic axis, with ticks at 1, 2 and 5 times 10ⁿ.
_LOG_FACTOR = 5.0
_LOG_TICKS = [digit * 10.0**power for power in range(-9, 10) for digit in (1, 2, 5)]
_SVG = "http://www.w3.org/2000/svg"


@dataclass(frozen=True)
class _Marker:
    """The marker of one kind of figure: ours are circles, those of others diamonds; filled or hollow."""

    label: str
    ours: bool
    filled: bool

    @property
    def colour(self) -> str:
        return "#1f5fa8" if self.ours else "#d9730d"

    @property
    def offset(self) -> float:
        """Distance below the line of its row: ours a little above, so that neither hides the other."""
        return -0.15 if self.ours else 0.15

    @property
    def symbol(self) -> str:
        return "o" if self.ours else "D"


# Filled at best validation, hollow at the last epoch, which is what the paper prints.
_MARKERS = {
    RULES["best_validation"]: _Marker("ours, best validation", ours=True, filled=True),
    RULES["last_epoch"]: _Marker("ours, last epoch", ours=True, filled=False),
    LOGS: _Marker(LOGS, ours=False, filled=True),
    PAPER: _Marker(PAPER, ours=False, filled=False),
}


@dataclass(frozen=True)
class Dots:
    """The figures of one kind in one column, by row: numbers, half lengths of their bars, and texts.

    Only figures at best validation have bars, of their deviation over seeds: two in one place would look like one.
    """

    kind: str
    rows: list[str]
    numbers: list[float]
    spreads: list[float]
    texts: list[str]

    @property
    def marker(self) -> _Marker:
        return _MARKERS[self.kind]


def dots(table: Table, column: int) -> list[Dots]:
    """Return the figures of one column by kind, without those that are missing or not finite.

    >>> from gape.experiments.report.table import Entry
    >>> lines = (("RW", "paper", (Entry("80.00", value=80.0),)), ("LAPE", "paper", (Entry("missing"),)))
    >>> [(found.kind, found.rows, found.numbers) for found in dots(Table("t", "", ("CSL ↑",), lines, ()), 0)]
    [('paper', ['RW'], [80.0])]
    """
    drawn = []
    for kind in _MARKERS:
        found = Dots(kind, [], [], [], [])
        for row, what, entries in table.lines:
            entry = entries[column]
            if what == kind and entry.number is not None:
                found.rows.append(row)
                found.numbers.append(entry.number)
                spread = entry.summary.deviation if entry.summary is not None and found.marker.filled else None
                found.spreads.append(spread or 0.0)
                found.texts.append(f"{row}, {found.marker.label}: {entry.text}")
        if found.rows:
            drawn.append(found)
    return drawn


def draw_table(table: Table, path: Path) -> None:
    """Write a dot plot of a table of graph tasks to a PNG, PDF or HTML file, the latter with its notes.

    Args:
        table: see :func:`gape.experiments.report.table.comparison`.
        path: its suffix chooses the format.
    """
    if not any(dots(table, column) for column in range(len(table.columns))):
        raise ValueError(f"the table {table.name} has no figure to draw: train with `gape bench` first")
    figure, tooltips = dot_plot(table)
    save_figure(figure, path, table.title, table.notes, tooltips)


def dot_plot(table: Table) -> tuple[Any, dict[str, list[str]]]:
    """Draw a table: one panel per column, one line per row, one dot per figure.

    Returns:
        The Matplotlib figure, and the tooltips of its dots by the id of their group, see :func:`save_figure`.
    """
    from matplotlib.ticker import FixedLocator, StrMethodFormatter

    rows, (down, across) = _rows(table), _grid(table)
    labels = 0.3 + 0.08 * max(map(len, rows))
    figure = new_figure(max(7.0, labels + 2.5 * across), 0.9 + down * (1.0 + 0.24 * len(rows)))
    legend: dict[str, Any] = {}
    tooltips: dict[str, list[str]] = {}
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
            axes.xaxis.set_major_locator(FixedLocator(_LOG_TICKS))
            axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        for found in shown:
            marker = found.marker
            points, *_ = legend[marker.label] = axes.errorbar(
                found.numbers,
                [rows.index(row) + marker.offset for row in found.rows],
                xerr=found.spreads,
                fmt=marker.symbol,
                color=marker.colour,
                markersize=5 if marker.filled else 7,
                markerfacecolor=marker.colour if marker.filled else "none",
                elinewidth=1,
                label=marker.label,
            )
            points.set_gid(f"dots-{place}-{list(_MARKERS).index(found.kind)}")
            tooltips[points.get_gid()] = found.texts
    figure.suptitle(f"{table.title} (no bar: one seed, or no difference)", fontsize=11)
    handles = [points for points, *_ in legend.values()]
    figure.legend(handles, legend.keys(), loc="outside lower center", ncols=len(legend), frameon=False)
    return figure, tooltips


def _rows(table: Table) -> list[str]:
    return list(dict.fromkeys(row for row, *_ in table.lines))


def _heading(table: Table, place: int) -> list[str]:
    """Return the name of a column and, below it, the data of our figures."""
    return [table.columns[place], *([table.remarks[place]] if table.remarks else [])]


def _grid(table: Table) -> tuple[int, int]:
    """Return the numbers of lines of panels and of panels per line."""
    return -(-len(table.columns) // PANELS_PER_LINE), min(PANELS_PER_LINE, len(table.columns))


def _logarithmic(heading: str, shown: list[Dots]) -> bool:
    """Return True for a column of errors of very different sizes whose bars all end above zero."""
    if not heading.endswith("↓"):
        return False
    ends = [number - spread for found in shown for number, spread in zip(found.numbers, found.spreads, strict=True)]
    largest = max((number for found in shown for number in found.numbers), default=0.0)
    return min(ends, default=0.0) > 0 and largest > _LOG_FACTOR * min(ends)


def new_figure(width: float, height: float) -> Any:
    """Return an empty Matplotlib figure, in inches; not pyplot's, so there is no window and no global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def check_figure(path: Path) -> None:
    """Validate the path of a figure before it is drawn.

    >>> check_figure(Path("figure.svg"))
    Traceback (most recent call last):
    ValueError: a figure is a .png, .pdf, .html file, got 'figure.svg'
    """
    if path.suffix not in SUFFIXES:
        raise ValueError(f"a figure is a {', '.join(SUFFIXES)} file, got {path.name!r}")
    check_writable(path)


def save_figure(
    figure: Any, path: Path, title: str, notes: Sequence[str] = (), tooltips: Mapping[str, Sequence[str]] | None = None
) -> None:
    """Write a Matplotlib figure as PNG, PDF, or an HTML page that needs no other file.

    Args:
        figure: to write.
        path: its suffix chooses the format.
        title: of the page.
        notes: paragraphs below the figure on the page.
        tooltips: on the page, texts of the markers of a line, by the line's id (``set_gid``).
    """
    check_figure(path)
    if path.suffix == ".html":
        page = render_page("figure.html", title=title, svg=_svg(figure, tooltips or {}), notes=notes)
        with replacing(path) as temporary:
            temporary.write_text(page, encoding="utf-8")
    else:
        with replacing(path) as temporary:
            figure.savefig(temporary, dpi=160, format=path.suffix.removeprefix("."))


def _svg(figure: Any, tooltips: Mapping[str, Sequence[str]]) -> str:
    """Return the figure as SVG, with a ``<title>``, which browsers show as a tooltip, in every marker."""
    from matplotlib import rc_context

    with rc_context({"svg.fonttype": "none"}):  # text as text, not as outlines
        figure.savefig(written := io.StringIO(), format="svg")
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", "http://www.w3.org/1999/xlink")
    root = ElementTree.fromstring(written.getvalue())
    for group in root.iter(f"{{{_SVG}}}g"):
        markers = group.iter(f"{{{_SVG}}}use")
        for text, marker in zip(tooltips.get(group.get("id", ""), ()), markers, strict=False):
            ElementTree.SubElement(marker, f"{{{_SVG}}}title").text = text
    return ElementTree.tostring(root, encoding="unicode")


def render_page(template: str, **values: Any) -> str:
    """Render a template of ``report/templates`` in the shared style; values are escaped unless marked ``safe``."""
    loader = PackageLoader("gape.experiments.report")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    return environment.get_template(template).render(style=page_style(), **values)


@dataclass(frozen=True, eq=False)
class Panel:
    """One heat map, nodes down.

    Args:
        title: above it.
        values: ``[nodes, features]``.
        features: name of the features; they are numbered from 1.
    """

    title: str
    values: NDArray[np.floating[Any]]
    features: str


def rw_pprp() -> tuple[str, list[Panel]]:
    """Compute RW and PPRP (k = 5, β = 0.999) of a graph of CYCLES: other numbers, the same differences between nodes.

    >>> title, (walk, rank) = rw_pprp()
    >>> walk.values.shape == rank.values.shape, walk.values.shape[1]
    (True, 5)
    """
    graph = Cycles(train=2, val=2, test=2).build(cache=False)[0]
    walk = make("rw", length=5)(graph)
    # Unscaled values differ from β only from the fourth digit on, too little for single precision.
    rank = make("pprp", powers=5, beta=0.999, scale=False, dtype="float64")(graph)
    panels = [
        Panel("RW", torch.as_tensor(walk).numpy(), "steps"),
        Panel("PPRP, β = 0.999", torch.as_tensor(rank).numpy(), "steps at a time"),
    ]
    return f"RW and PPRP of a graph of CYCLES, {graph.num_nodes} nodes", panels


def csl_labels() -> tuple[str, list[Panel]]:
    """Compute GAPE of a graph of CSL with one label and with 20 random ones, nodes in the order of construction.

    >>> title, (one, twenty) = csl_labels()
    >>> bool((one.values == one.values[0]).all()), bool((twenty.values == twenty.values[0]).all())
    (True, False)
    """
    graph = Graph.from_edges(torch.as_tensor(circular_skip_link(NODES, 5)), undirected=True)
    one = GAPE(seed=41).solve(graph).weights
    twenty = GAPE(seed=41, labels=20, labelling="random").solve(graph).weights
    # All nodes of a regular graph look alike to walks; what is left is rounding, which a colour scale would amplify.
    one = torch.as_tensor(one.double().numpy().round(5))
    panels = [Panel("m = 1", one.numpy(), "state"), Panel("m = 20", twenty.numpy(), "state")]
    return f"GAPE of a circular skip link graph, {NODES} nodes, skip 5", panels


FIGURES: dict[str, Callable[[], tuple[str, list[Panel]]]] = {"rw-pprp": rw_pprp, "csl-labels": csl_labels}


def heat_maps(title: str, panels: Sequence[Panel]) -> Any:
    """Draw a row of heat maps with Matplotlib, each with its colour bar."""
    from matplotlib.ticker import MaxNLocator

    figure = new_figure(4.2 * len(panels), 5.0)
    for place, panel in enumerate(panels, start=1):
        axes = figure.add_subplot(1, len(panels), place)
        rows, columns = panel.values.shape
        extent = (0.5, columns + 0.5, rows - 0.5, -0.5)
        image = axes.imshow(panel.values, aspect="auto", interpolation="nearest", cmap="viridis", extent=extent)
        axes.set(title=panel.title, xlabel=panel.features, ylabel="node")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        figure.colorbar(image, ax=axes)
    figure.suptitle(title)
    return figure


def write_figure(name: str, path: Path | None = None, folder: Path = Path("figures")) -> list[Path]:
    """Draw a figure of the paper to a file, or as PNG, PDF and HTML into a folder; return the paths.

    >>> write_figure("mona-lisa")
    Traceback (most recent call last):
    ValueError: there is no figure 'mona-lisa'; there are rw-pprp, csl-labels
    """
    if name not in FIGURES:
        raise ValueError(f"there is no figure {name!r}; there are {', '.join(FIGURES)}{did_you_mean(name, FIGURES)}")
    if path is None:
        folder.mkdir(parents=True, exist_ok=True)
    paths = [path] if path is not None else [folder / f"{name}{suffix}" for suffix in SUFFIXES]
    for target in paths:
        check_figure(target)
    title, panels = FIGURES[name]()
    figure = heat_maps(title, panels)
    for target in paths:
        save_figure(figure, target, title)
    return paths
