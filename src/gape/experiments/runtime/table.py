"""The runtime table: seconds to encode a dataset, ours, the baselines' and the paper's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from rich.console import Console

from gape.experiments.graph_tasks.registry import find_row
from gape.experiments.report.numbers import Summary, printed
from gape.experiments.report.table import MISSING, PAPER, Entry, Table
from gape.experiments.runs.folder import read_lines, update_lines
from gape.experiments.runtime.baselines import comparisons
from gape.experiments.runtime.measurement import AGREE, measure, table
from gape.experiments.runtime.workloads import SIZES

# Number of features in the paper's table.
PAPER_K = 20
FILE = "graph-runtime.jsonl"


def measure_runtimes(
    results: Path,
    data_dir: Path | None = None,
    *,
    quick: bool = False,
    workloads: Sequence[str] = tuple(SIZES),
    encodings: Sequence[str] | None = None,
) -> list[dict[str, Any]]:
    """Measure what ``gape runtime`` measures, and store each line, one per workload and encoding, at once."""
    lines, timings = [], []
    for timing, conditions in measure(data_dir, quick, workloads=workloads, encodings=encodings):
        line = {("runtime" if name == "workload" else name): value for name, value in vars(timing).items()}
        line |= {"seconds": [round(run, 4) for run in timing.seconds], **conditions}
        store_line(results, line)
        lines.append(line)
        timings.append(timing)
    Console().print(table(timings))
    return lines


def chosen_workloads(tasks: Sequence[str] | None) -> list[str]:
    """Return the workloads of these tasks; all if None.

    >>> chosen_workloads(["zinc"])
    ['ZINC']
    """
    known = {name.lower(): name for name in SIZES}
    tasks = list(known) if tasks is None else tasks
    if absent := [task for task in tasks if task not in known]:
        raise ValueError(f"runtimes are not measured on {', '.join(absent)}; there are {', '.join(known)}")
    return [known[task] for task in tasks]


def store_line(results: Path, line: dict[str, Any]) -> None:
    """Replace the line of the same workload, encoding and k, or append it.

    Lines of the workload that were measured on other data or another machine are removed: the table states the data
    once per workload.
    """

    def change(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
        same = [old for old in lines if old["runtime"] != line["runtime"] or _where(old) == _where(line)]
        return list(({_key(old): old for old in same} | {_key(line): line}).values())

    update_lines(results / FILE, change)


def _where(line: dict[str, Any]) -> list[Any]:
    return [line[name] for name in ("graphs", "data", "threads", "machine", "torch")]


def _key(line: dict[str, Any]) -> tuple[Any, ...]:
    return line["runtime"], line["encoding"], line["k"]


def runtime_table(results: Path, encodings: Sequence[str] | None = None) -> Table:
    """Build the table from the stored lines, with the rows of all encodings or of some."""
    rows = comparisons(encodings=encodings)
    found = {_key(line): line for _, line in read_lines(results / FILE)}
    lines: list[tuple[str, str, tuple[Entry, ...]]] = []
    brief: list[tuple[str, tuple[str, ...]]] = []
    for encoding, k, baseline in ((row.encoding, row.k, row.baseline.name) for row in rows):
        title = _title(encoding, k)
        measured = [found.get((name, encoding, k)) for name in SIZES]
        lines.append((title, "ours", tuple(_entry(line) for line in measured)))
        lines.append((title, f"{baseline}, graph by graph", tuple(_baseline_entry(line) for line in measured)))
        brief.append((title, tuple(_mean_and_best(line) for line in measured)))
        paper = [printed("graph-runtime", find_row(encoding).title, name) for name in SIZES] if k == PAPER_K else []
        if any(paper):
            lines.append((title, PAPER, tuple(Entry(f"{value:.2f}") for value in paper)))
    notes = [
        "Ours: mean ± standard deviation of the runs, [n]: how many where not four; after the semicolon the best. The "
        "other way: its best, on a sample of the graphs, scaled up; in brackets how many times faster ours is at its "
        "best, and on how many of the graphs compared both give the same. Ours has the threads that are stated; the "
        "other way is one process whose matrix products have as many of them as suit it best. Paper: 8-core Ryzen 7 "
        "3700X; another machine, so compare rows.",
        AGREE,
    ]
    for name in SIZES:
        if measured_there := [line for line in found.values() if line["runtime"] == name]:
            line = measured_there[0]
            kernels = _kernels(measured_there)
            notes.append(f"{name}: {line['graphs']:,} graphs, {line['data']}, {line['threads']} threads; {kernels}.")
    columns = tuple(f"{name} ↓" for name in SIZES)
    return Table("graph-runtime", "Seconds to encode a dataset", columns, tuple(lines), tuple(notes), tuple(brief))


def _kernels(lines: Sequence[dict[str, Any]]) -> str:
    """Say with which kernels the lines of a workload were measured, and which lines if they differ.

    >>> _kernels([{"encoding": "rw", "k": 20, "kernels": "compiled kernels: avx2"}, {"encoding": "spd", "k": None}])
    'compiled kernels: avx2 (RW, k = 20), no compiled kernels (SPD+C)'
    """
    rows: dict[str, list[str]] = {}
    for line in lines:
        rows.setdefault(line.get("kernels", "no compiled kernels"), []).append(_title(line["encoding"], line["k"]))
    if len(rows) == 1:
        return next(iter(rows))
    return ", ".join(f"{kernels} ({'; '.join(titles)})" for kernels, titles in rows.items())


def _title(encoding: str, k: int | None) -> str:
    return find_row(encoding).title + ("" if k is None else f", k = {k}")


def _entry(line: dict[str, Any] | None) -> Entry:
    if line is None:
        return Entry(MISSING)
    summary = Summary(tuple(line["seconds"]), 3)
    return Entry(f"{summary}; {min(summary.values):.3f}", summary=summary)


def _baseline_entry(line: dict[str, Any] | None) -> Entry:
    if line is None or line["other"] is None:
        return Entry(MISSING)
    return Entry(f"{line['other']:.1f} ({_ratio(line)}, {line['agree']}/{line['compared']})")


def _ratio(line: dict[str, Any]) -> str:
    """Return the factor by which our fastest repetition is faster."""
    ratio = line["other"] / min(line["seconds"])
    return f"{ratio:.{0 if ratio >= 10 else 1}f}×"


def _mean_and_best(line: dict[str, Any] | None) -> str:
    """Format the mean and the fastest of our repetitions, and the factor at best.

    >>> _mean_and_best({"seconds": [0.0479, 0.06], "other": 5.56}), _mean_and_best({"seconds": [24.2], "other": None})
    ('0.054 / 0.048, 116×', '24 / 24')
    """
    if line is None:
        return MISSING
    mean, best = (f"{value:#.2g}".rstrip(".") for value in (fmean(line["seconds"]), min(line["seconds"])))
    return f"{mean} / {best}" + ("" if line["other"] is None else f", {_ratio(line)}")
