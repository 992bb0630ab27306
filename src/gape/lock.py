"""One process at a time: a second one waits, or is told so. The operating system lets go when a process ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
