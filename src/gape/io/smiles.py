"""Read molecules from a table with a column ``smiles``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gape._internal.validation import did_you_mean
from gape.graph.graph import Graph
from gape.io.named_graphs import NamedGraphs, as_names
from gape.io.text_table import BadRows


def smiles_table(
    path: Path,
    header: list[str],
    rows: Iterable[tuple[int, list[str]]],
    *,
    graph: str | None = None,
    unit: str = "line",
    first: int = 0,
    known: dict[str, int] | None = None,
) -> NamedGraphs:
    """Build one graph per row: heavy atoms in the order of the SMILES, every bond in both directions.

    Molecules are named by the column ``graph`` if there is one, otherwise by number.

    Args:
        path: the file, for errors.
        header: names of the columns.
        rows: numbers and values of the rows.
        graph: another name for the column ``graph``; it must be there.
        unit: what a row is called in errors.
        first: number of the first molecule.
        known: names of earlier molecules and their rows, which may not occur again; those read here are added.
    """
    chemistry = rdkit()
    bad = BadRows(path, unit)
    column, named = header.index("smiles"), name_column(path, header, graph)
    sizes: list[int] = []
    bonds: list[tuple[int, int]] = []
    names: list[Any] = []
    line_of = {} if known is None else known
    atoms = 0
    for line, row in rows:
        text = row[column] if len(row) == len(header) else ""
        name = str(row[named]) if named is not None and len(row) == len(header) else str(line)
        molecule = chemistry.MolFromSmiles(text) if text else None
        if len(row) != len(header):
            bad.add(line, row, f"has {len(row)} values, expected {len(header)} ({','.join(header)})")
        elif molecule is None:
            bad.add(line, row, "RDKit cannot read the SMILES" if text else "no SMILES")
        elif name in line_of:
            bad.add(line, row, f"graph {name!r} is already on {unit} {line_of[name]}")
        else:
            line_of[name] = line
            names.append(first + len(names) if named is None else name)
            sizes.append(molecule.GetNumAtoms())
            bonds += [(atoms + bond.GetBeginAtomIdx(), atoms + bond.GetEndAtomIdx()) for bond in molecule.GetBonds()]
            atoms += sizes[-1]
    bad.stop_if_any()
    if not sizes:
        raise ValueError(f"{path} holds no molecules: there is no row below its header")
    ptr = torch.tensor([0, *np.cumsum(sizes)])
    batch = Graph.from_edges(bonds, num_nodes=atoms, undirected=True, ptr=ptr)
    ignored = [name for i, name in enumerate(header) if i not in (column, named)]
    notes = (f"columns not read: {', '.join(ignored)}",) if ignored else ()
    return NamedGraphs(batch, batch.adjacency.local.numpy(), as_names(names), notes)


def name_column(path: Path, header: list[str], graph: str | None) -> int | None:
    """Index of the column with the names of molecules, ``None`` if they are numbered."""
    if graph is not None and graph not in header:
        raise ValueError(f"{path} has no column {graph!r}; it has {','.join(header)}{did_you_mean(graph, header)}")
    graph = graph or "graph"
    return header.index(graph) if graph in header else None


def rdkit() -> Any:
    """Import RDKit's ``Chem`` and silence its log: our errors name the molecules it cannot read."""
    try:
        from rdkit import Chem, RDLogger
    except ImportError as error:
        raise ImportError("reading SMILES needs RDKit: pip install 'gape[smiles]'") from error
    RDLogger.DisableLog("rdApp.*")  # type: ignore[attr-defined]
    return Chem
