"""``gape figure``: draw the paper's figures."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from gape.cli.options import needs


@needs("bench")
def figure(
    name: Annotated[str, typer.Argument(metavar="NAME", help="rw-pprp or csl-labels.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="A .png, .pdf or .html file. Default: all three in --folder."
        ),
    ] = None,
    folder: Annotated[Path, typer.Option(metavar="FOLDER", help="Output folder, without --output.")] = Path("figures"),
) -> None:
    """Draw a figure of the paper as PNG, PDF or HTML page.

    Example: gape figure rw-pprp -o rw-pprp.pdf
    """
    from gape.experiments.report.figures import write_figure

    for path in write_figure(name, output, folder):
        typer.echo(str(path))
