"""An automaton that learns to read atoms: are the two nitrogens of a six-ring side by side, or opposite each other?

All return probabilities are the same in both rings, and so are the labels. Runs that come back, with a transition for
each label of the node they leave, are not. The layer takes PyG batches; what depends on the graphs alone is attached to
the data once.

Needs PyTorch Geometric: pip install 'gape[pyg]'
"""

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import global_add_pool

from gape.nn import GAPE
from gape.pyg import AddWalkBasis, basis_of


def ring(nitrogens: tuple[int, int], label: int) -> Data:
    """A six-ring of carbon (0) and two atoms of nitrogen (1), its atoms in random order."""
    atoms = torch.zeros(6, dtype=torch.long)
    atoms[list(nitrogens)] = 1
    order = torch.randperm(6)
    around = torch.stack([order, order.roll(-1)])
    return Data(x=atoms[order.argsort()], edge_index=torch.cat([around, around.flip(0)], 1), y=label)


class Model(nn.Module):
    """The encoding of every atom, summed over the ring, and a linear layer."""

    def __init__(self, transition_by: str) -> None:
        super().__init__()
        # Two labels, carbon and nitrogen; runs of 1 to 8 steps are kept apart.
        self.encode = GAPE(4, 16, readout="closed", length=8, labels=2, transition_by=transition_by, seed=0)
        self.read = nn.Linear(16, 2)

    def forward(self, batch: Batch) -> Tensor:
        h = self.encode(batch.edge_index, batch.batch, labels=batch.x, basis=basis_of(batch))
        scores: Tensor = self.read(global_add_pool(h, batch.batch))
        return scores


torch.manual_seed(0)
rings = Batch.from_data_list([ring((0, 1), 0) for _ in range(32)] + [ring((0, 3), 1) for _ in range(32)])
for transition_by in ("none", "node"):
    model = Model(transition_by)
    data = AddWalkBasis(**model.encode.basis_settings)(rings.clone()).to_data_list()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(20):
        for batch in DataLoader(data, batch_size=16, shuffle=True):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(batch), batch.y).backward()
            optimizer.step()
    model.eval()
    whole = Batch.from_data_list(data)
    accuracy = (model(whole).argmax(1) == whole.y).float().mean().item()
    print(f"transition_by={transition_by!r}: accuracy {accuracy:.2f}")
