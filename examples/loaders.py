"""Mini-batches of one large graph: encode it once as a whole, and let PyG's loaders slice the rows.

Encoding each mini-batch by itself would be wrong: a sampled neighbourhood has other walks than the graph.

Needs PyTorch Geometric: pip install 'gape[pyg]'. NeighborLoader and ClusterLoader also need pyg-lib or torch-sparse;
where neither is installed they are left out with PyG's reason.
"""

import warnings

import torch
from torch_geometric.data import Data
from torch_geometric.loader import ClusterData, ClusterLoader, NeighborLoader, RandomNodeLoader
from torch_geometric.utils import to_undirected

from gape.pyg import AddGAPE

torch.manual_seed(0)
warnings.filterwarnings("ignore", message="Using 'NeighborSampler'")
nodes, edges = 5_000, 20_000
edge_index = to_undirected(torch.randint(nodes, (2, edges)), num_nodes=nodes)
data = AddGAPE(states=16)(Data(edge_index=edge_index, num_nodes=nodes))
data.number = torch.arange(nodes)  # to compare below; any attribute with a row per node is sliced likewise

loaders = {
    "RandomNodeLoader": lambda: RandomNodeLoader(data, num_parts=8),
    "NeighborLoader": lambda: NeighborLoader(data, num_neighbors=[10, 10], batch_size=256),
    "ClusterLoader": lambda: ClusterLoader(ClusterData(data, num_parts=16, log=False), batch_size=4),
}
for name, build in loaders.items():
    try:
        batches = list(build())
    except ImportError as missing:
        print(f"{name} left out: {missing}")
        continue
    for batch in batches:
        assert torch.equal(batch.gape, data.gape[batch.number])
    print(f"{name}: {len(batches)} mini-batches with the rows of the whole graph")
