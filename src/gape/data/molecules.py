"""SMILES to graphs: nine features an atom and three a bond, as in the Open Graph Benchmark.

The categories are those of ``torch_geometric.utils.from_smiles``, which the tests compare with, so that graphs made
here and by PyG's ``PCQM4Mv2`` are the same. (OGB's own tables have other categories.)
Values beyond the last category count as the last.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from gape.data.flat import Array, FlatGraphs, offsets
from gape.io.smiles import rdkit

#: Categories of the nine columns of atom features, for :class:`gape.nn.NodeInput`: atomic number, chirality, degree
#: (with hydrogens), formal charge + 5, hydrogens, radical electrons, hybridisation, is aromatic, is in a ring. The
#: package ``ogb`` numbers them otherwise, see :data:`gape.nn.OGB_ATOM`.
ATOM_CATEGORIES = (119, 9, 11, 12, 9, 5, 8, 2, 2)
# Bond type, stereo, is conjugated.
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
    """One molecule, hydrogens left out.

    Returns: atoms ``[n, 9]``, bonds ``[m, 2]`` (each once), bond features ``[m, 3]``, all uint8.

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
    # PCQM4Mv2 molecules have at most a few dozen heavy atoms; int16 holds any molecule that occurs.
    return features.astype(np.uint8), table[:, :2].astype(np.int16), kinds.astype(np.uint8)


def molecules(smiles: Sequence[str]) -> FlatGraphs:
    """Many molecules as one flat block, with targets 0.

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
