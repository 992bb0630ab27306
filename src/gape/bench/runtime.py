"""The runtime table: encodings of whole data sets, ours and the other way in one run.

Every time runs from collated index tensors to a float32 ``[nodes, k]`` tensor, everything included: checking the input,
sorting, solving, certifying, rounding. The slow side may run on a sample and be extrapolated; the table says so.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

import gape
from gape.bench.sylvester import encode_graph_by_graph
from gape.bench.todays_way import Comparison, comparisons, single_graphs
from gape.bench.workloads import SIZES, Workload, workload
from gape.solvers import AlgebraicOnlyWarning

REPEATS = 20
ENOUGH_SECONDS = 10.0
# About how long the slow side may take on each workload.
SLOW_SECONDS = 20.0
# Graphs on which PyG and NetworkX are timed.
SAMPLE = 400


@dataclass(frozen=True)
class Timing:
    """One cell pair of the table."""

    workload: str
    states: int
    graphs: int
    ours: float
    other: float
    sampled: int
    threads: int
    residual: float
    difference: float
    run_sums: int

    @property
    def ratio(self) -> float:
        return self.other / self.ours


@dataclass(frozen=True)
class EncodingTiming:
    """One of the other encodings beside today's way."""

    workload: str
    encoding: str
    graphs: int
    ours: float
    way: str
    other: float
    sampled: int

    @property
    def ratio(self) -> float:
        return self.other / self.ours


def main(
    data_dir: Path | None = None, quick: bool = False, states: tuple[int, ...] | None = None
) -> tuple[list[Timing], list[EncodingTiming]]:
    """Measure and print the tables; ``quick`` on a hundredth of the graphs, to see that it runs."""
    console = Console()
    console.print(
        f"GAPE, γ = 0.02, on {torch.get_num_threads()} threads; the other way: SciPy solve_sylvester per graph "
        "with μ⁻¹, on the number of BLAS threads that suits it best"
    )
    timings, others = [], []
    for name, count in SIZES.items():
        with console.status(f"{name}: preparing the graphs"):
            work = workload(name, data_dir, max(60, count // 100) if quick else count)
        console.print(f"{name}: {work.num_graphs} graphs, {work.origin}")
        for k in states or (20, 32):
            with console.status(f"{name}: timing k = {k}"):
                timings.append(time_gape(work, k, slow_seconds=1.0 if quick else SLOW_SECONDS))
        for comparison in comparisons():
            with console.status(f"{name}: timing {comparison.name}"):
                others.append(time_encoding(work, comparison, sample=20 if quick else SAMPLE))
    console.print(table(timings))
    console.print(encoding_table(others))
    return timings, others


def time_gape(work: Workload, states: int, slow_seconds: float = SLOW_SECONDS) -> Timing:
    """Our solver and the authors' on the same graphs, and how much their encodings differ."""
    automaton = gape.Automaton.random(states=states, damping=0.02, seed=0)
    solutions: list[gape.Solution] = []

    def ours() -> None:
        solutions[:] = [gape.solve(automaton, work.graph(), dtype=torch.float32, throw=False)]

    with warnings.catch_warnings(action="ignore", category=AlgebraicOnlyWarning):
        seconds = best_of(REPEATS, ours)
    solution = solutions[0]
    other, sampled, threads, theirs = _time_sylvester(automaton, work, slow_seconds)
    mine = solution.weights[: len(theirs)].numpy()
    return Timing(
        workload=work.name,
        states=states,
        graphs=work.num_graphs,
        ours=seconds,
        other=other,
        sampled=sampled,
        threads=threads,
        residual=float(solution.residual.max()),
        difference=float(np.abs(mine - theirs).max() / np.abs(theirs).max()),
        run_sums=solution.status.count(gape.Status.RUN_SUM),
    )


def time_encoding(work: Workload, comparison: Comparison, sample: int = SAMPLE) -> EncodingTiming:
    """One of our encodings on all graphs, and the other way on a sample of them, scaled up."""
    ours = best_of(3, lambda: _discard(comparison.encoding(work.graph())))
    graphs = single_graphs(work, sample, comparison.smallest)
    ready = [comparison.prepare(graph) for graph in graphs]
    other = best_of(2, lambda: _discard([comparison.compute(graph) for graph in ready]))
    scale = work.num_graphs / len(graphs)
    return EncodingTiming(
        work.name, comparison.name, work.num_graphs, ours, comparison.other, other * scale, len(graphs)
    )


def _discard(result: object) -> None:
    del result


def best_of(repeats: int, function: Callable[[], None]) -> float:
    """The shortest of several runs, in seconds: what the work costs when nothing else disturbs it.

    At least three (or ``repeats``, if that is less), and no more once they have taken ten seconds.
    """
    times: list[float] = []
    while len(times) < repeats and (len(times) < min(3, repeats) or sum(times) < ENOUGH_SECONDS):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def _time_sylvester(
    automaton: gape.Automaton, work: Workload, slow_seconds: float
) -> tuple[float, int, int, np.ndarray[tuple[int, int], np.dtype[np.float32]]]:
    from threadpoolctl import threadpool_limits

    edge_index, ptr, edge_ptr = work.edge_index.numpy(), work.ptr.numpy(), work.edge_ptr
    probe = min(50, work.num_graphs)
    best = None
    for threads in sorted({1, torch.get_num_threads()}):
        with threadpool_limits(threads):
            cost = best_of(2, lambda: (encode_graph_by_graph(automaton, edge_index, ptr, edge_ptr, probe), None)[1])
        if best is None or cost < best[0]:
            best = cost, threads
    assert best is not None
    cost, threads = best
    sample = int(np.clip(slow_seconds / (cost / probe), probe, work.num_graphs))
    with threadpool_limits(threads):
        start = time.perf_counter()
        encoded = encode_graph_by_graph(automaton, edge_index, ptr, edge_ptr, sample)
        elapsed = time.perf_counter() - start
    return elapsed * work.num_graphs / sample, sample, threads, encoded


def table(timings: list[Timing]) -> Table:
    out = Table(title="GAPE: seconds to encode a data set")
    for heading in ("data", "k", "graphs", "ours", "SciPy", "ratio", "residual ≤", "differ by", "run sum"):
        out.add_column(heading, justify="left" if heading == "data" else "right")
    for t in timings:
        out.add_row(
            t.workload,
            str(t.states),
            str(t.graphs),
            f"{t.ours:.3f}",
            f"{t.other:.1f}{'' if t.sampled == t.graphs else ' *'}",
            f"[bold]{t.ratio:.0f}×[/bold]",
            f"{t.residual:.0e}",
            f"{t.difference:.0e}",
            f"{t.run_sums}",
        )
    out.caption = "* extrapolated from a sample. Graphs beyond the run sum have the algebraic solution, as published."
    return out


def encoding_table(timings: list[EncodingTiming]) -> Table:
    out = Table(title="Other encodings: seconds to encode a data set")
    for heading in ("data", "encoding", "graphs", "ours", "other", "way", "ratio"):
        out.add_column(heading, justify="left" if heading in ("data", "encoding", "way") else "right")
    for t in timings:
        other = f"{t.other:.2f}{'' if t.sampled == t.graphs else ' *'}"
        ratio = f"[bold]{t.ratio:.1f}×[/bold]"
        out.add_row(t.workload, t.encoding, str(t.graphs), f"{t.ours:.3f}", other, t.way, ratio)
    out.caption = "* scaled up from a sample"
    return out
