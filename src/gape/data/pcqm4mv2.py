"""PCQM4Mv2: HOMO-LUMO gap of molecules, a regression over whole graphs; and the conversion of SMILES to graphs."""

import csv
import gzip
import hashlib
import lzma
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, TextIO

import numpy as np
import torch

from gape.data.dataset import GraphDataset, Split, Task
from gape.data.flat import Array, FlatGraphs
from gape.data.generation import CachedPieces, cached, map_pieces, pieces_folder
from gape.data.raw_files import data_folder, find_file, missing_file, pyg_folder
from gape.io.smiles import rdkit
from gape.linalg.integers import offsets

FILES = (
    "pcqm4m-v2/raw/data.csv.gz",
    "pyg/PCQM4Mv2/raw/pcqm4m-v2/raw/data.csv.gz",
    "pcqm4mv2/pcqm4mv2.csv.xz",
    "pcqm4mv2/pcqm4mv2_first1999.csv.xz",
)
COLUMNS = ("idx", "smiles", "homolumogap")
_MOLECULES_PER_PIECE = 2_000
#: Number of categories of the nine atom features, for :class:`gape.nn.NodeInput`: atomic number, chirality, degree
#: (with hydrogens), formal charge + 5, hydrogens, radical electrons, hybridisation, is aromatic, is in a ring. As in
#: ``torch_geometric.utils.from_smiles``; the package ``ogb`` has other tables, see :data:`gape.nn.OGB_ATOM`.
ATOM_CATEGORIES = (119, 9, 11, 12, 9, 5, 8, 2, 2)
#: Number of categories of the three bond features: bond type, stereo, is conjugated.
BOND_CATEGORIES = (22, 6, 2)
_HYBRIDISATIONS = ("UNSPECIFIED", "S", "SP", "SP2", "SP3", "SP3D", "SP3D2", "OTHER")


@lru_cache(maxsize=1)
def _chemistry() -> tuple[Any, dict[Any, int]]:
    chemistry, other = rdkit(), len(_HYBRIDISATIONS) - 1
    table = {
        kind: _HYBRIDISATIONS.index(name) if name in _HYBRIDISATIONS else other
        for name, kind in chemistry.HybridizationType.names.items()
    }
    return chemistry, table


def molecule(smiles: str) -> tuple[Array, Array, Array]:
    """Convert one SMILES to a graph of its heavy atoms, without hydrogens.

    Values beyond the last category count as the last.

    Returns: atom features ``[n, 9]`` uint8, bonds ``[m, 2]`` int16 (each once), bond features ``[m, 3]`` uint8.

    >>> atoms, bonds, kinds = molecule("C=O")
    >>> atoms[:, 0].tolist(), bonds.tolist(), kinds.tolist()
    ([6, 8], [[0, 1]], [[2, 0, 0]])
    """
    chemistry, hybridisation = _chemistry()
    parsed = chemistry.MolFromSmiles(smiles)
    if parsed is None:
        raise ValueError(f"RDKit cannot read the SMILES {smiles!r}")
    atoms = [
        (
            atom.GetAtomicNum(),
            int(atom.GetChiralTag()),
            atom.GetTotalDegree(),
            atom.GetFormalCharge() + 5,
            atom.GetTotalNumHs(),
            atom.GetNumRadicalElectrons(),
            hybridisation[atom.GetHybridization()],
            atom.GetIsAromatic(),
            atom.IsInRing(),
        )
        for atom in parsed.GetAtoms()
    ]
    bonds = [
        (
            bond.GetBeginAtomIdx(),
            bond.GetEndAtomIdx(),
            int(bond.GetBondType()),
            int(bond.GetStereo()),
            bond.GetIsConjugated(),
        )
        for bond in parsed.GetBonds()
    ]
    features = np.array(atoms, dtype=np.int64).reshape(-1, 9).clip(0, np.array(ATOM_CATEGORIES) - 1)
    table = np.array(bonds, dtype=np.int64).reshape(-1, 5)
    kinds = table[:, 2:].clip(0, np.array(BOND_CATEGORIES) - 1)
    return features.astype(np.uint8), table[:, :2].astype(np.int16), kinds.astype(np.uint8)


