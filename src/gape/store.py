"""Encodings kept on disk, found by what they were computed from.

An entry's name is a digest of the graphs' bytes, the complete ``repr`` of the encoding and the version of its
algorithm. Nothing is ever out of date: other graphs, settings or versions have other names.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
import warnings
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gape.encodings.base import Encoding
from gape.encodings.pairs import Pairs
from gape.files.atomic import replacing
from gape.interop import as_graph

# Raise it when the layout of an entry changes; entries of other layouts are then not found.
_LAYOUT = 1
# How much longer than looking up an entry computing it must take, for the entry to be kept.
WORTH = 5.0
# Seconds below which nothing is worth a file.
QUICK = 0.1
# Bytes a second at which entries are read and checked, measured on a warm disk cache of an ordinary machine.
READING = 1e9
# Seconds after which a temporary file counts as left behind by a process that was killed.
ABANDONED = 3600.0
# What zipfile, NumPy and Pairs raise on files that are cut short or have changed bits.
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, KeyError, NotImplementedError, OSError, RuntimeError, ValueError)


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


class Store:
    """A folder of encodings that were computed before.

    Several processes may use one folder at once: entries appear whole, by renaming, and are never changed. A damaged
    entry is noticed by its checksum and computed anew, with a warning.

    An entry is only kept if finding it again is worth it: if computing it took at least five times as long as looking
    it up will, and a tenth of a second. Measured on ZINC (12,000 molecules, 2 cores; computed, then found again):

    ======================  ========  =======  =================
    encoding                computed  found
    ======================  ========  =======  =================
    GAPE, 32 states         95 ms     31 ms    not worth keeping
    GAPE, closed readout    320 ms    30 ms    kept
    random walk, 20 steps   190 ms    19 ms    kept
    Laplacian, 8 vectors    490 ms    13 ms    kept
    spectrum, 10 pairs      550 ms    20 ms    kept
    ======================  ========  =======  =================

    Args:
        folder: where; :func:`default_folder` if ``None``.
        always: keep every entry, worth it or not.

    Example:
        >>> import tempfile, gape
        >>> from gape.encodings import RandomWalk
        >>> ring = gape.Graph.from_edges([(0, 1), (1, 2), (2, 0)], undirected=True)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = Store(folder, always=True)
        ...     first = store.encode(ring, RandomWalk(length=3))
        ...     again = store.encode(ring, RandomWalk(length=3))
        ...     torch.equal(first, again), len(store)
        (True, 1)
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None, *, always: bool = False) -> None:
        self.folder = default_folder() if folder is None else Path(folder).expanduser()
        self.always = always

    def encode(self, graphs: Any, encoding: Encoding) -> Any:
        """What ``encoding(graphs)`` gives, from disk if it was computed before, on the graphs' device."""
        graph = as_graph(graphs)
        if graph.edge_weight is not None and graph.edge_weight.requires_grad:
            return encoding(graph)  # a file has no gradient
        started = time.perf_counter()
        path = self.path(graph, encoding)
        found = _read(path)
        if found is not None:
            return found.to(graph.device)
        looked_up = time.perf_counter()
        found = encoding(graph)
        seconds = time.perf_counter() - looked_up
        if self.always or seconds >= max(QUICK, WORTH * (looked_up - started + _bytes(found) / READING)):
            try:
                _write(path, found)
            except OSError as error:
                # A full disk is no reason to lose what was just computed.
                warnings.warn(f"the encoding was computed but cannot be kept: {error}", stacklevel=2)
        return found

    def path(self, graphs: Any, encoding: Encoding) -> Path:
        """The file of an entry, whether it is there or not."""
        graph = as_graph(graphs)
        digest = hashlib.sha256(f"{_LAYOUT} {encoding.version} {encoding!r} {graph.num_nodes}".encode())
        for name in ("edge_index", "ptr", "edge_weight", "labels", "edge_type"):
            tensor: Tensor | None = getattr(graph, name)
            if tensor is not None:
                digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
                digest.update(tensor.detach().cpu().contiguous().numpy().data)
        return self.folder / f"{type(encoding).__name__.lower()}-{digest.hexdigest()[:32]}.npz"

    def entries(self) -> list[Path]:
        """The files of all entries."""
        return sorted(path for path in self.folder.glob("*-*.npz") if not path.name.startswith("."))

    def __len__(self) -> int:
        return len(self.entries())

    def __bool__(self) -> bool:
        return True  # an empty store is a store

    @property
    def size(self) -> int:
        """Bytes of all entries."""
        sizes = 0
        for path in self.entries():
            with suppress(FileNotFoundError):  # another process cleared it just now
                sizes += path.stat().st_size
        return sizes

    def clear(self) -> int:
        """Remove all entries, also what killed processes left half-written; say how many bytes that freed."""
        freed = 0
        for path in [*self.entries(), *self.folder.glob(".*.npz.*.part")]:
            try:
                about = path.stat()
                # A young temporary file may be one that another process is writing right now.
                if path.suffix == ".part" and time.time() - about.st_mtime < ABANDONED:
                    continue
                path.unlink()
                freed += about.st_size
            except FileNotFoundError:  # another process cleared it just now
                continue
        return freed

    def __repr__(self) -> str:
        return f"Store({str(self.folder)!r}, always={self.always})"


def _tensors(found: Tensor | Pairs) -> dict[str, Tensor]:
    return {"values": found} if isinstance(found, Tensor) else {"values": found.values, "sizes": found.sizes}


def _bytes(found: Tensor | Pairs) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in _tensors(found).values())


def _write(path: Path, found: Tensor | Pairs) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {name: tensor.detach().cpu().numpy() for name, tensor in _tensors(found).items()}
    with replacing(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, **arrays)


def _read(path: Path) -> Tensor | Pairs | None:
    """The entry, or ``None`` if there is none or it is damaged: a zip file has a CRC-32 of each of its members."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            tensors = {name: torch.from_numpy(arrays[name]) for name in arrays.files}
        return Pairs(tensors["values"], tensors["sizes"]) if "sizes" in tensors else tensors["values"]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except _DAMAGE as error:
        warnings.warn(f"computing anew, since {path} is damaged: {error}", stacklevel=3)
        return None
