"""A NetworkX graph, three lines.

Needs NetworkX: pip install 'gape[cli]'
"""

import networkx as nx

import gape

graph = nx.karate_club_graph()
pe = gape.encode(graph, "gape", states=32, seed=0)
print(pe.shape)  # [34, 32], rows in the order of graph.nodes
