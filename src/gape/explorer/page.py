"""``gape.explore``: a graph and its encodings as one HTML page."""

from __future__ import annotations

import html
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gape._internal.files import asset, page_style, replacing
from gape._internal.validation import as_tensor, check_finite, did_you_mean
from gape.automaton import Automaton
from gape.encodings.gape import GAPE
from gape.explorer.content import (
    MAX_LIVE_NODES,
    MAX_LIVE_NODES_DIRECTED,
    Arrays,
    chosen_encodings,
    is_live,
    pack_extremal,
    pack_live,
)
from gape.explorer.gallery import GALLERY, MAX_SEED, MAX_STATES, Example, View, example
from gape.explorer.layout import layout
from gape.graph.convert import as_graph
from gape.graph.graph import Graph
from gape.graph.labels import RandomLabels
from gape.io.named_graphs import NamedGraphs, numbered
from gape.io.named_graphs import undirected as both_directions
from gape.io.read import read_graphs
from gape.solvers.certificate import MAX_ROUNDING_RESIDUAL, SINGULAR_GAP
from gape.solvers.error_bound import MAX_INVERSE_UNKNOWNS
from gape.solvers.solution import Status

#: The page draws at most so many nodes and edges, and graphs of a batch.
MAX_NODES, MAX_EDGES, MAX_GRAPHS = 100_000, 1_000_000, 36
RANDOM_LABELS = 20
_SCRIPTS = ("numbers.js", "pictures.js", "app.js")
_NOTEBOOK_HEIGHT = 760
#: What the page says of a certificate in a few words.
STATUS_TITLES = {
    Status.RUN_SUM: "✓ Sum over all runs",
    Status.ALGEBRAIC: "△ Algebraic solution",
    Status.SOLVED: "△ Solved, at the limit",
    Status.LEAST_SQUARES: "△ Least squares",
    Status.SINGULAR: "✕ No solution",
    Status.ILL_CONDITIONED: "✕ Ill-conditioned",
    Status.NOT_CONVERGED: "✕ Not converged",
    Status.OVERFLOW: "✕ Too large for the number format",
    Status.NON_FINITE_INPUT: "✕ Input is not finite",
}


