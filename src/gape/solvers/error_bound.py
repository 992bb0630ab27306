r"""Bounds of the error of ill-conditioned solutions.

With R = X - F(X) - S, computed up to rounding errors of at most G = γ (|X| + |F||X| + |S|), the error X - X* solves the
same equation with right-hand side R. Graphs with few unknowns get a dense inverse of I - F, scaled by the size of the
solution so that weights which grow along the graph do not count as ill-conditioned. Larger ones get
E = 2 Σ_{s≤t} |F|ˢ(|R| + G), which satisfies |F|E + |R| + G ≤ E, and therefore is a bound, as soon as the last term is
at most half of the first.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gape.linalg.radius_bounds import EPSILON
from gape.solvers.base import Result
from gape.solvers.certificate import MAX_ROUNDING_RESIDUAL, run_status
from gape.solvers.equation import Equation
from gape.solvers.kronecker import operator_matrices, operator_radius_bounds
from gape.solvers.solution import Status

# Graphs with more unknowns (nodes × states) do without the dense inverse.
MAX_INVERSE_UNKNOWNS = 1024
# Products with |F| after which no bound is expected any more.
MAX_PRODUCTS = 256


def bound_errors(result: Result, equation: Equation) -> None:
    """Bound the error of ill-conditioned graphs; those whose bound is at most 1e-5 count as solved after all."""
    for i in result.has_status(Status.ILL_CONDITIONED).nonzero().flatten().tolist():
        alone, weights = equation.alone(i), result.weights[equation.nodes(i)].to(equation.rhs.dtype)
        if weights.numel() <= MAX_INVERSE_UNKNOWNS:
            (operator,) = operator_matrices(alone, MAX_INVERSE_UNKNOWNS)
            bound = dense_error_bound(operator, alone.rhs.reshape(-1, 1), weights.reshape(-1, 1))
        else:
            bound = _sparse_error_bound(alone, weights)
        result.error_bound[i] = bound
        if bound <= MAX_ROUNDING_RESIDUAL:
            result.residual[i] = alone.residual(weights)
            result.status[i] = run_status(operator_radius_bounds(alone).converges)


def dense_error_bound(operator: Tensor, rhs: Tensor, x: Tensor) -> float:
    """Bound ‖X - X*‖ / ‖X‖ for X = F X + S; infinite if I - F is too ill-conditioned.

    Args:
        operator: F, ``[N, N]``.
        rhs, x: S and X, ``[N, columns]``.
    """
    n = len(operator)
    eye = torch.eye(n, dtype=operator.dtype, device=operator.device)
    moved = operator.abs() @ x.abs() + rhs.abs() + x.abs()
    left = (x - operator @ x - rhs).abs() + EPSILON * (n + 4) * moved
    scale = moved.amax(1, keepdim=True)
    scale = torch.where(scale > 0, scale, 1.0)
    system = (eye - operator) * (scale.mT / scale)
    inverse, info = torch.linalg.inv_ex(system)
    if int(info):
        return float("inf")
    # The computed inverse B is not exact: |M⁻¹g| ≤ |B| (g + off/(1 - off) max g) if ‖MB - I‖ ≤ off.
    sizes = system.abs() @ inverse.abs()
    off = float(((system @ inverse - eye).abs() + EPSILON * (n + 4) * sizes).sum(1).amax())
    if not off < 0.5:
        return float("inf")
    left = left / scale
    error = inverse.abs() @ (left + off / (1.0 - off) * left.amax(0)) * scale
    return _ratio(error * (1.0 + EPSILON * (n + 4)), x)


def _sparse_error_bound(equation: Equation, x: Tensor) -> float:
    absolute, walk = equation.absolute, equation.walk
    longest = int(torch.bincount(walk.adjacency.edge_index[1], minlength=1).max()) + equation.states + 4
    moved = absolute.apply(x.abs().to(absolute.transition.dtype)) + equation.rhs.abs() + x.abs()
    left = (x - equation.apply(x) - equation.rhs).abs() + EPSILON * longest * moved
    rows = torch.linalg.vector_norm(left, dim=1, keepdim=True)
    steps = max(MAX_PRODUCTS, walk.num_nodes if walk.acyclic else 0)
    # Entry by entry, which is best for nonnegative weights, and row by row, which is best for orthogonal transitions.
    each = _accumulate(absolute, left.real, steps)
    return min(_ratio(each, x), _ratio(_accumulate(equation.row_norms, rows, steps), x))


def _accumulate(operator: Equation, left: Tensor, steps: int) -> Tensor:
    """Bound Σ_s Fˢ ``left`` for an operator and ``left`` that are not negative; infinite if none is found."""
    total = left
    for _ in range(steps):
        grown = left + operator.apply(total.to(operator.transition.dtype)).real
        # Twice the sum is large enough once a further step adds no more than half of what the first one had.
        if bool((grown - total <= 0.5 * left).all()):
            return 2.0 * grown
        total = grown
    return torch.full_like(left, torch.inf)


def _ratio(error: Tensor, x: Tensor) -> float:
    """Compute ‖E‖ / ‖X‖ without over- or underflow."""
    peak = x.abs().amax()
    if not float(peak) > 0:
        return 0.0 if not float(error.amax()) > 0 else float("inf")
    ratio = float(torch.linalg.vector_norm(error / peak) / torch.linalg.vector_norm(x.abs() / peak))
    return ratio if ratio == ratio else float("inf")
