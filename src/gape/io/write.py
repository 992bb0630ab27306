"""Write encodings with the names of their nodes: parquet, csv, tsv, npz, npy, pt, or csv to standard output."""

from __future__ import annotations

import gzip
import os
import sys
from contextlib import nullcontext, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, BinaryIO

import numpy as np
import torch
from torch import Tensor

from gape._internal.files import check_writable, naming_disk_errors, replacing
from gape._internal.validation import did_you_mean
from gape.encodings.pairs import Pairs
from gape.io.named_graphs import NamedGraphs
from gape.io.text_table import STANDARD_STREAM

ENDINGS = (".parquet", ".csv", ".tsv", ".csv.gz", ".tsv.gz", ".npz", ".npy", ".pt")


def check_output(path: str | os.PathLike[str], pairwise: bool) -> None:
    """Raise if :func:`write_encoding` could not write to ``path``; call it before computing anything."""
    path = Path(path)
    if path == STANDARD_STREAM:
        return
    ending = _ending(path)
    if ending not in ENDINGS:
        raise ValueError(
            f"{path}: cannot write files with extension {ending!r}; known are {', '.join(ENDINGS)}"
            f"{did_you_mean(ending, ENDINGS)}"
        )
    if pairwise and ending == ".npy":
        raise ValueError(
            f"{path}: this encoding has one value per pair of nodes, which {ending} files cannot hold; "
            "write it to a .npz file, or as a table of pairs to .parquet"
        )
    for file in output_files(path):
        check_writable(file)
    for names in output_files(path)[1:]:
        if names.exists() and not _is_names(names):
            raise ValueError(
                f"{path}: node names would be written to {names}, which exists and is another kind of file; "
                "choose another name or format, such as .npz"
            )


def output_files(path: Path) -> list[Path]:
    """Return all files that :func:`write_encoding` writes for ``path``, itself first."""
    return [path, path.with_suffix(".nodes.csv")] if path.suffix == ".npy" else [path]


def _ending(path: Path) -> str:
    """Return the extension, with that of the packed file if it is packed."""
    return "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix


def _is_names(path: Path) -> bool:
    """Return whether a file looks like a list of node names that we wrote."""
    with open(path, "rb") as file:
        return file.readline().strip() in (b"node", b"graph,node")


def write_encoding(
    path: str | os.PathLike[str], values: Tensor | Pairs, named: NamedGraphs, *, name: str = "pe", settings: str = ""
) -> None:
    """Write an encoding, whole or not at all, in the format of the extension of ``path``.

    ============  =====================================================================================================
    extension     content
    ============  =====================================================================================================
    ``.parquet``  columns ``graph`` (if the graphs have names), ``node``, ``{name}_0``, ``{name}_1``, …; the settings
                  are in the schema's metadata. Encodings of pairs: ``source`` and ``target`` in place of ``node``,
                  one row per ordered pair
    ``.csv``      the same columns; also ``.tsv``, ``.csv.gz``, ``.tsv.gz``, and ``-`` for standard output
    ``.npz``      arrays ``encoding`` ``[num_nodes, k]``, ``node``, ``graph``, ``ptr`` and ``settings``. Encodings of
                  pairs: ``encoding`` ``[n, n, …]`` for one graph; for many, flat ``[Σ n², …]`` with ``matrix_ptr``,
                  where graph ``i`` is ``encoding[matrix_ptr[i]:matrix_ptr[i + 1]].reshape(n, n, …)``
    ``.pt``       a dict of the same, tensors and lists of names, for ``torch.load(path, weights_only=True)``
    ``.npy``      the array ``[num_nodes, k]``; names go to a second file, ``….nodes.csv``, line by line
    ============  =====================================================================================================

    Args:
        path: the file.
        values: ``[num_nodes, k]`` or ``[num_nodes, k, c]``, or :class:`Pairs`.
        named: the graphs that were encoded.
        name: start of the columns' names.
        settings: complete description of the encoding, kept in parquet, npz and pt files.
    """
    path = Path(path)
    check_output(path, isinstance(values, Pairs))
    ending = _ending(path)
    if path == STANDARD_STREAM:
        with naming_disk_errors("standard output"):
            _write_csv(sys.stdout.buffer, _columns(values, named, name), ",")
            sys.stdout.buffer.flush()
    elif ending == ".npy" and isinstance(values, Tensor):
        # Both are complete before either is renamed; an error names the one that was asked for.
        with replacing(path) as numbers, replacing(output_files(path)[1]) as names:
            _csv(names, _name_columns(named))
            _npy(numbers, values.cpu().numpy())
    else:
        with replacing(path) as file:
            if ending == ".npz":
                _npz(file, values, named, settings)
            elif ending == ".pt":
                _pt(file, values, named, settings)
            elif ending == ".parquet":
                _parquet(file, _columns(values, named, name), settings)
            else:
                _csv(file, _columns(values, named, name), ending)


def _columns(values: Tensor | Pairs, named: NamedGraphs, name: str) -> dict[str, Any]:
    if isinstance(values, Tensor):
        return _name_columns(named) | _value_columns(values, name)
    return _pair_columns(named) | _value_columns(values.values, name)


def _name_columns(named: NamedGraphs) -> dict[str, Any]:
    of_node = named.graph_of_node
    return {"node": named.nodes} if of_node is None else {"graph": of_node, "node": named.nodes}


