"""``gape compare``: every encoding on the same graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gape.cli.options import DataDir, complete_encoding, needs


@needs("bench")
def compare(
    encodings: Annotated[
        list[str] | None,
        typer.Argument(metavar="ENCODING", help="Encodings. Default: all of graphs.", autocompletion=complete_encoding),
    ] = None,
    workload: Annotated[
        str | None,
        typer.Option(metavar="NAMES", help="Of ZINC, CYCLES, PATTERN, citations, web; separated by commas."),
    ] = None,
    seconds: Annotated[float, typer.Option(metavar="SECONDS", min=0.1, help="Time limit of one encoding.")] = 60.0,
    memory: Annotated[float, typer.Option(metavar="GIB", min=0.1, help="Memory limit of dense matrices.")] = 4.0,
    share: Annotated[
        float, typer.Option(metavar="PART", min=0.0, max=1.0, help="Part of the graphs, for a quick look.")
    ] = 1.0,
    results: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also keep the figures there, one line per encoding.")
    ] = None,
    show: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Measure nothing: print the figures kept in this file.")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Compare encodings: time, memory, repeatability, renumbering, pairs told apart, graphs they take.

    Example: gape compare rw lape gape --share 0.01
    """
    from gape.encodings import settings_of
    from gape.experiments.compare.cost import WORKLOADS
    from gape.experiments.compare.table import compare as measured
    from gape.experiments.compare.table import compared_names, read_rows, render, write_rows

    if show is not None:
        if not show.is_file():
            raise FileNotFoundError(f"--show: there is no file {show}; make it by gape compare --results {show}")
        typer.echo(render(read_rows(show)), nl=False)
        return
    for name in encodings or []:
        settings_of(name)
    chosen = workload.split(",") if workload else list(WORKLOADS)
    rows = measured(
        encodings or compared_names(),
        chosen,
        data_dir=data_dir,
        limit_seconds=seconds,
        limit_gigabytes=memory,
        share=share,
        report=lambda line: typer.echo(line, err=True),
    )
    if results is not None:
        write_rows(results, rows)
    typer.echo(render(rows, chosen), nl=False)
