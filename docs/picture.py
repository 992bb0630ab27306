"""Draw docs/encodings.png: four encodings of one graph, each node coloured by its encoding.

python docs/picture.py
"""

from pathlib import Path

import matplotlib.pyplot as plt
import networkx as nx
import torch

import gape
from gape.encodings import GAPE, Laplacian, RandomWalk


def first_component(features: torch.Tensor) -> torch.Tensor:
    """Project the encodings of the nodes on their first principal component."""
    centred = features.double() - features.double().mean(0)
    return torch.linalg.svd(centred, full_matrices=False)[0][:, 0]


def main() -> None:
    graph = nx.disjoint_union(nx.cycle_graph(6), nx.cycle_graph(5))
    graph.add_edges_from([(0, 6), (3, 11), (11, 12), (12, 13), (13, 14), (8, 15), (15, 16), (13, 17)])
    positions = nx.kamada_kawai_layout(graph)
    panels = {
        "GAPE, runs into the node": first_component(gape.encode(graph, GAPE(states=32, damping=0.8, relative=True))),
        "GAPE, runs that come back": first_component(
            gape.encode(graph, GAPE(states=32, damping=0.8, relative=True, readout="closed"))
        ),
        "random walk, back after 6 steps": gape.encode(graph, RandomWalk(length=6))[:, 5],
        "Laplacian, first eigenvector": gape.encode(graph, Laplacian(vectors=1))[:, 0],
    }
    figure, axes = plt.subplots(1, 4, figsize=(13, 3.2))
    for axis, (title, colour) in zip(axes, panels.items(), strict=True):
        nx.draw_networkx_edges(graph, positions, ax=axis, edge_color="#999999", width=1.6)
        nx.draw_networkx_nodes(
            graph, positions, ax=axis, node_color=colour.numpy(), cmap="coolwarm", node_size=190, edgecolors="#333333"
        )
        axis.set_title(title, fontsize=11)
        axis.set_axis_off()
    figure.tight_layout()
    figure.savefig(Path(__file__).with_name("encodings.png"), dpi=110)


if __name__ == "__main__":
    main()
