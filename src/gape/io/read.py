"""Read graph files, by file name extension."""

from __future__ import annotations

import io
import os
import pickle
import re
import struct
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree.ElementTree import ParseError

import numpy as np
import scipy.sparse
import torch

from gape._internal.files import NPZ_ERRORS
from gape.graph.convert import as_graph
from gape.io.edge_list import Columns, edge_list, headless, parquet_header, parquet_rows, word_list
from gape.io.named_graphs import NamedGraphs, as_names, graph_in, note_weights, numbered, unweighted
from gape.io.smiles import name_column, smiles_table
from gape.io.text_table import PACKED, STANDARD_STREAM, read_table, read_words

#: Called with the number of rows read so far, now and then.
Progress = Callable[[int], None]

_ROWS_PER_REPORT = 4096
#: Extensions of text tables, with what separates their columns if that is fixed.
TABLES = {".csv": None, ".tsv": "\t"}
_WORDS = (".txt", ".edgelist", ".edges")


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


def read_npz(path: Path) -> NamedGraphs:
    """Read an adjacency matrix saved by ``scipy.sparse.save_npz``, or CSR arrays ``indptr``, ``indices``, ``data``.

    Entry ``[u, v]`` is the weight of the edge u → v.
    """
    try:
        if not zipfile.is_zipfile(path):
            raise ValueError("it is not an archive of arrays")
        with np.load(path, allow_pickle=False) as arrays:
            held = set(arrays.files)
            if "format" in held:
                return numbered(as_graph(scipy.sparse.load_npz(path)))
            if not {"indptr", "indices"} <= held:
                raise ValueError(f"it holds the arrays {', '.join(sorted(held))}, which are not a sparse matrix")
            # Counts may come as unsigned numbers, which SciPy does not take.
            indptr, indices = arrays["indptr"].astype(np.int64), arrays["indices"].astype(np.int64)
            data = arrays["data"] if "data" in held else np.ones(len(indices))
            size = len(indptr) - 1
            return numbered(as_graph(scipy.sparse.csr_array((data, indices, indptr), shape=(size, size))))
    except (FileNotFoundError, PermissionError):
        raise  # an error of the file system, not of the content
    except NPZ_ERRORS as error:
        raise ValueError(f"{path} cannot be read as a sparse matrix: {error}") from error


def read_mtx(path: Path) -> NamedGraphs:
    """Read a Matrix Market file; a symmetric one gives an undirected graph."""
    import scipy.io

    try:
        # SciPy reads beyond the end of a file whose last line is not a number and has no end; null bytes crash it.
        content = path.read_bytes() + b"\n"
        if b"\0" in content:
            raise ValueError(f"byte {content.index(0)} is null, and this is a format of text")
        return numbered(as_graph(scipy.sparse.coo_array(scipy.io.mmread(io.BytesIO(content)))))
    except (ValueError, OverflowError) as error:
        raise ValueError(f"{path} cannot be read as a Matrix Market file: {error}") from error


def read_graphml(path: Path) -> NamedGraphs:
    """Read the first graph of a GraphML file; nodes are named by their ``id``."""
    networkx = _networkx()
    try:
        graph = networkx.read_graphml(path)
    except (ParseError, networkx.NetworkXError, LookupError, StopIteration, ValueError) as error:
        raise ValueError(f"{path} cannot be read as GraphML: {error}") from error
    return NamedGraphs(graph_in(path, graph), as_names(list(graph.nodes)))


def read_gml(path: Path) -> NamedGraphs:
    """Read a GML file; nodes are named by ``label`` if all have one of their own, otherwise by ``id``."""
    networkx = _networkx()
    try:
        graph = networkx.read_gml(path, label="id")
    except (networkx.NetworkXError, ValueError) as error:
        raise ValueError(f"{path} cannot be read as GML: {error}") from error
    labels = [label for _, label in graph.nodes(data="label") if isinstance(label, str | int | float)]
    own = len(set(labels)) == len(labels) == len(graph)
    return NamedGraphs(graph_in(path, graph), as_names(labels if own else list(graph.nodes)))