def _pair_columns(named: NamedGraphs) -> dict[str, Any]:
    """The names of both nodes of every pair, row by row of each graph's matrix."""
    sizes = named.graph.sizes.cpu().numpy()
    starts = named.graph.ptr[:-1].cpu().numpy()
    rows = [start + np.arange(size) for start, size in zip(starts, sizes, strict=True)]
    source = np.concatenate([np.repeat(row, len(row)) for row in rows]) if rows else np.empty(0, np.int64)
    target = np.concatenate([np.tile(row, len(row)) for row in rows]) if rows else np.empty(0, np.int64)
    ends = {"source": named.nodes[source], "target": named.nodes[target]}
    return ends if named.graphs is None else {"graph": np.repeat(named.graphs, sizes**2), **ends}


def _value_columns(values: Tensor, name: str) -> dict[str, Any]:
    array = values.cpu().numpy()
    return {"_".join([name, *map(str, place)]): array[:, *place] for place in np.ndindex(*array.shape[1:])}


def _arrays(values: Tensor | Pairs, named: NamedGraphs) -> dict[str, Any]:
    arrays = _name_columns(named) | {"ptr": named.graph.ptr.cpu().numpy()}
    if isinstance(values, Tensor):
        return arrays | {"encoding": values.cpu().numpy()}
    if named.graphs is None:
        return arrays | {"encoding": values.matrices()[0].cpu().numpy()}
    return arrays | {"encoding": values.values.cpu().numpy(), "matrix_ptr": values.ptr.cpu().numpy()}


def _npy(file: Path, array: Any) -> None:
    with open(file, "wb") as out:
        # NumPy writes to a real file by itself, and says of a full disk only how many items are missing.
        np.save(SimpleNamespace(write=out.write), array, allow_pickle=False)


def _npz(file: Path, values: Tensor | Pairs, named: NamedGraphs, settings: str) -> None:
    with open(file, "wb") as out:
        np.savez(out, **_arrays(values, named), settings=np.array(settings))


def _pt(file: Path, values: Tensor | Pairs, named: NamedGraphs, settings: str) -> None:
    held = {
        key: array.tolist() if array.dtype.kind == "U" else torch.from_numpy(np.ascontiguousarray(array))
        for key, array in _arrays(values, named).items()
    }
    with open(file, "wb") as out:
        torch.save({**held, "settings": settings}, out)


def _parquet(file: Path, columns: dict[str, Any], settings: str = "") -> None:
    arrow = _pyarrow()
    arrow.parquet.write_table(_table(columns, settings), file)


def _table(columns: dict[str, Any], settings: str) -> Any:
    return _pyarrow().table(columns).replace_schema_metadata({"gape.encoding": settings})


class ParquetBlocks:
    """Write a parquet file as :func:`write_encoding` does, block by block; a context manager.

    The same blocks give the same bytes. Nothing is written before the first block.

    Args:
        file: the file; give it the name of :func:`replacing` to write it whole or not at all.
        name: start of the columns' names.
        settings: complete description of the encoding.
    """

    def __init__(self, file: Path, name: str, settings: str) -> None:
        self.file, self.name, self.settings = file, name, settings
        self.schema: Any = None
        self._writer: Any = None

    def write(self, values: Tensor | Pairs, named: NamedGraphs) -> None:
        """Append a block; raise if its names are of another type than those before."""
        columns = _columns(values, named, self.name)
        table = _table(columns, self.settings)
        if self.schema is None:
            self.schema = table.schema
            # Names repeat, values do not.
            names = [name for name in table.schema.names if name in ("graph", "node", "source", "target")]
            self._writer = _pyarrow().parquet.ParquetWriter(self.file, self.schema, use_dictionary=names)
        for before, now in zip(self.schema, table.schema, strict=True):
            if before.type != now.type:
                first = columns[now.name][0]
                raise ValueError(f"column {now.name} is {before.type} at first and {now.type} from {str(first)!r} on")
        self._writer.write_table(table)

    def __enter__(self) -> ParquetBlocks:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._writer is not None:
            # After an error the file is thrown away, and closing it may fail in the same way again.
            with suppress(OSError) if kind is not None else nullcontext():
                self._writer.close()


def _csv(file: Path, columns: dict[str, Any], ending: str = ".csv") -> None:
    delimiter = "\t" if ending.startswith(".tsv") else ","
    with open(file, "wb") as out:
        if not ending.endswith(".gz"):
            _write_csv(out, columns, delimiter)
            return
        with gzip.GzipFile(fileobj=out, mode="wb", filename="", mtime=0) as packed:  # the same bytes every time
            _write_csv(packed, columns, delimiter)


def _write_csv(out: BinaryIO | gzip.GzipFile, columns: dict[str, Any], delimiter: str) -> None:
    arrow = _pyarrow()
    plain = arrow.csv.WriteOptions(include_header=False, quoting_style="needed", delimiter=delimiter)
    # PyArrow would put the header in quotation marks. These names need none.
    out.write((delimiter.join(columns) + "\n").encode())
    arrow.csv.write_csv(arrow.table(columns), out, plain)


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("writing parquet, csv and tsv needs PyArrow: pip install 'gape[cli]'") from error
    return pyarrow
