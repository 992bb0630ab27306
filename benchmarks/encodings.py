"""Our encodings beside those that people use today, in one run: seconds, ratios, and whether the values agree.

The other side is PyG's ``AddRandomWalkPE(20)`` and ``AddLaplacianEigenvectorPE(8)``, mapped over the graphs as a
``transform`` is, and NetworkX's all-pairs shortest paths. Where the other side is slow, it runs on a sample and its
time is scaled up; the table says so. Ours starts from a collated batch, the other side from PyG ``Data``; both use the
same number of threads. Graphs on which the values disagree are those with multiple eigenvalues (any basis is right) or
several components (of which the other side drops only one trivial eigenvector).

    python benchmarks/encodings.py [--molecules 12000] [--patterns 1000] [--sample 500] [--rounds 3] [--clock cpu]

ZINC is read from the folder named by ``GAPE_DATA``; without it, random molecules-like trees with rings stand in.
PATTERN graphs are generated.
"""

import argparse
import time
from collections.abc import Callable, Sequence
from typing import Any

import networkx as nx
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.transforms import AddLaplacianEigenvectorPE, AddRandomWalkPE
from torch_geometric.utils import to_networkx

import gape
from gape.data import Pattern, load
from gape.encodings import Encoding, Laplacian, RandomWalk, ShortestPath

CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}
clock = time.perf_counter


def best_of(rounds: int, work: Callable[[], Any]) -> float:
    seconds = []
    for _ in range(rounds):
        start = clock()
        work()
        seconds.append(clock() - start)
    return min(seconds)


def zinc_like(graphs: int) -> tuple[str, list[Data]]:
    try:
        dataset = load("zinc", source="file")
    except (ValueError, OSError):
        return "trees with rings", [_molecule(seed) for seed in range(graphs)]
    return "ZINC", [dataset[i] for i in range(min(graphs, len(dataset)))]


def _molecule(seed: int) -> Data:
    tree = nx.random_labeled_tree(23, seed=seed)
    tree.add_edges_from([(0, 5), (6, 11), (12, 17)])
    edges = torch.tensor(list(tree.edges)).T
    return Data(edge_index=torch.cat([edges, edges.flip(0)], 1), num_nodes=23)


def pattern_like(graphs: int) -> tuple[str, list[Data]]:
    dataset = Pattern(train=max(1, graphs // 100), val=1, test=1).build(cache=False, show=False)
    return "PATTERN", [dataset[i] for i in range(min(graphs, len(dataset)))]


def compare(title: str, graphs: Sequence[Data], encoding: Encoding, theirs: Any, rounds: int, sample: int) -> None:
    batch = Batch.from_data_list(list(graphs))
    ours = best_of(rounds, lambda: gape.encode(gape.Graph(batch.edge_index, batch.num_nodes, ptr=batch.ptr), encoding))
    some = list(graphs[:: max(1, len(graphs) // sample)])
    other = best_of(min(rounds, 2), lambda: [theirs(graph.clone()) for graph in some]) * len(graphs) / len(some)
    agree = sum(
        same_up_to_sign(gape.encode(graph, encoding), theirs(graph.clone())[theirs.attr_name]) for graph in some
    )
    report(title, graphs, ours, other, f"other on {len(some)} graphs, scaled up; {agree} of these agree")


def same_up_to_sign(ours: torch.Tensor, other: torch.Tensor) -> bool:
    return torch.allclose((ours * other).sum(0).abs(), ours.square().sum(0), atol=1e-3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--molecules", type=int, default=12_000, help="graphs of ZINC")
    parser.add_argument("--patterns", type=int, default=1_000, help="graphs of PATTERN")
    parser.add_argument("--sample", type=int, default=500, help="graphs that the other side is timed on")
    parser.add_argument("--rounds", type=int, default=3, help="repetitions; the fastest counts")
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="cpu: for a machine that others use too")
    arguments = parser.parse_args()
    global clock
    clock = CLOCKS[arguments.clock]
    print(f"{torch.get_num_threads()} threads, PyTorch {torch.__version__}, {arguments.clock} seconds")
    walk, eigenvectors = AddRandomWalkPE(20), AddLaplacianEigenvectorPE(8, is_undirected=True)
    for name, graphs in (zinc_like(arguments.molecules), pattern_like(arguments.patterns)):
        graphs = [Data(edge_index=g.edge_index, num_nodes=g.num_nodes) for g in graphs]
        timed = {"rounds": arguments.rounds, "sample": arguments.sample}
        compare(f"{name}: random walk, 20 steps", graphs, RandomWalk(20), walk, **timed)
        larger = [g for g in graphs if g.num_nodes > 9]  # PyG's eigenvectors need more than k + 1 nodes
        compare(f"{name}: Laplacian, 8 vectors", larger, Laplacian(8), eigenvectors, **timed)
        as_networkx = {id(g): to_networkx(g, to_undirected=True) for g in graphs[:: max(1, len(graphs) // 200)]}
        some = [g for g in graphs if id(g) in as_networkx]
        compare_distances(f"{name}: shortest paths", graphs, some, list(as_networkx.values()), arguments.rounds)


def compare_distances(title: str, graphs: Sequence[Data], some: Sequence[Data], others: list[Any], rounds: int) -> None:
    batch = Batch.from_data_list(list(graphs))
    encoding = ShortestPath(memory=16)
    ours = best_of(rounds, lambda: gape.encode(gape.Graph(batch.edge_index, batch.num_nodes, ptr=batch.ptr), encoding))
    other = best_of(rounds, lambda: [dict(nx.all_pairs_shortest_path_length(graph)) for graph in others])
    other *= len(graphs) / len(some)
    agree = 0
    for data, graph in zip(some, others, strict=True):
        found = gape.encode(data, encoding).matrices()[0].tolist()
        expected = nx.all_pairs_shortest_path_length(graph)
        agree += all(found[u][v] == steps for u, reached in expected for v, steps in reached.items())
    report(title, graphs, ours, other, f"other on {len(some)} graphs, scaled up; {agree} of these agree")


def report(title: str, graphs: Sequence[Data], ours: float, other: float, note: str) -> None:
    print(
        f"{title:34} {len(graphs):6} graphs  ours {ours:7.3f} s  other {other:7.2f} s  {other / ours:5.1f}×  ({note})"
    )


if __name__ == "__main__":
    main()
