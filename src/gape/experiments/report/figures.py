"""The paper's two figures: heat maps of encodings computed here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gape._internal.validation import did_you_mean
from gape.data import Cycles
from gape.data.csl import NODES, circular_skip_link
from gape.encodings import GAPE, make
from gape.experiments.report.plots import SUFFIXES, check_figure, new_figure, save_figure
from gape.graph.graph import Graph


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
