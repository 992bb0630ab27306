"""How encodings are computed today, graph by graph, to be timed beside ours: SciPy, PyG, NumPy, NetworkX."""

from __future__ import annotations

import random
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

from gape.encodings import (
    GAPE,
    PRESETS,
    Encoding,
    Laplacian,
    PageRankPowers,
    RandomWalk,
    ShortestPath,
    Spectrum,
    make,
)
from gape.encodings.node_softmax import node_softmax
from gape.experiments.graph_tasks.registry import find_row
from gape.experiments.runtime.by_numpy import laplacian_encoding, pagerank_encoding, spectral_encoding
from gape.experiments.runtime.sylvester import sylvester_encoding
from gape.experiments.runtime.workloads import Workload
from gape.graph.convert import as_graph
from gape.graph.labels import OneLabel


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
    """One of our encodings, with k features, and the other way."""

    encoding: str
    k: int | None
    ours: Encoding
    way: Way


def comparisons(states: Sequence[int] = (20, 32)) -> list[Comparison]:
    """Every encoding of the paper's comparison, with the paper's k = 20 where nothing else is said."""
    stars = [name for name in PRESETS if name != "gape"]
    vectors = AddLaplacianEigenvectorPE(8, is_undirected=True)
    return [
        *(_gape("gape", k) for k in states),
        *(_gape(name, 20) for name in stars),
        Comparison("rw", 20, RandomWalk(20), _transform(AddRandomWalkPE(20), _same)),
        Comparison("pprp", 20, PageRankPowers(20), _dense(_same, pagerank_encoding, 20, PageRankPowers().beta)),
        # PyG's eigenvectors fail on graphs of k + 1 nodes or fewer: with k = 20 on most molecules.
        Comparison("lape", 8, Laplacian(8), _transform(vectors, _same_up_to_signs, smallest=10)),
        Comparison("lape", 20, Laplacian(20), _dense(_same_up_to_signs, laplacian_encoding, 20)),
        Comparison("sa", 10, Spectrum(10), _dense(_same_up_to_signs, spectral_encoding, 10)),
        Comparison("spd", None, ShortestPath(memory=16), _NETWORKX),
    ]


def source_of(machine: GAPE, data: Data) -> Any:
    """αℓ of one graph, ``[k, n]`` in float64, as :func:`sylvester_encoding` takes it."""
    automaton, graph = machine.automaton, machine.labelled(as_graph(data))
    if machine.initial == "softmax_nodes":
        return node_softmax(automaton, graph).T.numpy()
    labels = OneLabel()(graph) if graph.labels is None else graph.labels
    return automaton.initial[:, labels].numpy()


def _gape(name: str, states: int) -> Comparison:
    """GAPE as in the comparison, and SciPy with the same automaton and the same labels."""
    machine = make(name, **find_row(name).options, states=states)
    assert isinstance(machine, GAPE)
    transition = machine.automaton.transition.numpy()

    def prepare(data: Data) -> tuple[Data, Any]:
        return data, source_of(machine, data)

    return Comparison(
        name,
        states,
        machine,
        Way("SciPy", lambda ready: sylvester_encoding(transition, matrix_of(ready[0]), ready[1]), _close, prepare),
    )


def _dense(same: Callable[[Tensor, Any], bool], encode: Callable[..., Any], *settings: Any) -> Way:
    return Way("NumPy", lambda data: encode(matrix_of(data), *settings), same)


def matrix_of(data: Data) -> Any:
    """The dense adjacency matrix of one graph."""
    matrix = np.zeros((data.num_nodes, data.num_nodes))
    matrix[tuple(data.edge_index.numpy())] = 1.0
    return matrix


def _close(ours: Tensor, theirs: Any) -> bool:
    other = torch.from_numpy(theirs)
    return bool((ours - other).abs().max() <= 1e-3 * other.abs().max())


def _same(ours: Tensor, theirs: Any) -> bool:
    return torch.allclose(ours, torch.from_numpy(theirs), atol=1e-4)


def _same_up_to_signs(ours: Tensor, theirs: Any) -> bool:
    return torch.allclose(ours.abs(), torch.from_numpy(theirs).abs(), atol=1e-3, equal_nan=True)


def _transform(transform: Any, same: Callable[[Tensor, Any], bool], smallest: int = 0) -> Way:
    def compute(data: Data) -> Any:
        return transform(data.clone())[transform.attr_name].numpy()

    return Way("PyG", compute, same, smallest=smallest)


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
    """Up to ``sample`` graphs of a workload as PyG ``Data``, always the same random ones."""
    edge_ptr, ptr = work.edge_ptr, work.ptr.tolist()
    large = [i for i in range(work.num_graphs) if ptr[i + 1] - ptr[i] >= smallest]
    return [
        Data(edge_index=work.edge_index[:, edge_ptr[i] : edge_ptr[i + 1]] - ptr[i], num_nodes=ptr[i + 1] - ptr[i])
        # Not every so many: data sets come in pairs, class by class.
        for i in random.Random(0).sample(large, min(sample, len(large)))
    ]
