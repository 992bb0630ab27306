"""``gape bench``: train the graph transformer with different encodings and compare them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gape._internal.files import check_writable
from gape.cli.options import DataDir, Results, Runs, complete_encoding, complete_task, needs
from gape.experiments.graph_tasks.protocol import SEEDS, TASKS

if TYPE_CHECKING:
    from gape.experiments.graph_tasks.cell import Cell
    from gape.experiments.graph_tasks.run import RunOptions

_FOUR = "none,rw,lape,gape"


@needs("bench")
def bench(
    tasks: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TASK",
            help=f"{', '.join(TASKS)}. The generated ones need no data.",
            autocompletion=complete_task,
        ),
    ] = None,
    encoding: Annotated[
        str | None,
        typer.Option(
            "--encoding",
            "-e",
            metavar="NAMES",
            help=f"Encodings, separated by commas; `none` for no encoding. Default: {_FOUR}.",
            autocompletion=complete_encoding,
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=len(SEEDS),
            metavar="N",
            help=f"How many of the seeds {', '.join(map(str, SEEDS))}. Default: 1.",
        ),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="key=value: change a setting, such as lr=1e-3, encoding.states=8, data.test=2000.",
        ),
    ] = None,
    queue: Annotated[
        Path | None,
        # Backslashes, since Rich takes brackets for markup.
        typer.Option(
            metavar="FILE",
            help="Run the cells of a file: lines of TASK ENCODING \\[seed=N] \\[minutes=M] \\[key=value ...].",
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(metavar="N", help="Cells at a time, one process and one thread each.")] = 1,
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Run cells on the workers of a Dask scheduler, tcp://HOST:8786; --out is shared."
        ),
    ] = None,
    devices: Annotated[int, typer.Option(metavar="N", help="Processes that train one cell together (DDP).")] = 1,
    max_minutes: Annotated[
        float | None,
        typer.Option(metavar="MINUTES", help="Time limit per cell over all calls; the result records it."),
    ] = None,
    data_dir: DataDir = None,
    out: Runs = Path("runs"),
    collect: Annotated[
        bool, typer.Option("--collect", help="Write the results of all runs to --results, one line each.")
    ] = False,
    results: Results = Path("results"),
    missing: Annotated[bool, typer.Option("--missing", help="Run only cells without a result in --results.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="List the cells and run none.")] = False,
    short: Annotated[
        bool, typer.Option("--short", help="Quick trial (minutes): CYCLES with fewer test graphs on a short schedule.")
    ] = False,
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Print the table, and write an HTML page with learning curves."),
    ] = None,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write TensorBoard's files.")] = False,
) -> None:
    """Train the paper's graph transformer with different encodings, and compare them.

    Finished cells are skipped, interrupted ones resume. For the table: gape table graph-performance

    Example: gape bench cycles --encoding none,rw,lape,gape --seeds 4 --jobs 2
    """
    from gape.experiments.graph_tasks.settings import QUICK_MINUTES, QUICK_SCHEDULE
    from gape.experiments.runs.settings import parse_pairs

    if queue is not None and tasks:
        raise ValueError(f"give tasks or a queue, got {' '.join(tasks)} and {queue}")
    if queue is None and not tasks and not collect:
        raise ValueError("a task is needed, for example: gape bench cycles --encoding none,rw,lape,gape")
    pairs = parse_pairs(set_ or [])
    if short:
        if queue is not None or tasks != ["cycles"]:
            given = f"--queue {queue}" if queue is not None else " ".join(tasks or ["no task"])
            raise ValueError(f"--short is for the task cycles alone, got {given}: gape bench cycles --short")
        pairs = {**QUICK_SCHEDULE, **pairs}
        if max_minutes is None:
            max_minutes = QUICK_MINUTES
            typer.echo(
                f"--short ends every cell after {QUICK_MINUTES:g} min; --max-minutes sets another limit", err=True
            )
    if report is not None:
        _check_report(report, one_task=queue is None and len(tasks or []) == 1, missing=missing)
    if queue is not None:
        cells = _queued(queue, max_minutes, {"--set": pairs, "--encoding": encoding, "--seeds": seeds})
    else:
        cells = _grid(tasks or [], (encoding or _FOUR).split(","), seeds or 1, pairs, max_minutes)
    if missing:
        from gape.experiments.graph_tasks.cell import missing_cells

        if not results.is_dir():
            raise FileNotFoundError(f"--missing runs what --results lacks, and there is no folder {results}")
        asked, cells = len(cells), missing_cells(cells, results)
        typer.echo(f"{asked - len(cells)} of {asked} cells have a result in {results}", err=True)
    if list_:
        for cell in cells:
            typer.echo(f"{cell.name}{'' if cell.max_minutes is None else f', at most {cell.max_minutes:g} min'}")
        return
    failures: list[str] = []
    if cells:
        from gape._internal.executors import dask_executor
        from gape.experiments.graph_tasks.run import RunOptions, run_cells
        from gape.scale.ranks import ranks

        with (
            ranks() as processes,
            dask_executor(scheduler) if scheduler is not None else nullcontext((None, "")) as (executor, dashboard),
        ):
            options = RunOptions(out, data_dir, devices, tensorboard)
            if processes.size > 1:
                options = replace(options, devices=processes.size, rank=processes.rank)
            if dashboard:
                typer.echo(f"dashboard: {dashboard}", err=True)
            try:
                found, failures = run_cells(cells, options, jobs=jobs, executor=executor)
            except (KeyboardInterrupt, SystemExit):
                typer.echo(f"gape: stopped; the same command resumes from what is in {out}", err=True)
                if executor is not None:
                    typer.echo("gape: workers finish the cells they are training; to end these, end them", err=True)
                raise
        if not options.writes:
            return
        if report is not None and found:
            _report(report, cells, pairs, found, options)
    if collect:
        from gape.experiments.graph_tasks.cell import collect as gather

        for path, lines in gather(out, results).items():
            typer.echo(f"{path}: {lines} results")
    if failures:
        reasons = "\n".join(failures)
        raise ValueError(f"{len(failures)} of {len(cells)} cells failed:\n{reasons}")


def _check_report(report: Path, *, one_task: bool, missing: bool) -> None:
    if not one_task:
        raise ValueError("--report is about one task: gape bench cycles --report report.html")
    if missing:
        raise ValueError("--report shows the cells of --out, and --missing leaves some out; give one of them")
    report.parent.mkdir(parents=True, exist_ok=True)
    check_writable(report)


def _queued(queue: Path, max_minutes: float | None, unfit: dict[str, object]) -> list[Cell]:
    """Read the cells of a file; options that its lines replace are refused."""
    from gape.experiments.graph_tasks.cell import read_cells

    if given := [option for option, value in unfit.items() if value]:
        raise ValueError(
            f"{' and '.join(given)} with --queue {queue}: its lines say TASK ENCODING [seed=N] [key=value ...]"
        )
    return read_cells(queue, max_minutes)


def _grid(
    tasks: list[str], rows: list[str], seeds: int, pairs: dict[str, str], max_minutes: float | None
) -> list[Cell]:
    from gape.experiments.graph_tasks.cell import Cell

    return [Cell(task, row, seed, pairs, max_minutes) for task in tasks for seed in SEEDS[:seeds] for row in rows]


def _report(
    report: Path, cells: list[Cell], pairs: dict[str, str], found: list[dict[str, Any]], options: RunOptions
) -> None:
    """Print the table of one task, and write its HTML page."""
    from gape.experiments.report.render import render, write_report
    from gape.experiments.report.table import comparison

    task, rows = cells[0].task, list(dict.fromkeys(cell.encoding for cell in cells))
    table = comparison("graph-performance", found, {task: pairs}, [task], rows)
    typer.echo(render(table, "text"), nl=False)
    written = write_report(report, table, cells, found, options.runs, _explorer, options.data_dir)
    typer.echo(f"report: {written.resolve()}")


def _explorer(graph: Any, encodings: Mapping[str, Any]) -> str:
    """Show a graph in the explorer, the first two encodings side by side, or GAPE if there are none."""
    from gape.explorer.gallery import Example, View
    from gape.explorer.page import Explorer, render
    from gape.graph.convert import as_graph

    views = tuple(View(encoding=title, column=1) for title in list(encodings)[:2]) or (View(),)
    title = "A graph of the dataset"
    return Explorer(title, render(Example(as_graph(graph), title, encodings=encodings, views=views)))._repr_html_()
