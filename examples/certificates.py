"""How far can the numbers be trusted? A solve says so, for every graph.

Needs NetworkX: pip install 'gape[cli]'
"""

import warnings

import networkx as nx

import gape
from gape.solvers import AlgebraicOnlyWarning

warnings.simplefilter("ignore", AlgebraicOnlyWarning)  # we look at the status instead
graphs = [nx.path_graph(6), nx.complete_graph(6)]
machine = gape.Automaton.random(states=8, damping=0.3, seed=0)
solution = gape.solve(machine, graphs)
for graph, status, radius in zip(graphs, solution.status, solution.spectral_radius, strict=True):
    print(graph, f"ρ(μ)ρ(A) = {radius:.2f}:", status)

# A fraction of 1/ρ(A) as damping keeps every graph in the range where the sum over runs converges.
relative = gape.encodings.GAPE(states=8, damping=0.9, relative=True).solve(graphs)
print({status.name: number for status, number in relative.counts().items()})
