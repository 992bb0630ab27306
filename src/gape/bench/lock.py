"""One process a run: a second one that asks for the same folder is told so."""

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
    """Hold the folder. The operating system lets go of it when the process ends, however it ends.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with locked(Path(folder)):
        ...         with locked(Path(folder)):
        ...             pass
        Traceback (most recent call last):
        ValueError: ... is being run by another process; wait for it, or give another --out
    """
    with open(folder / ".lock", "w", encoding="utf-8") as file:
        if fcntl is not None:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise ValueError(
                    f"{folder} is being run by another process; wait for it, or give another --out"
                ) from error
        yield
