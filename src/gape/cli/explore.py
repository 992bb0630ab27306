"""``gape explore``: a graph and its encodings as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def explore(
    source: Annotated[
        str | None,
        typer.Argument(metavar="INPUT", help="A file as for `gape encode`, or the name of an example, see --list."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The page. Default: the input's name with .html.")
    ] = None,
    encoding: Annotated[
        list[str] | None,
        typer.Option("--encoding", "-e", help="Encoding to show beside GAPE; may be repeated, see `gape encodings`."),
    ] = None,
    states: Annotated[int | None, typer.Option(help="States of the automaton shown first. Default: 16.")] = None,
    damping: Annotated[float | None, typer.Option(help="Its damping, relative to 1/ρ(A). Default: 0.9.")] = None,
    seed: Annotated[int | None, typer.Option(help="Its seed, 0 to 99. Default: 0.")] = None,
    undirected: Annotated[bool, typer.Option("--undirected", help="Take every edge in both directions.")] = False,
    graph: Annotated[str | None, typer.Option(help="Name of one graph, if the file has several.")] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the examples and exit.")] = False,
) -> None:
    """Write a page to explore a graph in the browser: one file, no server.

    Example: gape explore karate -o karate.html
    """
    from gape._internal.files import check_writable
    from gape.explorer import GALLERY
    from gape.explorer import explore as make_page

    if list_:
        width = max(map(len, GALLERY))
        for name, build in GALLERY.items():
            typer.echo(f"{name:<{width}}  {(build.__doc__ or '').splitlines()[0]}")
        return
    if source is None:
        raise ValueError(f"expected a file or an example, one of {', '.join(GALLERY)}; see `gape explore --help`")
    path = output or Path(f"{Path(source).name.partition('.')[0]}.html")
    check_writable(path)
    page = make_page(
        source,
        encodings=encoding or None,
        states=states,
        damping=damping,
        seed=seed,
        undirected=undirected,
        graph=graph,
    ).save(path)
    typer.echo(f"{page}: {page.stat().st_size / 2**20:.1f} MiB, open it in a browser")
