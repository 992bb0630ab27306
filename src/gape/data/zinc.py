"""ZINC-12K: constrained solubility of 12,000 molecules, a regression over whole graphs."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from gape.data.dataset import GraphDataset, Split, Task
from gape.data.flat import FlatGraphs
from gape.data.raw_files import data_folder, find_file, missing_file, pyg_zinc

FILES = ("zinc12k/zinc12k.npz",)
_DOWNLOAD = "PyG's ZINC(subset=True) downloads molecules.zip and train/val/test.index to pyg/ZINC/raw."


@dataclass(frozen=True)
class Zinc:
    """The 12,000-graph ZINC subset of Dwivedi et al. (2020), with its official 10,000 / 1,000 / 1,000 split.

    Nodes are heavy atoms with one of 28 types; ``edge_attr`` is the bond type (1 single, 2 double, 3 triple),
    which the paper's models do not use.

    Args:
        source: ``"file"`` reads ``zinc12k/zinc12k.npz`` in the data folder, ``"pyg"`` uses PyG's download, ``"auto"``
            the file if it exists, else PyG. Both hold the same published graphs; ``provenance`` says which was
            read. (In the compact file, the labels of nine training graphs are uncertain by 0.14 to 0.56, see its
            notes.)

    Example:
        >>> Zinc(source="web")
        Traceback (most recent call last):
        ValueError: source must be 'auto', 'file' or 'pyg', got 'web'
    """

    source: Literal["auto", "file", "pyg"] = "auto"

    TASK: ClassVar[Task] = Task("zinc", level="graph", metric="mae", num_classes=0, node_categories=(28,))

    def __post_init__(self) -> None:
        if self.source not in ("auto", "file", "pyg"):
            raise ValueError(f"source must be 'auto', 'file' or 'pyg', got {self.source!r}")

    def build(self, data_dir: str | Path | None = None) -> GraphDataset:
        """Read the graphs from the compact file or with PyG."""
        folder = data_folder(data_dir)
        path = None if self.source == "pyg" else find_file(folder, FILES)
        if path is not None:
            return _read(path)
        if self.source == "file":
            raise missing_file("zinc", folder, FILES, _DOWNLOAD)
        try:
            return pyg_zinc(folder, self.TASK)
        except OSError as error:
            raise missing_file("zinc", folder, FILES, _DOWNLOAD, error) from error


def _read(path: Path) -> GraphDataset:
    with np.load(path, allow_pickle=False) as file:
        graphs = FlatGraphs(
            node_ptr=file["node_ptr"],
            edge_ptr=file["edge_ptr"],
            edges=file["edges"],
            x=file["atom_type"][:, None],
            y=file["y"],
            edge_attr=file["bond_type"],
        )
        train, val, test = (int(size) for size in np.diff(file["split_ptr"]))
    return GraphDataset(graphs, Zinc.TASK, [Split.contiguous(train, val, test)], f"published: {path.name}")
