"""The paper's two figures, drawn from encodings computed here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch

from gape.data import Cycles
from gape.data.csl import NODES, circular_skip_link
from gape.encodings import GAPE, make
from gape.experiments.report.files import SUFFIXES, check_figure
from gape.experiments.report.panels import Panel, draw
from gape.graph.graph import Graph


def rw_pprp() -> tuple[str, list[Panel]]:
    """RW and PPRP (k = 5, β = 0.999) of a graph of CYCLES: other numbers, the same differences between nodes.

    >>> title, (walk, rank) = rw_pprp()
    >>> walk.values.shape == rank.values.shape, walk.values.shape[1]
    (True, 5)
    """
    graph = Cycles(train=2, val=2, test=2).build(cache=False)[0]
    walk = make("rw", length=5)(graph)
    # Unscaled values differ from β in the fourth digit and later: single precision would blur them.
    rank = make("pprp", powers=5, beta=0.999, scale=False, dtype="float64")(graph)
    panels = [
        Panel("RW", torch.as_tensor(walk).numpy(), "steps", "node"),
        Panel("PPRP, β = 0.999", torch.as_tensor(rank).numpy(), "steps at a time", "node"),
    ]
    return f"RW and PPRP of a graph of CYCLES, {graph.num_nodes} nodes", panels


def csl_labels() -> tuple[str, list[Panel]]:
    """GAPE of a graph of CSL with one label and with 20 random ones, nodes in the order of construction.

    >>> title, (one, twenty) = csl_labels()
    >>> bool((one.values == one.values[0]).all()), bool((twenty.values == twenty.values[0]).all())
    (True, False)
    """
    graph = Graph.from_edges(torch.as_tensor(circular_skip_link(NODES, 5)), undirected=True)
    one = GAPE(seed=41).solve(graph).weights
    twenty = GAPE(seed=41, labels=20, labelling="random").solve(graph).weights
    # All nodes of a regular graph look alike to walks; what is left is rounding, which a colour scale would blow up.
    one = torch.as_tensor(one.double().numpy().round(5))
    panels = [
        Panel("m = 1", one.numpy(), "state", "node"),
        Panel("m = 20", twenty.numpy(), "state", "node"),
    ]
    return f"GAPE of a circular skip link graph, {NODES} nodes, skip 5", panels


FIGURES: dict[str, Callable[[], tuple[str, list[Panel]]]] = {"rw-pprp": rw_pprp, "csl-labels": csl_labels}


def write_figure(name: str, path: Path | None = None, folder: Path = Path("figures")) -> list[Path]:
    """Draw a figure to a file, or as PNG, PDF and HTML into a folder; say where.

    >>> write_figure("mona-lisa")
    Traceback (most recent call last):
    ValueError: there is no figure 'mona-lisa'; there are rw-pprp, csl-labels
    """
    if name not in FIGURES:
        raise ValueError(f"there is no figure {name!r}; there are {', '.join(FIGURES)}")
    if path is None:
        folder.mkdir(parents=True, exist_ok=True)
    paths = [path] if path is not None else [folder / f"{name}{suffix}" for suffix in SUFFIXES]
    for target in paths:
        check_figure(target)
    title, panels = FIGURES[name]()
    for target in paths:
        draw(panels, title, target)
    return paths
