"""Generated graphs are kept on disk, under a name made from the settings that generated them."""

import dataclasses
import hashlib
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from gape._internal.files import cache_folder, file_lock, replacing
from gape.data.flat import FlatGraphs

Piece = TypeVar("Piece")

# Part of every key: raise it when a generator or the layout changes, and old files are left alone.
FORMAT = 1


def write_graphs(path: Path, graphs: FlatGraphs, settings: str) -> None:
    """Write them whole or not at all, so that no reader sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Any] = {
        field.name: getattr(graphs, field.name)
        for field in dataclasses.fields(graphs)
        if getattr(graphs, field.name) is not None
    }
    with replacing(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, settings=np.array(settings), **arrays)


def read_graphs(path: Path) -> FlatGraphs:
    """Read what :func:`write_graphs` wrote. No pickle is involved."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return FlatGraphs(**{key: file[key] for key in file.files if key != "settings"})
    except (zipfile.BadZipFile, ValueError, TypeError, EOFError) as error:
        raise ValueError(f"cannot read cached graphs {path}: {error}. Delete the file to make it anew") from error


def cache_path(settings: object, folder: Path | None = None) -> Path:
    """The file that belongs to these settings."""
    key = hashlib.sha256(_text(settings).encode()).hexdigest()[:16]
    return (folder or cache_folder("data")) / f"{type(settings).__name__.lower()}-{key}.npz"


def parts_folder(settings: object, folder: Path | None = None) -> Path:
    """Where finished pieces of that file are kept while it is being made, so that an interrupted run goes on."""
    return cache_path(settings, folder).with_suffix(".parts")


def _text(settings: object) -> str:
    return f"{settings!r} format={FORMAT}"


@dataclasses.dataclass(frozen=True)
class Kept(Generic[Piece]):
    """A function from pieces to graphs whose results are kept in ``folder``, under the number of the piece."""

    work: Callable[[Piece], FlatGraphs]
    folder: Path | None

    def __call__(self, numbered: tuple[int, Piece]) -> FlatGraphs:
        """Read result ``number`` if it is there, else make and keep it."""
        number, piece = numbered
        if self.folder is None:
            return self.work(piece)
        path = self.folder / f"{number:06d}.npz"
        if path.is_file():
            return read_graphs(path)
        graphs = self.work(piece)
        write_graphs(path, graphs, "a part")
        return graphs


def cached(settings: object, make: Callable[[], FlatGraphs], folder: Path | None = None) -> FlatGraphs:
    """What ``make()`` gives, from disk if the same settings were made before.

    Args:
        settings: a frozen dataclass whose ``repr`` is complete: it is the key.
        make: called when there is no file yet.
        folder: default :func:`~gape._internal.files.cache_folder`.
    """
    path = cache_path(settings, folder)
    if path.is_file():
        return read_graphs(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(path.with_suffix(".lock")):
        if path.is_file():  # another process has made it meanwhile
            return read_graphs(path)
        graphs = make()
        write_graphs(path, graphs, _text(settings))
        shutil.rmtree(parts_folder(settings, folder), ignore_errors=True)
    return graphs
