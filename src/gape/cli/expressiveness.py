"""``gape expressiveness``: count the pairs of graphs of BREC that encodings tell apart."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from gape._internal.files import check_writable, replacing
from gape.cli.options import DataDir, needs


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
    from rich.console import Console
    from rich.progress import track

    from gape.encodings import make
    from gape.experiments.expressiveness.comparison import NAMES, PairSet, check_method, separate, separate_by_features
    from gape.experiments.expressiveness.render import check_format, render
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
    shown = Console(stderr=True)
    found = [run() for run in track(work, "Comparing", console=shown, transient=True, disable=not shown.is_terminal)]
    text = render(found, pairs.categories, format_)
    if output is None:
        typer.echo(text, nl=False)
    else:
        with replacing(output) as temporary:
            temporary.write_text(text, encoding="utf-8")


def _float64(name: str) -> dict[str, str]:
    """The most exact type that the encoding has."""
    from gape.encodings import settings_of

    choices = next(setting.choices for setting in settings_of(name) if setting.name == "dtype")
    return {"dtype": "float64"} if "float64" in choices else {}
