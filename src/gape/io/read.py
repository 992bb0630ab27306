"""Read graph files, by file name extension."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from gape.io.edge_list import Columns, edge_list, headless, parquet_header, parquet_rows, word_list
from gape.io.formats import read_gml, read_graphml, read_mtx, read_npz, read_pt
from gape.io.named_graphs import NamedGraphs, note_weights, unweighted
from gape.io.smiles import name_column, smiles_table
from gape.io.text_table import PACKED, STANDARD_STREAM, read_table, read_words

#: Called with the number of rows read so far, now and then.
Progress = Callable[[int], None]

_ROWS_PER_REPORT = 4096
#: Extensions of text tables, with what separates their columns if that is fixed.
TABLES = {".csv": None, ".tsv": "\t"}
_WORDS = (".txt", ".edgelist", ".edges")
_OTHERS: dict[str, Callable[[Path], NamedGraphs]] = {
    ".graphml": read_graphml,
    ".gml": read_gml,
    ".npz": read_npz,
    ".mtx": read_mtx,
    ".pt": read_pt,
}
_EXTENSIONS = (*TABLES, *_WORDS, ".parquet", *_OTHERS)


def read_graphs(
    path: str | os.PathLike[str],
    *,
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    graph: str | None = None,
    header: bool = True,
    weighted: bool = True,
    progress: Progress | None = None,
) -> NamedGraphs:
    """Read the graphs of a file, with the names of their nodes.

    ==================================  ===============================================================================
    extension                           content
    ==================================  ===============================================================================
    ``.csv``, ``.tsv``, ``.parquet``    an edge list ``source,target[,weight][,graph]``; also ``src,dst``, ``from,to``,
                                        ``u,v``, in any case; csv separated by comma, semicolon or tab
    ``.csv``, ``.tsv``, ``.parquet``    molecules, if there is a column ``smiles`` and no ends of edges
    ``.txt``, ``.edgelist``             a line per edge: two nodes and perhaps a weight, as SNAP and NetworkX write
                                        them; lines that start with ``#`` or ``%`` are comments
    ``.graphml``, ``.gml``              one graph, by NetworkX
    ``.npz``, ``.mtx``                  a sparse adjacency matrix
    ``.pt``                             PyG ``Data``, list of ``Data``, processed dataset
    ``-``                               standard input: as ``.csv``
    ==================================  ===============================================================================

    Text may be compressed: ``.csv.gz``, ``.txt.xz``, ``.csv.bz2``.

    Args:
        path: the file.
        source, target, weight, graph: names of the columns of an edge list, if they are not the usual ones.
        header: False if the first line of a text table is an edge.
        weighted: False to leave out edge weights, and to count repeated edges once.
        progress: called with the number of rows read so far.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "friends.csv")
        ...     _ = path.write_text("source,target\\nann,bob\\nbob,cid\\n")
        ...     friends = read_graphs(path)
        >>> friends.nodes.tolist(), friends.graph
        (['ann', 'bob', 'cid'], Graph(graphs=1, nodes=3, edges=2, directed))
    """
    path, columns = Path(path), Columns(source, target, weight, graph, header)
    kind = file_kind(path)
    if kind in _OTHERS and columns != Columns():
        raise ValueError(f"{path}: columns and headers are for edge lists, and {kind} files have none")
    if kind in _OTHERS:
        named = _OTHERS[kind](path)
    elif kind in _WORDS:
        named = word_list(path, _counted(read_words(path), progress), columns)
    elif kind == ".parquet":
        named = _parquet(path, columns, progress)
    else:
        named = _text_table(path, columns, TABLES[kind], progress)
    # A column called weight is asked for; an attribute or a third word may be something else.
    return note_weights(named, unasked=kind in (*_WORDS, ".graphml", ".gml")) if weighted else unweighted(named)


def file_kind(path: Path) -> str:
    """Return the extension that says how to read a file; raise if the file or the extension is unknown."""
    if path == STANDARD_STREAM:
        return ".csv"
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder, expected a file with graphs")
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}")
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = suffixes[-1:] and suffixes[-1] in PACKED and "".join(suffixes[-2:-1]) in (*TABLES, *_WORDS)
    kind = suffixes[-2] if packed else "".join(suffixes[-1:])
    if kind not in _EXTENSIONS:
        raise ValueError(f"{path}: unknown file extension {kind!r}; known are {', '.join(_EXTENSIONS)}")
    return kind


def _text_table(path: Path, columns: Columns, delimiter: str | None, progress: Progress | None) -> NamedGraphs:
    header, rows = read_table(path, delimiter)
    rows = _counted(rows, progress)
    if not columns.header:
        return edge_list(path, *headless(path, header, rows))
    if "smiles" in header and not columns.finds_ends(header):
        return smiles_table(path, header, rows, graph=columns.graph)
    return edge_list(path, header, rows, columns)


def _parquet(path: Path, columns: Columns, progress: Progress | None) -> NamedGraphs:
    names, _ = parquet_header(path)
    molecules, read = table_columns(path, names, columns)
    rows = _counted(parquet_rows(path, read), progress)
    if molecules:
        named = smiles_table(path, read, rows, graph=columns.graph, unit="row")
    else:
        named = edge_list(path, read, rows, columns, unit="row")
    others = [name for name in names if name not in read]
    return replace(named, notes=(f"columns not read: {', '.join(others)}",)) if others else named


def table_columns(path: Path, header: list[str], columns: Columns) -> tuple[bool, list[str]]:
    """Return whether a table holds molecules rather than edges, and the names of the columns to read."""
    if "smiles" in header and not columns.finds_ends(header):
        name = name_column(path, header, columns.graph)
        return True, ["smiles", *([] if name is None else [header[name]])]
    return False, [header[i] for i in sorted(columns.find(path, header).values())]


def _counted(rows: Iterator[tuple[int, list[Any]]], progress: Progress | None) -> Iterator[tuple[int, list[Any]]]:
    if progress is None:
        return rows
    return _reporting(rows, progress)


def _reporting(rows: Iterator[tuple[int, list[Any]]], progress: Progress) -> Iterator[tuple[int, list[Any]]]:
    count = 0
    for count, row in enumerate(rows, start=1):
        if count % _ROWS_PER_REPORT == 0:
            progress(count)
        yield row
    progress(count)
