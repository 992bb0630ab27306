"""Generated graphs are kept on disk, under a name made from the settings that generated them."""

import dataclasses
import hashlib
import os
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from gape.data.flat import FlatGraphs
from gape.data.folder import cache_folder

# Part of every key: raise it when a generator or the layout changes, and old files are left alone.
FORMAT = 1


def write_graphs(path: Path, graphs: FlatGraphs, settings: str) -> None:
    """Write to a temporary name in the same folder, then rename, so that no reader sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {
        field.name: getattr(graphs, field.name)
        for field in dataclasses.fields(graphs)
        if getattr(graphs, field.name) is not None
    }
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, settings=np.array(settings), **arrays)
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)


def read_graphs(path: Path) -> FlatGraphs:
    """Read what :func:`write_graphs` wrote. No pickle is involved."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return FlatGraphs(**{key: file[key] for key in file.files if key != "settings"})
    except (zipfile.BadZipFile, ValueError, TypeError, EOFError) as error:
        raise ValueError(f"cannot read cached graphs {path}: {error}. Delete the file to make it anew") from error


def cached(settings: object, make: Callable[[], FlatGraphs], folder: Path | None = None) -> FlatGraphs:
    """What ``make()`` gives, from disk if the same settings were made before.

    Args:
        settings: a frozen dataclass whose ``repr`` is complete: it is the key.
        make: called when there is no file yet.
        folder: default :func:`~gape.data.folder.cache_folder`.
    """
    text = f"{settings!r} format={FORMAT}"
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    path = (folder or cache_folder()) / f"{type(settings).__name__.lower()}-{key}.npz"
    if path.is_file():
        return read_graphs(path)
    graphs = make()
    write_graphs(path, graphs, text)
    return graphs
