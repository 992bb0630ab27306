"""Read molecules from a table with a column ``smiles``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gape.graph.graph import Graph
from gape.io.named_graphs import NamedGraphs, as_names
from gape.io.text_table import BadRows


def smiles_table(path: Path, header: list[str], rows: Iterable[tuple[int, list[str]]]) -> NamedGraphs:
    """Build one graph per row: heavy atoms in the order of the SMILES, every bond in both directions.

    Molecules are named by the column ``graph`` if there is one, otherwise by number from 0.
    """
    chemistry = rdkit()
    bad = BadRows(path)
    column = header.index("smiles")
    sizes: list[int] = []
    bonds: list[tuple[int, int]] = []
    names: list[Any] = []
    line_of: dict[str, int] = {}
    atoms = 0
    for line, row in rows:
        text = row[column] if len(row) == len(header) else ""
        name = row[header.index("graph")] if "graph" in header and len(row) == len(header) else str(line)
        molecule = chemistry.MolFromSmiles(text) if text else None
        if len(row) != len(header):
            bad.add(line, row, f"has {len(row)} values, expected {len(header)} ({','.join(header)})")
        elif molecule is None:
            bad.add(line, row, "RDKit cannot read the SMILES" if text else "no SMILES")
        elif name in line_of:
            bad.add(line, row, f"graph {name!r} is already on line {line_of[name]}")
        else:
            line_of[name] = line
            names.append(name if "graph" in header else len(names))
            sizes.append(molecule.GetNumAtoms())
            bonds += [(atoms + bond.GetBeginAtomIdx(), atoms + bond.GetEndAtomIdx()) for bond in molecule.GetBonds()]
            atoms += sizes[-1]
    bad.stop_if_any()
    if not sizes:
        raise ValueError(f"{path} holds no molecules: there is no row below its header")
    ptr = torch.tensor([0, *np.cumsum(sizes)])
    batch = Graph.from_edges(bonds, num_nodes=atoms, undirected=True, ptr=ptr)
    ignored = [name for name in header if name not in ("smiles", "graph")]
    notes = (f"columns not read: {', '.join(ignored)}",) if ignored else ()
    return NamedGraphs(batch, batch.adjacency.local.numpy(), as_names(names), notes)


def rdkit() -> Any:
    """Import RDKit's ``Chem`` and silence its log: our errors name the molecules it cannot read."""
    try:
        from rdkit import Chem, RDLogger
    except ImportError as error:
        raise ImportError("reading SMILES needs RDKit: pip install 'gape[smiles]'") from error
    RDLogger.DisableLog("rdApp.*")  # type: ignore[attr-defined]
    return Chem
