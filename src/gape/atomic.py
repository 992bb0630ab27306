"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


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
