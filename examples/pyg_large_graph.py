"""A large graph in mini-batches: encode it once as a whole, then slice the rows by ``n_id``.

Encoding each mini-batch by itself would be wrong: a sampled neighbourhood has other walks than the graph.

Needs PyTorch Geometric: pip install 'gape[pyg]'
"""

import torch
from torch_geometric.data import Data
from torch_geometric.utils import k_hop_subgraph, to_undirected

import gape

torch.manual_seed(0)
nodes, edges = 20_000, 60_000
skewed = (nodes * torch.rand(edges) ** 3).long()  # few hubs, many leaves
edge_index = to_undirected(torch.stack([torch.randint(nodes, (edges,)), skewed]), num_nodes=nodes)
data = Data(edge_index=edge_index, num_nodes=nodes)

# Hubs make ρ(A) large, so give the damping as a fraction of 1/ρ(A): the sum over runs converges.
encoding = gape.encodings.GAPE(states=16, damping=0.5, relative=True)
pe = gape.encode(data, encoding)
print("whole graph:", tuple(pe.shape))

# With pyg-lib or torch-sparse installed, the same with PyG's sampler:
#     for batch in NeighborLoader(data, num_neighbors=[10, 10], batch_size=64):
#         h = pe[batch.n_id]
# Here without them: whole one-hop neighbourhoods of the seeds.
for seeds in torch.randperm(data.num_nodes)[:192].split(64):
    n_id, edge_index, place_of_seeds, _ = k_hop_subgraph(seeds, 1, data.edge_index, relabel_nodes=True)
    h = pe[n_id]
    print(f"mini-batch: {len(n_id)} nodes, {edge_index.shape[1]} edges, rows {tuple(h.shape)}")
    assert torch.equal(h[place_of_seeds], pe[seeds])
