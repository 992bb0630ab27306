"""``gape cache``: show or clear the cache of encodings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def cache(
    clear: Annotated[bool, typer.Option("--clear", help="Remove all cached encodings.")] = False,
    folder: Annotated[
        Path | None,
        typer.Option(
            file_okay=False,
            metavar="FOLDER",
            help="Default: the folder encodings in $GAPE_CACHE, or in gape in the platform's cache folder.",
        ),
    ] = None,
) -> None:
    """Show the folder, number and size of the cached encodings, or clear them."""
    from gape.encodings.store import Store

    store = Store(folder)
    if clear:
        number = len(store)
        freed = store.clear()
        typer.echo(f"{store.folder}: removed {_entries(number)}, {_size(freed)}")
    else:
        typer.echo(f"{store.folder}: {_entries(len(store))}, {_size(store.size)}")


def _entries(number: int) -> str:
    return "1 encoding" if number == 1 else f"{number:,} encodings"


def _size(bytes_: float) -> str:
    """Format a number of bytes.

    >>> _size(0), _size(1536), _size(3 * 2**30)
    ('0 bytes', '1.5 KiB', '3.0 GiB')
    """
    units = ["GiB", "MiB", "KiB", "bytes"]
    while bytes_ >= 1024 and len(units) > 1:
        bytes_ /= 1024
        units.pop()
    return f"{bytes_:,.0f} {units[-1]}" if units[-1] == "bytes" else f"{bytes_:,.1f} {units[-1]}"
