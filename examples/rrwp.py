"""RRWP (Ma et al., 2023) by name, and as the pair readout of the shift automaton.

State t of the shift automaton holds the walks of exactly t steps, so on the random-walk matrix W = D⁻¹A its pair
readout is [I, W, W², …], the relative random-walk probabilities that GRIT feeds to its attention. For PyG,
`gape.pyg.AddRRWP` writes them under the names that GRIT reads.

Needs NetworkX: pip install 'gape[cli]'
"""

import networkx as nx

import gape

graph = gape.as_graph(nx.petersen_graph())
rrwp = gape.encode(graph, "rrwp", length=5, dtype="float64")
print(tuple(rrwp.matrices()[0].shape))  # [n, n, length]

walks = gape.solve(gape.Automaton.shift(4), graph, readout="pair", matrix="random_walk").weights
print(f"largest difference to the automaton: {(rrwp.values - walks).abs().max().item():.0e}")
assert (rrwp.values - walks).abs().max() < 1e-12

# Any other automaton in its place is a relative encoding too.
print(gape.encode(graph, "gape", states=8, damping=0.1, readout="pair"))
