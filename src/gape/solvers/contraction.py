"""Whether a sum over runs converges, and when it may stop."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from gape.graph.spectral_radius import MAX_DENSE_RADIUS_NODES, spectral_radius
from gape.solvers.outcome import below_one
from gape.solvers.problem import Problem

Operator = Callable[[Tensor], Tensor]

# Steps over the edges that are cheaper than all eigenvalues.
PUSHES = 32


def substituted(apply: Operator, source: Tensor) -> tuple[Tensor, int]:
    """``X = apply(X) + source`` on graphs without cycles, along their edges; X and the steps that it took.

    After t steps every node at the end of paths of at most t edges is right and stays as it is, so nothing large is
    added and taken away again, as a sum by length may have to. Weights that overflow stay within their graph.
    """
    x, steps = source, 0
    while steps < len(source):
        before, x, steps = x, apply(x) + source, steps + 1
        if torch.equal(x.nan_to_num(), before.nan_to_num()):
            break
    return x, steps


def proven_radius(problem: Problem, estimate: Tensor, positive: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """ρ(μ)ρ(A) ``[graphs]``, and where it is known to be below 1.

    An ``estimate`` may be too low. If it is below 1, a norm of A may show that ρ(μ)ρ(A) is; where no weight is
    negative, max (Aᵀy)_v / y_v for any ``positive`` y ``[n]`` (Collatz, 1942), or that fewer and fewer walks, weighted,
    end anywhere; and where nothing does, the eigenvalues of graphs that are small enough for them say what it is.
    """
    mu, walk = problem.transition_radius, problem.walk
    sure = below_one(mu * walk.norm_bounds)
    unsure = below_one(estimate) & ~sure
    if positive is not None and walk.nonnegative and bool(unsure.any()):
        ratio = torch.where(positive > 0, walk.push(positive) / positive, torch.inf)
        alone = torch.bincount(walk.adjacency.edge_index.flatten(), minlength=walk.num_nodes) == 0
        sure = sure | below_one(mu * walk.adjacency.segment_max(ratio.masked_fill(alone, 0.0)))
        unsure &= ~sure
    if walk.nonnegative and bool(unsure.any()):
        sure = sure | _dwindles(problem, unsure)
        unsure &= ~sure
    unsure &= walk.adjacency.sizes <= MAX_DENSE_RADIUS_NODES
    if not bool(unsure.any()):
        return estimate, sure
    radius = torch.where(unsure, mu * spectral_radius(walk, unsure), estimate)
    return radius, sure | (unsure & below_one(radius))


def _dwindles(problem: Problem, asked: Tensor) -> Tensor:
    """``[graphs]``: whether (ρ(μ)Aᵀ)ᵗ takes ones to less than one for some t, which has ρ(μ)ρ(A) < 1 follow."""
    walk, mu = problem.walk, problem.transition_radius
    y = torch.ones(walk.num_nodes, dtype=torch.float64, device=walk.ptr.device)
    found = torch.zeros_like(asked)
    for _ in range(PUSHES):
        y = walk.push(y) * mu
        found = found | below_one(walk.adjacency.segment_max(y))
        if bool((found | ~asked).all()):
            break
    return found


def contracting_power(matrix: Tensor, most: int) -> int | None:
    """A power of two p, at most ``most``, with ‖matrixᵖ‖₂ ≤ ½; ``None`` if there is none.

    One small term of a sum says nothing of the next; p of them in a row are followed by small ones alone.

    >>> contracting_power(torch.tensor([[0.0, 1e-13], [1e11, 0.0]]), most=64)
    2
    """
    power = 1
    while not float(torch.linalg.matrix_norm(matrix, 2)) <= 0.5:
        matrix, power = matrix @ matrix, 2 * power
        if power > most or not bool(torch.isfinite(matrix).all()):
            return None
    return power
