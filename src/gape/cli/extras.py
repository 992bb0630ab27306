"""Packages that only some commands need, and what to install where one is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Say which extra to install where an import inside fails; also a decorator of commands.

    Example:
        >>> with needs("bench"):
        ...     import no_such_package
        Traceback (most recent call last):
        ImportError: no_such_package is not installed: pip install 'gape[bench]'
    """
    try:
        yield
    except ImportError as error:
        # What the library says itself has the failed import as its cause.
        missing = error if isinstance(error, ModuleNotFoundError) else error.__cause__
        package = (missing.name or "").partition(".")[0] if isinstance(missing, ModuleNotFoundError) else ""
        if package in ("", "gape"):
            raise
        raise ImportError(f"{package} is not installed: pip install 'gape[{extra}]'") from error
