"""RRWP (Ma et al., 2023) as the pair readout of the shift automaton.

State t of the shift automaton holds the walks of exactly t steps, so on the random-walk matrix W = D⁻¹A its pair
readout is [I, W, W², …], the relative random-walk probabilities that GRIT feeds to its attention.

Needs NetworkX: pip install 'gape[cli]'
"""

import networkx as nx
import torch

import gape

graph = gape.as_graph(nx.petersen_graph())
steps = 4
solution = gape.solve(gape.Automaton.shift(steps), graph, readout="pair", matrix="random_walk")
rrwp = gape.encodings.Pairs(solution.weights, graph.sizes).matrices()[0]
print(tuple(rrwp.shape))  # [n, n, steps + 1]

walk = graph.walk("random_walk").dense()[0]
powers = torch.stack([torch.linalg.matrix_power(walk, t) for t in range(steps + 1)], -1)
print(f"largest difference to the matrix powers: {(rrwp - powers).abs().max().item():.0e}")
assert torch.allclose(rrwp, powers)

# Any other automaton in its place is a relative encoding too.
learned = gape.encodings.GAPE(states=8, damping=0.1, readout="pair")(graph)
print(learned)
