"""
Sinusoids are an automaton
==========================

Proposition 1 of Soga & Chiang (2023): an automaton of rotations that starts at the first node of a path gives the
position encoding of the transformer.
"""

import matplotlib.pyplot as plt
import torch

import gape

nodes = 64
labels = torch.ones(nodes, dtype=torch.int64)
labels[0] = 0  # runs start here only
path = gape.Graph.from_edges([(i, i + 1) for i in range(nodes - 1)], labels=labels)

weights = gape.solve(gape.Automaton.sinusoidal(16), path).weights
sinusoids = gape.encode(path, "sinusoidal", width=16, dtype="float64")
print(f"largest difference: {(weights - sinusoids).abs().max().item():.0e}")

# %%
# The same automaton walks any graph. With a second way into node 40, of 17 steps, the waves of both ways add up behind
# it.

fork = [(i, i + 1) for i in range(nodes - 1)] + [(0, nodes)] + [(nodes + i, nodes + i + 1) for i in range(15)]
fork += [(nodes + 15, 40)]
labels = torch.ones(nodes + 16, dtype=torch.int64)
labels[0] = 0
shortcut = gape.solve(gape.Automaton.sinusoidal(16), gape.Graph.from_edges(fork, labels=labels)).weights[:nodes]

figure, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained", sharey=True)
for axis, rows, title in zip(axes, (weights, shortcut), ("a path", "with a shortcut into node 40"), strict=True):
    shown = axis.imshow(rows, aspect="auto", cmap="RdBu", vmin=-2, vmax=2)
    axis.set(title=title, xlabel="state")
axes[0].set_ylabel("node")
figure.colorbar(shown, ax=axes)
