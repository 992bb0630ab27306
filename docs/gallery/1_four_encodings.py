"""
Four encodings of one graph
===========================

Each node has the colour of its encoding, projected on the first principal component.
"""

import matplotlib.pyplot as plt
import networkx as nx
import torch

import gape

graph = nx.disjoint_union(nx.cycle_graph(6), nx.cycle_graph(5))
graph.add_edges_from([(0, 6), (3, 11), (11, 12), (12, 13), (13, 14), (8, 15), (15, 16), (13, 17)])


def first_component(rows: torch.Tensor) -> torch.Tensor:
    return torch.linalg.svd(rows.double() - rows.double().mean(0), full_matrices=False)[0][:, 0]


# %%
# Runs into a node follow its degree and what surrounds it. Closed runs and return probabilities depend on the
# cycles through it. The first Laplacian eigenvector is a smooth coordinate along the graph.

panels = {
    "gape: runs into the node": first_component(gape.encode(graph, "gape", states=32)),
    "gape: runs that come back": first_component(gape.encode(graph, "gape", states=32, readout="closed")),
    "rw: back after 6 steps": gape.encode(graph, "rw", length=6)[:, 5],
    "lape: first eigenvector": gape.encode(graph, "lape", vectors=1)[:, 0],
}
positions = nx.kamada_kawai_layout(graph)
figure, axes = plt.subplots(2, 2, figsize=(7, 6), layout="constrained")
for axis, (title, colour) in zip(axes.flat, panels.items(), strict=True):
    nx.draw_networkx_edges(graph, positions, ax=axis, edge_color="#999999", width=1.6)
    nx.draw_networkx_nodes(
        graph, positions, ax=axis, node_color=colour.numpy(), cmap="cividis", node_size=190, edgecolors="#333333"
    )
    axis.set(title=title)
    axis.set_axis_off()
