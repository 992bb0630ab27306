"""How encodings are computed today, to be timed beside ours: PyG's transforms and NetworkX, graph by graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx
from torch_geometric.data import Data
from torch_geometric.transforms import AddLaplacianEigenvectorPE, AddRandomWalkPE
from torch_geometric.utils import to_networkx

from gape.bench.workloads import Workload
from gape.encodings import Encoding, Laplacian, RandomWalk, ShortestPath


@dataclass(frozen=True)
class Comparison:
    """One of our encodings and what it is compared with.

    Args:
        name: of the row.
        encoding: ours.
        other: the name of the other way.
        prepare: what the other side has before its clock starts, from one graph.
        compute: what it does then.
        smallest: the fewest nodes for which the other side works.
    """

    name: str
    encoding: Encoding
    other: str
    prepare: Callable[[Data], Any]
    compute: Callable[[Any], Any]
    smallest: int = 0


def _itself(data: Data) -> Data:
    return data


def _distances(graph: nx.Graph) -> dict[int, dict[int, int]]:
    return dict(nx.all_pairs_shortest_path_length(graph))


def _undirected(data: Data) -> nx.Graph:
    return to_networkx(data, to_undirected=True)


def comparisons() -> list[Comparison]:
    """RW-20 and LAPE-8 against PyG's transforms as they are mapped over a data set, shortest paths against NetworkX."""
    walk, vectors = AddRandomWalkPE(20), AddLaplacianEigenvectorPE(8, is_undirected=True)
    return [
        Comparison("RW, 20 steps", RandomWalk(20), "PyG", _itself, lambda data: walk(data.clone())),
        # PyG's eigenvectors fail on graphs of k + 1 nodes or fewer.
        Comparison("LAPE, 8 vectors", Laplacian(8), "PyG", _itself, lambda data: vectors(data.clone()), smallest=10),
        Comparison("SPD", ShortestPath(memory=16), "NetworkX", _undirected, _distances),
    ]


def single_graphs(work: Workload, sample: int, smallest: int) -> Sequence[Data]:
    """Up to ``sample`` graphs of a workload as PyG ``Data``, evenly chosen."""
    edge_ptr, ptr = work.edge_ptr, work.ptr.tolist()
    chosen = [
        i for i in range(0, work.num_graphs, max(1, work.num_graphs // sample)) if ptr[i + 1] - ptr[i] >= smallest
    ]
    return [
        Data(edge_index=work.edge_index[:, edge_ptr[i] : edge_ptr[i + 1]] - ptr[i], num_nodes=ptr[i + 1] - ptr[i])
        for i in chosen
    ]
