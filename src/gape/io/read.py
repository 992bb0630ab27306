"""Read graph files, by file name extension."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from gape.io.edge_list import edge_list, parquet_table
from gape.io.formats import read_gml, read_graphml, read_mtx, read_npz, read_pt
from gape.io.named_graphs import NamedGraphs
from gape.io.smiles import smiles_table
from gape.io.text_table import read_table


def read_graphs(path: str | os.PathLike[str]) -> NamedGraphs:
    """Read the graphs of a file, with the names of their nodes.

    ==================================  ===============================================================================
    extension                           content
    ==================================  ===============================================================================
    ``.csv``, ``.tsv``, ``.parquet``    an edge list ``source,target[,weight][,graph]``
    ``.csv``, ``.tsv``                  molecules, if there is a column ``smiles`` and none called ``source``
    ``.graphml``, ``.gml``              one graph, by NetworkX
    ``.npz``, ``.mtx``                  a sparse adjacency matrix
    ``.pt``                             PyG ``Data``, list of ``Data``, processed dataset
    ==================================  ===============================================================================

    Text tables may be compressed: ``.csv.gz``, ``.csv.xz``, ``.csv.bz2``.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "friends.csv")
        ...     _ = path.write_text("source,target\\nann,bob\\nbob,cid\\n")
        ...     friends = read_graphs(path)
        >>> friends.nodes.tolist(), friends.graph
        (['ann', 'bob', 'cid'], Graph(graphs=1, nodes=3, edges=2, directed))
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, expected a file with graphs")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes[-1:] and suffixes[-1] in (".gz", ".xz", ".bz2") and suffixes[-2:-1] in ([".csv"], [".tsv"])
    kind = suffixes[-2] if packed else "".join(suffixes[-1:])
    if kind not in _READERS:
        raise ValueError(f"{path}: unknown file extension {kind!r}; known are {', '.join(_READERS)}")
    return _READERS[kind](path)


def _csv(path: Path) -> NamedGraphs:
    return _text_table(path, ",")


def _tsv(path: Path) -> NamedGraphs:
    return _text_table(path, "\t")


def _text_table(path: Path, delimiter: str) -> NamedGraphs:
    header, rows = read_table(path, delimiter)
    return (smiles_table if "smiles" in header and "source" not in header else edge_list)(path, header, rows)


def _parquet(path: Path) -> NamedGraphs:
    return edge_list(path, *parquet_table(path), unit="row")


_READERS: dict[str, Callable[[Path], NamedGraphs]] = {
    ".csv": _csv,
    ".tsv": _tsv,
    ".parquet": _parquet,
    ".graphml": read_graphml,
    ".gml": read_gml,
    ".npz": read_npz,
    ".mtx": read_mtx,
    ".pt": read_pt,
}
