"""A graph with every edge in both directions."""

from __future__ import annotations

import torch

from gape.graph.graph import Graph
from gape.io.named import NamedGraphs


def undirected(named: NamedGraphs) -> NamedGraphs:
    """Every edge in both directions, whichever of them the file has.

    Repeated edges add up first. An edge that is there in both directions stays as it is if the two weights agree, and
    is refused if they do not: there is no right one of the two.

    Example:
        >>> from gape.io.named import numbered
        >>> both = undirected(numbered(Graph.from_edges([(0, 1), (1, 0), (1, 2)])))
        >>> both.graph
        Graph(graphs=1, nodes=3, edges=4, undirected)
    """
    graph = named.graph
    n = graph.num_nodes
    source, target = graph.edge_index
    keys, place = torch.unique(source * n + target, return_inverse=True)
    given = torch.ones(graph.num_edges, dtype=torch.float64) if graph.edge_weight is None else graph.edge_weight
    # Sorted by weight, so that repeated edges and their reverses are added up in the same order.
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
    return NamedGraphs(made, named.nodes, named.graphs, named.notes)
