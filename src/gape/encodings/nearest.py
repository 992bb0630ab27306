"""Runs from every node by one dense system: where the equation is singular, and where it takes the greatest care."""

from __future__ import annotations

import torch
from torch import Tensor

from gape.solvers.kronecker import solve_or_least_squares
from gape.solvers.singular import MAX_DENSE_UNKNOWNS


def dense_runs(
    matrix: Tensor, transition: Tensor, initial: Tensor, component: Tensor, contracts: bool
) -> tuple[Tensor, Tensor, bool]:
    """For every source node u the X ``[n, k]`` with X = AᵀXμ + e_u initial[u], or the shortest that comes nearest.

    Args:
        matrix: A, ``[n, n]``.
        transition: μ, ``[k, k]``.
        initial: ``[n, k]``, what the runs from each node begin with.
        component: ``[n]``, the strongly connected component of each node.
        contracts: whether ρ(μ)ρ(A) < 1.

    Returns:
        ``[n, n, k]``, from, to, state; the relative residual of all of them together; and whether each is the only one.
    """
    n, k = initial.shape
    operator = torch.kron(matrix.T.contiguous(), transition.T.contiguous())
    # Column u is zero but for the rows of node u.
    source = torch.diag_embed(initial.T).permute(1, 0, 2).reshape(n * k, n)
    found, regular = solve_or_least_squares(operator, source, component, contracts)
    residual = torch.linalg.matrix_norm(found - operator @ found - source)
    relative = residual / torch.linalg.matrix_norm(source).clamp(min=1e-300)
    return found.reshape(n, k, n).permute(2, 0, 1), relative, regular


def too_large(nodes: int, states: int) -> str:
    return (
        f"a graph of {nodes} nodes has a singular equation, and {nodes} × {states} unknowns are too many for least "
        f"squares on a walk matrix that is not symmetric (at most {MAX_DENSE_UNKNOWNS}); take fewer states, a lower or "
        "relative damping, or an undirected graph with matrix='adjacency' or 'symmetric'"
    )
