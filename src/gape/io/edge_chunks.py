"""Read the edges of one graph in chunks, from files larger than memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gape.io.edge_list import Columns

WORDS = (".txt", ".edgelist", ".edges")
#: Extensions that :class:`EdgeFile` reads; text also with ``.gz`` or ``.bz2`` behind it.
EDGE_FILES = (".parquet", ".csv", ".tsv", *WORDS, ".npz")
# Bytes of text, and edges, per chunk.
CHUNK_BYTES = 1 << 25
CHUNK_EDGES = 1 << 21
# Node ids are kept in 32 bits while edges are sorted.
MAX_NODE_ID = 2**32 - 1
_USUAL = Columns()


@dataclass(frozen=True, eq=False)
class EdgeChunk:
    """Some edges of a graph.

    Args:
        source, target: ``[edges]``, node ids, int64.
        weight: ``[edges]`` float64, ``None`` if the graph has no weights.
        fraction: of the whole that is read after this chunk; ``None`` if not known.
    """

    source: NDArray[np.int64]
    target: NDArray[np.int64]
    weight: NDArray[np.float64] | None = None
    fraction: float | None = None


@dataclass(frozen=True)
class EdgeFile:
    """An edge list on disk, read in chunks of bounded size.

    ======================  ===========================================================================================
    extension               content
    ======================  ===========================================================================================
    ``.parquet``            columns ``source,target[,weight]``, or other usual names
    ``.csv``, ``.tsv``      the same, named in the first line
    ``.txt``, ``.edgelist`` as in the SNAP collection: comments (``#``, ``%``) on top, then two or three columns
    ``.npz``                CSR arrays ``indptr``, ``indices[, data]``; read into memory
    ======================  ===========================================================================================

    Nodes are whole numbers. They are the nodes of the graph in ascending order, except in ``.npz`` files, whose rows
    are numbered from 0.

    Args:
        path: the file.
        columns: names of the columns of a table.
        weighted: False to leave out weights.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "web.txt")
        ...     _ = path.write_text("# FromNodeId ToNodeId\\n0\\t7\\n7\\t3\\n")
        ...     [chunk.target.tolist() for chunk in EdgeFile(path).chunks()]
        [[7, 3]]
    """

    path: Path
    columns: Columns = _USUAL
    weighted: bool = True

    def __post_init__(self) -> None:
        path = Path(self.path)
        object.__setattr__(self, "path", path)
        if not path.is_file():
            raise FileNotFoundError(f"there is no file {path}")
        if self.kind not in EDGE_FILES:
            raise ValueError(
                f"{path}: edges are read in chunks from {', '.join(EDGE_FILES)} files, text also as .gz or .bz2, "
                f"not from {self.kind!r}"
            )

    @property
    def kind(self) -> str:
        suffixes = [suffix.lower() for suffix in self.path.suffixes]
        packed = suffixes[-1:] and suffixes[-1] in (".gz", ".bz2")
        return "".join(suffixes[-2:-1] if packed else suffixes[-1:])

    @property
    def name(self) -> str:
        return self.path.name

    @cached_property
    def nodes(self) -> int | None:
        """Number of nodes if the file states it; otherwise the nodes are those that have edges."""
        if self.kind != ".npz":
            return None
        with np.load(self.path, allow_pickle=False) as arrays:
            if not {"indptr", "indices"} <= set(arrays.files):
                raise ValueError(
                    f"{self.path} holds the arrays {', '.join(sorted(arrays.files))}; expected indptr and indices of a "
                    "CSR matrix"
                )
            return len(arrays["indptr"]) - 1

    @property
    def fingerprint(self) -> str:
        """Text that changes when the file does."""
        stat = os.stat(self.path)
        how = "" if self.columns == _USUAL else f", {self.columns}"
        how += "" if self.weighted else ", without weights"
        return f"{self.path.resolve()}, {stat.st_size} bytes, modified {stat.st_mtime_ns}{how}"

    def chunks(self, skip: int = 0) -> Iterator[EdgeChunk]:
        """Yield the edges, without the first ``skip`` chunks."""
        read = {".parquet": self._parquet, ".npz": self._npz}.get(self.kind, self._text)
        for number, chunk in enumerate(read()):
            if number >= skip:
                self._check(chunk)
                yield chunk

    def _check(self, chunk: EdgeChunk) -> None:
        for ends in (chunk.source, chunk.target):
            bad = (ends < 0) | (ends > MAX_NODE_ID)
            if bad.any():
                raise ValueError(f"{self.path}: node ids must be 0 … {MAX_NODE_ID}, got {ends[bad][0]}")
        if chunk.weight is not None and not (np.isfinite(chunk.weight) & (chunk.weight >= 0)).all():
            bad_weight = chunk.weight[~(np.isfinite(chunk.weight) & (chunk.weight >= 0))][0]
            raise ValueError(
                f"{self.path}: weights of a graph on disk must be finite and at least 0, got {bad_weight:g}; encode "
                "graphs with negative weights in memory"
            )

    def _parquet(self) -> Iterator[EdgeChunk]:
        import pyarrow
        import pyarrow.parquet

        try:
            file = pyarrow.parquet.ParquetFile(self.path)
            roles = self._roles(file.schema_arrow.names)
            rows = 0
            for batch in file.iter_batches(batch_size=CHUNK_EDGES, columns=list(roles.values())):
                rows += len(batch)
                yield self._chunk(batch, roles, rows / max(file.metadata.num_rows, 1))
        except pyarrow.ArrowException as error:
            raise ValueError(f"{self.path} cannot be read as parquet: {error}") from error

    def _text(self) -> Iterator[EdgeChunk]:
        import pyarrow
        import pyarrow.csv

        comments, first = self._first_line()
        delimiter = "\t" if self.kind == ".tsv" else next((c for c in "\t,;" if c in first), " ")
        names = [name.strip(' "') for name in first.split(delimiter)]
        headless = self.kind in WORDS or not self.columns.header
        if headless:
            if len(names) not in (2, 3):
                raise ValueError(f"{self.path}: expected two or three columns, got {first!r}")
            names = ["source", "target", "weight"][: len(names)]
        roles = self._roles(names)
        size = os.stat(self.path).st_size
        packed = self.path.suffix.lower() in (".gz", ".bz2")
        try:
            with open(self.path, "rb") as raw, pyarrow.input_stream(raw, compression=self._compression()) as stream:
                reader = pyarrow.csv.open_csv(
                    stream,
                    read_options=pyarrow.csv.ReadOptions(
                        block_size=CHUNK_BYTES, column_names=names, skip_rows=comments + (not headless)
                    ),
                    parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter),
                    convert_options=pyarrow.csv.ConvertOptions(
                        include_columns=list(roles.values()),
                        column_types={
                            name: pyarrow.float64() if role == "weight" else pyarrow.int64()
                            for role, name in roles.items()
                        },
                    ),
                )
                for batch in reader:
                    yield self._chunk(batch, roles, None if packed else min(raw.tell() / size, 1.0))
        except pyarrow.ArrowException as error:
            raise ValueError(
                f"{self.path}: {error}; the nodes of a graph on disk are whole numbers, so number yours first"
            ) from error

    def _compression(self) -> str | None:
        return {".gz": "gzip", ".bz2": "bz2"}.get(self.path.suffix.lower())

    def _first_line(self) -> tuple[int, str]:
        """Count the comments on top, and return the line after them."""
        import pyarrow

        with pyarrow.input_stream(str(self.path), compression=self._compression()) as stream:
            text = stream.read(1 << 16).decode("utf-8-sig", errors="replace")
        lines = text.splitlines()
        comments = next((i for i, line in enumerate(lines) if line[:1] not in ("#", "%")), len(lines))
        if comments == len(lines):
            raise ValueError(f"{self.path} holds no edges: it has no rows")
        return comments, lines[comments].strip()

    def _roles(self, names: list[str]) -> dict[str, str]:
        """Find the columns source, target and perhaps weight."""
        place = self.columns.find(self.path, names)
        if "graph" in place:
            raise ValueError(
                f"{self.path} has a column {names[place['graph']]!r}: several graphs cannot be one graph on disk"
            )
        return {role: names[i] for role, i in place.items() if role != "weight" or self.weighted}

    def _chunk(self, batch: Any, roles: dict[str, str], fraction: float | None) -> EdgeChunk:
        import pyarrow

        arrays: dict[str, Any] = {}
        for role, name in roles.items():
            column = batch.column(name)
            if column.null_count:
                raise ValueError(f"{self.path}: {column.null_count} rows have no {name}")
            number = pyarrow.types.is_integer(column.type) or (
                role == "weight" and pyarrow.types.is_floating(column.type)
            )
            if not number:
                raise ValueError(f"{self.path}: column {name} is {column.type}; nodes on disk are whole numbers")
            arrays[role] = column.to_numpy(zero_copy_only=False).astype(np.float64 if role == "weight" else np.int64)
        return EdgeChunk(arrays["source"], arrays["target"], arrays.get("weight"), fraction)

    def _npz(self) -> Iterator[EdgeChunk]:
        assert self.nodes is not None
        with np.load(self.path, allow_pickle=False) as arrays:
            indptr, indices = arrays["indptr"].astype(np.int64), arrays["indices"]
            data = arrays["data"].astype(np.float64) if "data" in arrays.files and self.weighted else None
        if len(indices) and int(indices.max()) >= self.nodes:
            raise ValueError(f"{self.path}: column {int(indices.max())} in a matrix of {self.nodes} rows")
        row = 0
        while row < self.nodes:
            last = max(row + 1, int(np.searchsorted(indptr, indptr[row] + CHUNK_EDGES, side="right")) - 1)
            part = slice(indptr[row], indptr[last])
            source = np.repeat(np.arange(row, last), np.diff(indptr[row : last + 1]))
            weight = None if data is None else data[part]
            yield EdgeChunk(source, indices[part].astype(np.int64), weight, last / self.nodes)
            row = last
