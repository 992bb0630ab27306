"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

DataDir = Annotated[
    Path | None,
    typer.Option(exists=True, file_okay=False, help="Folder with real data. Default: the variable GAPE_DATA."),
]
_RUNS, _RESULTS = Path("runs"), Path("results")
Runs = Annotated[Path, typer.Option(help="Folder of the runs.")]
Results = Annotated[Path, typer.Option(help="Folder of collected results.")]


def check_folders(named: dict[str, Path]) -> None:
    """Refuse a folder that was named and is not there; those of the default names may come into being later.

    >>> check_folders({"--runs": Path("runs"), "--results": Path("/no/such")})
    Traceback (most recent call last):
    FileNotFoundError: --results: there is no folder /no/such
    """
    for option, folder in named.items():
        if folder not in (_RUNS, _RESULTS) and not folder.is_dir():
            raise FileNotFoundError(f"{option}: there is no folder {folder}")