def _networkx() -> Any:
    try:
        import networkx
    except ImportError as error:
        raise ImportError("reading GraphML and GML needs NetworkX: pip install 'gape[cli]'") from error
    return networkx


# Exceptions that torch.load raises on damaged files.
_PT_ERRORS = (
    pickle.UnpicklingError,
    struct.error,
    AssertionError,
    AttributeError,
    EOFError,
    LookupError,
    RuntimeError,
    TypeError,
    ValueError,
)


def read_pt(path: Path) -> NamedGraphs:
    """Read a ``.pt`` file without running code from it. It holds one of

    * a ``Data`` or a list of ``Data``;
    * what ``InMemoryDataset.save`` writes, a processed dataset, old or new form;
    * a dict with ``edge_index`` and perhaps ``num_nodes`` and ``edge_weight``.

    Loaded with ``weights_only=True``, so objects of other classes are refused: heterogeneous graphs, and ``Batch``,
    whose class is made when it is loaded (save ``batch.to_data_list()``).
    """
    try:
        from torch_geometric.data import Data
        from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
        from torch_geometric.data.storage import GlobalStorage
    except ImportError as error:
        raise ImportError("reading .pt files needs PyTorch Geometric: pip install 'gape[pyg]'") from error
    try:
        # Leaving the block removes the given classes, also those that PyG had allowed before.
        allowed = torch.serialization.get_safe_globals()
        classes = [kind for kind in (Data, DataEdgeAttr, DataTensorAttr, GlobalStorage) if kind not in allowed]
        with torch.serialization.safe_globals(classes):
            held = torch.load(path, map_location="cpu", weights_only=True)
    except _PT_ERRORS as error:
        raise ValueError(f"{path} cannot be loaded safely: {_reason(error)}") from error
    return numbered(graph_in(path, _graphs_in(path, held)))


def _reason(error: Exception) -> str:
    found = re.search(r"Unsupported global: GLOBAL (\S+)", str(error))
    if found is None:
        return "it is damaged, or not a file of torch.save"
    way_out = "; save batch.to_data_list() instead" if ".batch." in found[1] else ""
    return f"it holds a {found[1]}; supported are Data, lists of Data, and processed datasets{way_out}"


def _graphs_in(path: Path, held: Any) -> Any:
    from torch_geometric.data import Data

    if isinstance(held, tuple) and len(held) in (2, 3) and (held[1] is None or isinstance(held[1], dict)):
        # InMemoryDataset.save: the collated storage (a dict, in older files a Data), slices, and since 2.5 its class.
        storage = SimpleNamespace(**held[0]) if isinstance(held[0], dict) else held[0]
        if held[1] is None:
            return _graphs_in(path, held[0])
        return SimpleNamespace(_data=storage, slices=held[1], _indices=None)
    if isinstance(held, dict):
        if "edge_index" not in held:
            raise ValueError(f"{path} holds a dict with {', '.join(map(str, held))}; it has no edge_index")
        return Data.from_dict(held)
    for item in held if isinstance(held, list) else [held]:
        if isinstance(item, Data) and "_store" not in vars(item):
            raise ValueError(f"{path} holds a Data without contents: damaged, or older than PyG 2.0; save it again")
    if not hasattr(held, "edge_index") and not isinstance(held, list):
        raise ValueError(f"{path} holds a {type(held).__name__}, expected PyG graphs")
    return held


_OTHERS: dict[str, Callable[[Path], NamedGraphs]] = {
    ".graphml": read_graphml,
    ".gml": read_gml,
    ".npz": read_npz,
    ".mtx": read_mtx,
    ".pt": read_pt,
}
_EXTENSIONS = (*TABLES, *_WORDS, ".parquet", *_OTHERS)
