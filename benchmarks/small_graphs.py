"""GAPE on whole datasets of small graphs: compiled kernels, PyTorch, SciPy graph by graph, and a floor, in one run.

    python benchmarks/small_graphs.py [--data-dir FOLDER] [--share 1.0] [--only ZINC]

Times are from collated index tensors to a float32 tensor, with validation and certificates, at a relative residual of
1e-10; SciPy solves a sample of the graphs one by one, with the number of threads that suits it best. The floor is what
no program avoids: read the index tensors once, write the encodings once, and do the multiply-adds of the steps that
were taken at the speed of a dense matrix product. It is measured twice: writing to memory that is kept from call to
call ("floor"), and to new memory ("new"), which the system has to clear and map first, as for every result that is a
new tensor of more than 32 MiB; smaller ones may or may not get memory that is mapped already. The last lines time
``gape-rooted`` on ZINC. A busy machine spoils wall-clock times: the processor time of all threads is printed beside
them.
"""

import argparse
import mmap
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from gape import encodings, native
from gape.experiments.runtime.baselines import comparisons
from gape.experiments.runtime.measurement import best_of, run_times, timed
from gape.experiments.runtime.workloads import SIZES, Workload, workload

STATES = (20, 32)
# Least factor over SciPy at our best, and the largest over the floor.
BARS = {"ZINC": 250, "CYCLES": 250, "PATTERN": 80}
FLOOR_BAR, ROOTED_BAR_SECONDS = 3, 3.0


def dense_speed() -> float:
    """Multiply-adds per second of a dense float64 product."""
    a = torch.rand(768, 768, dtype=torch.float64)
    return 768**3 / best_of(20, lambda: a @ a)


@dataclass(frozen=True)
class Floor:
    """Seconds to read the edges, write the encodings and multiply, one after the other: best and mean."""

    best: float
    mean: float

    @classmethod
    def of(cls, work: Workload, states: int, steps: int, speed: float, write: Callable[[], Any]) -> "Floor":
        products = steps * (work.edge_index.shape[1] + work.num_nodes * states) / speed
        times = [run_times(10, what) for what in (lambda: work.edge_index.sum(), write)]
        return cls(products + sum(map(min, times)), products + sum(map(fmean, times)))


def floors(work: Workload, states: int, steps: int, speed: float) -> tuple[Floor, Floor]:
    """Measure the floor with memory that is kept, and with new memory."""
    kept = torch.ones(work.num_nodes, states)

    def write_new() -> None:
        torch.frombuffer(mmap.mmap(-1, kept.nbytes), dtype=torch.float32).fill_(1.0)

    written = (lambda: kept.fill_(1.0)), write_new
    first, second = (Floor.of(work, states, steps, speed, write) for write in written)
    return first, second


def processor_time(work: Callable[[], Any], repeats: int = 3) -> float:
    """Shortest processor time of all threads, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, help="folder with the real ZINC")
    parser.add_argument("--share", type=float, default=1.0, help="share of the graphs, to see that it works")
    parser.add_argument("--only", choices=SIZES, help="one of the datasets")
    options = parser.parse_args()
    console = Console(width=140)
    console.print(f"{native.description()}; {torch.get_num_threads()} threads; PyTorch {torch.__version__}")
    table = Table(
        *("data", "k", "best s", "mean s", "cpu s", "PyTorch s", "SciPy s", "best ×", "mean ×"),
        *("floor s", "/floor", "new s", "/new"),
    )
    warnings.simplefilter("ignore")
    speed, certificates = dense_speed(), []
    for name in [options.only] if options.only else SIZES:
        work = workload(name, options.data_dir, max(60, int(SIZES[name] * options.share)))
        console.print(f"{name}: {work.num_graphs} graphs, {work.num_nodes} nodes, {work.edge_index.shape[1]} edges")
        for comparison in comparisons(STATES)[: len(STATES)]:
            ours = comparison.ours
            timing = timed(work, comparison)
            cpu = processor_time(lambda ours=ours, work=work: ours(work.graph()))
            with native.switched_off():
                pytorch = best_of(3, lambda ours=ours, work=work: ours(work.graph()))
            best, mean = min(timing.seconds), sum(timing.seconds) / len(timing.seconds)
            kept, new = floors(work, comparison.k, ours.solve(work.graph()).steps, speed)
            numbers = (best, mean, cpu, pytorch, timing.other)
            table.add_row(
                *(name, str(comparison.k), *(f"{x:.4f}" for x in numbers)),
                *(f"{timing.other / best:.0f}", f"{timing.other / mean:.0f}"),
                *(f"{kept.best:.4f}", f"{best / kept.best:.1f}", f"{new.best:.4f}", f"{best / new.best:.1f}"),
            )
            certificates.append(
                f"{name}, k = {comparison.k}: agree {timing.agree}/{timing.compared}; {timing.certificate}; "
                f"mean of the floors {kept.mean:.4f} and {new.mean:.4f} s"
            )
    console.print(table)
    console.print(f"bars: best × at least {BARS}, /floor at most {FLOOR_BAR}")
    console.print("\n".join(certificates))
    if options.only in (None, "ZINC"):
        work = workload("ZINC", options.data_dir, max(60, int(SIZES["ZINC"] * options.share)))
        rooted = encodings.make("gape-rooted")
        seconds = best_of(3, lambda: rooted(work.graph()))
        cpu = processor_time(lambda: rooted(work.graph()), 1)
        console.print(f"gape-rooted: {seconds:.2f} s, {cpu:.2f} s of processor time (bar {ROOTED_BAR_SECONDS} s)")


if __name__ == "__main__":
    main()
