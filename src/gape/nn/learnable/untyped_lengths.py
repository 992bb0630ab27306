r"""Runs of at most T steps, each length by itself, where one μ serves everywhere: powers of A and of μ part company.

    closed_t(v) = (Aᵗ)_vv · α(ℓ(v)) μᵗ,      pair_t(u, v) = (Aᵗ)_uv · α(ℓ(u)) μᵗ

The powers of A hold no parameter, so return weights are computed once and a training step is one
product with T × k numbers.
"""

from __future__ import annotations

import torch
from torch import Tensor


def worth(transition: Tensor, initial: Tensor, length: int) -> Tensor:
    """``[T, m, k]``: αᵀμᵗ for t = 1 … T, what a run of t steps is worth."""
    term, terms = initial.T, []
    for _ in range(length):
        term = term @ transition
        terms.append(term)
    return torch.stack(terms)


def closed_by_length(returns: Tensor, values: Tensor, labels: Tensor | None) -> Tensor:
    """``[n, T, k]`` from return weights ``[n, T]`` and :func:`worth`."""
    each = values[:, 0].unsqueeze(0) if labels is None else values[:, labels].transpose(0, 1)
    return returns.unsqueeze(-1) * each


def pair_by_length(matrices: Tensor, values: Tensor, mix: Tensor, labels: Tensor | None) -> Tensor:
    """``[graphs, heads, n, n]``: runs to the row's node from the column's, mixed.

    Args:
        matrices: ``[graphs, n, n]``, the walk matrices A.
        values: :func:`worth`.
        mix: ``[heads, T · k]``.
        labels: ``[graphs, n]``, the labels of the nodes, padding arbitrary; ``None`` if there is only one.
    """
    length, _, states = values.shape
    powers = [matrices]
    while len(powers) < length:
        powers.append(powers[-1] @ matrices)
    amounts = torch.stack(powers, -1)
    # What a walk of t steps from label a adds for each head: the states are mixed before anything is n × n.
    heads = torch.einsum("tak,htk->ath", values, mix.reshape(-1, length, states))
    table = amounts @ (heads[0] if labels is None else heads[labels])
    return table.permute(0, 3, 2, 1)
