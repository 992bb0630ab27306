"""Options that several commands share, and the check for optional packages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

DataDir = Annotated[
    Path | None,
    typer.Option(exists=True, file_okay=False, metavar="FOLDER", help="Folder with real data. Default: $GAPE_DATA."),
]
_RUNS, _RESULTS = Path("runs"), Path("results")
Runs = Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of the runs.")]
Results = Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of collected results.")]

# How graph files are read.
GRAPH_FILES = (
    "Edge list source,target[,weight][,graph] (csv, tsv, parquet; `-` for standard input); two nodes per "
    "line (txt, edgelist); GraphML, GML; sparse matrix (npz, mtx); PyG .pt; csv with a column smiles."
)
Undirected = Annotated[bool, typer.Option("--undirected", help="Take every edge in both directions.")]
Unweighted = Annotated[bool, typer.Option("--unweighted", help="Leave out edge weights; count repeated edges once.")]
SourceColumn = Annotated[str | None, typer.Option("--source", metavar="COLUMN", help="Column of the edges' sources.")]
TargetColumn = Annotated[str | None, typer.Option("--target", metavar="COLUMN", help="Column of the edges' targets.")]
WeightColumn = Annotated[str | None, typer.Option("--weight", metavar="COLUMN", help="Column of the edges' weights.")]
GraphColumn = Annotated[str | None, typer.Option("--graph", metavar="COLUMN", help="Column of the names of graphs.")]
NoHeader = Annotated[bool, typer.Option("--no-header", help="The first line of a table is an edge.")]


def reading_options(
    source: str | None, target: str | None, weight: str | None, graph: str | None, no_header: bool, unweighted: bool
) -> dict[str, Any]:
    """Return the arguments of :func:`gape.io.read_graphs` for the options above."""
    columns = {"source": source, "target": target, "weight": weight, "graph": graph}
    return {**columns, "header": not no_header, "weighted": not unweighted}


def check_folders(named: dict[str, Path]) -> None:
    """Raise if a folder that was named does not exist; folders with the default names may be created later.

    >>> check_folders({"--runs": Path("runs"), "--results": Path("/no/such")})
    Traceback (most recent call last):
    FileNotFoundError: --results: there is no folder /no/such
    """
    for option, folder in named.items():
        if folder not in (_RUNS, _RESULTS) and not folder.is_dir():
            raise FileNotFoundError(f"{option}: there is no folder {folder}")


def option_name(setting: str) -> str:
    """Return the option of a setting.

    >>> option_name("on_singular")
    '--on-singular'
    """
    return f"--{setting.replace('_', '-')}"


def complete_encoding(incomplete: str) -> list[str]:
    """Complete the name of an encoding in the shell, the last one of several.

    >>> complete_encoding("gape-ro"), complete_encoding("none,lape-")
    (['gape-rooted'], ['none,lape-p', 'none,lape-c', 'none,lape-c10k'])
    """
    from gape.encodings import registry

    start = incomplete[: max(incomplete.rfind(mark) for mark in ",+") + 1]
    return [start + name for name in registry.names() if (start + name).startswith(incomplete)]


def complete_task(incomplete: str) -> list[str]:
    """Complete the name of a task in the shell.

    >>> complete_task("zi")
    ['zinc']
    """
    from gape.experiments.graph_tasks.protocol import TASKS

    return [name for name in TASKS if name.startswith(incomplete)]


@contextmanager
def needs(extra: str) -> Iterator[None]:
    """Name the extra to install if an import inside fails; also a decorator of commands.

    Example:
        >>> with needs("bench"):
        ...     import no_such_package
        Traceback (most recent call last):
        ImportError: no_such_package is not installed: pip install 'gape[bench]'
    """
    try:
        yield
    except ImportError as error:
        # Errors that the library raises itself have the failed import as their cause.
        missing = error if isinstance(error, ModuleNotFoundError) else error.__cause__
        package = (missing.name or "").partition(".")[0] if isinstance(missing, ModuleNotFoundError) else ""
        if package in ("", "gape"):
            raise
        raise ImportError(f"{package} is not installed: pip install 'gape[{extra}]'") from error