class Explorer:
    """A page that shows a graph; Jupyter, VS Code and Colab display it.

    Args:
        title: of the page.
        page: the whole HTML file as text.
    """

    def __init__(self, title: str, page: str) -> None:
        self.title = title
        self.html = page

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page, whole or not at all. It needs no other file and no server."""
        with replacing(path) as temporary:
            temporary.write_text(self.html, encoding="utf-8")
        return Path(path)

    def _repr_html_(self) -> str:
        return (
            f'<iframe title="{html.escape(self.title)}" srcdoc="{html.escape(self.html)}" '
            f'style="width: 100%; height: {_NOTEBOOK_HEIGHT}px; border: 0" allowfullscreen></iframe>'
        )

    def __repr__(self) -> str:
        return f"Explorer({self.title!r}, {len(self.html) / 2**20:.1f} MiB)"


def explore(
    source: Any,
    *,
    encodings: Mapping[str, Any] | Sequence[str] | None = None,
    states: int | None = None,
    damping: float | None = None,
    seed: int | None = None,
    undirected: bool = False,
    graph: str | int | None = None,
    positions: Any = None,
    title: str | None = None,
) -> Explorer:
    """Show a graph and its encodings in the browser, as one HTML file without a server.

    On graphs of up to 400 nodes (directed: 256) the page holds what it needs to recompute GAPE when a slider moves;
    larger ones show what was computed here.

    Args:
        source: anything :func:`gape.as_graph` takes, a file that ``gape encode`` reads, graphs that
            :func:`gape.io.read_graphs` has read, or the name of an example (:data:`gape.explorer.GALLERY`).
        encodings: names of encodings to show beside GAPE, or a mapping from titles to names, encodings or your own
            features ``[n, k]``; ``None`` for a few that suit the graph's size.
        states, seed: of the automaton that is shown first; ``None`` for 16 and 0, or those of an example.
        damping: γ·ρ(A) of that automaton, γ itself on a graph without cycles; ``None`` for 0.9, or that of an example.
        undirected: take every edge in both directions.
        graph: name of one graph of a file or batch; ``None`` for all, or for the first 36.
        positions: ``[n, 2]`` places of the nodes; computed if ``None``.
        title: of the page.

    Example:
        >>> page = explore("karate")
        >>> page.title, "http" in page.html.replace("http://www.w3.org", "")
        ('Karate club', False)
    """
    shown = _example(source, undirected=undirected, graph=graph)
    given = {"states": states, "damping": damping, "seed": seed}
    settings: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    changed: dict[str, Any] = {}
    if not (isinstance(source, str) and source in GALLERY):
        changed = {"encodings": encodings, "views": (View(**settings),)}
    elif encodings is not None or settings:
        # An example's views of its own encodings go with these.
        views = [view for view in shown.views if encodings is None or view.encoding == "gape"] or [View()]
        if states is not None:
            views = [replace(view, column=min(view.column, max(states - 1, 0))) for view in views]
        changed["views"] = tuple(replace(view, **settings) for view in views)
        if encodings is not None:
            changed["encodings"] = encodings
    if title is not None:
        changed["title"] = title
    if positions is not None:
        changed["positions"] = _checked_positions(positions, shown.graph.num_nodes)
    return Explorer(changed.get("title", shown.title), render(replace(shown, **changed)))


def _example(source: Any, *, undirected: bool, graph: str | int | None) -> Example:
    path = source if isinstance(source, str | os.PathLike) else None
    if isinstance(path, str) and path in GALLERY:
        if undirected or graph is not None:
            raise ValueError(f"undirected and graph are for graphs of your own, got the example {path!r}")
        return example(path)
    if path is not None:
        if not os.path.exists(path) and not Path(path).suffix:
            raise ValueError(
                f"there is no file and no example {os.fspath(path)!r}; examples are {', '.join(GALLERY)}"
                f"{did_you_mean(os.fspath(path), GALLERY)}"
            )
        named, title = read_graphs(path), Path(path).name
    elif isinstance(source, NamedGraphs):
        named, title = source, "A graph"
    else:
        named, title = numbered(as_graph(source).to("cpu")), "A graph"
    if undirected:
        named = both_directions(named)
    return _chosen(named, graph, title)


def _chosen(named: NamedGraphs, graph: str | int | None, title: str) -> Example:
    """Pick the graphs to show out of a batch."""
    batch, nodes, notes = named.graph, named.nodes, list(named.notes)
    names = None if named.graphs is None else [str(name) for name in named.graphs]
    if graph is not None:
        known = names or ["0"]
        if str(graph) not in known:
            raise ValueError(
                f"there is no graph {str(graph)!r}; the names of graphs are {', '.join(known[:8])}"
                f"{', …' if len(known) > 8 else ''}"
            )
        at = known.index(str(graph))
        first, last = int(batch.ptr[at]), int(batch.ptr[at + 1])
        batch, nodes, names = batch.slice(at, at + 1), nodes[first:last], None
        title = f"{title}, graph {graph}"
    elif batch.num_graphs > MAX_GRAPHS:
        notes.append(f"{MAX_GRAPHS} of {batch.num_graphs:,} graphs are shown; choose one by its name (graph=, --only)")
        batch = batch.slice(0, MAX_GRAPHS)
        nodes, names = nodes[: batch.num_nodes], names[:MAX_GRAPHS] if names else None
    if batch.num_nodes == 0:
        raise ValueError("a graph without nodes cannot be shown")
    if batch.num_nodes > MAX_NODES or batch.num_edges > MAX_EDGES:
        raise ValueError(
            f"the explorer draws up to {MAX_NODES:,} nodes and {MAX_EDGES:,} edges, got {batch.num_nodes:,} and "
            f"{batch.num_edges:,}; show a part of the graph"
        )
    return Example(batch, title, names=[str(name) for name in nodes], graphs=names, notes=tuple(notes))


def _checked_positions(positions: Any, num_nodes: int) -> NDArray[np.float64]:
    given = as_tensor(positions, "positions").detach().cpu().double()
    if list(given.shape) != [num_nodes, 2]:
        raise ValueError(f"positions must be [{num_nodes}, 2], got shape {list(given.shape)}")
    check_finite(given, "positions")
    array: NDArray[np.float64] = given.numpy()
    return array


def render(shown: Example) -> str:
    """Return the page of an example as text."""
    arrays = Arrays()
    content = page_content(shown, arrays) | {"arrays": arrays.index}
    # Closes no script element, whatever the names of nodes are.
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    return Template(asset("gape.explorer", "page.html")).substitute(
        title=html.escape(shown.title),
        style=page_style() + asset("gape.explorer", "explorer.css"),
        content=text,
        arrays=arrays.text,
        script="\n".join(asset("gape.explorer", name) for name in _SCRIPTS),
    )


def page_content(shown: Example, arrays: Arrays) -> dict[str, Any]:
    """Describe what the page shows, with the numbers in ``arrays``."""
    graph = shown.graph
    live = is_live(graph)
    _pack_drawing(shown, arrays)
    first = shown.views[0]
    computed = GAPE(states=first.states, damping=first.damping, seed=first.seed, relative=True)
    encodings = _pack_encodings(shown, arrays, None if live else computed)
    return {
        "title": shown.title,
        "text": shown.text,
        "notes": list(shown.notes),
        "nodes": graph.num_nodes,
        "edges": _count_edges(graph),
        "directed": not graph.undirected,
        "weighted": graph.edge_weight is not None,
        "names": _names(shown),
        "graphs": _graphs(shown),
        "live": live,
        "live_limit": MAX_LIVE_NODES if graph.undirected else MAX_LIVE_NODES_DIRECTED,
        "max_states": MAX_STATES,
        "max_seed": MAX_SEED,
        "matrices": pack_live(graph, arrays) if live else pack_extremal(graph, arrays),
        "labels": _pack_labels(graph, arrays) if live else {},
        # The last numbers that the first automaton draws, to see if the page draws the same ones.
        "drawn": Automaton.random(first.states, seed=first.seed).initial.flatten().tolist(),
        "status": {
            status.name: {"title": STATUS_TITLES[status], "words": status.value, "tone": _tone(status)}
            for status in Status
        },
        "limits": {"gap": SINGULAR_GAP, "rounding": MAX_ROUNDING_RESIDUAL, "unknowns": MAX_INVERSE_UNKNOWNS},
        "encodings": encodings,
        "views": [asdict(view) | {"encoding": _place(view, encodings, live)} for view in shown.views],
        "node": shown.node,
    }


def _count_edges(graph: Graph) -> int:
    """Count the edges as drawn: an undirected edge is stored in both directions, a loop once."""
    if not graph.undirected:
        return graph.num_edges
    loops = int((graph.edge_index[0] == graph.edge_index[1]).sum())
    return (graph.num_edges + loops) // 2


def _tone(status: Status) -> str:
    """Return the colour of a status: "good" for the run sum, "warn" for another solution, "bad" for a failure."""
    return "good" if status is Status.RUN_SUM else "bad" if status.failed else "warn"


def _place(view: View, encodings: list[dict[str, Any]], live: bool) -> int | None:
    """Return the place of a view's encoding in the page's list; ``None`` for GAPE that the page computes itself."""
    if view.encoding == "gape":
        return None if live else 0
    return [entry["title"] for entry in encodings].index(view.encoding)


def _pack_drawing(shown: Example, arrays: Arrays) -> None:
    """Store positions and the lines to draw: each edge once, loops left out."""
    graph, n = shown.graph, shown.graph.num_nodes
    source, target = graph.edge_index.cpu().numpy()
    if graph.undirected:
        source, target = np.minimum(source, target), np.maximum(source, target)
    keys = np.unique((source * n + target)[source != target])
    arrays.add_nodes("lines", np.stack([keys // n, keys % n]), n)
    places = layout(graph) if shown.positions is None else shown.positions
    # Into a box of 65,535 steps; y points up here and down in the page.
    low = places.min(0)
    span = max(float((places.max(0) - low).max()), 1e-9)
    steps = np.round((places - low) / span * 65535)
    arrays.add("positions", np.stack([steps[:, 0], steps[:, 1].max() - steps[:, 1]], 1), np.uint16)


def _pack_labels(graph: Graph, arrays: Arrays) -> dict[str, Any]:
    drawn = np.stack([RandomLabels(RANDOM_LABELS, seed=seed)(graph).numpy() for seed in range(MAX_SEED + 1)])
    stored = arrays.add("labels.random", drawn, np.uint8)
    labels: dict[str, Any] = {"random": {"count": RANDOM_LABELS, "of_seed": stored}}
    if graph.labels is not None and int(graph.labels.min()) >= 0:
        count = int(graph.labels.max()) + 1
        labels["given"] = {"count": count, "array": arrays.add("labels.given", graph.labels.numpy(), np.uint32)}
    return labels


def _pack_encodings(shown: Example, arrays: Arrays, gape: GAPE | None) -> list[dict[str, Any]]:
    packed = []
    for place, found in enumerate(chosen_encodings(shown.encodings, shown.graph, gape)):
        entry: dict[str, Any] = {"title": found.title, "settings": found.settings}
        entry["values"] = arrays.add_features(f"encoding.{place}", found.values)
        if found.status:
            entry |= {"status": found.status, "radius": found.radius, "residual": found.residual}
        packed.append(entry)
    return packed


def _names(shown: Example) -> list[str] | None:
    if shown.names is None or list(shown.names) == [str(i) for i in range(shown.graph.num_nodes)]:
        return None
    return list(shown.names)


def _graphs(shown: Example) -> list[dict[str, Any]] | None:
    if shown.graph.num_graphs == 1:
        return None
    names = shown.graphs or [str(i) for i in range(shown.graph.num_graphs)]
    ptr = shown.graph.ptr.tolist()
    return [{"name": name, "start": a, "stop": b} for name, a, b in zip(names, ptr[:-1], ptr[1:], strict=True)]
