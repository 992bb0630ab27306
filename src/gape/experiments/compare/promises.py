"""Promises of an encoding: the same bytes every time, renumbering, batches, and the graphs it takes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gape.encodings import Encoding, Pairs
from gape.encodings.registry import make, settings_of
from gape.graph.graph import Graph


@dataclass(frozen=True)
class Promises:
    """Observed on random graphs, not proven.

    Args:
        repeatable: the same bytes in two runs and with one and two threads.
        batch_error: the largest difference between a graph alone and in a batch, relative to the largest value.
        order_error: the largest difference when the nodes are numbered otherwise, likewise.
        directed, weighted, disconnected: "yes", or the setting that helps, or "no".
    """

    repeatable: bool
    batch_error: float
    order_error: float
    directed: str
    weighted: str
    disconnected: str


def observe(name: str, graphs: int = 20, seed: int = 0) -> Promises:
    """Try an encoding with its default settings on random graphs.

    Example:
        >>> observe("degree", graphs=3)
        Promises(repeatable=True, batch_error=0.0, order_error=0.0, directed='yes', weighted='yes', disconnected='yes')
    """
    draw = np.random.default_rng(seed)
    singles = [random_graph(draw) for _ in range(graphs)]
    encoding = make(name, **_most_exact(name))
    with warnings.catch_warnings(action="ignore"):
        alone = [_values(encoding, graph) for graph in singles]
        together = _split(encoding, singles)
        order_error = max(_order_error(encoding, graph, rows, draw) for graph, rows in zip(singles, alone, strict=True))
        return Promises(
            repeatable=_repeatable(encoding, singles),
            batch_error=max(_difference(a, b) for a, b in zip(alone, together, strict=True)),
            order_error=order_error,
            directed=_works(name, Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])),
            weighted=_works(name, Graph.from_edges([(0, 1), (1, 2)], undirected=True, edge_weight=[0.5, 2.0])),
            disconnected=_works(name, Graph.from_edges([(0, 1), (2, 3)], num_nodes=5, undirected=True)),
        )


def random_graph(draw: np.random.Generator) -> Graph:
    """Draw a connected undirected graph of 8 to 24 nodes whose eigenvalues are hardly ever multiple."""
    n = int(draw.integers(8, 25))
    edges = {(int(draw.integers(v)), v) for v in range(1, n)}
    edges |= {tuple(sorted(map(int, pair))) for pair in draw.integers(n, size=(n, 2)) if pair[0] != pair[1]}  # type: ignore[misc]
    return Graph.from_edges(sorted(edges), num_nodes=n, undirected=True)


def _most_exact(name: str) -> dict[str, Any]:
    choices = next(setting.choices for setting in settings_of(name) if setting.name == "dtype")
    return {"dtype": "float64"} if "float64" in choices else {}


def _values(encoding: Encoding, graph: Graph) -> Tensor:
    found = encoding(graph)
    return (found.values if isinstance(found, Pairs) else found).to(torch.float64)


def _split(encoding: Encoding, graphs: list[Graph]) -> list[Tensor]:
    found = encoding(Graph.union(graphs))
    rows = [graph.num_nodes ** (2 if isinstance(found, Pairs) else 1) for graph in graphs]
    return list(torch.split((found.values if isinstance(found, Pairs) else found).to(torch.float64), rows))


def _repeatable(encoding: Encoding, graphs: list[Graph]) -> bool:
    threads = torch.get_num_threads()
    try:
        found = []
        for number in (1, 1, 2):
            torch.set_num_threads(number)
            found.append(torch.cat([part.flatten() for part in _split(encoding, graphs)]))
    finally:
        torch.set_num_threads(threads)
    return all(torch.equal(found[0].nan_to_num(), other.nan_to_num()) for other in found[1:])


def _order_error(encoding: Encoding, graph: Graph, rows: Tensor, draw: np.random.Generator) -> float:
    """Renumber the nodes, encode, and put the rows back in their order."""
    order = torch.from_numpy(draw.permutation(graph.num_nodes))
    place = torch.argsort(order)
    turned = _values(encoding, Graph(place[graph.edge_index], graph.num_nodes))
    n = graph.num_nodes
    if len(rows) == n:
        return _difference(rows, turned[place])
    back = turned.reshape(n, n, -1)[place][:, place].reshape(rows.shape)
    return _difference(rows, back)


def _difference(first: Tensor, second: Tensor) -> float:
    first, second = first.nan_to_num(), second.nan_to_num()
    size = float(first.abs().max()) if first.numel() else 0.0
    return float((first - second).abs().max()) / size if size > 0 else 0.0


def _works(name: str, graph: Graph) -> str:
    known = {setting.name for setting in settings_of(name)}
    tries: list[tuple[str, dict[str, Any]]] = [("yes", {})]
    if "symmetrize" in known:
        tries.append(("symmetrize", {"symmetrize": True}))
    for word, settings in tries:
        if _succeeds(lambda settings=settings: make(name, **settings)(graph)):  # type: ignore[misc]
            return word
    return "no"


def _succeeds(work: Callable[[], Any]) -> bool:
    try:
        work()
    except (ValueError, ArithmeticError):
        return False
    return True
