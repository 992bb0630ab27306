"""Encodings kept on disk, found by what they were computed from.

An entry's name is a digest of the graphs' bytes, the complete ``repr`` of the encoding and the version of its
algorithm. Nothing is ever out of date: other graphs, settings or versions have other names.
"""

from __future__ import annotations

import hashlib
import os
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gape.encodings.base import Encoding
from gape.encodings.pairs import Pairs
from gape.files.atomic import replacing
from gape.graph import Graph
from gape.interop import as_graph

# Raise it when the layout of an entry changes; entries of other layouts are then not found.
_LAYOUT = 1


def default_folder() -> Path:
    """``$GAPE_CACHE``, else the platform's folder for caches and there ``gape``; in both cases then ``encodings``."""
    chosen = os.environ.get("GAPE_CACHE")
    if chosen:
        return Path(chosen).expanduser() / "encodings"
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "gape" / "encodings"


@dataclass(frozen=True)
class Store:
    """A folder of encodings that were computed before.

    Several processes may use one folder at once: entries appear whole, by renaming, and are never changed. An entry that
    is damaged is noticed by its checksum and computed anew.

    Args:
        folder: where; :func:`default_folder` if ``None``.

    Example:
        >>> import tempfile, gape
        >>> from gape.encodings import RandomWalk
        >>> ring = gape.Graph.from_edges([(0, 1), (1, 2), (2, 0)], undirected=True)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = Store(folder)
        ...     first = store.encode(ring, RandomWalk(length=3))
        ...     again = store.encode(ring, RandomWalk(length=3))
        ...     torch.equal(first, again), len(store)
        (True, 1)
    """

    folder: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "folder", default_folder() if self.folder is None else Path(self.folder).expanduser())

    def encode(self, graphs: Any, encoding: Encoding) -> Any:
        """What ``encoding(graphs)`` gives, from disk if it was computed before, on the graphs' device."""
        graph = as_graph(graphs)
        path = self.path(graph, encoding)
        found = _read(path)
        if found is None:
            found = encoding(graph)
            _write(path, found)
        return found.to(graph.device)

    def path(self, graphs: Any, encoding: Encoding) -> Path:
        """The file of an entry, whether it is there or not."""
        graph = as_graph(graphs)
        digest = hashlib.sha256(f"{_LAYOUT} {encoding.version} {encoding!r} {graph.num_nodes}".encode())
        for name in ("edge_index", "ptr", "edge_weight", "labels", "edge_type"):
            tensor: Tensor | None = getattr(graph, name)
            if tensor is not None:
                digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
                digest.update(tensor.detach().cpu().contiguous().numpy())
        return Path(self.folder or "") / f"{type(encoding).__name__.lower()}-{digest.hexdigest()[:32]}.npz"

    def entries(self) -> Iterator[Path]:
        """The files of all entries."""
        folder = Path(self.folder or "")
        return (path for path in sorted(folder.glob("*-*.npz")) if not path.name.startswith("."))

    def __len__(self) -> int:
        return sum(1 for _ in self.entries())

    @property
    def size(self) -> int:
        """Bytes of all entries."""
        return sum(path.stat().st_size for path in self.entries())

    def clear(self) -> int:
        """Remove all entries, also what killed processes left half-written; say how many bytes that freed."""
        freed = 0
        for path in [*self.entries(), *Path(self.folder or "").glob(".*.npz.*.part")]:
            try:
                size = path.stat().st_size
                path.unlink()
                freed += size
            except FileNotFoundError:  # another process cleared it just now
                continue
        return freed


def _write(path: Path, found: Tensor | Pairs) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays = {"values": found} if isinstance(found, Tensor) else {"values": found.values, "sizes": found.sizes}
    with replacing(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, **{name: tensor.detach().cpu().numpy() for name, tensor in arrays.items()})  # type: ignore[arg-type]


def _read(path: Path) -> Tensor | Pairs | None:
    """The entry, or ``None`` if there is none or it is damaged: a zip file has a CRC-32 of each of its members."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            tensors = {name: torch.from_numpy(arrays[name]) for name in arrays.files}
    except FileNotFoundError:
        return None
    except (zipfile.BadZipFile, ValueError, EOFError, OSError, KeyError, NotImplementedError, RuntimeError):
        return None
    if "values" not in tensors:
        return None
    return Pairs(tensors["values"], tensors["sizes"]) if "sizes" in tensors else tensors["values"]
