"""Runs from every node where the equation is singular: what comes nearest to a solution."""

from __future__ import annotations

import torch
from torch import Tensor

from gape.solvers.kronecker import shortest_least_squares
from gape.solvers.settle import DENSE_UNKNOWNS


def nearest_runs(matrix: Tensor, transition: Tensor, initial: Tensor) -> tuple[Tensor, Tensor]:
    """For every source node u the shortest X ``[n, k]`` that brings AᵀXμ + e_u initial[u] nearest to X.

    Args:
        matrix: A, ``[n, n]``.
        transition: μ, ``[k, k]``.
        initial: ``[n, k]``, what the runs from each node begin with.

    Returns:
        ``[n, n, k]``, from, to, state; and the relative residual of all of them together.
    """
    n, k = initial.shape
    eye = torch.eye(n * k, dtype=matrix.dtype, device=matrix.device)
    system = eye - torch.kron(matrix.T.contiguous(), transition.T.contiguous())
    # Column u is zero but for the rows of node u.
    source = torch.diag_embed(initial.T).permute(1, 0, 2).reshape(n * k, n)
    found = shortest_least_squares(system, source)
    residual = torch.linalg.matrix_norm(system @ found - source)
    return found.reshape(n, k, n).permute(2, 0, 1), residual / torch.linalg.matrix_norm(source).clamp(min=1e-300)


def too_large(nodes: int, states: int) -> str:
    return (
        f"a graph of {nodes} nodes has a singular equation, and {nodes} × {states} unknowns are too many for least "
        f"squares on a walk matrix that is not symmetric (at most {DENSE_UNKNOWNS}); take fewer states, a lower or "
        "relative damping, or an undirected graph with matrix='adjacency' or 'symmetric'"
    )
