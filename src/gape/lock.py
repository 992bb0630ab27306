"""One process at a time: a second one waits, or is told so. The operating system lets go when a process ends."""

from __future__ import annotations

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
        ValueError: ... is being run by another process; wait for it, or give another --out
    """
    try:
        with waiting(folder / ".lock", patient=False):
            yield
    except BlockingIOError as error:
        raise ValueError(f"{folder} is being run by another process; wait for it, or give another --out") from error


@contextmanager
def waiting(path: Path, *, patient: bool = True) -> Iterator[None]:
    """Hold a file, made for it, that nobody else needs; wait for whoever holds it, or raise ``BlockingIOError``."""
    with open(path, "w", encoding="utf-8") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX if patient else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
