"""Tables of many graphs, read in blocks of whole graphs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from gape.io.edge_list import Columns, edge_list, headless, parquet_header, parquet_rows
from gape.io.named_graphs import NamedGraphs
from gape.io.read import TABLES, file_kind, table_columns
from gape.io.smiles import name_column, smiles_table
from gape.io.text_table import read_table

#: Rows per block: molecules, or edges.
BLOCK_MOLECULES = 1 << 12
BLOCK_EDGES = 1 << 17
_USUAL = Columns()


@dataclass(frozen=True)
class GraphTable:
    """A table of molecules or of edges with a column ``graph``, read in parts and in blocks of whole graphs.

    Part ``start, stop`` of a table holds the graphs whose first row is one of these (from 0), so that parts that join
    have every graph once. The rows of a graph stand together.

    Args:
        path: a csv, tsv or parquet file, text also packed.
        columns: names of its columns.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder, "edges.csv")
        ...     _ = path.write_text("source,target,graph\\n0,1,a\\n1,2,a\\n0,1,b\\n0,2,b\\n1,2,b\\n0,1,c\\n")
        ...     for start, stop in [(0, 3), (3, 6)]:
        ...         print([block.graphs.tolist() for block in GraphTable(path).blocks(start, stop, size=2)])
        [['a'], ['b']]
        [['c']]
    """

    path: Path
    columns: Columns = _USUAL

    @classmethod
    def open(cls, path: Path, columns: Columns = _USUAL) -> GraphTable | None:
        """Return the table, ``None`` if the file is no table of many graphs."""
        if file_kind(path) not in (*TABLES, ".parquet"):
            return None
        table = cls(path, columns)
        return table if table.molecules or table._graph is not None else None

    @cached_property
    def _parquet(self) -> bool:
        return file_kind(self.path) == ".parquet"

    @cached_property
    def header(self) -> list[str]:
        """Names of the columns that :meth:`rows` yields."""
        if self._parquet:
            return table_columns(self.path, parquet_header(self.path)[0], self.columns)[1]
        return self._text()[0]

    @cached_property
    def molecules(self) -> bool:
        """True if rows are molecules; otherwise they are edges."""
        return self.columns.header and table_columns(self.path, self.header, self.columns)[0]

    @cached_property
    def _graph(self) -> int | None:
        """Index of the column that names the graphs."""
        if self.molecules:
            return name_column(self.path, self.header, self.columns.graph)
        return self.columns.find(self.path, self.header).get("graph")

    @property
    def named(self) -> bool:
        """True if the table names its graphs; otherwise molecules are numbered by row from 0."""
        return self._graph is not None

    @property
    def unit(self) -> str:
        return "row" if self._parquet else "line"

    def _text(self) -> tuple[list[str], Iterator[tuple[int, list[Any]]]]:
        header, rows = read_table(self.path, TABLES[file_kind(self.path)])
        return (header, rows) if self.columns.header else headless(self.path, header, rows)

    def rows(self, start: int = 0) -> Iterator[tuple[int, list[Any]]]:
        """Yield the rows from ``start`` on, with the numbers that errors quote."""
        if self._parquet:
            return parquet_rows(self.path, self.header, start)
        return islice(self._text()[1], start, None)

    def count(self) -> int:
        """Number of rows; text is read for it."""
        return parquet_header(self.path)[1] if self._parquet else sum(1 for _ in self.rows())

    def blocks(self, start: int = 0, stop: int | None = None, size: int | None = None) -> Iterator[NamedGraphs]:
        """Yield the graphs of a part, in blocks that end with the first graph to reach ``size`` rows."""
        if not self.molecules:
            for rows in self._edge_blocks(start, stop, size or BLOCK_EDGES):
                yield edge_list(self.path, self.header, rows, self.columns, self.unit)
            return
        size, known = size or BLOCK_MOLECULES, dict[str, int]()
        part = islice(self.rows(start), None if stop is None else stop - start)
        while block := list(islice(part, size)):
            yield smiles_table(
                self.path, self.header, block, graph=self.columns.graph, unit=self.unit, first=start, known=known
            )
            start += len(block)

    def _edge_blocks(self, start: int, stop: int | None, size: int) -> Iterator[list[tuple[int, list[Any]]]]:
        assert self._graph is not None
        block: list[tuple[int, list[Any]]] = []
        seen: set[Any] = set()
        before: Any = None
        foreign = start > 0  # the first rows may go on with a graph of the part before
        begin = max(start - 1, 0)
        for index, (number, row) in enumerate(self.rows(begin), start=begin):
            # A row of the wrong length is reported by the reader of the block.
            name = row[self._graph] if len(row) == len(self.header) else before
            changed, before = name != before, name
            foreign = foreign and (index < start or not changed)
            if foreign:
                continue
            if changed or not block:
                if stop is not None and index >= stop:
                    break
                if name in seen:
                    raise ValueError(
                        f"{self.path}: graph {name!s} continues in {self.unit} {number} after other graphs; the rows "
                        "of a graph must stand together: sort the table by graph, or rename one of the graphs"
                    )
                seen.add(name)
                if len(block) >= size:
                    yield block
                    block = []
            block.append((number, row))
        if block:
            yield block
