"""Time a mix of encodings that share one eigendecomposition beside the same encodings one by one.

    python benchmarks/mix.py

Processor time, best of several, both sides in turn in one run, on one thread: 2,000 random trees with extra edges of
the size of molecules, and 100 denser graphs of 120 nodes.
"""

import time

import networkx as nx
import torch

import gape
from gape.encodings import make

NAME = "lape+heat+resistance+electrostatic"


def seconds(compute) -> float:
    """Processor time of one call."""
    started = time.process_time()
    compute()
    return time.process_time() - started


def molecules(count: int) -> gape.Graph:
    graphs = []
    for seed in range(count):
        graph = nx.random_labeled_tree(18 + seed % 12, seed=seed)
        nodes = graph.number_of_nodes()
        graph.add_edges_from((i, (i + 5) % nodes) for i in range(0, nodes, 9))
        graphs.append(graph)
    return gape.as_graph(graphs)


def dense(count: int) -> gape.Graph:
    return gape.as_graph([nx.gnp_random_graph(120, 0.25, seed=seed) for seed in range(count)])


def main() -> None:
    torch.set_num_threads(1)
    mixed = make(NAME, **{"resistance.readout": "node"})
    for name, graph, rounds in (("2,000 molecules", molecules(2000), 5), ("100 graphs of 120 nodes", dense(100), 3)):
        times = [
            (seconds(lambda g=graph: mixed(g)), [seconds(lambda g=graph, p=part: p(g)) for part in mixed.parts])
            for _ in range(rounds)
        ]
        together = min(first for first, _ in times)
        alone = [min(each) for each in zip(*(rest for _, rest in times), strict=True)]
        parts = ", ".join(f"{part} {t:.3f} s" for part, t in zip(NAME.split("+"), alone, strict=True))
        print(
            f"{name}: together {together:.3f} s; one by one {sum(alone):.3f} s ({parts}): {sum(alone) / together:.1f}×"
        )


if __name__ == "__main__":
    main()
