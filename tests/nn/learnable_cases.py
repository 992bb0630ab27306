"""Graphs and settings that all tests of learnable automata go through."""

from itertools import pairwise

import torch
from torch import Tensor

from gape import Graph
from gape.nn import GAPE

LABELS, EDGE_TYPES = 3, 2

#: Every way of reading an automaton, by name.
MODES: dict[str, dict] = {
    "node": {},
    "node-diagonal": {"transition": "diagonal"},
    "node-labels": {"labels": LABELS},
    "node-many-labels": {"labels": 6, "states": 4},
    "node-walk": {"matrix": "random_walk"},
    "node-length": {"length": 4},
    "node-final": {"labels": LABELS, "final": True},
    "node-degree": {"labels": 4, "labelling": "degree"},
    "closed": {"readout": "closed"},
    "closed-diagonal": {"readout": "closed", "transition": "diagonal", "matrix": "random_walk"},
    "closed-labels": {"readout": "closed", "labels": LABELS},
    "closed-many-labels": {"readout": "closed", "labels": 6, "states": 4},
    "closed-length": {"readout": "closed", "length": 5, "labels": LABELS},
    "pair": {"readout": "pair", "out_channels": 2},
    "pair-walk-labels": {"readout": "pair", "out_channels": 2, "labels": LABELS, "matrix": "random_walk"},
    "pair-many-labels": {"readout": "pair", "out_channels": 2, "labels": 6, "states": 4},
    "pair-length": {"readout": "pair", "out_channels": 2, "labels": LABELS, "length": 4},
    "typed-node": {"labels": LABELS, "transition_by": "node", "damping": 0.7},
    "typed-edge": {"edge_types": EDGE_TYPES, "transition_by": "edge", "damping": 0.7},
    "typed-edge-of-one-type": {"labels": LABELS, "transition_by": "edge", "damping": 0.7},
    "typed-both": {"labels": LABELS, "edge_types": EDGE_TYPES, "transition_by": "both", "damping": 0.7},
    "typed-node-length": {"labels": LABELS, "transition_by": "node", "length": 4},
    "typed-both-length": {"labels": LABELS, "edge_types": EDGE_TYPES, "transition_by": "both", "length": 3},
    "typed-closed": {"readout": "closed", "labels": LABELS, "transition_by": "node", "length": 5},
    "typed-closed-edge": {"readout": "closed", "edge_types": EDGE_TYPES, "transition_by": "edge", "length": 4},
    "typed-closed-both": {
        "readout": "closed",
        "labels": LABELS,
        "edge_types": EDGE_TYPES,
        "transition_by": "both",
        "length": 4,
        "matrix": "random_walk",
        "transition": "diagonal",
    },
}


def layer(mode: str, **others: object) -> GAPE:
    settings = {"states": 6, "scaling": "none", "seed": 1} | MODES[mode] | others
    return GAPE(**settings).double()


def read_by(one: GAPE, labels: Tensor | None, edge_type: Tensor | None) -> dict[str, Tensor | None]:
    """Of labels and edge types those that a layer reads; it refuses others."""
    return {
        "labels": labels if one.machine.labels > 1 and one.labelling == "given" else None,
        "edge_type": edge_type if one.machine.by_edge > 1 else None,
    }


def graphs(sizes: tuple[int, ...] = (5, 1, 11, 7), seed: int = 0, labels: int = LABELS) -> Graph:
    """Random undirected graphs with labels and edge types, the same both ways."""
    generator = torch.Generator().manual_seed(seed)
    parts = []
    for n in sizes:
        upper = (torch.rand(n, n, generator=generator) < 0.4).triu(1).nonzero().T
        kind = torch.randint(EDGE_TYPES, (upper.shape[1],), generator=generator)
        parts.append(
            Graph(
                torch.cat([upper, upper.flip(0)], 1),
                n,
                labels=torch.randint(labels, (n,), generator=generator),
                edge_type=torch.cat([kind, kind]),
            )
        )
    return Graph.union(parts)


def permuted(graph: Graph, order: Tensor) -> Graph:
    """Node ``order[i]`` becomes node i; ``order`` keeps graphs together."""
    place = torch.empty_like(order)
    place[order] = torch.arange(len(order))
    return Graph(
        place[graph.edge_index],
        graph.num_nodes,
        labels=graph.labels[order],
        edge_type=graph.edge_type,
        ptr=graph.ptr,
    )


def within_graphs(graph: Graph, seed: int = 0) -> Tensor:
    """A random order of the nodes that keeps every graph's nodes in its place."""
    generator = torch.Generator().manual_seed(seed)
    bounds = graph.ptr.tolist()
    return torch.cat([torch.randperm(b - a, generator=generator) + a for a, b in pairwise(bounds)])
