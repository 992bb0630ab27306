"""The published files as PyG's own classes download and read them, turned into our form.

PyG unpickles some of these downloads (CSL, ZINC): go this way only if you trust their hosts. The compact files
that the readers of each data set look for first need no pickle.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gape._internal.files import cache_folder
from gape.data.dataset import GraphDataset
from gape.data.flat import FlatGraphs, offsets
from gape.data.split import Split
from gape.data.task import Task


def pyg_folder(folder: Path | None) -> Path:
    """Where PyG keeps its raw and processed files: ``pyg`` in the data folder, else in the cache folder."""
    return (folder or cache_folder("data")) / "pyg"


def flat_from_pyg(graphs: Iterable[Any], task: Task) -> FlatGraphs:
    """Join PyG ``Data`` objects. Every edge must be there in both directions; it is kept once.

    One-hot features become category numbers; graphs without features get the single category 0.

    >>> from torch_geometric.data import Data
    >>> path = Data(edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), y=3, num_nodes=3)
    >>> flat = flat_from_pyg([path], Task("csl", "graph", "accuracy", num_classes=10, node_categories=(1,)))
    >>> flat.edges.tolist(), flat.x.ravel().tolist(), flat.y.tolist()
    ([[0, 1], [1, 2]], [0, 0, 0], [3])
    """
    sizes, edges, features, targets, bonds = [], [], [], [], []
    for number, data in enumerate(graphs):
        once = data.edge_index[0] < data.edge_index[1]
        if 2 * int(once.sum()) != data.edge_index.size(1):
            raise ValueError(
                f"graph {number} of {task.name!r} has {data.edge_index.size(1)} directed edges, of which "
                f"{int(once.sum())} point upwards: expected every edge in both directions and no self-loops"
            )
        size = int(data.num_nodes)
        x = data.x if data.x is not None else torch.zeros(size, 1, dtype=torch.int64)
        if x.is_floating_point() and task.node_categories:
            x = x.argmax(dim=1, keepdim=True)
        sizes.append(size)
        edges.append(data.edge_index[:, once].t().numpy())
        features.append(x.numpy())
        targets.append(torch.as_tensor(data.y).reshape(-1).numpy())
        if data.edge_attr is not None:
            bonds.append(data.edge_attr[once].numpy())
    return FlatGraphs(
        node_ptr=offsets(sizes),
        edge_ptr=offsets([len(block) for block in edges]),
        edges=np.concatenate(edges),
        x=np.concatenate(features),
        y=np.concatenate(targets).astype(np.float32 if task.regression else np.int64),
        edge_attr=np.concatenate(bonds) if len(bonds) == len(sizes) else None,
    )


def _three_parts(parts: Sequence[Any], task: Task, provenance: str) -> GraphDataset:
    graphs = flat_from_pyg((data for part in parts for data in part), task)
    train, val, test = (len(part) for part in parts)
    return GraphDataset(graphs, task, [Split.contiguous(train, val, test)], provenance)


def pyg_zinc(folder: Path | None, task: Task) -> GraphDataset:
    """ZINC-12K by ``torch_geometric.datasets.ZINC(subset=True)``."""
    from torch_geometric.datasets import ZINC

    root = str(pyg_folder(folder) / "ZINC")
    parts = [ZINC(root, subset=True, split=part) for part in ("train", "val", "test")]
    return _three_parts(parts, task, "published: PyG ZINC(subset=True)")


def pyg_sbm(name: str, folder: Path | None, task: Task) -> GraphDataset:
    """PATTERN or CLUSTER by ``torch_geometric.datasets.GNNBenchmarkDataset``."""
    from torch_geometric.datasets import GNNBenchmarkDataset

    root = str(pyg_folder(folder))
    parts = [GNNBenchmarkDataset(root, name, split=part) for part in ("train", "val", "test")]
    return _three_parts(parts, task, f"published: PyG GNNBenchmarkDataset({name!r})")


def pyg_csl(folder: Path | None, task: Task, splits: Sequence[Split]) -> GraphDataset:
    """CSL by ``torch_geometric.datasets.GNNBenchmarkDataset``, which has no folds of its own."""
    from torch_geometric.datasets import GNNBenchmarkDataset

    graphs = flat_from_pyg(GNNBenchmarkDataset(str(pyg_folder(folder)), "CSL"), task)
    return GraphDataset(graphs, task, splits, "published: PyG GNNBenchmarkDataset('CSL'), our folds")
