"""Position encodings as PyG transforms (:class:`torch_geometric.transforms.BaseTransform`).

They take one :class:`torch_geometric.data.Data`, a :class:`torch_geometric.data.Batch`, or, by their method ``over``, a
whole :class:`torch_geometric.data.InMemoryDataset` at once; ``AddGAPE`` also a
:class:`torch_geometric.data.HeteroData`.

>>> from torch_geometric.datasets import FakeDataset
>>> dataset = FakeDataset(num_graphs=4, avg_num_nodes=10)
>>> AddGAPE(states=8)(dataset[0]).gape.shape == (dataset[0].num_nodes, 8)
True
>>> AddGAPE(states=8).over(dataset)[3].gape.shape == (dataset[3].num_nodes, 8)
True
"""

try:
    import torch_geometric  # noqa: F401
except ImportError as error:
    raise ImportError("gape.pyg needs PyTorch Geometric: pip install 'gape[pyg]'") from error

from gape.pyg.add_walk_basis import AddWalkBasis, basis_of
from gape.pyg.base import AddEncoding
from gape.pyg.transforms import (
    AddCommunicability,
    AddDegree,
    AddElectrostatic,
    AddGAPE,
    AddHeatKernel,
    AddLaplacian,
    AddMagneticLaplacian,
    AddPageRank,
    AddPPRP,
    AddRandomWalk,
    AddResistance,
    AddRootedGAPE,
    AddRRWP,
    AddShortestPath,
    AddSpectrum,
    AddSVD,
    AddWalkProfile,
)

__all__ = [
    "AddCommunicability",
    "AddDegree",
    "AddElectrostatic",
    "AddEncoding",
    "AddGAPE",
    "AddHeatKernel",
    "AddLaplacian",
    "AddMagneticLaplacian",
    "AddPPRP",
    "AddPageRank",
    "AddRRWP",
    "AddRandomWalk",
    "AddResistance",
    "AddRootedGAPE",
    "AddSVD",
    "AddShortestPath",
    "AddSpectrum",
    "AddWalkBasis",
    "AddWalkProfile",
    "basis_of",
]
