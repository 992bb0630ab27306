r"""Possibly singular equations: confirm them, and fall back to minimum-norm least squares.

Deflation, for matrices that are similar to a symmetric one, such as D⁻¹A of an undirected graph: with
Aᵀ = C Vᵀ θ V C⁻¹ (V orthogonal, C diagonal) the operator M = 1 - F splits into y ↦ y (1 - θ_j μ), one for each
eigenvector, but these are not orthogonal to each other. The parts of S outside the range of M, and of X in its null
space, therefore have to be projected out in the space itself. If θ is the singular eigenvalue of a graph, t spans the
right and ρ the left null vectors of 1 - θμ, then S is in the range of M if and only if v C⁻¹ S t = 0 for every
eigenvector v of θ, and the null space of M is spanned by the C vᵀ ρ. Without the former parts of S every row has a
solution; without the latter that solution has minimum norm.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse.linalg
import torch
from torch import Tensor

from gape.solvers.base import Result
from gape.solvers.certificate import (
    DIRECT_TOLERANCE,
    MAX_CONSISTENT_RESIDUAL,
    NO,
    SINGULAR_GAP,
    code,
    judge,
    radius_bounds_of,
    run_status,
)
from gape.solvers.equation import Equation
from gape.solvers.kronecker import Kronecker
from gape.solvers.schur_form import SchurForm, distinct_values, pole_gaps
from gape.solvers.solution import Status
from gape.solvers.spectral import Spectral

# Graphs with at most so many unknowns (nodes × states) get a dense system; larger ones LSMR (Fong & Saunders, 2011).
MAX_DENSE_UNKNOWNS = 4096
# The largest graph for which deflation computes all eigenvectors.
MAX_DEFLATION_NODES = 1024


def resolve_singular(result: Result, equation: Equation) -> None:
    """Confirm or refute singular graphs of an unconfirmed result; write their least-squares solution into it.

    Also graphs whose weights are so large that rounding has left few digits, if they are small enough for the dense
    system, which is more accurate. All graphs together where deflation applies, one by one where it does not.
    """
    if result.confirmed:
        return
    result.confirmed = True
    inaccurate = (result.residual > MAX_CONSISTENT_RESIDUAL) & (equation.sizes * equation.states <= MAX_DENSE_UNKNOWNS)
    solved = ~(result.has_status(Status.NOT_CONVERGED) | result.has_status(Status.OVERFLOW))
    suspects = (result.has_status(Status.SINGULAR) | (inaccurate & solved)).nonzero().flatten()
    if not len(suspects):
        return
    # Least squares write nothing to ``out``, and labels that start no runs have no part in it.
    equation = replace(equation, out=None, every_label=False)
    if _deflatable(equation):
        together, done = deflated(equation.select(suspects))
        result.update(suspects, together)
        result.weights[equation.nodes_of(suspects)] = together.weights
        suspects = suspects[~done]
    for i in suspects.tolist():
        _resolve_one(result, equation, i)


def _resolve_one(result: Result, equation: Equation, i: int) -> None:
    nodes, equation = equation.nodes(i), equation.alone(i)
    if equation.rhs.numel() <= MAX_DENSE_UNKNOWNS:
        dense = Kronecker(MAX_DENSE_UNKNOWNS).solve(equation)
        result.weights[nodes] = dense.weights
        result.update(torch.tensor([i], device=result.status.device), dense)
        return
    weights, residual, optimal = _lsmr(equation)
    result.weights[nodes] = weights
    result.residual[i] = residual
    if residual <= MAX_CONSISTENT_RESIDUAL:
        result.status[i] = run_status(radius_bounds_of(equation).converges)
    elif optimal:
        result.unique[i] = NO
    else:
        result.status[i] = code(Status.NOT_CONVERGED)


def _lsmr(equation: Equation) -> tuple[Tensor, float, bool]:
    """The minimum-norm least-squares solution, its relative residual, and whether it is optimal to 1e-8."""
    shape, dtype, device = equation.rhs.shape, equation.rhs.dtype, equation.rhs.device

    def tensor(v: np.ndarray) -> Tensor:
        return torch.from_numpy(v).to(device, dtype).reshape(shape)

    def forward(v: np.ndarray) -> np.ndarray:
        x = tensor(v)
        return np.asarray((x - equation.apply(x)).reshape(-1).cpu().numpy())

    def backward(v: np.ndarray) -> np.ndarray:
        x = tensor(v)
        return np.asarray((x - equation.adjoint(x)).reshape(-1).cpu().numpy())

    size = shape[0] * shape[1]
    kind = np.complex128 if dtype.is_complex else np.float64
    operator = scipy.sparse.linalg.LinearOperator((size, size), matvec=forward, rmatvec=backward, dtype=kind)
    rhs = equation.rhs.reshape(-1).cpu().numpy()
    solved = scipy.sparse.linalg.lsmr(operator, rhs, atol=1e-13, btol=1e-13, conlim=0, maxiter=20 * min(size, 2000))
    x, gap, slope, norm = tensor(solved[0]), solved[3], solved[4], solved[5]
    optimal = slope <= 1e-8 * max(norm * gap, 1e-300)
    return x, float(gap / max(np.linalg.norm(rhs), 1e-300)), bool(optimal)


def _deflatable(equation: Equation) -> bool:
    if equation.typed or equation.walk.similarity is None or not equation.reliable_poles:
        return False
    return int(equation.sizes.max()) <= MAX_DEFLATION_NODES


def deflated(equation: Equation) -> tuple[Result, Tensor]:
    """Compute the minimum-norm least-squares solution of all graphs at once.

    Also ``[graphs]``: whether it is that. It is not where two different eigenvalues of a graph are singular.
    """
    mu, form = equation.transition, SchurForm.of(equation.transition)
    projection = Spectral().projection(equation)
    result = projection.solve(equation, form=form)
    theta = projection.h[:, 0]
    near = pole_gaps(theta, form) <= SINGULAR_GAP
    if projection.scale is None or not bool(near.any()):
        return result, torch.ones(len(theta), dtype=torch.bool, device=theta.device)
    highest, lowest = torch.where(near, theta, -torch.inf).amax(1), torch.where(near, theta, torch.inf).amin(1)
    single = ~(highest - lowest > 1e-9 * highest.abs())
    out_of_range, null_space = _null_projectors(torch.where(near.any(1), highest, 0.0), mu)
    first = torch.argsort(near.to(torch.int8), dim=1, descending=True, stable=True)[:, : int(near.sum(1).max())]
    vectors = projection.vectors[:, 0].take_along_dim(first.unsqueeze(-1), 1) * near.gather(1, first).unsqueeze(-1)
    pad, unpad = projection.padding.pad, projection.padding.unpad
    scale = pad(projection.scale - 1.0).unsqueeze(1) + 1.0
    rhs = pad(equation.rhs)
    rhs = rhs - _project(vectors / scale, rhs @ out_of_range)
    y, _ = projection.solve_coordinates(mu, form, projection.vectors[:, 0].to(rhs.dtype) @ (rhs / scale.mT))
    x = pad(projection.expand(y, real=not rhs.is_complex()))
    result.weights = unpad(x - _project(vectors * scale, x @ null_space))
    result.residual = equation.residual(result.weights)
    converges = projection.radius_bounds(equation).converges
    result.status = judge(result.residual, converges, tolerance=DIRECT_TOLERANCE, exhausted=True)
    return result, single


def _null_projectors(theta: Tensor, mu: Tensor) -> tuple[Tensor, Tensor]:
    """Orthogonal projectors on the right and on the left null vectors of 1 - θμ, ``[graphs, k, k]`` each."""
    values, which = distinct_values(theta)
    eye = torch.eye(len(mu), dtype=mu.dtype, device=mu.device)
    u, sizes, vh = torch.linalg.svd(eye - values[:, None, None] * mu)
    null = (sizes <= SINGULAR_GAP).to(mu.dtype).unsqueeze(-1)
    return (vh.mH @ (null * vh))[which], (u @ (null * u.mH))[which]


def _project(vectors: Tensor, x: Tensor) -> Tensor:
    """``x`` ``[graphs, n, k]`` projected on the span of ``vectors`` ``[graphs, r, n]``, some of which may be zero."""
    sizes = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
    vectors = vectors / torch.where(sizes > 0, sizes, 1.0)
    gram: Tensor = torch.linalg.pinv(vectors @ vectors.mT, rtol=1e-12, hermitian=True)
    vectors, gram = vectors.to(x.dtype), gram.to(x.dtype)
    projected: Tensor = vectors.mT @ (gram @ (vectors @ x))
    return projected
