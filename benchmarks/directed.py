"""GAPE on batches of small directed graphs, inside and beyond the range where runs converge: kernels and PyTorch.

    python benchmarks/directed.py [--graphs 2000] [--nodes 23] [--repeats 5]

Random graphs with two edges per node, k = 20, float32, relative residual 1e-10, with certificates. Both ways in one
run, as processor time of all threads: best (mean) of the repeats.
"""

import argparse
import time
import warnings
from collections import Counter
from statistics import fmean

import torch
from rich.console import Console
from rich.table import Table

import gape
from gape import native


def draw(graphs: int, nodes: int) -> gape.Graph:
    generator = torch.Generator().manual_seed(0)
    start = torch.arange(graphs).repeat_interleave(2 * nodes) * nodes
    edges = torch.randint(nodes, (2, 2 * nodes * graphs), generator=generator) + start
    return gape.Graph(edges, graphs * nodes, ptr=torch.arange(graphs + 1) * nodes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", type=int, default=2000)
    parser.add_argument("--nodes", type=int, default=23)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    console = Console(width=140)
    console.print(f"{native.description()}; {torch.get_num_threads()} threads; {options.graphs} graphs")
    table = Table("damping", "kernels, s", "PyTorch, s", "times faster", "largest difference", "status", "solvers")
    for damping in (0.02, 0.3, 0.45, 1.0):
        automaton = gape.Automaton.random(states=20, damping=damping, seed=0)

        def solve(automaton: gape.Automaton = automaton) -> tuple[float, gape.solvers.Solution]:
            graph = draw(options.graphs, options.nodes)
            start = time.process_time()
            solution = gape.solve(automaton, graph, dtype=torch.float32, throw=False)
            return time.process_time() - start, solution

        ours = [solve() for _ in range(options.repeats)]
        with native.switched_off():
            theirs = [solve() for _ in range(options.repeats)]
        first, second = ([seconds for seconds, _ in runs] for runs in (ours, theirs))
        found, expected = ours[0][1], theirs[0][1]
        gap = float((found.weights - expected.weights).abs().max() / expected.weights.abs().max())
        status = Counter(status.name for status in found.status)
        table.add_row(
            f"{damping}",
            *(f"{min(times):.3f} ({fmean(times):.3f})" for times in (first, second)),
            f"{min(second) / min(first):.1f} ({fmean(second) / fmean(first):.1f})",
            f"{gap:.0e}",
            ", ".join(f"{count} {name}" for name, count in status.items()),
            ", ".join(sorted(set(found.solver))),
        )
    console.print(table)


if __name__ == "__main__":
    main()
