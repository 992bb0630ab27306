"""Edge lists: tables with the columns ``source,target[,weight][,graph]``, and lines of two nodes."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gape._internal.validation import did_you_mean
from gape.graph.graph import Graph
from gape.io.named_graphs import NamedGraphs, as_names
from gape.io.text_table import BadRows

#: Column names that are understood without being asked for, in any case; source and target go together.
_ENDS = (("source", "target"), ("src", "dst"), ("from", "to"), ("u", "v"))
_WEIGHTS, _GRAPHS = ("weight", "edge_weight"), ("graph", "graph_id")
# Rows of a parquet file that are held as Python objects at a time.
_ROWS_PER_BATCH = 1 << 16


@dataclass(frozen=True)
class Columns:
    """Names of the columns of an edge list; those that are ``None`` are found by their usual names.

    Args:
        source, target: the ends of an edge: ``source,target``, ``src,dst``, ``from,to`` or ``u,v``.
        weight: ``weight`` or ``edge_weight``.
        graph: ``graph`` or ``graph_id``.
        header: False if the file's first line is an edge: its columns are source, target and perhaps weight.
    """

    source: str | None = None
    target: str | None = None
    weight: str | None = None
    graph: str | None = None
    header: bool = True

    def __post_init__(self) -> None:
        if not self.header and self.named:
            raise ValueError(f"without a header columns have no names, got {', '.join(self.named)}; give one or other")

    @property
    def named(self) -> list[str]:
        """The columns asked for by name."""
        return [name for name in (self.source, self.target, self.weight, self.graph) if name is not None]

    def finds_ends(self, header: Sequence[str]) -> bool:
        """Return whether a table with this header is an edge list."""
        return bool(self.source or self.target or _usual_ends([name.lower() for name in header]))

    def find(self, path: Path, header: Sequence[str]) -> dict[str, int]:
        """Index of the columns source, target and, where they are, weight and graph; raise if there is none."""
        if len(set(header)) != len(header):
            raise ValueError(f"{path} has a column twice: {','.join(header)}")
        for name in self.named:
            if name not in header:
                raise ValueError(
                    f"{path} has no column {name!r}; it has {','.join(header)}{did_you_mean(name, header)}"
                )
        lower = [name.lower() for name in header]
        ends = _usual_ends(lower) or ("source", "target")
        usual = {"source": (ends[0],), "target": (ends[1],), "weight": _WEIGHTS, "graph": _GRAPHS}
        found = {}
        for role, names in usual.items():
            asked = getattr(self, role)
            if asked is not None:
                found[role] = header.index(asked)
            elif known := [name for name in names if name in lower]:
                found[role] = lower.index(known[0])
        missing = [role for role in ("source", "target") if role not in found]
        if missing:
            raise ValueError(_no_ends(path, header, missing))
        return found


def _usual_ends(lower: Sequence[str]) -> tuple[str, str] | None:
    return next((pair for pair in _ENDS if pair[0] in lower and pair[1] in lower), None)


def _no_ends(path: Path, header: Sequence[str], missing: Sequence[str]) -> str:
    if all(_number(value) is not None for value in header):
        return (
            f"{path} has no header: its first line is {','.join(header)}. Name the columns there, such as "
            "source,target, or say that there are no names: --no-header, header=False"
        )
    return (
        f"{path} has the columns {','.join(header)}; an edge list needs source,target and may have weight and graph, "
        f"and molecules need a column smiles in a text file (its first line names the columns); "
        f"{' and '.join(missing)} not found: name the columns by --source and --target"
    )


def edge_list(
    path: Path,
    header: Sequence[str],
    rows: Iterable[tuple[int, list[Any]]],
    columns: Columns | None = None,
    unit: str = "line",
) -> NamedGraphs:
    """Build graphs from the rows of a table with these columns.

    Nodes and graphs are ordered by their names if these are whole numbers, otherwise by first occurrence. An edge list
    has no isolated nodes.
    """
    place = (columns or Columns()).find(path, header)
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
    ignored = [name for i, name in enumerate(header) if i not in place.values()]
    notes = (f"columns not read: {', '.join(ignored)}",) if ignored else ()
    return _assemble(ends, graphs if "graph" in place else None, weights if "weight" in place else None, notes)


def headless(
    path: Path, first: list[str], rows: Iterator[tuple[int, list[str]]]
) -> tuple[list[str], Iterator[tuple[int, list[str]]]]:
    """Give a table without column names its names, by the number of values of its first row."""
    names = ["source", "target", "weight", "graph"]
    if not 2 <= len(first) <= len(names):
        raise ValueError(f"{path}: expected source, target and perhaps weight and graph, got {','.join(first)!r}")
    return names[: len(first)], chain([(1, first)], rows)


def word_list(path: Path, rows: Iterator[tuple[int, list[str]]], columns: Columns | None = None) -> NamedGraphs:
    """Build a graph from lines of two nodes and perhaps a weight, as SNAP and NetworkX write them.

    NetworkX writes the attributes of an edge as a dict; ``weight`` is taken from it. A first line of column names is
    recognised by the usual names.
    """
    columns = columns or Columns()
    start = next(rows, None)
    if start is None:
        raise ValueError(f"{path} holds no edges: it has no rows but comments")
    line, first = start
    if columns.named or (columns.header and tuple(word.lower() for word in first[:2]) in _ENDS):
        return edge_list(path, first, rows, columns)
    if len(first) < 2:
        raise ValueError(f"{path}: line {line} is {first[0]!r}, expected two nodes and perhaps a weight")
    if first[2:] and first[2].startswith("{"):
        weighted = "weight" in first[2]
        header = ["source", "target", "weight"][: 2 + weighted]
        every = ((number, _attributes(row, weighted)) for number, row in chain([start], rows))
        return edge_list(path, header, every)
    return edge_list(path, ["source", "target", "weight"][: len(first)], chain([start], rows))


def _attributes(row: list[str], weighted: bool) -> list[Any]:
    """Replace the attributes of an edge, a dict as text, by its weight; 1 where there is none."""
    if not row[2:]:
        return row
    try:
        attributes = ast.literal_eval(row[2])
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        attributes = None
    if not isinstance(attributes, dict):
        return [*row, "no attributes"]  # a row too long, which the reader of rows reports
    return [*row[:2], attributes.get("weight", 1.0)] if weighted else row[:2]


def parquet_header(path: Path) -> tuple[list[str], int]:
    """Return the names of a parquet file's columns and the number of its rows."""
    with _parquet_errors(path) as parquet:
        file = parquet.ParquetFile(path)
        return file.schema_arrow.names, file.metadata.num_rows


