r"""Least squares for matrices that are similar to a symmetric one, such as D⁻¹A of an undirected graph.

With Aᵀ = C Vᵀ θ V C⁻¹ (V orthogonal, C diagonal) the operator M = 1 - F falls apart into y ↦ y (1 - θ_j μ), one for
each eigenvector, but these are not orthogonal to each other: what the singular ones cannot reach and what they leave
open has to be projected out in the space itself. If θ is the singular eigenvalue of a graph, and t spans the right and
ρ the left null vectors of 1 - θμ, then S is in the range of M if and only if v C⁻¹ S t = 0 for every eigenvector v of
θ, and the null space of M is spanned by the C vᵀ ρ. Without the former parts of S every row has a solution; without
the latter it is the shortest.
"""

from __future__ import annotations

import torch
from torch import Tensor

from gape.solvers.outcome import DIRECT_TOLERANCE, SINGULAR_GAP, Result, judge
from gape.solvers.problem import Problem
from gape.solvers.schur_form import SchurForm, equal_but_for_rounding, pole_gaps
from gape.solvers.spectral import Spectral

# The largest graph for which all eigenvectors are computed.
DEFLATION_NODES = 1024


def deflatable(problem: Problem) -> bool:
    if problem.typed or problem.walk.similarity is None:
        return False
    return int(problem.adjacency.sizes.max()) <= DEFLATION_NODES


def deflated(problem: Problem) -> tuple[Result, Tensor]:
    """The shortest least-squares solution, all graphs at once.

    Also ``[graphs]``: whether it is that. It is not where two different eigenvalues of a graph are singular.
    """
    mu, form = problem.transition, SchurForm.of(problem.transition)
    basis = Spectral().basis(problem)
    outcome, _ = basis.run(problem, form=form)
    theta = basis.h[:, 0]
    near = pole_gaps(theta, form) <= SINGULAR_GAP
    if basis.scale is None or not bool(near.any()):
        return outcome, torch.ones(len(theta), dtype=torch.bool, device=theta.device)
    highest, lowest = torch.where(near, theta, -torch.inf).amax(1), torch.where(near, theta, torch.inf).amin(1)
    single = ~(highest - lowest > 1e-9 * highest.abs())
    unreached, left_open = _null_projectors(torch.where(near.any(1), highest, 0.0), mu)
    first = torch.argsort(near.to(torch.int8), dim=1, descending=True, stable=True)[:, : int(near.sum(1).max())]
    vectors = basis.vectors[:, 0].take_along_dim(first.unsqueeze(-1), 1) * near.gather(1, first).unsqueeze(-1)
    pad, unpad = basis.padding.pad, basis.padding.unpad
    scale = pad(basis.scale - 1.0).unsqueeze(1) + 1.0
    source = pad(problem.source)
    source = source - _project(vectors / scale, source @ unreached)
    y, _ = basis.solve(mu, form, basis.vectors[:, 0].to(source.dtype) @ (source / scale.mT))
    x = pad(basis.expand(y, real=not source.is_complex()))
    x = unpad(x - _project(vectors * scale, x @ left_open))
    outcome.weights = x
    outcome.residual = problem.residual(x)
    outcome.status = judge(outcome.residual, outcome.spectral_radius, tolerance=DIRECT_TOLERANCE, exhausted=True)
    return outcome, single


def _null_projectors(theta: Tensor, mu: Tensor) -> tuple[Tensor, Tensor]:
    """Orthogonal projectors on the right and on the left null vectors of 1 - θμ, ``[graphs, k, k]`` each."""
    values, which = equal_but_for_rounding(theta)
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
