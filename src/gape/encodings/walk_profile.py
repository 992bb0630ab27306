"""Walks by their steps forward and backward, by an automaton typed by the direction of an edge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, get_args

import torch
from torch import Tensor

from gape._internal.validation import check_at_least, check_one_of
from gape.automaton import Automaton
from gape.encodings.base import DenseEncoding, DenseReadout
from gape.encodings.pairs import Pairs
from gape.graph.batching import Block, blocks
from gape.graph.graph import Graph
from gape.solvers.solve import solve

ProfileReadout = Literal["node", DenseReadout]
ProfileMatrix = Literal["random_walk", "adjacency"]


@dataclass(frozen=True)
class WalkProfile(DenseEncoding):
    r"""Walks by their numbers of steps forward and backward, for directed graphs (Huang, Wang & Li, 2025).

    Feature (i, j) is the weight of the walks with i steps along edges and j steps against them, in any order. The node
    readout is that of an automaton typed by the direction of the edge (:attr:`automaton`): state (i, j) goes to
    (i + 1, j) on the letter forward and to (i, j + 1) on backward; sparse, so graphs may be large. Features are ordered
    by i + j, then by i: (0, 0), (0, 1), (1, 0), (0, 2), … Permutation-equivariant.

    Args:
        length: largest number of steps i + j.
        matrix: "random_walk", each step chooses among all edges of a node in either direction with probability
            proportional to their weights, or "adjacency", the number of walks (with weights: the sum of products).
        readout: "node", walks from anywhere that end in the node; "closed", walks back to where they began; "pair",
            walks between all pairs of nodes, row to column. The last two use dense matrices.
        memory: memory limit, in GiB, for the dense matrices of one graph and the pairs of all.

    Returns, when called on a graph: ``[num_nodes, (length + 1)(length + 2)/2]``, or :class:`Pairs`.

    Example:
        >>> path = Graph.from_edges([(0, 1), (1, 2)])
        >>> WalkProfile(length=2, matrix="adjacency")(path)[2]  # 0 → 1 → 2, 1 → 2, and 2 ← 1 → 2
        tensor([1., 0., 1., 0., 1., 1.])
    """

    length: int = 4
    matrix: ProfileMatrix = "random_walk"
    readout: ProfileReadout = field(default="node", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(1, length=self.length)
        check_one_of(get_args(ProfileMatrix), matrix=self.matrix)

    @property
    def steps(self) -> list[tuple[int, int]]:
        """Steps forward and backward of each feature."""
        return [(i, total - i) for total in range(self.length + 1) for i in range(total + 1)]

    @property
    def channels(self) -> int:
        return len(self.steps)

    @property
    def matrices(self) -> int:
        return 2 * self.length + 12 + (2 * self.channels if self.pairwise else 0)

    @property
    def automaton(self) -> Automaton:
        """The automaton with one state per feature and the letters forward (edge type 0) and backward (1)."""
        place = {pair: state for state, pair in enumerate(self.steps)}
        initial = torch.zeros(len(place), 1, dtype=torch.float64)
        transition = torch.zeros(2, len(place), len(place), dtype=torch.float64)
        initial[0] = 1.0
        for (i, j), state in place.items():
            for letter, after in enumerate([(i + 1, j), (i, j + 1)]):
                if after in place:
                    transition[letter, state, place[after]] = 1.0
        return Automaton(initial, transition, transition_by="edge")

    def compute(self, graph: Graph) -> Tensor | Pairs:
        if self.readout != "node":
            return super().compute(graph)
        machine = self.automaton.to(graph.device)
        return solve(machine, both_ways(graph), matrix=self.matrix, dtype=self.dtype).weights

    def features(self, part: Graph) -> Iterator[tuple[Block, Tensor]]:
        degree = both_ways(part).walk(self.matrix).left
        for block in blocks(part.walk("adjacency")):
            scale = 1.0 if degree is None else degree[block.nodes].unsqueeze(2)
            yield block, self._profiles(scale * block.matrices, scale * block.matrices.mT)

    def _profiles(self, forward: Tensor, backward: Tensor) -> Tensor:
        """Compute ``[B, n, n, channels]``, or the diagonals, from the weights ``[B, n, n]`` of one step."""
        eye = torch.eye(forward.shape[1], dtype=forward.dtype, device=forward.device)
        last, found = [eye.expand_as(forward)], []
        for total in range(self.length + 1):
            if total:
                longer = [walks @ backward for walks in last] + [torch.zeros_like(forward)]
                for i, walks in enumerate(last):
                    longer[i + 1] = longer[i + 1] + walks @ forward
                last = longer
            found += last if self.pairwise else [walks.diagonal(dim1=-2, dim2=-1).clone() for walks in last]
        return torch.stack(found, -1)


def both_ways(graph: Graph) -> Graph:
    """Return the graph with every edge in its own direction, type 0, and once more in the other, type 1."""
    edges = graph.num_edges
    weight = graph.edge_weight
    return Graph(
        torch.cat([graph.edge_index, graph.edge_index.flip(0)], 1),
        graph.num_nodes,
        edge_weight=None if weight is None else torch.cat([weight, weight]),
        edge_type=torch.arange(2, device=graph.device).repeat_interleave(edges),
        ptr=graph.ptr,
        _trusted=True,
    )