def molecules(smiles: Sequence[str]) -> FlatGraphs:
    """Convert SMILES to flat graphs, with all targets 0.

    >>> molecules(["CCO", "c1ccccc1"]).edge_counts.tolist()
    [2, 6]
    """
    parts = [molecule(text) for text in smiles]
    atoms, bonds, kinds = zip(*parts, strict=True)
    return FlatGraphs(
        node_ptr=offsets([len(block) for block in atoms]),
        edge_ptr=offsets([len(block) for block in bonds]),
        edges=np.concatenate(bonds),
        x=np.concatenate(atoms),
        y=np.zeros(len(parts), dtype=np.float32),
        edge_attr=np.concatenate(kinds),
    )


@dataclass(frozen=True)
class PCQM4Mv2:
    """Predict the HOMO-LUMO gap in eV (Hu et al. 2021) from heavy atoms and bonds.

    Reads the SMILES table ``idx,smiles,homolumogap``, plain or compressed (.gz, .xz), and converts it to graphs with
    RDKit in several processes. The graphs are cached, and an interrupted conversion resumes from the finished pieces.
    ``x`` has nine categories per atom (:data:`gape.data.ATOM_CATEGORIES`) and ``edge_attr`` three per bond, as in the
    Open Graph Benchmark; the paper's models do not use bonds. Rows without a gap are left out.

    The split: if ``split_dict.pt`` is in the folder above the table's (as in the official archive), ``test`` is the
    official validation part, as in the paper (the official test targets are not public), and ``val`` is a random
    ``val_fraction`` of the official training part. Without that file, ``test`` and ``val`` are random
    ``val_fraction`` parts of all rows.

    Args:
        limit: number of rows to read; 0 for all.
        val_fraction: see above.
        seed: seed of the random parts.

    Example:
        >>> PCQM4Mv2(val_fraction=0.7)
        Traceback (most recent call last):
        ValueError: val_fraction must lie between 0 and 0.5, got 0.7
    """

    limit: int = 0
    val_fraction: float = 0.1
    seed: int = 0

    TASK: ClassVar[Task] = Task("pcqm4mv2", level="graph", metric="mae", num_classes=0, node_categories=ATOM_CATEGORIES)

    def __post_init__(self) -> None:
        if self.limit < 0:
            raise ValueError(f"limit must be a number of rows, or 0 for all of them, got {self.limit}")
        if not 0 < self.val_fraction < 0.5:
            raise ValueError(f"val_fraction must lie between 0 and 0.5, got {self.val_fraction}")

    def build(
        self,
        data_dir: str | Path | None = None,
        *,
        cache: bool = True,
        processes: int = 2,
        show: bool = True,
    ) -> GraphDataset:
        """Read and convert the table; download the official archive first if there is none."""
        folder = data_folder(data_dir)
        path = find_file(folder, FILES)
        if path is None:
            path = _download(folder)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()[:16]
        table, limit, key = path, self.limit, Conversion(digest, self.limit)

        def make() -> FlatGraphs:
            return _convert(table, limit, processes, show, pieces_folder(key) if cache else None)

        graphs = cached(key, make) if cache else make()
        return GraphDataset(
            graphs, self.TASK, [self._split(path, graphs)], f"published: {path.name}, sha256 {digest} ({self!r})"
        )

    def _split(self, path: Path, graphs: FlatGraphs) -> Split:
        generator = np.random.default_rng([self.seed, 0x9C])
        official = path.parent.parent / "split_dict.pt"
        if not official.is_file():
            order = generator.permutation(graphs.num_graphs)
            part = math.ceil(self.val_fraction * len(order))
            return _split(order[2 * part :], order[:part], order[part : 2 * part])
        parts = read_split(official)
        # Rows without a gap come last (read_table checks it), so row numbers are graph indices.
        known = {name: rows[rows < graphs.num_graphs] for name, rows in parts.items()}
        if not len(known["valid"]):
            raise ValueError(
                f"limit={self.limit} leaves no row of the official validation part of {path}, which begins at row "
                f"{int(parts['valid'].min())} and is the test part here; raise limit, or use 0 for all rows"
            )
        train = generator.permutation(known["train"])
        part = math.ceil(self.val_fraction * len(train))
        return _split(train[part:], train[:part], known["valid"])


