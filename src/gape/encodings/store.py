"""Encodings kept on disk, found by what they were computed from.

An entry's name is a digest of the graphs' bytes, the complete ``repr`` of the encoding and the version of its
algorithm. Nothing is ever out of date: other graphs, settings or versions have other names.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gape._internal.files import NPZ_ERRORS, cache_folder, replacing
from gape._internal.warnings import warn_caller
from gape.encodings import Encoding, Pairs, encode
from gape.graph.convert import as_graph
from gape.graph.graph import Graph

# Raise it when the layout of an entry changes; entries of other layouts are then not found.
_LAYOUT = 1
# How much longer than looking up an entry computing it must take, for the entry to be kept.
WORTH = 5.0
# Seconds below which nothing is worth a file.
QUICK = 0.1
# Bytes a second at which entries are read and checked at best: what would be too slow even so is not written.
READING = 1e9
# Seconds after which a temporary file counts as left behind by a process that was killed.
ABANDONED = 3600.0
# The files of a store, among which others may lie.
_ENTRY = re.compile(r"\w+-[0-9a-f]{32}\.npz")
_HALF = re.compile(r"\.\w+-[0-9a-f]{32}\.npz\.")


class Store:
    """A folder of encodings that were computed before.

    Several processes may use one folder at once: entries appear whole, by renaming, and are never changed. A damaged
    entry is noticed by its checksum and computed anew, with a warning.

    An entry is only kept if finding it again is worth it: if computing it took at least five times as long as looking
    it up does, which is tried once, and a tenth of a second. What a computation warned of is not said again when its
    result is found. Measured on ZINC (12,000 molecules, 2 cores; computed, then found again):

    =====================  ========  ========  =====
    encoding               computed  found     kept
    =====================  ========  ========  =====
    GAPE, 32 states        114 ms    40 ms     no
    GAPE, closed readout   312 ms    26 ms     yes
    random walk, 20 steps  242 ms    31 ms     yes
    Laplacian, 8 vectors   524 ms    17 ms     yes
    spectrum, 10 pairs     567 ms    38 ms     yes
    shortest paths         216 ms    35 ms     yes
    degrees                16 ms     10 ms     no
    PageRank               259 ms    24 ms     yes
    PPRP, 20 powers        1,061 ms  25 ms     yes
    =====================  ========  ========  =====

    Args:
        folder: where; :func:`gape._internal.files.cache_folder` if ``None``.
        always: keep every entry, worth it or not.

    Example:
        >>> import tempfile, gape, torch
        >>> ring = gape.Graph.from_edges([(0, 1), (1, 2), (2, 0)], undirected=True)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     store = Store(folder, always=True)
        ...     first = gape.encode(ring, "rw", length=3, store=store)
        ...     again = gape.encode(ring, "rw", length=3, store=store)
        ...     torch.equal(first, again), len(store)
        (True, 1)
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None, *, always: bool = False) -> None:
        self.folder = cache_folder("encodings") if folder is None else Path(folder).expanduser()
        self.always = always

    def encode(self, graphs: Any, encoding: Encoding | str = "gape", **settings: Any) -> Any:
        """``gape.encode(graphs, encoding, store=self, **settings)``."""
        return encode(graphs, encoding, store=self, **settings)

    def find(self, graph: Graph, encoding: Encoding) -> Any:
        """What ``encoding(graph)`` gives, from disk if it was computed before."""
        if graph.edge_weight is not None and graph.edge_weight.requires_grad:
            return encoding(graph)  # a file has no gradient
        started = time.perf_counter()
        path = self.path(graph, encoding)
        found = read_entry(path)
        if found is not None:
            return found.to(graph.device)
        looked_up = time.perf_counter()
        found = encoding(graph)
        seconds = time.perf_counter() - looked_up
        lookup = looked_up - started
        if self.always or seconds >= max(QUICK, WORTH * (lookup + entry_bytes(found) / READING)):
            try:
                write_entry(path, found)
                written = time.perf_counter()
                read_entry(path)
                if not self.always and seconds < WORTH * (lookup + time.perf_counter() - written):
                    path.unlink(missing_ok=True)  # a slow disk, or a busy machine
            except OSError as error:
                # A full disk is no reason to lose what was just computed.
                warn_caller(f"the encoding was computed but cannot be kept: {error}")
        return found

    def path(self, graphs: Any, encoding: Encoding) -> Path:
        """The file of an entry, whether it is there or not."""
        graph = as_graph(graphs)
        # With its module: somebody's own RandomWalk is not ours.
        what = f"{type(encoding).__module__} {encoding!r} version {encoding.version}"
        digest = hashlib.sha256(f"{_LAYOUT} {what} {graph.num_nodes}".encode())
        for name in ("edge_index", "ptr", "edge_weight", "labels", "edge_type"):
            tensor: Tensor | None = getattr(graph, name)
            if tensor is not None:
                digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
                # As bytes: NumPy does not have every type of PyTorch's.
                digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
        return self.folder / f"{type(encoding).__name__.lower()}-{digest.hexdigest()[:32]}.npz"

    def entries(self) -> list[Path]:
        """The files of all entries."""
        return sorted(path for path in self.folder.glob("*.npz") if _ENTRY.fullmatch(path.name))

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
        halves = (path for path in self.folder.glob(".*.part") if _HALF.match(path.name))
        for path in [*self.entries(), *halves]:
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


def entry_bytes(found: Tensor | Pairs) -> int:
    """Bytes of the numbers of an encoding."""
    return sum(tensor.numel() * tensor.element_size() for tensor in _tensors(found).values())


def write_entry(path: Path, found: Tensor | Pairs) -> None:
    """Write an encoding whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {name: tensor.detach().cpu().numpy() for name, tensor in _tensors(found).items()}
    with replacing(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, **arrays)


def read_entry(path: Path) -> Tensor | Pairs | None:
    """The entry, or ``None`` if there is none or it is damaged: a zip file has a CRC-32 of each of its members."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            tensors = {name: torch.from_numpy(arrays[name]) for name in arrays.files}
        return Pairs(tensors["values"], tensors["sizes"]) if "sizes" in tensors else tensors["values"]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except NPZ_ERRORS as error:
        fault = "cannot be read" if isinstance(error, PermissionError) else "is damaged"
        warn_caller(f"computing anew, since {path} {fault}: {error}")
        return None
