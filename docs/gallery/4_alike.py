"""
Two graphs that look alike
==========================

Circular skip-link graphs are 4-regular: message passing, 1-WL and runs into a node see no difference between any two
nodes. Closed runs count triangles and longer cycles.
"""

import warnings

import matplotlib.pyplot as plt
import networkx as nx

import gape

warnings.filterwarnings("ignore", message="all 82 rows are the same")  # gape says so itself; we look
pair = [nx.circulant_graph(41, [1, 2]), nx.circulant_graph(41, [1, 5])]
node = gape.encode(pair, "gape", states=12)
closed = gape.encode(pair, "gape", states=12, readout="closed")
print("runs into a node, largest difference:", f"{(node[0] - node[1]).abs().max().item():.0e}")
print("closed runs, largest difference:", f"{(closed[0] - closed[1]).abs().max().item():.0e}")

# %%
# One row of each graph; all 41 rows of a graph are the same.

figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
for axis, rows, title in zip(axes, (node, closed), ("runs into a node", "closed runs"), strict=True):
    for one, name, colour in zip(rows, ("skip 2", "skip 5"), ("#1b6ca8", "#d1603d"), strict=True):
        axis.plot(one[0], "o-", label=name, color=colour, markersize=8 if name == "skip 2" else 4)
    axis.set(title=title, xlabel="state")
axes[1].legend(frameon=False)
