"""Measure encodings: ``gape compare``, ``gape runtime``, ``gape expressiveness``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from gape._internal.files import check_writable, replacing
from gape.cli.options import DataDir, complete_encoding, needs


@needs("bench")
def compare(
    encodings: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ENCODING", help="Encodings. Default: all graph encodings.", autocompletion=complete_encoding
        ),
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
        Path | None,
        typer.Option(metavar="FILE", help="Append results to FILE; skip what it has."),
    ] = None,
    again: Annotated[bool, typer.Option("--again", help="Measure the times in --results once more.")] = False,
    show: Annotated[Path | None, typer.Option(metavar="FILE", help="Print stored results without measuring.")] = None,
    part: Annotated[
        str | None, typer.Option(metavar="PART", help="Print one table: cost, promises, or choice, an extract.")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Compare encodings: time, memory, repeatability, renumbering, pairs told apart, graphs they take.

    Example: gape compare rw lape gape --share 0.01
    """
    from gape._internal.validation import check_one_of
    from gape.encodings import settings_of
    from gape.experiments.compare import PARTS, compared_names, describe_conditions, read_rows, render, write_rows
    from gape.experiments.compare import compare as measured
    from gape.experiments.runtime.cost import WORKLOADS

    if part is not None:
        check_one_of(tuple(PARTS), part=part)
    for name in encodings or []:
        settings_of(name)
    if show is not None:
        if not show.is_file():
            raise FileNotFoundError(f"--show: there is no file {show}; make it by gape compare --results {show}")
        rows = [row for row in read_rows(show) if not encodings or row.encoding in encodings]
    else:
        if results is not None and share < 1:
            raise ValueError(f"--results keeps figures of all graphs, got --share {share:g}; leave out one of the two")
        known = [] if results is None else read_rows(results)
        changed = measured(
            encodings or compared_names(),
            workload.split(",") if workload else WORKLOADS,
            data_dir=data_dir,
            limit_seconds=seconds,
            limit_gigabytes=memory,
            share=share,
            known=known,
            again=again,
            report=lambda line: typer.echo(line, err=True),
        )
        found = {row.encoding: row for row in known if not encodings or row.encoding in encodings}
        for row in changed:
            found[row.encoding] = row
            if results is not None:
                write_rows(results, [row])
        rows = list(found.values())
    for title in ("cost", "promises") if part is None else [part]:
        typer.echo(render(rows, title))
        if title == "cost":
            typer.echo(describe_conditions(rows))


@needs("bench")
def runtime(
    data_dir: DataDir = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small inputs: a check that it works, not a measurement.")] = (
        False
    ),
    states: Annotated[
        list[int] | None, typer.Option(metavar="K", help="Number of states of GAPE; may be repeated.")
    ] = None,
) -> None:
    """Measure how long encodings take, and how long common implementations in SciPy, NumPy, PyG and NetworkX take."""
    from gape.experiments.runtime.measurement import main

    main(data_dir=data_dir, quick=quick, states=tuple(states) if states else None)


@needs("bench")
def expressiveness(
    methods: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="METHOD",
            help="Exact methods: 1-WL, degree, gape, spd, rw, gape-closed, gape-pair, gape-rooted-3, gape-rooted-6, "
            "gape-rooted-10, 3-WL. Default: all, unless --encoding is given.",
        ),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(
            "--encoding",
            "-e",
            metavar="NAMES",
            help="Encodings of the library, separated by commas: features in float64.",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="key=value: a setting of all encodings of --encoding."),
    ] = None,
    format_: Annotated[str, typer.Option("--format", metavar="FORMAT", help="text, markdown, csv or json.")] = "text",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the table to a file.")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Count the 400 pairs of graphs of BREC that encodings and Weisfeiler-Leman tests tell apart.

    No training: multisets of encodings of the two graphs are compared, of walks modulo a prime, so that what is told
    apart is proven to differ; with --encoding in float64, with the smallest gaps.

    Example: gape expressiveness rw gape-rooted-3 3-WL
    """
    from gape._internal.progress import progress_bars
    from gape.encodings import make
    from gape.experiments.expressiveness import (
        NAMES,
        PairSet,
        check_format,
        check_method,
        render,
        separate,
        separate_by_features,
    )
    from gape.experiments.runs.settings import parse_pairs

    check_format(format_)
    if output is not None:
        check_writable(output)
    names = encoding.split(",") if encoding else []
    chosen = methods or ([] if names else list(NAMES))
    for name in chosen:
        check_method(name)
    settings = parse_pairs(set_ or [])
    if settings and not names:
        raise ValueError("--set changes settings of encodings; name them with --encoding")
    label = "".join(f" {key}={value}" for key, value in settings.items())
    encodings = {f"{name}{label}": make(name, **{**_float64(name), **settings}) for name in names}
    pairs = PairSet.brec(data_dir)
    work = [partial(separate, name, pairs) for name in chosen]
    work += [partial(separate_by_features, name, one, pairs) for name, one in encodings.items()]
    with progress_bars() as bars:
        found = [run() for run in bars.track(work, description="Comparing")]
    text = render(found, pairs.categories, format_)
    if output is None:
        typer.echo(text, nl=False)
    else:
        with replacing(output) as temporary:
            temporary.write_text(text, encoding="utf-8")


def _float64(name: str) -> dict[str, str]:
    """Return the setting for float64, if the encoding has it."""
    from gape.encodings import settings_of

    choices = next(setting.choices for setting in settings_of(name) if setting.name == "dtype")
    return {"dtype": "float64"} if "float64" in choices else {}