@dataclass(frozen=True)
class Conversion:
    """Cache key of the converted graphs: digest of the table and number of rows."""

    digest: str
    limit: int


def _split(train: Array, val: Array, test: Array) -> Split:
    return Split(*(torch.from_numpy(np.sort(part)) for part in (train, val, test)))


def read_split(path: Path) -> dict[str, Array]:
    """Read row numbers per part from the official ``split_dict.pt``, without running pickled code."""
    allowed = [np.ndarray, np.dtype, type(np.dtype(np.int64)), np._core.multiarray._reconstruct]  # type: ignore[attr-defined]
    # Files written with NumPy 1 name the same function by its old path.
    old_name = (np._core.multiarray._reconstruct, "numpy.core.multiarray._reconstruct")  # type: ignore[attr-defined]
    with torch.serialization.safe_globals([*allowed, old_name]):
        parts = torch.load(path, weights_only=True)
    return {name: np.asarray(rows, dtype=np.int64) for name, rows in parts.items()}


@contextmanager
def _open(path: Path) -> Iterator[TextIO]:
    if path.suffix == ".xz":
        with lzma.open(path, "rt", encoding="utf-8", newline="") as file:
            yield file
    elif path.suffix == ".gz":
        with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
            yield file
    else:
        with path.open(encoding="utf-8", newline="") as file:
            yield file


def read_table(path: Path, limit: int = 0) -> tuple[list[str], list[float]]:
    """Read SMILES and gaps of the rows that have a gap; rows without one (official test rows) must come last."""
    smiles, gaps = [], []
    unknown = None
    with _open(path) as file:
        reader = csv.DictReader(file)
        if not set(COLUMNS[1:]) <= set(reader.fieldnames or ()):
            raise ValueError(f"{path} has columns {reader.fieldnames}, expected {', '.join(COLUMNS)}")
        for row in islice(reader, limit or None):
            if not row["homolumogap"]:
                unknown = row["smiles"]
                continue
            if unknown is not None:
                raise ValueError(f"{path}: {row['smiles']!r} has a gap, {unknown!r} before it has none; put those last")
            smiles.append(row["smiles"])
            gaps.append(float(row["homolumogap"]))
    if not smiles:
        raise ValueError(f"{path} has no row with a gap")
    return smiles, gaps


def _convert(path: Path, limit: int, processes: int, show: bool, pieces_in: Path | None) -> FlatGraphs:
    smiles, gaps = read_table(path, limit)
    pieces = [smiles[start : start + _MOLECULES_PER_PIECE] for start in range(0, len(smiles), _MOLECULES_PER_PIECE)]
    weights = [len(piece) for piece in pieces]
    title = "PCQM4Mv2: reading molecules"
    work, numbered = CachedPieces(molecules, pieces_in), list(enumerate(pieces))
    blocks = map_pieces(work, numbered, title=title, weights=weights, processes=processes, show=show)
    return FlatGraphs(
        node_ptr=offsets(np.concatenate([block.node_counts for block in blocks])),
        edge_ptr=offsets(np.concatenate([block.edge_counts for block in blocks])),
        edges=np.concatenate([block.edges for block in blocks]),
        x=np.concatenate([block.x for block in blocks]),
        y=np.array(gaps, dtype=np.float32),
        edge_attr=np.concatenate([block.edge_attr for block in blocks]),
    )


def _download(folder: Path | None) -> Path:
    """Download and extract the official archive with PyG, without its conversion to a database."""
    advice = "pcqm4m-v2.zip, the official archive, is downloaded to pyg/PCQM4Mv2/raw."
    from torch_geometric.data import download_url, extract_zip
    from torch_geometric.datasets import PCQM4Mv2 as Official

    raw = pyg_folder(folder) / "PCQM4Mv2" / "raw"
    try:
        extract_zip(download_url(Official.url, str(raw)), str(raw))
    except OSError as error:
        raise missing_file("pcqm4mv2", folder, FILES, advice, error) from error
    return raw / "pcqm4m-v2" / "raw" / "data.csv.gz"
