"""GAPE in PyG's GPS model: tell one ring from two, which message passing alone cannot.

Every node of a ring has two neighbours, so all nodes look alike to message passing and to the paper's node readout with
one label. The closed readout (runs that come back to where they began) sees how long the way round is.

Needs PyTorch Geometric: pip install 'gape[pyg]'
"""

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GINConv, GPSConv, global_mean_pool

from gape.pyg import AddGAPE


def rings(sizes: list[int], label: int) -> Data:
    """Disjoint rings as one graph."""
    sources, targets, start = [], [], 0
    for n in sizes:
        nodes = torch.arange(n)
        sources += [start + nodes, start + (nodes + 1) % n]
        targets += [start + (nodes + 1) % n, start + nodes]
        start += n
    return Data(edge_index=torch.stack([torch.cat(sources), torch.cat(targets)]), num_nodes=start, y=label)


class GPS(nn.Module):
    """Two GPS layers on nothing but the encoding."""

    def __init__(self, states: int, channels: int = 16) -> None:
        super().__init__()
        self.embed = nn.Sequential(nn.BatchNorm1d(states), nn.Linear(states, channels))
        self.layers = nn.ModuleList(
            GPSConv(channels, GINConv(nn.Linear(channels, channels)), heads=2) for _ in range(2)
        )
        self.read = nn.Linear(channels, 2)

    def forward(self, batch: Data) -> Tensor:
        h = self.embed(batch.gape)
        for layer in self.layers:
            h = layer(h, batch.edge_index, batch.batch)
        scores: Tensor = self.read(global_mean_pool(h, batch.batch))
        return scores


torch.manual_seed(0)
graphs = [rings([2 * n], 0) for n in (3, 5, 7, 9)] + [rings([n, n], 1) for n in (3, 5, 7, 9)]
batch = AddGAPE(states=8, damping=0.8, readout="closed")(Batch.from_data_list(graphs))
model = GPS(states=8)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(60):
    loss = nn.functional.cross_entropy(model(batch), batch.y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step}: loss {loss.item():.3f}")
accuracy = (model(batch).argmax(1) == batch.y).float().mean().item()
print(f"accuracy {accuracy:.2f}")
