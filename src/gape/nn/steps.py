r"""One step of runs along the edges, for transitions of every kind: Y_v = Σ_{e: u→v} A_e X_u μ(ℓ(u), type(e)).

X may hold several columns a node (runs that started at different nodes). Each node's rows are multiplied by the
matrices of its label, ``[k, R · k]`` for R edge types at once; then each node sums the rows that its edges bring,
weighted. That sum is one ``embedding_bag`` over the edges, and so is its gradient over the reversed ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from gape.walk import WalkMatrix


@dataclass(frozen=True, eq=False)
class Steps:
    """The edges of a batch, sorted both ways.

    Args:
        num_nodes: n.
        types: number of edge types R.
        arriving: rows ``u · R + type`` of the edges in the order of their targets, where each node's begin, weights.
        leaving: targets in the order of those rows, where each row's begin, weights.
    """

    num_nodes: int
    types: int
    arriving: tuple[Tensor, Tensor, Tensor]
    leaving: tuple[Tensor, Tensor, Tensor]

    @classmethod
    def of(cls, walk: WalkMatrix, edge_type: Tensor | None, types: int, dtype: torch.dtype) -> Steps:
        """The steps along a walk matrix; ``edge_type`` ``[E]`` where transitions go by it."""
        source, target, values = (part.detach() for part in walk.entries())
        rows = source
        if edge_type is not None:
            if len(edge_type) != len(source):
                raise ValueError(
                    f"transitions by edge type need a walk matrix of edges only, got {walk.name!r}, whose diagonal "
                    "belongs to no edge; use 'adjacency', 'random_walk', 'random_walk_in' or 'symmetric'"
                )
            rows = source * types + edge_type
        return cls.sorted(rows, target, values.to(dtype), walk.num_nodes, types)

    @classmethod
    def sorted(cls, rows: Tensor, target: Tensor, values: Tensor, num_nodes: int, types: int) -> Steps:
        """The steps of these edges, from rows ``u · R + type`` to targets."""
        by_target, by_row = torch.argsort(target, stable=True), torch.argsort(rows, stable=True)
        return cls(
            num_nodes,
            types,
            (rows[by_target], _starts(target, num_nodes), values[by_target]),
            (target[by_row], _starts(rows, num_nodes * types), values[by_row]),
        )

    def within(self, nodes: Tensor) -> Steps:
        """The steps among some of the nodes, numbered anew; no edge may lead out of them."""
        if len(nodes) == self.num_nodes:
            return self
        number = torch.full((self.num_nodes,), -1, device=nodes.device)
        number[nodes] = torch.arange(len(nodes), device=nodes.device)
        rows, starts, values = self.arriving
        target = torch.repeat_interleave(starts.diff(append=starts.new_tensor([len(rows)])))
        inside = number[target] >= 0
        rows, target, values = rows[inside], target[inside], values[inside]
        rows = number[rows // self.types] * self.types + rows % self.types
        return Steps.sorted(rows, number[target], values, len(nodes), self.types)

    def __call__(self, x: Tensor, matrices: Tensor) -> Tensor:
        """``[n, s, k]`` to ``[n, s, k]``, one step on, with ``matrices`` ``[n, k, R · k]`` or ``[1, k, R · k]``."""
        nodes, columns, states = x.shape
        if len(matrices) == 1:
            moved = (x.reshape(-1, states) @ matrices[0]).view(nodes, columns, -1)
        else:
            moved = torch.bmm(x, matrices)
        if self.types > 1:
            moved = moved.reshape(nodes, columns, self.types, states).transpose(1, 2)
        table = moved.reshape(nodes * self.types, columns * states)
        out: Tensor = _Sum.apply(table, self)  # type: ignore[no-untyped-call]
        return out.view(nodes, columns, states)


def _starts(numbers: Tensor, count: int) -> Tensor:
    """Where the members of each group begin when sorted by group."""
    sizes = torch.bincount(numbers, minlength=count)
    return sizes.cumsum(0) - sizes


class _Sum(torch.autograd.Function):
    """Row v of the result: the weighted sum of the rows that the edges into v start from."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, steps: Steps) -> Tensor:
        ctx.steps = steps
        rows, starts, weights = steps.arriving
        return F.embedding_bag(rows, table.detach(), starts, mode="sum", per_sample_weights=weights)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        targets, starts, weights = ctx.steps.leaving
        back = F.embedding_bag(targets, gradients[0].contiguous(), starts, mode="sum", per_sample_weights=weights)
        return back, None
