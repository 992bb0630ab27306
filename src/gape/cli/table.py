"""``gape table`` and ``gape figure``: show results as tables, draw the paper's figures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gape._internal.files import check_writable, replacing
from gape.cli.options import DataDir, Results, Runs, check_folders, needs

if TYPE_CHECKING:
    from gape.experiments.report.table import Table


# Options for rows, columns and settings that tables of other things than graph tasks take.
_OPTIONS = {"graph-runtime": ("--encoding",), "translation": (), "expressiveness": ("--encoding", "--task")}


@needs("bench")
def table(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="graph-performance, rw-ppr-graph, k-study, graph-runtime or translation; ours: learned, ablation, "
            "ablation-typed, rooted, scaling, damping, directed, diamonds, typed, pairs, sizes, splits, "
            "node-order, expressiveness.",
        ),
    ] = "graph-performance",
    format_: Annotated[
        str,
        typer.Option(
            "--format", metavar="FORMAT", help="text, markdown, brief (Markdown, one line per row), latex or csv."
        ),
    ] = "text",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write the table to a file.")
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Also draw the figures, for tables of graph tasks: a .png, .pdf or .html file."
        ),
    ] = None,
    task: Annotated[str | None, typer.Option(metavar="TASKS", help="Columns, separated by commas.")] = None,
    encoding: Annotated[str | None, typer.Option(metavar="NAMES", help="Rows, separated by commas.")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="\\[TASK:]key=value: show the runs with exactly these settings other than the paper's.",
        ),
    ] = None,
    runs: Runs = Path("runs"),
    results: Results = Path("results"),
    measure: Annotated[
        bool,
        typer.Option(
            "--measure",
            help="For graph-runtime: measure first (--task, --encoding, if given), and store the times in --results.",
        ),
    ] = False,
    data_dir: DataDir = None,
) -> None:
    """Print a table of the paper with our figures and the paper's; cells that were not run are missing.

    Example: gape table graph-performance --task cycles,csl --format markdown
    """
    from gape.experiments.report.render import render

    if output is not None:
        check_writable(output)
    if plot is not None:
        from gape.experiments.report.plots import check_figure

        check_figure(plot)
        if output is not None and plot.resolve() == output.resolve():
            raise ValueError(f"--plot and --output both name {plot}; name two files")
    check_folders({"--runs": runs, "--results": results} if not measure else {"--runs": runs})
    if not measure and not results.is_dir() and not runs.is_dir():
        raise FileNotFoundError(
            f"there is no folder {results} and no folder {runs} here, so there are no figures to show: train with "
            f"`gape bench`, which fills {runs}, or with `gape translate rows`, or give the folder results of a "
            f"checkout to --results"
        )
    if measure and name != "graph-runtime":
        raise ValueError(f"--measure is for graph-runtime, got {name}; its figures come from training")
    if name in _OPTIONS:
        for option, given in (("--task", task), ("--encoding", encoding), ("--set", set_)):
            if given and option not in _OPTIONS[name] and not (measure and option == "--task"):
                raise ValueError(f"{option} is for tables of graph tasks, got {name}")
        if plot is not None:
            raise ValueError(f"--plot draws tables of graph tasks, such as graph-performance, and {name} is none")
    if name == "graph-runtime":
        from gape.experiments.runtime.measurement import chosen_workloads, measure_runtimes, runtime_table

        rows = encoding.split(",") if encoding else None
        if measure:
            workloads = chosen_workloads(task.split(",") if task else None)
            measure_runtimes(results, data_dir, workloads=workloads, encodings=rows)
        made = runtime_table(results, rows)
    elif name == "translation":
        from gape.experiments.translation.results import read_results as read_translations
        from gape.experiments.translation.results import translation_table

        made = translation_table(read_translations(results / "translation.jsonl"))
    elif name == "expressiveness":
        from gape.experiments.expressiveness import stored_table

        made = stored_table(results, encoding.split(",") if encoding else None, task.split(",") if task else None)
    else:
        made = _of_training(
            name,
            task.split(",") if task else None,
            encoding.split(",") if encoding else None,
            set_ or [],
            runs,
            results,
        )
    shown = render(made, format_)
    if plot is not None:
        from gape.experiments.report.plots import draw_table

        draw_table(made, plot)
    if output is None:
        typer.echo(shown, nl=False)
    else:
        from rich.text import Text

        with replacing(output) as temporary:
            temporary.write_text(Text.from_ansi(shown).plain.rstrip() + "\n", encoding="utf-8")


def _of_training(
    name: str, tasks: list[str] | None, rows: list[str] | None, words: list[str], runs: Path, results: Path
) -> Table:
    """Make a table of graph tasks; print what it leaves out to stderr."""
    from gape.experiments.graph_tasks.cell import count_replaced, latest, matches_current_protocol, read_results
    from gape.experiments.graph_tasks.protocol import TASKS
    from gape.experiments.graph_tasks.settings import task_protocol
    from gape.experiments.report.layouts import layout
    from gape.experiments.report.table import comparison, only_with_other_settings, other_settings

    for chosen in tasks or []:
        task_protocol(chosen)
    overrides = _by_task(words, list(TASKS))
    collected = read_results(results)
    everything = latest([*read_results(runs), *collected])
    found = [result for result in everything if matches_current_protocol(result)]
    if len(found) < len(everything):
        typer.echo(f"{len(everything) - len(found)} runs of an earlier protocol are not shown", err=True)
    made = comparison(name, found, overrides, tasks, rows)
    if number := count_replaced(collected, everything):
        typer.echo(
            f"{number} results of {runs} replace older ones in {results}; --runs {results} shows only those of "
            f"{results}",
            err=True,
        )
    if name == "graph-performance" and (others := other_settings(layout(name, tasks, rows), found, overrides)):
        for title, only in only_with_other_settings(made, others).items():
            typer.echo(f"{title} has only runs with other settings: {' or '.join(only)}", err=True)
        typer.echo(f"{sum(others.values())} runs with other settings are not shown; --set shows some of them", err=True)
    return made


def _by_task(words: list[str], tasks: list[str]) -> dict[str, dict[str, str]]:
    """Parse ``[TASK:]key=value`` words into overrides per task.

    >>> _by_task(["max_epochs=9", "pattern:train_fraction=0.1"], ["csl", "pattern"])
    {'csl': {'max_epochs': '9'}, 'pattern': {'max_epochs': '9', 'train_fraction': '0.1'}}
    """
    from gape.experiments.runs.settings import parse_pairs

    chosen: dict[str, list[str]] = {task: [] for task in tasks}
    for word in words:
        task, colon, pair = word.partition(":")
        if colon and task not in tasks:
            raise ValueError(f"there is no task {task!r} in {word!r}; there are {', '.join(tasks)}")
        for name in [task] if colon else tasks:
            chosen[name].append(pair if colon else word)
    return {task: parse_pairs(pairs) for task, pairs in chosen.items()}


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
    from gape.experiments.report.plots import write_figure

    for path in write_figure(name, output, folder):
        typer.echo(str(path))