def parquet_rows(path: Path, names: list[str], start: int = 0) -> Iterator[tuple[int, list[Any]]]:
    """Yield the rows of these columns from row ``start`` (from 0) on, batch by batch, with their numbers from 1."""
    with _parquet_errors(path) as parquet:
        file = parquet.ParquetFile(path)
        groups = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
        ends = np.cumsum(groups)
        group = int(np.searchsorted(ends, start, side="right"))
        row = int(ends[group - 1]) if group else 0
        for batch in file.iter_batches(_ROWS_PER_BATCH, row_groups=range(group, len(groups)), columns=names):
            row += len(batch)
            if row > start:
                batch = batch.slice(max(0, start - (row - len(batch))))
                values = [_values(path, name, batch.column(name)) for name in names]
                yield from enumerate(map(list, zip(*values, strict=True)), start=row - len(batch) + 1)


@contextmanager
def _parquet_errors(path: Path) -> Iterator[Any]:
    """Import PyArrow; errors inside name the file."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("reading parquet needs PyArrow: pip install 'gape[cli]'") from error
    try:
        yield pyarrow.parquet
    except pyarrow.ArrowException as error:
        raise ValueError(f"{path} cannot be read as parquet: {error}") from error


def _values(path: Path, name: str, column: Any) -> list[Any]:
    """Convert a column to a list of text or numbers; bytes are decoded as UTF-8."""
    import pyarrow

    if pyarrow.types.is_nested(column.type):
        raise ValueError(f"{path}: column {name} is {column.type}, expected text or numbers")
    try:
        return [value.decode() if isinstance(value, bytes) else value for value in column.to_pylist()]
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: column {name} is {column.type}, expected text or numbers: {error}") from error


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
