"""Graphs shared by the tests of encodings, and encodings with settings small enough for them."""

import numpy as np
import torch

from gape import Graph
from gape.encodings import make, names

SEQUENCES = ("sinusoidal", "lape-p", "lape-c", "lape-c10k", "sa-c", "rw-p")
UNDIRECTED = ("lape", "sa", "heat", "resistance", "electrostatic")
SMALL = {
    "gape": {"states": 6},
    "sinusoidal": {"width": 6},
    "gape-rooted": {"machines": 3, "layers": 2},
    "rrwp": {"length": 6},
}


def encoding(name: str, **settings):
    """Make the encoding of that name with few features, in float64 unless it has integers."""
    settings = {**SMALL.get(name, SMALL.get(name.split("-")[0], {})), **settings}
    if name not in ("spd", "degree"):
        settings.setdefault("dtype", "float64")
    return make(name, **settings)


def every_encoding(**settings):
    return [encoding(name, **settings) for name in names()]


def random_graph(nodes: int, probability: float, seed: int, *, undirected=True, weighted=False, loops=False) -> Graph:
    """Draw a random graph; if weighted, its eigenvalues are simple."""
    generator = np.random.default_rng([nodes, seed])
    joined = generator.random((nodes, nodes)) < probability
    if undirected:
        joined |= joined.T
    if not loops:
        np.fill_diagonal(joined, False)
    weight = generator.uniform(0.5, 1.5, (nodes, nodes))
    if undirected:
        weight = (weight + weight.T) / 2
    index = np.stack(np.nonzero(joined))
    return Graph(index, nodes, edge_weight=weight[tuple(index)] if weighted else None)


def batch_of(*, undirected=True, weighted=False) -> list[Graph]:
    """Make graphs of several sizes: two of the same size, one of a single node, one empty, one without edges."""
    shapes = [(7, 0.5), (1, 0.0), (12, 0.3), (7, 0.4), (0, 0.0), (2, 1.0), (4, 0.0), (20, 0.25)]
    return [random_graph(n, p, seed, undirected=undirected, weighted=weighted) for seed, (n, p) in enumerate(shapes)]


def permuted(graph: Graph, order: torch.Tensor) -> Graph:
    """Permute the nodes: node ``order[i]`` becomes number i."""
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order))
    return Graph(place[graph.edge_index], graph.num_nodes, edge_weight=graph.edge_weight)


def rows(result) -> torch.Tensor:
    """Return the values of an encoding of nodes or pairs."""
    return result.values if hasattr(result, "sizes") else result
