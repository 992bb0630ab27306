"""QM9-20K: HOMO-LUMO gap of 20,000 small molecules, a small substitute for PCQM4Mv2."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from gape.data.dataset import GraphDataset, Split, Task
from gape.data.flat import FlatGraphs
from gape.data.raw_files import require_file

FILES = ("qm9-20k/qm9_20k.npz",)
ATOM_TYPES = 10  # atomic numbers as categories: 0 is unused, hydrogen is 1, fluorine 9
EV_PER_HARTREE = 27.211386245988


@dataclass(frozen=True)
class QM9:
    """Predict an orbital energy of 20,000 QM9 molecules in eV; hydrogens are nodes. Not in the paper.

    Args:
        target: ``"gap"``, ``"homo"`` or ``"lumo"``.
        val: number of validation graphs, the last of the first 10,000; the others of these are for training, the second
            10,000 graphs for testing.

    Example:
        >>> QM9(val=20_000)
        Traceback (most recent call last):
        ValueError: val must be 1 to 9999 of the first 10,000 graphs, got 20000
    """

    target: Literal["gap", "homo", "lumo"] = "gap"
    val: int = 1_000

    TASK: ClassVar[Task] = Task("qm9-20k", level="graph", metric="mae", num_classes=0, node_categories=(ATOM_TYPES,))

    def __post_init__(self) -> None:
        if self.target not in ("gap", "homo", "lumo"):
            raise ValueError(f"target must be 'gap', 'homo' or 'lumo', got {self.target!r}")
        if not 1 <= self.val <= 9_999:
            raise ValueError(f"val must be 1 to 9999 of the first 10,000 graphs, got {self.val}")

    def build(self, data_dir: str | Path | None = None) -> GraphDataset:
        """Read the graphs from ``qm9-20k/qm9_20k.npz`` in the data folder."""
        advice = "there is no download; PyG's QM9 holds the same molecules."
        path = require_file("qm9-20k", data_dir, FILES, advice)
        with np.load(path, allow_pickle=False) as file:
            graphs = FlatGraphs(
                node_ptr=file["node_ptr"],
                edge_ptr=file["edge_ptr"],
                edges=file["edges"],
                x=file["atomic_number"][:, None],
                y=(file[self.target] * EV_PER_HARTREE).astype(np.float32),
                edge_attr=file["bond_type"],
            )
            first, second = (int(size) for size in np.diff(file["part_ptr"]))
        split = Split.contiguous(first - self.val, self.val, second)
        return GraphDataset(graphs, self.TASK, [split], f"published: {path.name} ({self!r})")
