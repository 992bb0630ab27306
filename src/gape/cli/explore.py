"""``gape explore``: a graph and its encodings as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gape.cli.options import (
    GRAPH_FILES,
    GraphColumn,
    NoHeader,
    SourceColumn,
    TargetColumn,
    Undirected,
    Unweighted,
    WeightColumn,
    complete_encoding,
    reading_options,
)


def explore(
    source: Annotated[
        str | None,
        typer.Argument(metavar="INPUT", help=f"The name of an example, see --list, or a file: {GRAPH_FILES}"),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The page; `-` for standard output. Default: the input's name with .html."),
    ] = None,
    encoding: Annotated[
        list[str] | None,
        typer.Option(
            "--encoding",
            "-e",
            help="Further encoding to show; may be repeated, see `gape encodings`.",
            autocompletion=complete_encoding,
        ),
    ] = None,
    states: Annotated[int | None, typer.Option(help="States of the first automaton. Default: 16.")] = None,
    damping: Annotated[
        float | None, typer.Option(help="Damping of the first automaton, relative to 1/ρ(A). Default: 0.9.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the first automaton, 0 to 99. Default: 0.")] = None,
    only: Annotated[
        str | None, typer.Option(metavar="NAME", help="Show this graph only, if the file has several.")
    ] = None,
    undirected: Undirected = False,
    unweighted: Unweighted = False,
    source_column: SourceColumn = None,
    target_column: TargetColumn = None,
    weight_column: WeightColumn = None,
    graph_column: GraphColumn = None,
    no_header: NoHeader = False,
    list_: Annotated[bool, typer.Option("--list", help="List the examples and exit.")] = False,
) -> None:
    """Write a page to explore a graph in the browser: one file, no server.

    Example: gape explore karate -o karate.html
    """
    from gape._internal.files import check_writable
    from gape.explorer import GALLERY
    from gape.explorer import explore as make_page
    from gape.io import read_graphs
    from gape.io.text_table import STANDARD_STREAM

    if list_:
        width = max(map(len, GALLERY))
        for name, build in GALLERY.items():
            typer.echo(f"{name:<{width}}  {(build.__doc__ or '').splitlines()[0]}")
        return
    if source is None:
        raise ValueError(f"expected a file or an example, one of {', '.join(GALLERY)}; see `gape explore --help`")
    piped = Path(source) == STANDARD_STREAM
    name = "graph" if piped else Path(source).name
    path = output or Path(f"{name.partition('.')[0]}.html")
    if path != STANDARD_STREAM:
        check_writable(path)
    reading = reading_options(source_column, target_column, weight_column, graph_column, no_header, unweighted)
    asked = reading != reading_options(None, None, None, None, False, False)
    if asked and source in GALLERY:
        raise ValueError(f"options for columns, headers and weights are for files, got the example {source!r}")
    read_here = piped or asked
    page = make_page(
        read_graphs(source, **reading) if read_here else source,
        encodings=encoding or None,
        states=states,
        damping=damping,
        seed=seed,
        undirected=undirected,
        graph=only,
        title=name if read_here else None,
    )
    if path == STANDARD_STREAM:
        typer.echo(page.html, nl=False)
        return
    page.save(path)
    typer.echo(f"{path}: {path.stat().st_size / 2**20:.1f} MiB, open it in a browser")
