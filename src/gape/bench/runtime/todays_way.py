"""How encodings are computed today, to be timed beside ours, graph by graph: SciPy, PyG's transforms, NetworkX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import AddLaplacianEigenvectorPE, AddRandomWalkPE
from torch_geometric.utils import to_networkx

from gape.bench.runtime.sylvester import sylvester_encoding
from gape.bench.runtime.workloads import Workload
from gape.encodings import GAPE, Encoding, Laplacian, RandomWalk, ShortestPath


@dataclass(frozen=True)
class Way:
    """Another way to compute an encoding, one graph after the other.

    Args:
        name: of what does it.
        compute: does it, from what ``prepare`` made of the graph before the clock started.
        agrees: whether what came out is our encoding, given as ``[n, k]`` or ``[n, n]``.
        prepare: what this side has before its clock starts.
        smallest: the fewest nodes for which it works.
    """

    name: str
    compute: Callable[[Any], Any]
    agrees: Callable[[Tensor, Any], bool]
    prepare: Callable[[Data], Any] = lambda data: data
    smallest: int = 0


@dataclass(frozen=True)
class Comparison:
    """One of our encodings, with k features, and the other way; None where there is none to compare with."""

    encoding: str
    k: int | None
    ours: Encoding
    way: Way | None


def comparisons(states: Sequence[int] = (20, 32)) -> list[Comparison]:
    """GAPE against SciPy; RW-20 and LAPE-8 against PyG; shortest paths against NetworkX; and the paper's LAPE-20."""
    machines = [GAPE(states=k) for k in states]
    return [
        *(Comparison("gape", machine.states, machine, _sylvester(machine)) for machine in machines),
        Comparison("rw", 20, RandomWalk(20), _transform(AddRandomWalkPE(20))),
        # PyG's eigenvectors fail on graphs of k + 1 nodes or fewer: with k = 20 on most molecules.
        Comparison("lape", 8, Laplacian(8), _transform(AddLaplacianEigenvectorPE(8, is_undirected=True), smallest=10)),
        Comparison("lape", 20, Laplacian(20), None),
        Comparison("spd", None, ShortestPath(memory=16), _NETWORKX),
    ]


def _sylvester(machine: GAPE) -> Way:
    automaton = machine.automaton

    def compute(data: Data) -> Any:
        matrix = np.zeros((data.num_nodes, data.num_nodes))
        matrix[tuple(data.edge_index.numpy())] = 1.0
        return sylvester_encoding(automaton, matrix)

    return Way("SciPy", compute, lambda ours, theirs: _close(ours, torch.from_numpy(theirs)))


def _close(ours: Tensor, theirs: Tensor) -> bool:
    return bool((ours - theirs).abs().max() <= 1e-3 * theirs.abs().max())


def _transform(transform: Any, smallest: int = 0) -> Way:
    def agrees(ours: Tensor, theirs: Data) -> bool:
        # Up to the sign of each column, which means nothing for eigenvectors.
        other = theirs[transform.attr_name]
        return torch.allclose((ours * other).sum(0).abs(), ours.square().sum(0), atol=1e-3)

    return Way("PyG", lambda data: transform(data.clone()), agrees, smallest=smallest)


def _same_distances(ours: Tensor, theirs: dict[int, dict[int, int]]) -> bool:
    found = ours.tolist()
    return all(found[u][v] == steps for u, reached in theirs.items() for v, steps in reached.items())


_NETWORKX = Way(
    "NetworkX",
    lambda graph: dict(nx.all_pairs_shortest_path_length(graph)),
    _same_distances,
    prepare=lambda data: to_networkx(data, to_undirected=True),
)


def single_graphs(work: Workload, sample: int, smallest: int = 0) -> list[Data]:
    """Up to ``sample`` graphs of a workload as PyG ``Data``, evenly chosen."""
    edge_ptr, ptr = work.edge_ptr, work.ptr.tolist()
    large = [i for i in range(work.num_graphs) if ptr[i + 1] - ptr[i] >= smallest]
    return [
        Data(edge_index=work.edge_index[:, edge_ptr[i] : edge_ptr[i + 1]] - ptr[i], num_nodes=ptr[i + 1] - ptr[i])
        for i in large[:: max(1, -(-len(large) // sample))]
    ]
