"""Graphs read from files, with the names of their nodes; encoding them, with a count of certificates."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gape.encodings.pairs import Pairs
from gape.graph.convert import as_graph
from gape.graph.graph import Graph
from gape.solvers.solution import AlgebraicOnlyWarning, SolveError, Status


@dataclass(frozen=True, eq=False)
class NamedGraphs:
    """A batch of graphs with the names of its nodes and graphs.

    Args:
        graph: the batch.
        nodes: ``[num_nodes]``, integers or strings; names of different graphs may coincide.
        graphs: ``[num_graphs]``, integers or strings; ``None`` if the file holds one graph without a name.
        notes: messages for the user, such as columns that were not read.
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
    """Name the nodes of every graph, and the graphs, by number from 0."""
    nodes = graph.adjacency.local.cpu().numpy()
    return NamedGraphs(graph, nodes, np.arange(graph.num_graphs) if graph.num_graphs > 1 else None)


def graph_in(path: Path, held: Any) -> Graph:
    """Convert an object read from a file to a graph; errors name the file."""
    try:
        return as_graph(held)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def as_names(values: Sequence[Any]) -> NDArray[Any]:
    """Convert names to an integer array if all are written as whole numbers, otherwise to strings.

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


def unweighted(named: NamedGraphs) -> NamedGraphs:
    """Leave out edge weights, and keep one of repeated edges.

    Example:
        >>> twice = numbered(Graph.from_edges([(0, 1), (0, 1)], edge_weight=[2.0, 3.0]))
        >>> unweighted(twice).graph
        Graph(graphs=1, nodes=2, edges=1, directed)
    """
    graph = named.graph
    edges = torch.unique(graph.edge_index, dim=1)
    return replace(named, graph=Graph(edges, graph.num_nodes, labels=graph.labels, ptr=graph.ptr))


def note_weights(named: NamedGraphs, *, unasked: bool) -> NamedGraphs:
    """Add notes on weights that a user may not have in mind: of repeated edges, and those not asked for."""
    notes, graph = list(named.notes), named.graph
    if unasked and graph.edge_weight is not None:
        notes.append("the file's edge weights are used; --unweighted leaves them out")
    source, target = graph.edge_index
    repeated = graph.num_edges - len(torch.unique(source * graph.num_nodes + target))
    if repeated:
        edges = "1 edge is repeated" if repeated == 1 else f"{repeated:,} edges are repeated"
        notes.append(f"{edges}, and weights of repeated edges add up; --unweighted counts every edge once")
    return replace(named, notes=tuple(notes))


def undirected(named: NamedGraphs) -> NamedGraphs:
    """Add the reverse of every edge.

    Repeated edges add up first. An edge present in both directions keeps its weight if the two agree; otherwise raise.

    Example:
        >>> from gape.io.named_graphs import numbered
        >>> both = undirected(numbered(Graph.from_edges([(0, 1), (1, 0), (1, 2)])))
        >>> both.graph
        Graph(graphs=1, nodes=3, edges=4, undirected)
    """
    graph = named.graph
    n = graph.num_nodes
    source, target = graph.edge_index
    keys, place = torch.unique(source * n + target, return_inverse=True)
    given = torch.ones(graph.num_edges, dtype=torch.float64) if graph.edge_weight is None else graph.edge_weight
    # Sort by weight, so that repeated edges and their reverses are summed in the same order.
    order = torch.argsort(given, stable=True)
    weight = torch.zeros(len(keys), dtype=given.dtype).index_add_(0, place[order], given[order])
    mirrored = keys % n * n + keys // n
    everything, place = torch.unique(torch.cat([keys, mirrored]), return_inverse=True)
    forward, backward = place[: len(keys)], place[len(keys) :]
    both = torch.zeros(len(everything), dtype=given.dtype)
    both[backward] = weight
    clash = (both[forward] != weight) & torch.isin(keys, mirrored)
    if bool(clash.any()):
        edge = int(clash.nonzero()[0])
        u, v = int(keys[edge]) // n, int(keys[edge]) % n
        raise ValueError(
            f"edge {named.nodes[u]!s} → {named.nodes[v]!s} has weight {weight[edge].item():g} and its reverse "
            f"{both[forward[edge]].item():g}; an undirected graph needs one weight for both"
        )
    both[forward] = weight
    weighted = graph.edge_weight is not None or not bool((both == 1).all())
    edges = torch.stack([everything // n, everything % n])
    made = Graph(edges, n, edge_weight=both if weighted else None, labels=graph.labels, ptr=graph.ptr)
    return replace(named, graph=made)


def encode_counted(graph: Graph, encoding: Any, names: Any, counts: Counter[Status]) -> Tensor | Pairs:
    """Encode a batch and count the certificates; raise with its name if a graph cannot be encoded.

    Args:
        graph: the batch.
        encoding: settings.
        names: of the graphs; ``None`` for one graph without a name.
        counts: gets the number of graphs by status, if the encoding solves an equation.
    """
    if not hasattr(encoding, "solve"):
        return encoding(graph)  # type: ignore[no-any-return]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AlgebraicOnlyWarning)  # the counts say it
            solution = encoding.solve(graph)
    except SolveError as error:
        failed = error.solution.failed[0]
        which = "the graph" if names is None else f"graph {names[failed]!s}"
        raise ValueError(f"{which} cannot be encoded; {error.solution.status[failed]}") from error
    counts.update(solution.counts())
    return Pairs(solution.weights, graph.sizes) if encoding.pairwise else solution.weights
