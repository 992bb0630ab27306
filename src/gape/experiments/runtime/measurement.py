"""Runtime of encoding whole datasets, ours and the baselines, measured in one session; the table of stored ones.

Our times are from collated index tensors to a float32 tensor, everything included: validation, sorting, solving,
certificates, rounding. A baseline encodes a sample of the graphs one by one, with the number of threads that is fastest
for it, and its time is scaled up to all graphs.
"""

from __future__ import annotations

import platform
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from rich.console import Console
from rich.table import Table as RichTable

from gape import native
from gape.encodings import GAPE, Pairs
from gape.experiments.graph_tasks.registry import find_row
from gape.experiments.report.numbers import Summary, printed
from gape.experiments.report.table import MISSING, PAPER, Entry, Table
from gape.experiments.runs.folder import read_lines, update_lines
from gape.experiments.runtime.baselines import Baseline, Comparison, comparisons, sample_graphs
from gape.experiments.runtime.workloads import SIZES, Workload, workload
from gape.solvers import AlgebraicOnlyWarning, LeastSquaresWarning, Status

MAX_REPEATS = 20
MAX_TOTAL_SECONDS = 10.0
# About how long one repetition of a baseline takes on its sample, and the graphs that its pace is estimated on.
BASELINE_SECONDS = 1.0
PROBE_GRAPHS = 50
AGREE = (
    "Agree: of up to 200 graphs those on which both give the same. Not where eigenvalues are multiple (any basis is "
    "right), where a graph has several parts (others drop one trivial eigenvector only), or where the equation of a "
    "star variant has no solution or several (SciPy does not say so)."
)
# Graphs on which both results are compared number by number.
COMPARED_GRAPHS = 200


@dataclass(frozen=True)
class Timing:
    """Seconds of one encoding on one workload; the fields are the columns of ``results/graph-runtime.jsonl``.

    Args:
        workload, encoding, k, graphs: what was encoded.
        seconds: of every repetition of ours.
        way: name of the baseline.
        other: seconds of the baseline, scaled up to all graphs.
        sampled: graphs that the baseline encoded.
        compared, agree: graphs whose results were compared, and those on which both agree.
        certificate: of ours.
    """

    workload: str
    encoding: str
    k: int | None
    graphs: int
    seconds: tuple[float, ...]
    way: str
    other: float
    sampled: int
    compared: int
    agree: int
    certificate: str

    @property
    def name(self) -> str:
        """Encoding and number of features."""
        return self.encoding.upper() + ("" if self.k is None else f"-{self.k}")

    @property
    def ratio(self) -> float:
        """Factor by which ours is faster."""
        return self.other / min(self.seconds)


def main(data_dir: Path | None = None, quick: bool = False, states: tuple[int, ...] | None = None) -> list[Timing]:
    """Measure and print; ``quick`` takes a hundredth of the graphs, to see that it works."""
    found = [timing for timing, _ in measure(data_dir, quick, states or (20, 32))]
    Console().print(table(found))
    return found


