"""Cache of encodings on disk.

The key of an entry is a digest of the graphs' bytes, the complete ``repr`` of the encoding and the version of its
algorithm, so entries never become stale: other graphs, settings or versions have other keys.
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
from gape.encodings.base import Encoding
from gape.encodings.pairs import Pairs
from gape.graph.convert import as_graph
from gape.graph.graph import Graph

# Layout version of an entry, part of its key; raise it when the layout changes.
_LAYOUT = 1
# An entry is cached if computing it takes at least this many times as long as reading it,
MIN_SPEEDUP = 5.0
# and at least this many seconds.
MIN_SECONDS = 0.1
# Optimistic reading speed: an entry that is not worth caching even at this speed is not written.
MAX_READ_BYTES_PER_SECOND = 1e9
# Age in seconds from which a temporary file counts as left behind by a killed process.
STALE_SECONDS = 3600.0
# Names of entries and of their temporary files; other files in the folder are ignored.
_ENTRY = re.compile(r"\w+-[0-9a-f]{32}\.npz")
_TEMPORARY = re.compile(r"\.\w+-[0-9a-f]{32}\.npz\.")


class Store:
    """Folder that caches encodings.

    Several processes may share a folder: entries are written under a temporary name, renamed, and never changed. A
    damaged entry is detected by its checksum and recomputed, with a warning.

    Cheap results are not cached (unless ``always``). Warnings of a computation are not repeated when its result is read
    from the cache. Measured on ZINC (12,000 molecules, 2 cores):

    =====================  ========  ========  ======
    encoding               computed  read      cached
    =====================  ========  ========  ======
    GAPE, 32 states        114 ms    40 ms     no
    GAPE, closed readout   312 ms    26 ms     yes
    random walk, 20 steps  242 ms    31 ms     yes
    Laplacian, 8 vectors   524 ms    17 ms     yes
    spectrum, 10 pairs     567 ms    38 ms     yes
    shortest paths         216 ms    35 ms     yes
    degrees                16 ms     10 ms     no
    PageRank               259 ms    24 ms     yes
    PPRP, 20 powers        1,061 ms  25 ms     yes
    =====================  ========  ========  ======

    Args:
        folder: path of the folder; ``None`` for ``encodings`` in the user's cache folder (``$GAPE_CACHE``).
        always: cache cheap results too.

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
        """Call ``gape.encode(graphs, encoding, store=self, **settings)``."""
        from gape.encodings.encode import encode

        return encode(graphs, encoding, store=self, **settings)

    def find(self, graph: Graph, encoding: Encoding) -> Any:
        """Return ``encoding.compute(graph)``, from the cache if it is there."""
        if graph.edge_weight is not None and graph.edge_weight.requires_grad:
            return encoding.compute(graph)  # a cached result has no gradient
        started = time.perf_counter()
        path = self._path(graph, encoding)
        found = read_entry(path)
        if found is not None:
            return found.to(graph.device)
        looked_up = time.perf_counter()
        found = encoding.compute(graph)
        seconds = time.perf_counter() - looked_up
        lookup = looked_up - started
        fastest_read = lookup + entry_bytes(found) / MAX_READ_BYTES_PER_SECOND
        if self.always or seconds >= max(MIN_SECONDS, MIN_SPEEDUP * fastest_read):
            try:
                write_entry(path, found)
                written = time.perf_counter()
                read_entry(path)
                if not self.always and seconds < MIN_SPEEDUP * (lookup + time.perf_counter() - written):
                    path.unlink(missing_ok=True)  # a slow disk, or a busy machine
            except OSError as error:
                # A full disk must not lose the result.
                warn_caller(f"the encoding was computed but cannot be cached: {error}")
        return found

    def path(self, graphs: Any, encoding: Encoding) -> Path:
        """Return the path of an entry, which may or may not exist."""
        return self._path(as_graph(graphs), encoding)

    def _path(self, graph: Graph, encoding: Encoding) -> Path:
        # The module tells a user's class from one of ours with the same name.
        key = f"{type(encoding).__module__} {encoding!r} version {encoding.version}"
        digest = hashlib.sha256(f"{_LAYOUT} {key} {graph.num_nodes}".encode())
        for name in ("edge_index", "ptr", "edge_weight", "labels", "edge_type"):
            tensor: Tensor | None = getattr(graph, name)
            if tensor is not None:
                digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
                # As bytes, since NumPy lacks some dtypes of PyTorch.
                digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
        return self.folder / f"{type(encoding).__name__.lower()}-{digest.hexdigest()[:32]}.npz"

    def entries(self) -> list[Path]:
        """List the files of all entries."""
        return sorted(path for path in self.folder.glob("*.npz") if _ENTRY.fullmatch(path.name))

    def __len__(self) -> int:
        return len(self.entries())

    def __bool__(self) -> bool:
        return True  # an empty store is still a store

    @property
    def size(self) -> int:
        """Size of all entries in bytes."""
        sizes = 0
        for path in self.entries():
            with suppress(FileNotFoundError):  # another process removed it
                sizes += path.stat().st_size
        return sizes

    def clear(self) -> int:
        """Remove all entries and the temporary files of killed processes; returns the number of bytes freed."""
        freed = 0
        temporary = (path for path in self.folder.glob(".*.part") if _TEMPORARY.match(path.name))
        for path in [*self.entries(), *temporary]:
            try:
                about = path.stat()
                # Another process may still be writing a recent temporary file.
                if path.suffix == ".part" and time.time() - about.st_mtime < STALE_SECONDS:
                    continue
                path.unlink()
                freed += about.st_size
            except FileNotFoundError:  # another process removed it
                continue
        return freed

    def __repr__(self) -> str:
        return f"Store({str(self.folder)!r}, always={self.always})"


def _tensors(found: Tensor | Pairs) -> dict[str, Tensor]:
    return {"values": found} if isinstance(found, Tensor) else {"values": found.values, "sizes": found.sizes}


def entry_bytes(found: Tensor | Pairs) -> int:
    """Size of the tensors of an encoding in bytes."""
    return sum(tensor.numel() * tensor.element_size() for tensor in _tensors(found).values())


def write_entry(path: Path, found: Tensor | Pairs) -> None:
    """Write an encoding atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {name: tensor.detach().cpu().numpy() for name, tensor in _tensors(found).items()}
    with replacing(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, **arrays)


def read_entry(path: Path) -> Tensor | Pairs | None:
    """Read an entry; ``None`` if it does not exist or is damaged, which the zip file's CRC-32 checksums detect."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            tensors = {name: torch.from_numpy(arrays[name]) for name in arrays.files}
        return Pairs(tensors["values"], tensors["sizes"]) if "sizes" in tensors else tensors["values"]
    except (FileNotFoundError, NotADirectoryError):
        return None
    except NPZ_ERRORS as error:
        fault = "cannot be read" if isinstance(error, PermissionError) else "is damaged"
        warn_caller(f"recomputing, since {path} {fault}: {error}")
        return None
