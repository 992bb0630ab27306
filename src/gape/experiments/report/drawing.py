"""Encodings drawn on one graph: nodes coloured by one feature each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import networkx
import torch

from gape.encodings import make
from gape.experiments.graph_tasks.settings import Settings

# Which feature of each encoding to show, and what it means. Column 5 of RW is the return after six steps.
_FEATURES = {
    "lape": (0, "LAPE: first eigenvector"),
    "rw": (5, "RW: back after 6 steps"),
    "gape": (0, "GAPE: first state"),
    "pprp": (5, "PPRP: 6 steps at a time"),
}


def drawn_encodings(data: Any, chosen: Sequence[Settings]) -> Any:
    """A Plotly figure of a PyG graph with a panel for each encoding that has a picture.

    Args:
        data: the graph.
        chosen: settings of runs with the encodings.
    """
    from plotly import graph_objects
    from plotly.subplots import make_subplots

    shown: list[tuple[str, Any]] = []
    for settings in chosen:
        if settings.encoding in _FEATURES:
            column, title = _FEATURES[settings.encoding]
            found = torch.as_tensor(make(settings.encoding, **settings.encoding_options)(data))
            shown += [(title, found[:, column])] if column < found.shape[1] else []
    graph = networkx.Graph(data.edge_index.t().tolist())
    graph.add_nodes_from(range(data.num_nodes))
    places = networkx.kamada_kawai_layout(graph)
    titles = [title for title, _ in shown]
    figure = make_subplots(1, max(1, len(shown)), subplot_titles=titles, horizontal_spacing=0.02)
    across = [x for u, v in graph.edges for x in (places[u][0], places[v][0], None)]
    up = [y for u, v in graph.edges for y in (places[u][1], places[v][1], None)]
    for place, (_, values) in enumerate(shown, start=1):
        lines = graph_objects.Scatter(
            x=across, y=up, mode="lines", line={"color": "#bbb", "width": 1}, hoverinfo="skip"
        )
        nodes = graph_objects.Scatter(
            x=[places[node][0] for node in range(data.num_nodes)],
            y=[places[node][1] for node in range(data.num_nodes)],
            mode="markers",
            marker={"color": values.tolist(), "colorscale": "Viridis", "size": 8, "line": {"width": 0.5}},
            text=[f"node {node}: {value:.4g}" for node, value in enumerate(values.tolist())],
            hoverinfo="text",
        )
        figure.add_trace(lines, row=1, col=place)
        figure.add_trace(nodes, row=1, col=place)
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False)
    margin = {"l": 10, "r": 10, "t": 40, "b": 10}
    figure.update_layout(showlegend=False, template="plotly_white", height=430, margin=margin)
    return figure
