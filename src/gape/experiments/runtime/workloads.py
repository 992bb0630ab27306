"""The three graph sets of the paper's runtime table, as collated index tensors."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

import gape

# Graphs timed in the paper's Table 2.
SIZES = {"ZINC": 12_000, "CYCLES": 11_200, "PATTERN": 12_000}


@dataclass(frozen=True, eq=False)
class Workload:
    """Graphs in PyG's collated form: consecutive node indices over the batch, edges sorted by source."""

    name: str
    origin: str
    edge_index: Tensor
    num_nodes: int
    ptr: Tensor

    @property
    def num_graphs(self) -> int:
        return len(self.ptr) - 1

    def graph(self) -> gape.Graph:
        """Return a new graph object, with nothing cached."""
        return gape.Graph(self.edge_index, self.num_nodes, ptr=self.ptr)

    @property
    def edge_ptr(self) -> np.ndarray[Any, Any]:
        return np.asarray(np.searchsorted(self.edge_index[0].numpy(), self.ptr.numpy()))


def workload(name: str, data_dir: Path | None = None, graphs: int | None = None, seed: int = 0) -> Workload:
    """Return one of ``SIZES``; with ``graphs``, fewer than the paper's number."""
    if name not in SIZES:
        raise ValueError(f"there is no workload {name!r}; there are {', '.join(SIZES)}")
    count = graphs or SIZES[name]
    if name == "ZINC":
        return _zinc(data_dir, count, seed)
    from gape.data import load

    if name == "CYCLES":
        # Connected graphs: eigenvectors of several components are not unique, and could not be compared.
        data = load("cycles", variant="matched", train=2, val=2, test=max(2, count + count % 2 - 4), seed=seed)
    else:
        patterns = min(100, -(-count // 3))
        data = load("pattern", patterns=patterns, train=-(-count // patterns) - 2, val=1, test=1, seed=seed)
    return _collated(name, "generated", data, count)


def _zinc(data_dir: Path | None, count: int, seed: int) -> Workload:
    from gape.data import load
    from gape.data.raw_files import data_folder

    folder = data_folder(data_dir)
    if folder is not None:
        return _collated("ZINC", "real ZINC-12K", load("zinc", folder), count)
    rng = np.random.default_rng(seed)
    graphs = [molecule_like(rng) for _ in range(count)]
    return _workload(gape.Graph.union(graphs), "ZINC", "generated alike: give --data-dir for the real ones")


def _collated(name: str, origin: str, data: Any, count: int) -> Workload:
    whole = gape.as_graph(data)
    return _workload(whole.slice(0, min(count, whole.num_graphs)), name, origin)


def _workload(graph: gape.Graph, name: str, origin: str) -> Workload:
    source, target = graph.edge_index
    order = np.lexsort((target.numpy(), source.numpy()))
    return Workload(name, origin, graph.edge_index[:, order].contiguous(), graph.num_nodes, graph.ptr)


def molecule_like(rng: np.random.Generator) -> gape.Graph:
    """Draw a random graph of the size and shape of a ZINC molecule: a tree of degree ≤ 3 with two or three rings."""
    n = int(np.clip(rng.normal(23.2, 4.5), 9, 37))
    parent = np.zeros(n, dtype=int)
    degree = np.zeros(n, dtype=int)
    for node in range(1, n):
        recent = [u for u in range(max(0, node - 4), node) if degree[u] < 3]
        parent[node] = recent[int(rng.integers(len(recent)))] if recent else node - 1
        degree[[node, parent[node]]] += 1
    edges = {(int(parent[v]), v) for v in range(1, n)}
    for _ in range(int(rng.integers(2, 4))):
        start = int(rng.integers(n))
        end = start
        for _ in range(int(rng.integers(4, 6))):
            end = int(parent[end])
        if end != start and (end, start) not in edges and degree[start] < 4 and degree[end] < 4:
            edges.add((end, start))
            degree[[start, end]] += 1
    return gape.Graph.from_edges(sorted(edges), num_nodes=n, undirected=True)
