"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import secrets
import sys
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse a path that no file can be put at, before the work of which the file is the end.

    Example:
        >>> check_writable("/dev/null")
        Traceback (most recent call last):
        ValueError: /dev/null is no file that could be replaced (a folder or a device); name another one
    """
    path = Path(path)
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is no file that could be replaced (a folder or a device); name another one")
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} for {path.name}; make it first")


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path in the same folder, renamed to ``path`` if the block ends well and removed if it does not.

    Renaming within a folder is one step for the file system: other processes see the old file or the new one. What
    was written is on the disk before, so that after a failure of power, too, it is one of them. The name is our own
    and not of :mod:`tempfile`, whose files others may not read.

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
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


try:
    import fcntl
except ImportError:  # Windows has no such locks; there it is up to the user
    fcntl = None  # type: ignore[assignment]


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder of a run, or complain that another process does.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with locked(Path(folder)):
        ...         with locked(Path(folder)):
        ...             pass
        Traceback (most recent call last):
        ValueError: ... is being run by another process; wait for it, or take another folder
    """
    try:
        with waiting(folder / ".lock", patient=False):
            yield
    except BlockingIOError as error:
        raise ValueError(f"{folder} is being run by another process; wait for it, or take another folder") from error


@contextmanager
def waiting(path: Path, *, patient: bool = True) -> Iterator[None]:
    """Hold a file that is there only for that; wait for whoever holds it, or raise ``BlockingIOError``.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with waiting(Path(folder, ".lock")):
        ...         print(os.listdir(folder))
        ...     print(os.listdir(folder))
        ['.lock']
        []
    """
    if fcntl is None:
        yield
        return
    how = fcntl.LOCK_EX if patient else fcntl.LOCK_EX | fcntl.LOCK_NB
    held = False
    while not held:
        with open(path, "w", encoding="utf-8") as file:
            fcntl.flock(file, how)
            # Whoever held it has removed it: another process may hold a new file by now.
            if held := _is_at(path, file.fileno()):
                try:
                    yield
                finally:
                    path.unlink(missing_ok=True)


def _is_at(path: Path, file: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(file))
    except FileNotFoundError:
        return False


def cache_folder(kind: str) -> Path:
    """The folder of cached things of a kind, such as ``"encodings"`` or ``"data"``.

    It lies in the folder that the environment variable ``GAPE_CACHE`` names; without it, in ``gape`` in the platform's
    folder for caches: ``$XDG_CACHE_HOME`` or ``~/.cache``, on macOS ``~/Library/Caches``, on Windows
    ``%LOCALAPPDATA%``. Made by whoever writes there first.

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
