r"""Runs of 1 … T steps, one feature per length and state.

With one μ for all labels and edge types, the powers of A and of μ separate:

    closed_t(v) = (Aᵗ)_vv · α(ℓ(v)) μᵗ,      pair_t(u, v) = (Aᵗ)_uv · α(ℓ(u)) μᵗ.

The powers of A have no parameters, so the return weights (Aᵗ)_vv are computed once and a training step is one product
with T × k numbers (:func:`closed_by_length`, :func:`pair_by_length`).

Otherwise μ depends on the label of the node left and on the type of the edge taken (Definition 2 of Soga & Chiang,
2023), and runs are followed step by step, X_v ← Σ_{e: u→v} A_e X_u μ(ℓ(u), type(e)). Runs into a node need one column,
X ``[n, 1, k]`` (:func:`runs_into`). Closed runs depend on the labels along the way and are followed from each start
separately, X ``[n, starts, k]``: start 0 of all graphs, start 1 of all graphs, … (:func:`runs_back`). This is done
for a few starts at a time: such a chunk only involves graphs with that many nodes, fits into the cache, and is
recomputed in the backward pass (Chen et al., 2016) where keeping all steps of all chunks would exceed the memory limit.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from gape.graph.adjacency import Adjacency
from gape.graph.batching import offsets
from gape.graph.walk_matrix import WalkMatrix, needs_edges_only
from gape.linalg.powers import matrix_powers

# Starts of closed runs that are followed together.
MAX_STARTS = 16

#: Row of each member sorted by group, offset of each group, weight of each member: the input of ``embedding_bag``.
Bags = tuple[Tensor, Tensor, Tensor]


# ---------------------------------------------------------------------- one transition matrix


def weights_by_length(transition: Tensor, initial: Tensor, length: int) -> Tensor:
    """Return αᵀμᵗ for t = 1 … T, the weight of a run of t steps on unit edges: ``[T, m, k]``."""
    term, terms = initial.T, []
    for _ in range(length):
        term = term @ transition
        terms.append(term)
    return torch.stack(terms)


def closed_by_length(returns: Tensor, weights: Tensor, labels: Tensor | None) -> Tensor:
    """Return ``[n, T, k]`` closed runs from return weights ``[n, T]`` and :func:`weights_by_length`."""
    by_node = weights[:, 0].unsqueeze(0) if labels is None else weights[:, labels].transpose(0, 1)
    return returns.unsqueeze(-1) * by_node


def pair_by_length(matrices: Tensor, weights: Tensor, mix: Tensor, labels: Tensor | None) -> Tensor:
    """Return ``[graphs, heads, n, n]``: runs from the column's node to the row's node, summed with weights ``mix``.

    Args:
        matrices: ``[graphs, n, n]``, the walk matrices A.
        weights: :func:`weights_by_length`.
        mix: ``[heads, T · k]``.
        labels: ``[graphs, n]``, node labels, arbitrary in padding; ``None`` if there is only one.
    """
    length, _, states = weights.shape
    walks = matrix_powers(matrices, length)[..., 1:]
    # Contribution of a walk of t steps from label a to each head. Summing over states first avoids n × n × k numbers.
    heads = torch.einsum("tak,htk->ath", weights, mix.reshape(-1, length, states))
    table = walks @ (heads[0] if labels is None else heads[labels])
    return table.permute(0, 3, 2, 1)


# ---------------------------------------------------------------------- transitions by label and edge type


def runs_into(steps: Steps, matrices: Tensor, start: Tensor, labels: Tensor | None, length: int) -> Tensor:
    """Return ``[n, T, k]``: weight of the runs of 1 … T steps into each node and state.

    Args:
        steps: the edges.
        matrices: ``[labels or 1, R, k, k]``, μ for each label and edge type.
        start: ``[n, k]``, initial weights of each node.
        labels: ``[n]``, ``None`` if μ does not depend on them.
        length: T.
    """
    nodes, sizes = _by_label(torch.arange(len(start), device=start.device), labels, len(matrices))
    rows = torch.arange(len(nodes), device=nodes.device)
    runs = StepwiseRuns(steps.among(nodes, sizes), rows, width=1, length=length, keep=True)
    found = runs(matrices, start[nodes])
    return torch.empty_like(found).index_copy(0, nodes, found)


def runs_back(
    steps: Steps,
    adjacency: Adjacency,
    matrices: Tensor,
    start: Tensor,
    labels: Tensor | None,
    length: int,
    memory: float,
) -> Tensor:
    """Return ``[n, T, k]``: weight of the runs of 1 … T steps from each node back to itself.

    Args:
        steps, matrices, start, labels, length: as for :func:`runs_into`.
        adjacency: which nodes belong to which graph.
        memory: GiB that may be kept for the backward pass.
    """
    row_bytes = start.shape[1] * start.element_size()
    keep = int(adjacency.sizes.square().sum()) * row_bytes * length <= memory * 2**30
    # A chunk that is recomputed has to fit by itself: all its steps, and the tables of all edge types.
    chunk = max(1, min(MAX_STARTS, int(memory * 2**30 / (len(start) * row_bytes * (length + 2 * steps.types)))))
    size, largest = adjacency.sizes[adjacency.batch], int(adjacency.sizes.max())
    rows, found = [], []
    for first in range(0, largest, chunk):
        nodes, sizes = _by_label((size > first).nonzero().flatten(), labels, len(matrices))
        column = adjacency.local[nodes] - first
        here = ((column >= 0) & (column < chunk)).nonzero().flatten()
        width = min(chunk, largest - first)
        runs = StepwiseRuns(steps.among(nodes, sizes), here * width + column[here], width, length, keep)
        rows.append(nodes[here])
        found.append(runs(matrices, start[rows[-1]]))
    joined = torch.cat(found)
    return torch.empty_like(joined).index_copy(0, torch.cat(rows), joined)


def _by_label(nodes: Tensor, labels: Tensor | None, count: int) -> tuple[Tensor, tuple[int, ...]]:
    """Sort the nodes by label; return them and the number of nodes per label."""
    if labels is None or count == 1:
        return nodes, (len(nodes),)
    chosen = labels[nodes]
    return nodes[torch.argsort(chosen, stable=True)], tuple(torch.bincount(chosen, minlength=count).tolist())


@dataclass(frozen=True, eq=False)
class StepwiseRuns:
    """Runs followed step by step, which start and are read in one column of some nodes.

    Args:
        steps: the edges.
        rows: ``[r]``, ``node · width + column``.
        width: number of columns.
        length: T.
        keep: keep all steps for the backward pass instead of recomputing them.
    """

    steps: Steps
    rows: Tensor
    width: int
    length: int
    keep: bool

    def __call__(self, matrices: Tensor, start: Tensor) -> Tensor:
        """Return the weights after each step, ``[r, T, k]``, differentiable."""
        read: Tensor = _Follow.apply(matrices, start, self)  # type: ignore[no-untyped-call]
        return read

    def follow(self, matrices: Tensor, start: Tensor, keep: bool) -> tuple[Tensor, list[Tensor]]:
        """Return the weights after each step, ``[r, T, k]``, and X before each step if ``keep``."""
        x = start.new_zeros(self.steps.num_nodes, self.width, start.shape[1])
        x.view(-1, start.shape[1]).index_copy_(0, self.rows, start)
        read, kept = start.new_empty(len(start), self.length, start.shape[1]), []
        table = self.steps.table(x)
        for t in range(self.length):
            if keep:
                kept.append(x)
            x = self.steps.forward(x, matrices, table)
            read[:, t] = x.view(-1, start.shape[1]).index_select(0, self.rows)
        return read, kept


class _Follow(torch.autograd.Function):
    """:meth:`StepwiseRuns.follow` with its gradient, computed backwards step by step."""

    @staticmethod
    def forward(ctx: Any, matrices: Tensor, start: Tensor, runs: StepwiseRuns) -> Tensor:
        read, kept = runs.follow(matrices.detach(), start.detach(), runs.keep)
        ctx.save_for_backward(matrices, start, *kept)
        ctx.runs = runs
        return read

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None]:
        runs: StepwiseRuns = ctx.runs
        matrices, start, *kept = ctx.saved_tensors
        if not runs.keep:
            kept = runs.follow(matrices, start, keep=True)[1]
        to_matrices = torch.zeros_like(matrices)
        gradient = torch.zeros_like(kept[0])
        for t in range(runs.length - 1, -1, -1):
            gradient.view(-1, start.shape[1]).index_add_(0, runs.rows, gradients[0][:, t])
            gradient = runs.steps.backward(gradient, kept[t], matrices, to_matrices)
        return to_matrices, gradient.view(-1, start.shape[1]).index_select(0, runs.rows), None


@dataclass(frozen=True, eq=False)
class Steps:
    """The edges of a batch whose nodes are sorted by label.

    Because of the order each label and edge type is one matrix product over all its nodes. Then each node sums the
    weighted rows of its edges, one ``embedding_bag`` over the edges, and over the reversed edges in the backward pass.

    Args:
        rows: ``[E]``, row of the product table that each edge reads: ``type · n + u``.
        target: ``[E]``, the node each edge leads to.
        weights: ``[E]``.
        sizes: number of nodes per label, in order; one entry for all nodes if labels do not matter.
        types: number of edge types R.
    """

    rows: Tensor
    target: Tensor
    weights: Tensor
    sizes: tuple[int, ...]
    types: int

    @classmethod
    def of(cls, walk: WalkMatrix, edge_type: Tensor | None, types: int, dtype: torch.dtype) -> Steps:
        """Take the steps of a walk matrix, nodes in their own order; ``edge_type`` ``[E]`` if μ depends on it."""
        source, target, values = (part.detach() for part in walk.entries())
        if edge_type is not None:
            if len(edge_type) != len(source):
                raise ValueError(needs_edges_only(walk.name))
            source = source + edge_type * walk.num_nodes
        return cls(source, target, values.to(dtype), (walk.num_nodes,), types)

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return sum(self.sizes)

    def among(self, nodes: Tensor, sizes: tuple[int, ...]) -> Steps:
        """Restrict the steps to ``nodes``, which are sorted by label and which no edge may leave."""
        old, new = self.num_nodes, len(nodes)
        number = torch.full((old,), -1, device=nodes.device)
        number[nodes] = torch.arange(new, device=nodes.device)
        inside = number[self.target] >= 0
        rows = self.rows[inside]
        rows = number[rows % old] + rows // old * new
        return Steps(rows, number[self.target[inside]], self.weights[inside], sizes, self.types)

    def table(self, x: Tensor) -> Tensor:
        """Allocate the products of a step, ``[R, n, c, k]``, to be reused by many steps."""
        return x.new_empty(self.types, *x.shape)

    def forward(self, x: Tensor, matrices: Tensor, table: Tensor) -> Tensor:
        """Advance ``[n, c, k]`` by one step, for ``matrices`` ``[labels or 1, R, k, k]``."""
        for label, a, b in self._groups:
            for kind in range(self.types):
                torch.mm(_flat(x[a:b]), matrices[label, kind], out=_flat(table[kind, a:b]))
        return _sum(self._by_target, table.view(-1, x[0].numel())).view_as(x)

    def backward(self, gradient: Tensor, x: Tensor, matrices: Tensor, to_matrices: Tensor) -> Tensor:
        """Return the gradient of ``x`` from that of the step's result; add that of the matrices to ``to_matrices``."""
        back = _sum(self._by_source, gradient.view(len(gradient), -1)).view(self.types, *x.shape)
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
    def _by_target(self) -> Bags:
        return _bags(self.target, self.rows, self.weights, self.num_nodes)

    @cached_property
    def _by_source(self) -> Bags:
        return _bags(self.rows, self.target, self.weights, self.num_nodes * self.types)


def _flat(x: Tensor) -> Tensor:
    return x.view(-1, x.shape[-1])


def _bags(group: Tensor, members: Tensor, weights: Tensor, count: int) -> Bags:
    order, sizes = torch.argsort(group, stable=True), torch.bincount(group, minlength=count)
    return members[order], offsets(sizes)[:-1], weights[order]


def _sum(bags: Bags, table: Tensor) -> Tensor:
    members, starts, weights = bags
    return F.embedding_bag(members, table, starts, mode="sum", per_sample_weights=weights)
