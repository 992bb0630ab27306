"""Edge lists: tables with the columns ``source,target[,weight][,graph]``, as csv, tsv or parquet."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gape.graph.graph import Graph
from gape.io.named_graphs import NamedGraphs, as_names
from gape.io.text_table import BadRows

COLUMNS = ("source", "target", "weight", "graph")


def edge_list(
    path: Path,
    header: list[str],
    rows: Iterable[tuple[int, list[Any]]],
    others: Iterable[str] = (),
    unit: str = "line",
) -> NamedGraphs:
    """Build graphs from rows ``source``, ``target``.

    Nodes and graphs are ordered by their names if these are whole numbers, otherwise by first occurrence. An edge list
    has no isolated nodes. ``others`` names columns of the file that are not in ``header``.
    """
    place = _column_index(path, header)
    bad = BadRows(path, unit)
    ends: list[Any] = []
    graphs: list[Any] = []
    weights: list[float] = []
    width = len(header)
    for line, row in rows:
        if len(row) != width:
            bad.add(line, row, f"has {len(row)} values, expected {width} ({','.join(header)})")
            continue
        source, target = row[place["source"]], row[place["target"]]
        if _missing(source) or _missing(target):
            bad.add(line, row, f"no {'source' if _missing(source) else 'target'}")
            continue
        if "graph" in place:
            if _missing(row[place["graph"]]):
                bad.add(line, row, "no graph")
                continue
            graphs.append(row[place["graph"]])
        if "weight" in place:
            weight = _number(row[place["weight"]])
            if weight is None:
                bad.add(line, row, f"weight {row[place['weight']]!r} is not a finite number")
                weight = 1.0
            weights.append(weight)
        ends += (source, target)
    bad.stop_if_any()
    if not ends:
        raise ValueError(f"{path} holds no edges: it has no rows")
    ignored = [*(name for name in header if name not in COLUMNS), *others]
    notes = (f"columns not read: {', '.join(ignored)}",) if ignored else ()
    return _assemble(ends, graphs if "graph" in place else None, weights if "weight" in place else None, notes)


def parquet_table(path: Path) -> tuple[list[str], Iterator[tuple[int, list[Any]]], list[str]]:
    """Return the edge-list columns of a parquet file, its rows counted from 1, and the names of other columns."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("reading parquet needs PyArrow: pip install 'gape[cli]'") from error
    try:
        file = pyarrow.parquet.ParquetFile(path)
        _column_index(path, file.schema_arrow.names)
        header = [name for name in file.schema_arrow.names if name in COLUMNS]
        table = file.read(columns=header)
    except pyarrow.ArrowException as error:
        raise ValueError(f"{path} cannot be read as parquet: {error}") from error
    columns = [_values(path, name, table.column(name)) for name in header]
    others = [name for name in file.schema_arrow.names if name not in COLUMNS]
    return header, ((i, list(row)) for i, row in enumerate(zip(*columns, strict=True), start=1)), others


def _values(path: Path, name: str, column: Any) -> list[Any]:
    """Convert a column to a list of text or numbers; bytes are decoded as UTF-8."""
    import pyarrow

    if pyarrow.types.is_nested(column.type):
        raise ValueError(f"{path}: column {name} is {column.type}, expected text or numbers")
    try:
        return [value.decode() if isinstance(value, bytes) else value for value in column.to_pylist()]
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: column {name} is {column.type}, expected text or numbers: {error}") from error


def _column_index(path: Path, header: list[str]) -> dict[str, int]:
    missing = [name for name in ("source", "target") if name not in header]
    if missing:
        raise ValueError(
            f"{path} has the columns {','.join(header)}; an edge list needs source,target and may have weight and "
            f"graph, and molecules need a column smiles in a text file (its first line names the columns); "
            f"{' and '.join(missing)} not found"
        )
    if len(set(header)) != len(header):
        raise ValueError(f"{path} has a column twice: {','.join(header)}")
    return {name: header.index(name) for name in COLUMNS if name in header}


def _missing(value: Any) -> bool:
    """Return whether a value is missing: empty, null or NaN."""
    return value in ("", None) or value != value


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None


def _assemble(
    ends: list[Any], graphs: list[Any] | None, weights: list[float] | None, notes: tuple[str, ...]
) -> NamedGraphs:
    name_of, name = _codes(ends)
    graph_of, graph = _codes(list(chain.from_iterable((g, g) for g in graphs))) if graphs else (None, 0 * name)
    # A node is a pair (graph, name). Sorting the pairs puts the nodes of a graph next to each other.
    pairs, first, node = np.unique(graph * (len(name_of) + 1) + name, return_index=True, return_inverse=True)
    numeric = name_of.dtype == np.int64
    order = np.lexsort((name_of[name[first]] if numeric else first, graph[first]))
    rank = np.empty(len(pairs), dtype=np.int64)
    rank[order] = np.arange(len(pairs))
    first = first[order]
    number = 1 if graph_of is None else len(graph_of)
    ptr = np.concatenate([[0], np.cumsum(np.bincount(graph[first], minlength=number))])
    batch = Graph(
        torch.from_numpy(rank[node].reshape(-1, 2).T.copy()),
        len(pairs),
        edge_weight=None if weights is None else torch.tensor(weights, dtype=torch.float64),
        ptr=torch.from_numpy(ptr),
    )
    return NamedGraphs(batch, name_of[name[first]], graph_of, notes)


def _codes(values: list[Any]) -> tuple[Any, Any]:
    """Return the distinct values, sorted if whole numbers, otherwise by first occurrence, and the index of each."""
    place = {value: i for i, value in enumerate(dict.fromkeys(values))}
    codes = np.fromiter((place[value] for value in values), dtype=np.int64, count=len(values))
    names = as_names(list(place))
    if names.dtype != np.int64:
        return names, codes
    order = np.argsort(names)
    rank = np.empty(len(names), dtype=np.int64)
    rank[order] = np.arange(len(names))
    return names[order], rank[codes]
