"""
Directions
==========

Encodings of directed graphs: runs follow the edges, the magnetic Laplacian turns with them, walk profiles count steps
both ways.
"""

import matplotlib.pyplot as plt
import networkx as nx

import gape

graph = nx.DiGraph([(i, i + 1) for i in range(7)] + [(7, 0), (2, 8), (8, 9), (9, 10), (11, 5), (12, 11), (13, 12)])
positions = nx.kamada_kawai_layout(graph.to_undirected())
panels = {
    "gape: runs into the node": gape.encode(graph, "gape", states=4, seed=2)[:, 0],
    "magnetic: an eigenvector": gape.encode(graph, "magnetic")[:, 1],
    "walk-profile: two steps forward": gape.encode(graph, "walk-profile", length=2, matrix="adjacency")[:, 5],
}

# %%
# The ring feeds one tail and is fed by another. Runs along the edges tell the two apart.

figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
for axis, (title, colour) in zip(axes, panels.items(), strict=True):
    nx.draw_networkx_edges(graph, positions, ax=axis, edge_color="#999999", arrowsize=14, node_size=160)
    nx.draw_networkx_nodes(
        graph, positions, ax=axis, node_color=colour.numpy(), cmap="cividis", node_size=160, edgecolors="#333333"
    )
    axis.set_title(title, fontsize=10)
    axis.set_axis_off()
