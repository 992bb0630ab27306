"""Find the raw files of a dataset in the data folder, or let PyG's own classes download and read them.

PyG unpickles some of its downloads (CSL, ZINC): use it only if you trust their hosts. The compact ``.npz`` files, which
each dataset looks for first, need no pickle.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gape._internal.files import cache_folder
from gape.data.dataset import GraphDataset, Split, Task
from gape.data.flat import FlatGraphs
from gape.linalg.integers import offsets


def data_folder(data_dir: str | Path | None = None) -> Path | None:
    """Return the data folder: the argument, else the environment variable ``GAPE_DATA``, else None.

    >>> data_folder("somewhere").name
    'somewhere'
    """
    chosen = data_dir or os.environ.get("GAPE_DATA")
    return Path(chosen).expanduser() if chosen else None


def find_file(folder: Path | None, names: Sequence[str]) -> Path | None:
    """Return the first of ``names`` that is a file under ``folder``; None if there is none."""
    if folder is None:
        return None
    return next((folder / name for name in names if (folder / name).is_file()), None)


def missing_file(
    name: str, folder: Path | None, files: Sequence[str], download: str, failed: OSError | None = None
) -> FileNotFoundError:
    """Make the error for a dataset without files; it says which file to put into which folder.

    Args:
        name: name of the dataset.
        folder: the data folder that was searched.
        files: paths relative to the folder, any one of which is enough.
        download: what PyG downloads, and to which folder.
        failed: error of the download, if one was tried.

    >>> print(missing_file("zinc", None, ["zinc12k/zinc12k.npz"], "PyG downloads molecules.zip to X."))
    no files for dataset 'zinc'. No data folder was given: set data_dir (--data-dir) or the variable GAPE_DATA.
    Put there one of: zinc12k/zinc12k.npz
    Or go online: PyG downloads molecules.zip to X.
    """
    searched = (
        f"Looked in {folder}."
        if folder is not None
        else "No data folder was given: set data_dir (--data-dir) or the variable GAPE_DATA."
    )
    attempt = "" if failed is None else f"A download was tried and failed: {failed}\n"
    return FileNotFoundError(
        f"no files for dataset {name!r}. {searched}\n{attempt}Put there one of: {', '.join(files)}\n"
        f"Or go online: {download}"
    )


def require_file(name: str, data_dir: str | Path | None, files: Sequence[str], download: str) -> Path:
    """Return the file of a dataset that cannot be downloaded; see :func:`missing_file` for the error and arguments."""
    folder = data_folder(data_dir)
    path = find_file(folder, files)
    if path is None:
        raise missing_file(name, folder, files, download)
    return path


def pyg_folder(folder: Path | None) -> Path:
    """Return the root of PyG's raw and processed files: ``pyg`` in the data folder, else in the cache folder."""
    return (folder or cache_folder("data")) / "pyg"


def flat_from_pyg(graphs: Iterable[Any], task: Task) -> FlatGraphs:
    """Join PyG ``Data`` objects whose edges are stored in both directions; each edge is kept once.

    One-hot features become category indices; graphs without features get the single category 0.

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
                f"{int(once.sum())} lead to a larger node number: expected every edge in both directions, no self-loops"
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
    """Load ZINC-12K with ``torch_geometric.datasets.ZINC(subset=True)``."""
    from torch_geometric.datasets import ZINC

    root = str(pyg_folder(folder) / "ZINC")
    parts = [ZINC(root, subset=True, split=part) for part in ("train", "val", "test")]
    return _three_parts(parts, task, "published: PyG ZINC(subset=True)")


def pyg_sbm(name: str, folder: Path | None, task: Task) -> GraphDataset:
    """Load PATTERN or CLUSTER with ``torch_geometric.datasets.GNNBenchmarkDataset``."""
    from torch_geometric.datasets import GNNBenchmarkDataset

    root = str(pyg_folder(folder))
    parts = [GNNBenchmarkDataset(root, name, split=part) for part in ("train", "val", "test")]
    return _three_parts(parts, task, f"published: PyG GNNBenchmarkDataset({name!r})")


def pyg_csl(folder: Path | None, task: Task, splits: Sequence[Split]) -> GraphDataset:
    """Load CSL with ``torch_geometric.datasets.GNNBenchmarkDataset``, which has no folds; they are ``splits``."""
    from torch_geometric.datasets import GNNBenchmarkDataset

    graphs = flat_from_pyg(GNNBenchmarkDataset(str(pyg_folder(folder)), "CSL"), task)
    return GraphDataset(graphs, task, splits, "published: PyG GNNBenchmarkDataset('CSL'), our folds")
