"""Write encodings with the names of their nodes, as parquet, csv, npz or npy."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from gape._internal.files import check_writable, replacing
from gape.encodings.pairs import Pairs
from gape.io.named_graphs import NamedGraphs

ENDINGS = (".parquet", ".csv", ".npz", ".npy")


def check_output(path: str | os.PathLike[str], pairwise: bool) -> None:
    """Raise if :func:`write_encoding` could not write to ``path``; call it before computing anything."""
    path = Path(path)
    if path.suffix not in ENDINGS:
        raise ValueError(f"{path}: cannot write files with extension {path.suffix!r}; known are {', '.join(ENDINGS)}")
    if pairwise and path.suffix != ".npz":
        raise ValueError(
            f"{path}: this encoding has one value per pair of nodes, which {path.suffix} files cannot hold; "
            "write it to a .npz file"
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
                  are in the schema's metadata
    ``.csv``      the same columns
    ``.npz``      arrays ``encoding`` ``[num_nodes, k]``, ``node``, ``graph``, ``ptr`` and ``settings``. Encodings of
                  pairs: ``encoding`` ``[n, n, …]`` for one graph; for many, flat ``[Σ n², …]`` with ``matrix_ptr``,
                  where graph ``i`` is ``encoding[matrix_ptr[i]:matrix_ptr[i + 1]].reshape(n, n, …)``
    ``.npy``      the array ``[num_nodes, k]``; names go to a second file, ``….nodes.csv``, line by line
    ============  =====================================================================================================

    Args:
        path: the file.
        values: ``[num_nodes, k]`` or ``[num_nodes, k, c]``, or :class:`Pairs` for ``.npz``.
        named: the graphs that were encoded.
        name: start of the columns' names.
        settings: complete description of the encoding, kept in parquet and npz files.
    """
    path = Path(path)
    check_output(path, isinstance(values, Pairs))
    if path.suffix == ".npy" and isinstance(values, Tensor):
        # Both are complete before either is renamed.
        with replacing(output_files(path)[1]) as names, replacing(path) as numbers:
            _csv(names, _name_columns(named))
            _npy(numbers, values.cpu().numpy())
    elif path.suffix == ".npz":
        _replace(path, lambda file: _npz(file, values, named, settings))
    elif isinstance(values, Tensor):
        columns = _name_columns(named) | _value_columns(values, name)
        write = _parquet if path.suffix == ".parquet" else _csv
        _replace(path, lambda file: write(file, columns, settings))


def _replace(path: Path, write: Callable[[Path], None]) -> None:
    with replacing(path) as temporary:
        write(temporary)


def _name_columns(named: NamedGraphs) -> dict[str, Any]:
    of_node = named.graph_of_node
    return {"node": named.nodes} if of_node is None else {"graph": of_node, "node": named.nodes}


def _value_columns(values: Tensor, name: str) -> dict[str, Any]:
    array = values.cpu().numpy()
    return {"_".join([name, *map(str, place)]): array[:, *place] for place in np.ndindex(*array.shape[1:])}


def _npy(file: Path, array: Any) -> None:
    with open(file, "wb") as out:
        np.save(out, array, allow_pickle=False)


def _npz(file: Path, values: Tensor | Pairs, named: NamedGraphs, settings: str) -> None:
    arrays = _name_columns(named) | {"ptr": named.graph.ptr.cpu().numpy(), "settings": np.array(settings)}
    if isinstance(values, Tensor):
        arrays["encoding"] = values.cpu().numpy()
    elif named.graphs is None:
        arrays["encoding"] = values.matrices()[0].cpu().numpy()
    else:
        arrays |= {"encoding": values.values.cpu().numpy(), "matrix_ptr": values.ptr.cpu().numpy()}
    with open(file, "wb") as out:
        np.savez(out, **arrays)


def _parquet(file: Path, columns: dict[str, Any], settings: str = "") -> None:
    arrow = _pyarrow()
    table = arrow.table(columns).replace_schema_metadata({"gape.encoding": settings})
    arrow.parquet.write_table(table, file)


def _csv(file: Path, columns: dict[str, Any], settings: str = "") -> None:
    arrow = _pyarrow()
    plain = arrow.csv.WriteOptions(include_header=False, quoting_style="needed")
    with open(file, "wb") as out:
        # PyArrow would put the header in quotation marks. These names need none.
        out.write((",".join(columns) + "\n").encode())
        arrow.csv.write_csv(arrow.table(columns), out, plain)


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.csv
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("writing parquet and csv needs PyArrow: pip install 'gape[cli]'") from error
    return pyarrow
