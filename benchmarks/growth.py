"""Time the encoding of random sparse directed graphs from 10⁶ to 2·10⁷ edges.

At every size, the whole encoding (validate, sort, solve, certify, round to float32) is compared with the minimum it
needs: as many sparse matrix-vector products on a sorted matrix, and one [n, T]·[T, k] product. Prints both, their ratio
and the peak memory of the process.

    python benchmarks/growth.py [--edges 1e6 3e6 1e7 2e7] [--states 32] [--degree 10]
"""

import argparse
import resource

import torch

import gape
from gape.experiments.runtime.measurement import best_of


def measure(edges: int, degree: int, automaton: gape.Automaton) -> str:
    nodes = edges // degree
    index = torch.randint(0, nodes, (2, edges), generator=torch.Generator().manual_seed(edges))
    solutions: list[gape.Solution] = []

    def ours() -> None:
        solutions[:] = [gape.solve(automaton, gape.Graph(index, nodes), dtype=torch.float32)]

    seconds = best_of(20, ours)
    steps, residual = solutions[0].steps, float(solutions[0].residual.max())
    solutions.clear()
    adjacency = gape.Graph(index, nodes).adjacency
    adjacency.push(torch.ones(nodes, dtype=torch.float64))  # sorts the matrix
    coefficients = torch.randn(steps, automaton.states, dtype=torch.float64)

    def bare() -> None:
        walks = [torch.ones(nodes, dtype=torch.float64)]
        for _ in range(steps):
            walks.append(adjacency.push(walks[-1]))
        torch.stack(walks[:-1]).T @ coefficients

    minimum = best_of(20, bare)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return (
        f"{edges:12d} {nodes:10d} {steps:6d} {seconds:8.3f} {minimum:8.3f} {seconds / minimum:5.2f}× "
        f"{residual:9.0e} {peak:8.2f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=float, nargs="+", default=[1e6, 3e6, 1e7, 2e7])
    parser.add_argument("--states", type=int, default=32)
    parser.add_argument("--degree", type=int, default=10)
    options = parser.parse_args()
    automaton = gape.Automaton.random(states=options.states, damping=0.02, seed=0)
    headings = ("edges", 12), ("nodes", 10), ("steps", 6), ("ours s", 8), ("bare s", 8), ("ratio", 6), ("residual", 9)
    print(" ".join(f"{name:>{width}}" for name, width in (*headings, ("peak GB", 8))))
    for edges in options.edges:
        print(measure(int(edges), options.degree, automaton), flush=True)


if __name__ == "__main__":
    main()
