"""PyG: an encoding as pre_transform, as transform, and over a whole dataset at once.

Needs PyTorch Geometric: pip install 'gape[pyg]'
"""

import torch
from torch_geometric.datasets import FakeDataset
from torch_geometric.loader import DataLoader
from torch_geometric.transforms import Compose, ToUndirected

from gape.pyg import AddGAPE, AddRandomWalk

torch.manual_seed(0)
transform = Compose([ToUndirected(), AddGAPE(states=16), AddRandomWalk(length=8)])

# At every access. Datasets that download take pre_transform=transform likewise, and keep the result on disk.
dataset = FakeDataset(num_graphs=64, avg_num_nodes=20, transform=transform)
print(dataset[0])

# All graphs together: the fastest way for a dataset in memory.
dataset = AddGAPE(states=16).over(FakeDataset(num_graphs=64, avg_num_nodes=20))
for batch in DataLoader(dataset, batch_size=32, shuffle=True):
    print(batch.num_graphs, "graphs,", tuple(batch.gape.shape))
