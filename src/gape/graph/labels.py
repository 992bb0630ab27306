"""Node labellings: one label, random, by index, by degree.

A labelling is a callable from a :class:`Graph` to ``[n]`` integers; ``graph.with_labels(labelling)`` attaches them.
:class:`OneLabel` and :class:`DegreeLabels` follow the nodes when these are renumbered (they keep encodings permutation
equivariant), and so do labels of your own, such as atom types, that are carried along with the nodes.
:class:`RandomLabels` and :class:`IndexLabels` depend on the node numbers: **they break permutation equivariance**.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gape._internal.validation import seed_number, whole_number
from gape.graph.graph import Graph
from gape.linalg.integers import digest_edges, mix, uniform_integers


@dataclass(frozen=True)
class OneLabel:
    """Every node has label 0 (base GAPE). Permutation-equivariant.

    Example:
        >>> OneLabel()(Graph.from_edges([(0, 1)])).tolist()
        [0, 0]
    """

    count: int = 1

    def __post_init__(self) -> None:
        whole_number(self.count, "count", at_least=1)

    def __call__(self, graph: Graph) -> Tensor:
        return torch.zeros(graph.num_nodes, dtype=torch.int64, device=graph.device)


@dataclass(frozen=True)
class RandomLabels:
    """Each node draws one of ``count`` labels (the paper's m = 20 variants). **Breaks permutation equivariance.**

    The draw depends on the seed, on the graph (its size and weighted edges, in any order) and on the node's number in
    it, and on nothing else: the same graph gets the same labels alone, in any batch, on any device.

    Example:
        >>> labels = RandomLabels(20, seed=1)(Graph.from_edges([(0, 1), (1, 2)]))
        >>> labels.tolist() == RandomLabels(20, seed=1)(Graph.from_edges([(1, 2), (0, 1)])).tolist()
        True
    """

    count: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        whole_number(self.count, "count", at_least=1, at_most=2**31 - 1)
        seed_number(self.seed)

    def __call__(self, graph: Graph) -> Tensor:
        adjacency = graph.adjacency
        source, target = graph.edge_index
        weights = adjacency.weights.detach().contiguous().view(torch.int64)
        digest = digest_edges(
            adjacency.local[source], adjacency.local[target], weights, adjacency.batch[source], graph.num_graphs
        )
        keys = mix(mix(digest + graph.sizes) + self.seed)
        return uniform_integers(keys[adjacency.batch] + adjacency.local, self.count)


@dataclass(frozen=True)
class IndexLabels:
    """Node ``i`` of a graph has label ``i`` (the paper's "max" variant). **Breaks permutation equivariance.**

    Args:
        count: how many labels there are; no graph may have more nodes.

    Example:
        >>> IndexLabels(100)(Graph.from_edges([(0, 1), (1, 2)])).tolist()
        [0, 1, 2]
    """

    count: int = 100

    def __post_init__(self) -> None:
        whole_number(self.count, "count", at_least=1)

    def __call__(self, graph: Graph) -> Tensor:
        largest = int(graph.sizes.max())
        if largest > self.count:
            raise ValueError(f"a graph has {largest} nodes and there are only {self.count} index labels; raise count")
        return graph.adjacency.local


@dataclass(frozen=True)
class DegreeLabels:
    """A node's label is its number of incoming edges, at most ``count - 1``. Permutation-equivariant.

    Example:
        >>> DegreeLabels(8)(Graph.from_edges([(0, 1), (1, 2)], undirected=True)).tolist()
        [1, 2, 1]
    """

    count: int = 8

    def __post_init__(self) -> None:
        whole_number(self.count, "count", at_least=1)

    def __call__(self, graph: Graph) -> Tensor:
        return torch.bincount(graph.edge_index[1], minlength=graph.num_nodes).clamp(max=self.count - 1)
