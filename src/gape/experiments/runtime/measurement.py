"""How long encodings of whole data sets take, ours and the other way in one run.

Every time of ours runs from collated index tensors to a float32 tensor, everything included: checking the input,
sorting, solving, certifying, rounding. The other side runs graph by graph on a sample of the graphs, on the number of
threads that suits it best, and is scaled up.
"""

from __future__ import annotations

import platform
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from gape.encodings import GAPE, Pairs
from gape.experiments.runtime.todays_way import Comparison, Way, comparisons, single_graphs
from gape.experiments.runtime.workloads import SIZES, Workload, workload
from gape.solvers import AlgebraicOnlyWarning, LeastSquaresWarning, Status

REPEATS = 20
ENOUGH_SECONDS = 10.0
# About how long one run of the other side takes, on a sample, and the graphs on which its pace is found out.
OTHER_SECONDS = 1.0
PROBE = 50
AGREE = (
    "Agree: of up to 200 graphs those on which both give the same. Not where eigenvalues are multiple (any basis is "
    "right), where a graph has several parts (others drop one trivial eigenvector only), or where the equation of a "
    "star variant has no solution or several (SciPy does not say so)."
)
# Graphs on which both sides are compared number by number.
COMPARED = 200


@dataclass(frozen=True)
class Timing:
    """Seconds of one encoding of one workload: every run of ours, and the other way scaled up to all graphs.

    Of the ``compared`` graphs both ways ``agree`` on so many.
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
        """For people: encoding and number of features."""
        return self.encoding.upper() + ("" if self.k is None else f"-{self.k}")

    @property
    def ratio(self) -> float:
        """How many times faster ours is."""
        return self.other / min(self.seconds)


def main(data_dir: Path | None = None, quick: bool = False, states: tuple[int, ...] | None = None) -> list[Timing]:
    """Measure and print; ``quick`` on a hundredth of the graphs, to see that it runs."""
    found = [timing for timing, _ in measure(data_dir, quick, states or (20, 32))]
    Console().print(table(found))
    return found


def measure(
    data_dir: Path | None = None,
    quick: bool = False,
    states: Sequence[int] = (20, 32),
    workloads: Sequence[str] = tuple(SIZES),
) -> Iterator[tuple[Timing, dict[str, Any]]]:
    """Time all encodings on all workloads, one after the other, and say on what each was measured."""
    console = Console(stderr=True)
    for name in workloads:
        with console.status(f"{name}: preparing the graphs"):
            work = workload(name, data_dir, max(60, SIZES[name] // 100) if quick else SIZES[name])
        console.print(f"{name}: {work.num_graphs} graphs, {work.origin}")
        circumstances = {
            "data": work.origin,
            "nodes": work.num_nodes,
            "threads": torch.get_num_threads(),
            "machine": platform.machine(),
            "torch": torch.__version__,
        }
        for comparison in comparisons(states):
            with console.status(f"{name}: timing {comparison.encoding}"):
                timing = timed(work, comparison, 0.02 if quick else OTHER_SECONDS)
            yield timing, {**circumstances, "finished": datetime.now(UTC).isoformat(timespec="seconds")}


def timed(work: Workload, comparison: Comparison, other_seconds: float = OTHER_SECONDS) -> Timing:
    """One of our encodings on all graphs, and the other way on a sample of them."""
    way = comparison.way
    with warnings.catch_warnings():
        for told in (AlgebraicOnlyWarning, LeastSquaresWarning):  # the certificate says it
            warnings.simplefilter("ignore", told)
        seconds = run_times(REPEATS, lambda: comparison.ours(work.graph()))
        certificate = _certificate(comparison, work)
        pace, sample = _other(work, way, other_seconds)
        compared = sample[:COMPARED]
        agree = sum(_agrees(comparison, way, graph) for graph in compared)
    return Timing(
        work.name,
        comparison.encoding,
        comparison.k,
        work.num_graphs,
        tuple(seconds),
        way=way.name,
        other=pace * work.num_graphs,
        sampled=len(sample),
        compared=len(compared),
        agree=agree,
        certificate=certificate,
    )


def _certificate(comparison: Comparison, work: Workload) -> str:
    """How many graphs ended how, and the largest residual of those whose equation was solved."""
    if not isinstance(comparison.ours, GAPE):
        return ""
    solution = comparison.ours.solve(work.graph())
    solved = torch.tensor([status is not Status.LEAST_SQUARES for status in solution.status])
    ended = ", ".join(f"{number} {status.name.lower()}" for status, number in solution.counts().items())
    return f"{ended}; residual ≤ {float(solution.residual[solved].max()):.0e}" if bool(solved.any()) else ended


def _agrees(comparison: Comparison, way: Way, graph: Any) -> bool:
    ours = comparison.ours(graph)
    return way.agrees(ours.matrices()[0] if isinstance(ours, Pairs) else ours, way.compute(way.prepare(graph)))


def _other(work: Workload, way: Way, seconds: float) -> tuple[float, list[Any]]:
    """Seconds a graph of the other way, and the graphs on which they were taken."""
    from threadpoolctl import threadpool_limits

    probe = [way.prepare(graph) for graph in single_graphs(work, PROBE, way.smallest)]
    paces = {}
    for threads in sorted({1, torch.get_num_threads()}):
        with threadpool_limits(threads):
            paces[threads] = best_of(2, lambda: [way.compute(graph) for graph in probe]) / len(probe)
    best = min(paces, key=paces.__getitem__)
    graphs = single_graphs(work, max(len(probe), int(seconds / paces[best])), way.smallest)
    ready = [way.prepare(graph) for graph in graphs]
    with threadpool_limits(best):
        pace = best_of(REPEATS, lambda: [way.compute(graph) for graph in ready]) / len(graphs)
    return pace, graphs


def run_times(repeats: int, work: Callable[[], Any]) -> list[float]:
    """Seconds of several runs: two at least (or ``repeats``), and no more once they have taken ten seconds."""
    times: list[float] = []
    while len(times) < repeats and (len(times) < 2 or sum(times) < ENOUGH_SECONDS):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return times


def best_of(repeats: int, work: Callable[[], Any]) -> float:
    """The shortest of several runs, in seconds: what the work costs when nothing else disturbs it."""
    return min(run_times(repeats, work))


def table(timings: Sequence[Timing]) -> Table:
    """Ours beside the other way; narrow enough for any terminal."""
    out = Table(title="Seconds to encode a data set: the fastest run")
    for heading in ("data", "encoding", "ours", "other", "way", "ratio", "agree"):
        out.add_column(heading, justify="left" if heading in ("data", "encoding", "way") else "right")
    for t in timings:
        other = f"{t.other:.2f}{'' if t.sampled == t.graphs else ' *'}"
        ratio, agree = f"[bold]{t.ratio:.1f}×[/bold]", f"{t.agree}/{t.compared}"
        out.add_row(t.workload, t.name, f"{min(t.seconds):.3f}", other, t.way, ratio, agree)
    certificates = [f"{t.name} on {t.workload}: {t.certificate}." for t in timings if t.certificate]
    out.caption = "\n".join(
        [
            f"* scaled up from a sample. {AGREE}",
            *certificates,
        ]
    )
    return out
