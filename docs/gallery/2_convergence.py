"""
Where the sum over runs ends
============================

The sum over runs exists while γρ(A) < 1. Beyond, the equation still has a solution, but it is something else.
"""

import warnings

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import torch

import gape

graph = nx.path_graph(12)
graph.add_edges_from([(0, 2), (4, 7)])
adjacency = torch.from_numpy(nx.to_numpy_array(graph))
radius = torch.linalg.eigvalsh(adjacency).max().item()
warnings.simplefilter("ignore", gape.solvers.AlgebraicOnlyWarning)  # we look at the status instead

# %%
# Solve for many dampings, and add up the runs of at most 200 steps beside it.

relative = np.linspace(0.05, 1.6, 64)
solved, summed, colours = [], [], []
for gamma in relative / radius:
    machine = gape.Automaton.random(states=4, damping=gamma, seed=1)
    solution = gape.solve(machine, graph)
    solved.append(solution.weights.norm().item())
    colours.append("#1b6ca8" if solution.status[0] is gape.Status.RUN_SUM else "#d1603d")
    runs = total = machine.initial @ torch.ones(1, 12, dtype=torch.float64)
    for _ in range(200):
        runs = machine.transition.T @ runs @ adjacency
        total = total + runs
    summed.append(total.norm().item())

# %%
# Blue: certified as the sum over runs. Red: a solution of the equation only. The line, runs added up one length after
# another, agrees below γρ(A) = 1 and explodes above it.

figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
axis.plot(relative, summed, color="#888888", label="runs of at most 200 steps, added up")
axis.scatter(relative, solved, c=colours, s=14, zorder=3, label="gape.solve")
axis.axvline(1, color="#333333", linestyle=":")
axis.set(yscale="log", ylim=(1, 1e4), xlabel="γρ(A)", ylabel="‖P‖")
axis.legend(frameon=False)