def measure(
    data_dir: Path | None = None,
    quick: bool = False,
    states: Sequence[int] = (20, 32),
    workloads: Sequence[str] = tuple(SIZES),
    encodings: Sequence[str] | None = None,
) -> Iterator[tuple[Timing, dict[str, Any]]]:
    """Time encodings, all of them or some, on workloads; yield each with the conditions of the measurement."""
    rows = comparisons(states, encodings)
    console = Console(stderr=True)
    console.print(native.description())
    for name in workloads:
        with console.status(f"{name}: preparing the graphs"):
            work = workload(name, data_dir, max(60, SIZES[name] // 100) if quick else SIZES[name])
        console.print(f"{name}: {work.num_graphs} graphs, {work.origin}")
        conditions = {
            "data": work.origin,
            "nodes": work.num_nodes,
            "threads": torch.get_num_threads(),
            "kernels": native.description(),
            "machine": platform.machine(),
            "torch": torch.__version__,
        }
        for comparison in rows:
            with console.status(f"{name}: timing {comparison.encoding}"):
                timing = timed(work, comparison, 0.02 if quick else BASELINE_SECONDS)
            yield timing, {**conditions, "finished": datetime.now(UTC).isoformat(timespec="seconds")}


def timed(work: Workload, comparison: Comparison, baseline_seconds: float = BASELINE_SECONDS) -> Timing:
    """Time one of our encodings on all graphs, and its baseline on a sample of them."""
    baseline = comparison.baseline
    with warnings.catch_warnings():
        for category in (AlgebraicOnlyWarning, LeastSquaresWarning):  # the certificate counts them
            warnings.simplefilter("ignore", category)
        seconds = run_times(MAX_REPEATS, lambda: comparison.ours(work.graph()))
        certificate = _certificate(comparison, work)
        pace, sample = time_baseline(work, baseline, baseline_seconds)
        compared = sample[:COMPARED_GRAPHS]
        agree = sum(_agrees(comparison, graph) for graph in compared)
    return Timing(
        work.name,
        comparison.encoding,
        comparison.k,
        work.num_graphs,
        tuple(seconds),
        way=baseline.name,
        other=pace * work.num_graphs,
        sampled=len(sample),
        compared=len(compared),
        agree=agree,
        certificate=certificate,
    )


def _certificate(comparison: Comparison, work: Workload) -> str:
    """Describe the number of graphs per status, and the largest residual of those whose equation was solved."""
    if not isinstance(comparison.ours, GAPE):
        return ""
    solution = comparison.ours.solve(work.graph())
    solved = torch.tensor([status is not Status.LEAST_SQUARES for status in solution.status])
    ended = ", ".join(f"{number} {status.name.lower()}" for status, number in solution.counts().items())
    return f"{ended}; residual ≤ {float(solution.residual[solved].max()):.0e}" if bool(solved.any()) else ended


def _agrees(comparison: Comparison, graph: Any) -> bool:
    ours, baseline = comparison.ours(graph), comparison.baseline
    theirs = baseline.compute(baseline.prepare(graph))
    return baseline.agrees(ours.matrices()[0] if isinstance(ours, Pairs) else ours, theirs)


def time_baseline(
    work: Workload, baseline: Baseline, seconds: float, clock: Callable[[], float] = time.perf_counter
) -> tuple[float, list[Any]]:
    """Return the baseline's seconds per graph, and the graphs that they were measured on."""
    from threadpoolctl import threadpool_limits

    probe = [baseline.prepare(graph) for graph in sample_graphs(work, PROBE_GRAPHS, baseline.min_nodes)]
    paces = {}
    for threads in sorted({1, torch.get_num_threads()}):
        with threadpool_limits(threads):
            paces[threads] = best_of(2, lambda: [baseline.compute(graph) for graph in probe], clock) / len(probe)
    best = min(paces, key=paces.__getitem__)
    graphs = sample_graphs(work, max(len(probe), int(seconds / paces[best])), baseline.min_nodes)
    ready = [baseline.prepare(graph) for graph in graphs]
    with threadpool_limits(best):
        pace = best_of(MAX_REPEATS, lambda: [baseline.compute(graph) for graph in ready], clock) / len(graphs)
    return pace, graphs


def run_times(repeats: int, work: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> list[float]:
    """Time up to ``repeats`` calls: at least two, and no more once they have taken ten seconds."""
    times: list[float] = []
    while len(times) < repeats and (len(times) < 2 or sum(times) < MAX_TOTAL_SECONDS):
        start = clock()
        work()
        times.append(clock() - start)
    return times


def best_of(repeats: int, work: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> float:
    """Return the shortest of several times, in seconds: the one least disturbed by other processes."""
    return min(run_times(repeats, work, clock))


def table(timings: Sequence[Timing]) -> RichTable:
    """Build the table of ours and the baselines; narrow enough for any terminal."""
    out = RichTable(title="Seconds to encode a dataset: the fastest run")
    for heading in ("data", "encoding", "ours", "other", "way", "ratio", "agree"):
        out.add_column(heading, justify="left" if heading in ("data", "encoding", "way") else "right")
    for t in timings:
        other = f"{t.other:.2f}{'' if t.sampled == t.graphs else ' *'}"
        ratio, agree = f"[bold]{t.ratio:.1f}×[/bold]", f"{t.agree}/{t.compared}"
        out.add_row(t.workload, t.name, f"{min(t.seconds):.3f}", other, t.way, ratio, agree)
    certificates = [f"{t.name} on {t.workload}: {t.certificate}." for t in timings if t.certificate]
    out.caption = "\n".join(
        [
            f"Ours: {native.description()}.",
            f"* scaled up from a sample. {AGREE}",
            *certificates,
        ]
    )
    return out


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
