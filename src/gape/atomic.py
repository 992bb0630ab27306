"""Files that are there whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path in the same folder, renamed to ``path`` if the block ends well and removed if it does not.

    Renaming within a folder is one step for the file system: other processes see the old file or the new one. The
    name is our own and not of :mod:`tempfile`, whose files others may not read.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with replacing(Path(folder, "greeting.txt")) as temporary:
        ...         _ = temporary.write_text("hello")
        ...     os.listdir(folder)
        ['greeting.txt']
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
