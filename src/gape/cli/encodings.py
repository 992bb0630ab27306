"""``gape encodings`` lists encodings and their settings; ``gape cache`` shows or clears their cache."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gape.cli.options import complete_encoding, option_name

if TYPE_CHECKING:
    from rich.table import Table


def encodings(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Explain every setting of these.", autocompletion=complete_encoding),
    ] = None,
) -> None:
    """List the encodings and their settings with defaults."""
    from rich.console import Console

    console = Console()
    if names:
        for table in [_explained(name) for name in names]:
            console.print(table)
    else:
        console.print(_overview())
        console.print(
            "For the settings of one encoding: gape encodings NAME; several side by side: NAME+NAME", highlight=False
        )


def _overview() -> Table:
    from rich.table import Table

    from gape.encodings import registry

    table = Table("name", "what it is", "settings and defaults", show_lines=True)
    first: dict[Any, str] = {}
    for name in registry.names():
        kind, fixed = registry.REGISTRY[name]
        settings = {setting.name: setting.default for setting in registry.settings_of(name)}
        if kind in first:
            what, settings = f"{first[kind]} with other defaults", dict(fixed)
        else:
            what = _plain(registry.summary(name))
        first.setdefault(kind, name)
        table.add_row(name, what, " ".join(f"{option_name(key)} {_shown(value)}" for key, value in settings.items()))
    return table


def _explained(name: str) -> Table:
    from rich.markup import escape
    from rich.table import Table

    from gape.encodings import registry

    title = f"{name}: {escape(_plain(registry.summary(name)))}"
    table = Table("setting", "default", "meaning", title=title, title_justify="left")
    for setting in registry.settings_of(name):
        choices = f"One of {', '.join(map(str, setting.choices))}: " if setting.choices else ""
        table.add_row(option_name(setting.name), _shown(setting.default), escape(choices + _plain(setting.help)))
    return table


def _shown(default: object) -> str:
    if isinstance(default, tuple):
        return ",".join(f"{value:g}" for value in default)
    text = str(default).removeprefix("torch.")
    return text.lower() if isinstance(default, bool) else text


def _plain(text: str) -> str:
    """Remove Sphinx markup.

    >>> _plain("``k`` of :class:`gape.Graph`, see :mod:`gape.graph.walk_matrix`")
    'k of gape.Graph, see gape.graph.walk_matrix'
    """
    return re.sub(r":\w+:`([^`]*)`", r"\1", text).replace("``", "")


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
