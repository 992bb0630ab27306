"""Graphs as they came from a file: with the names that their nodes have there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gape.graph.convert import as_graph
from gape.graph.graph import Graph


@dataclass(frozen=True, eq=False)
class NamedGraphs:
    """A batch of graphs and what its nodes and graphs are called.

    Args:
        graph: the batch.
        nodes: ``[num_nodes]``, integers or strings; names of different graphs may coincide.
        graphs: ``[num_graphs]``, integers or strings; ``None`` if the file holds one graph without a name.
        notes: what the user should hear about the file, such as columns that were not read.
    """

    graph: Graph
    nodes: NDArray[Any]
    graphs: NDArray[Any] | None = None
    notes: tuple[str, ...] = ()

    @property
    def graph_of_node(self) -> NDArray[Any] | None:
        """``[num_nodes]``: the name of each node's graph."""
        return None if self.graphs is None else np.repeat(self.graphs, self.graph.ptr.diff().cpu().numpy())


def numbered(graph: Graph) -> NamedGraphs:
    """A batch whose nodes have no names: they are numbered from 0 in every graph, and the graphs from 0."""
    nodes = graph.adjacency.local.cpu().numpy()
    return NamedGraphs(graph, nodes, np.arange(graph.num_graphs) if graph.num_graphs > 1 else None)


def graph_in(path: Path, held: Any) -> Graph:
    """What a file holds as a graph, or a complaint that names the file."""
    try:
        return as_graph(held)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def as_names(values: Sequence[Any]) -> NDArray[Any]:
    """Names as an array without Python objects: whole numbers if all of them are written so, else strings.

    >>> as_names(["10", "9"]), as_names(["007", "8"])
    (array([10,  9]), array(['007', '8'], dtype='<U3'))
    """
    try:
        numbers = np.fromiter((int(value) for value in values), dtype=np.int64, count=len(values))
        if all(str(number) == str(value) for number, value in zip(numbers.tolist(), values, strict=True)):
            return numbers
    except (TypeError, ValueError, OverflowError):
        pass
    return np.array([str(value) for value in values], dtype=np.str_)
