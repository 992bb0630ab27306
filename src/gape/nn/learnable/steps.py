r"""One step of runs along the edges, for transitions of every kind: Y_v = Σ_{e: u→v} A_e X_u μ(ℓ(u), type(e)).

X holds ``[n, columns, k]`` numbers, a column for runs that are followed apart from others. Nodes of the same label lie
together, so each label and edge type is one matrix product over all its nodes; then every node sums the rows that its
edges bring, weighted, which is one ``embedding_bag`` over the edges, and over the reversed edges in the backward pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from torch import Tensor

from gape.graph.walk_matrix import WalkMatrix

Bags = tuple[Tensor, Tensor, Tensor]


@dataclass(frozen=True, eq=False)
class Steps:
    """The edges of a batch whose nodes are sorted by label.

    Args:
        rows: ``[E]``, where each edge starts: ``type · n + u``.
        target: ``[E]``, where it ends.
        weights: ``[E]``.
        sizes: how many nodes have each label, in order; one entry for all nodes if labels do not matter.
        types: number of edge types R.
    """

    rows: Tensor
    target: Tensor
    weights: Tensor
    sizes: tuple[int, ...]
    types: int

    @classmethod
    def of(cls, walk: WalkMatrix, edge_type: Tensor | None, types: int, dtype: torch.dtype) -> Steps:
        """The steps along a walk matrix, nodes in their own order; ``edge_type`` ``[E]`` where transitions go by it."""
        source, target, values = (part.detach() for part in walk.entries())
        if edge_type is not None:
            if len(edge_type) != len(source):
                raise ValueError(
                    f"transitions by edge type need a walk matrix of edges only, got {walk.name!r}, whose diagonal "
                    "belongs to no edge; use 'adjacency', 'random_walk', 'random_walk_in' or 'symmetric'"
                )
            source = source + edge_type * walk.num_nodes
        return cls(source, target, values.to(dtype), (walk.num_nodes,), types)

    @property
    def num_nodes(self) -> int:
        return sum(self.sizes)

    def among(self, nodes: Tensor, sizes: tuple[int, ...]) -> Steps:
        """The steps among some of the nodes, in that order, which is by label; no edge may lead out of them."""
        old, new = self.num_nodes, len(nodes)
        number = torch.full((old,), -1, device=nodes.device)
        number[nodes] = torch.arange(new, device=nodes.device)
        inside = number[self.target] >= 0
        rows = self.rows[inside]
        rows = number[rows % old] + rows // old * new
        return Steps(rows, number[self.target[inside]], self.weights[inside], sizes, self.types)

    def table(self, x: Tensor) -> Tensor:
        """Room for the products of a step, ``[R, n, c, k]``, to be used for many."""
        return x.new_empty(self.types, *x.shape)

    def forward(self, x: Tensor, matrices: Tensor, table: Tensor) -> Tensor:
        """``[n, c, k]`` one step on, for ``matrices`` ``[labels or 1, R, k, k]``."""
        for label, a, b in self._groups:
            for kind in range(self.types):
                torch.mm(_flat(x[a:b]), matrices[label, kind], out=_flat(table[kind, a:b]))
        return _sum(self._arriving, table.view(-1, x[0].numel())).view_as(x)

    def backward(self, gradient: Tensor, x: Tensor, matrices: Tensor, to_matrices: Tensor) -> Tensor:
        """The gradient of ``x`` from that of the step's result; adds that of the matrices to ``to_matrices``."""
        back = _sum(self._leaving, gradient.view(len(gradient), -1)).view(self.types, *x.shape)
        to_x = torch.empty_like(x)
        for label, a, b in self._groups:
            for kind in range(self.types):
                come, here = _flat(back[kind, a:b]), _flat(to_x[a:b])
                to_matrices[label, kind].addmm_(_flat(x[a:b]).T, come)
                if kind:
                    here.addmm_(come, matrices[label, kind].T)
                else:
                    torch.mm(come, matrices[label, kind].T, out=here)
        return to_x

    @cached_property
    def _groups(self) -> list[tuple[int, int, int]]:
        """Label, first and last node of each group that has nodes."""
        found, first = [], 0
        for label, size in enumerate(self.sizes):
            if size:
                found.append((label, first, first + size))
            first += size
        return found

    @cached_property
    def _arriving(self) -> Bags:
        return _bags(self.target, self.rows, self.weights, self.num_nodes)

    @cached_property
    def _leaving(self) -> Bags:
        return _bags(self.rows, self.target, self.weights, self.num_nodes * self.types)


def _flat(x: Tensor) -> Tensor:
    return x.view(-1, x.shape[-1])


def _bags(group: Tensor, members: Tensor, weights: Tensor, count: int) -> Bags:
    """Members sorted by group, where each group begins, and their weights."""
    order, sizes = torch.argsort(group, stable=True), torch.bincount(group, minlength=count)
    return members[order], sizes.cumsum(0) - sizes, weights[order]


def _sum(bags: Bags, table: Tensor) -> Tensor:
    members, starts, weights = bags
    return F.embedding_bag(members, table, starts, mode="sum", per_sample_weights=weights)
