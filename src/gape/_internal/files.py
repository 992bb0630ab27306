"""Atomic file replacement, inter-process locks, the cache folder, and files that come with the package."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import sys
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path

from filelock import FileLock, Timeout

from gape._internal.warnings import warn_caller

#: Exceptions that reading a damaged ``.npz`` file raises: cut short, or with changed bits.
NPZ_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    KeyError,
    NotImplementedError,  # raised by zipfile for an unknown compression method
    OSError,
    RuntimeError,
    ValueError,
    tokenize.TokenError,
)


#: Errors of a disk that is full, over its quota, read-only or failing.
DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EFBIG)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise if no file can be written at ``path``; call it before the work whose result goes there.

    Example:
        >>> check_writable("/dev/null")
        Traceback (most recent call last):
        ValueError: /dev/null is a folder or device; name a regular file
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is a folder or device; name a regular file")
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} for {path.name}; make it first")


def check_free_space(folder: str | os.PathLike[str], needed: float, what: str) -> None:
    """Raise if the disk of ``folder`` has less than ``needed`` bytes free; call it before the work that fills it.

    >>> check_free_space("/", 2**60, "the graph")
    Traceback (most recent call last):
    OSError: the graph needs about 1073741824.0 GiB of disk, and / has ... GiB free; make room, or ...
    """
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise OSError(
            f"{what} needs about {needed / 2**30:.1f} GiB of disk, and {folder} has {free / 2**30:.1f} GiB free; make "
            "room, or name a folder on another disk"
        )


@contextmanager
def naming_disk_errors(name: str, consequence: str = "") -> Iterator[None]:
    """Name the file in errors of the disk: the system's message has no name, or a temporary one.

    Args:
        name: of the file.
        consequence: appended to the message, such as "; nothing was written".

    Example:
        >>> with naming_disk_errors("pe.npy"), open("/dev/full", "w") as file:
        ...     _ = file.write("hello")
        Traceback (most recent call last):
        OSError: [Errno 28] No space left on device: 'pe.npy'
    """
    try:
        yield
    except (OSError, RuntimeError) as error:
        # torch.save, given an open file, raises an error of its own while it handles that of the disk.
        for found in (error, error.__context__):
            if isinstance(found, OSError) and found.errno in DISK_ERRORS:
                raise OSError(found.errno, f"{os.strerror(found.errno)}{consequence}", name) from error
        raise


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Write a file whole or not at all: yield a temporary path in the same folder, renamed to ``path`` on success.

    The rename is atomic, and the data is flushed to disk first, so that other processes, and a restart after a power
    failure, see the old file or the new one. :mod:`tempfile` is not used because other users may not read its files.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with replacing(Path(folder, "greeting.txt")) as temporary:
        ...         _ = temporary.write_text("hello")
        ...     os.listdir(folder)
        ['greeting.txt']
    """
    path = Path(path).resolve()  # a link stays, and what it points to is replaced
    check_writable(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        with naming_disk_errors(str(path), "; nothing was written"):
            yield temporary
            with open(temporary, "rb+") as file:
                os.fsync(file.fileno())
            os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """Lock a run folder for this process; raise a ``ValueError`` if another process holds it.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with folder_lock(Path(folder)):
        ...         with folder_lock(Path(folder)):
        ...             pass
        Traceback (most recent call last):
        ValueError: ... is in use by another process; wait for it, or take another folder
    """
    try:
        with file_lock(folder / ".lock", wait=False):
            yield
    except Timeout as error:
        raise ValueError(f"{folder} is in use by another process; wait for it, or take another folder") from error


@contextmanager
def file_lock(path: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold an inter-process lock on ``path``; released when the process exits.

    Args:
        path: of the lock file, which has no other use. Give it a hidden name: it stays behind, since processes that
            wait for a file that is removed would no longer exclude those that create a new one.
        wait: whether to wait for another holder, with a warning, or raise :class:`filelock.Timeout` at once.
    """
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        if not wait:
            raise
        warn_caller(f"waiting for another process that works on {path.parent}, since it holds {path.name}")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def cache_folder(kind: str) -> Path:
    """Return the cache folder of one kind of data, such as ``"encodings"`` or ``"data"``; it need not exist yet.

    It lies in ``$GAPE_CACHE`` if that is set, otherwise in ``gape`` below the platform's cache folder:
    ``$XDG_CACHE_HOME`` or ``~/.cache``, on macOS ``~/Library/Caches``, on Windows ``%LOCALAPPDATA%``.

    Example:
        >>> cache_folder("encodings").name
        'encodings'
    """
    chosen = os.environ.get("GAPE_CACHE")
    if chosen:
        return Path(chosen).expanduser() / kind
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "gape" / kind


@cache
def asset(package: str, name: str) -> str:
    """Return a text file of a package's folder ``assets``.

    Example:
        >>> asset("gape._internal", "style.css").startswith("/*")
        True
    """
    return (files(package) / "assets" / name).read_text(encoding="utf-8")


def page_style() -> str:
    """Return the style sheet that all pages share: colours in light and dark, type, tables."""
    return asset("gape._internal", "style.css")
