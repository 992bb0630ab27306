"""GraphML and GML files, read by NetworkX."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

from gape.io.named import NamedGraphs, as_names, graph_in


def read_graphml(path: Path) -> NamedGraphs:
    """The first graph of a GraphML file; nodes are named by their ``id``."""
    networkx = _networkx()
    try:
        graph = networkx.read_graphml(path)
    except (ParseError, networkx.NetworkXError, KeyError, StopIteration, ValueError) as error:
        raise ValueError(f"{path} cannot be read as GraphML: {error}") from error
    return NamedGraphs(graph_in(path, graph), as_names(list(graph.nodes)))


def read_gml(path: Path) -> NamedGraphs:
    """A GML file; nodes are named by their ``label`` if all have one of their own, else by their ``id``."""
    networkx = _networkx()
    try:
        graph = networkx.read_gml(path, label="id")
    except (networkx.NetworkXError, ValueError) as error:
        raise ValueError(f"{path} cannot be read as GML: {error}") from error
    labels: list[Any] = [label for _, label in graph.nodes(data="label") if label is not None]
    own = len(set(labels)) == len(labels) == len(graph)
    return NamedGraphs(graph_in(path, graph), as_names(labels if own else list(graph.nodes)))


def _networkx() -> Any:
    try:
        import networkx
    except ImportError as error:
        raise ImportError("reading GraphML and GML needs NetworkX: pip install 'gape[cli]'") from error
    return networkx
