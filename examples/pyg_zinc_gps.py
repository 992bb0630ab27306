"""PyG's GPS model on molecules of ZINC, without an encoding and with GAPE: a minute or two on a laptop.

Needs PyTorch Geometric: pip install 'gape[pyg]', and ZINC: PyG downloads it if you are online, or set GAPE_DATA to a
folder that has it. The small model and the few graphs keep it short; `gape bench zinc` trains the paper's.
"""

import argparse

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINEConv, GPSConv, global_add_pool

from gape.data import load
from gape.pyg import AddGAPE

ATOMS, BONDS, STATES = 28, 4, 16


class GPS(nn.Module):
    """GPS layers on atoms and bonds; with ``states``, the encoding is added to the atoms."""

    def __init__(self, states: int, channels: int = 32, layers: int = 3) -> None:
        super().__init__()
        self.atom, self.bond = nn.Embedding(ATOMS, channels), nn.Embedding(BONDS, channels)
        self.position = nn.Sequential(nn.BatchNorm1d(states), nn.Linear(states, channels)) if states else None
        self.layers = nn.ModuleList(
            GPSConv(channels, GINEConv(nn.Sequential(nn.Linear(channels, channels), nn.ReLU())), heads=4)
            for _ in range(layers)
        )
        self.read = nn.Sequential(nn.Linear(channels, channels), nn.ReLU(), nn.Linear(channels, 1))

    def forward(self, batch: Data) -> Tensor:
        h, bonds = self.atom(batch.x.squeeze(-1)), self.bond(batch.edge_attr)
        if self.position is not None:
            h = h + self.position(batch.gape)
        for layer in self.layers:
            h = layer(h, batch.edge_index, batch.batch, edge_attr=bonds)
        predicted: Tensor = self.read(global_add_pool(h, batch.batch)).squeeze(-1)
        return predicted


def error_of(model: GPS, loader: DataLoader) -> float:
    """Mean absolute error."""
    model.eval()
    with torch.no_grad():
        errors = [(model(batch) - batch.y).abs() for batch in loader]
    return float(torch.cat(errors).mean())


def train(states: int, training: list[Data], test: list[Data], epochs: int) -> float:
    torch.manual_seed(0)
    model = GPS(states)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    loader = DataLoader(training, batch_size=64, shuffle=True)
    for _ in range(epochs):
        model.train()
        for batch in loader:
            loss = nn.functional.l1_loss(model(batch), batch.y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
    return error_of(model, DataLoader(test, batch_size=256))


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--graphs", type=int, default=2000, help="training graphs")
parser.add_argument("--epochs", type=int, default=20)
arguments = parser.parse_args()

dataset = AddGAPE(states=STATES, readout="closed").over(load("zinc"))  # all 12,000 molecules at once
training, _, test = dataset.split()
training, test = list(training[: arguments.graphs]), list(test)  # as Data, which loads faster
for name, states in (("without an encoding", 0), ("with GAPE", STATES)):
    error = train(states, training, test, arguments.epochs)
    print(f"{name}: test MAE {error:.3f}", flush=True)
