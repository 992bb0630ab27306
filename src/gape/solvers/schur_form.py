r"""The Schur form of μ, and small systems ``Y = H Y μ + S`` solved with it, many at once.

With μ = W T Wᴴ (T upper triangular, W unitary) and Ỹ = YW the columns of Ỹ follow one after the other,

    (I - t_jj H) ỹ_j = s̃_j + H Σ_{i<j} ỹ_i t_ij,

and all at once if μ is normal, as a damped orthogonal matrix is: then T is diagonal. The Schur form exists for every μ,
so nothing is lost where eigenvectors would be ill-conditioned (the shift automaton has one eigenvector).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg
import torch
from torch import Tensor

from gape.linalg.lu import solve_systems
from gape.solvers.certificate import SINGULAR_GAP

# Condition number of the eigenvectors beyond which eigenvalues are not trusted.
MAX_EIGENVECTOR_CONDITION = 1e6
# Matrix elements of the dense systems solved together, which bounds the memory of a batch.
MAX_SYSTEM_ELEMENTS = 1 << 22


@dataclass(frozen=True, eq=False)
class SchurForm:
    """The Schur form of a transition matrix: ``matrix = vectors @ upper @ vectorsᴴ``."""

    upper: Tensor
    vectors: Tensor
    normal: bool

    @classmethod
    def of(cls, matrix: Tensor) -> SchurForm:
        """Compute the complex Schur form of ``matrix``, by SciPy."""
        upper, vectors = scipy.linalg.schur(matrix.detach().resolve_conj().cpu().numpy(), output="complex")
        off = abs(np.triu(upper, 1)).max(initial=0.0)
        normal = off <= 1e-14 * max(1e-300, abs(upper).max(initial=0.0)) * len(upper)
        return cls(
            torch.from_numpy(upper).to(matrix.device, torch.complex128),
            torch.from_numpy(vectors).to(matrix.device, torch.complex128),
            bool(normal),
        )

    @property
    def eigenvalues(self) -> Tensor:
        return self.upper.diagonal()

    @cached_property
    def defective(self) -> bool:
        """True if the matrix (nearly) lacks eigenvectors, so that its eigenvalues may be inaccurate."""
        if self.normal:
            return False
        vectors = torch.linalg.eig(self.upper)[1]
        return not float(torch.linalg.cond(vectors)) < MAX_EIGENVECTOR_CONDITION


def pole_gaps(theta: Tensor, form: SchurForm) -> Tensor:
    """Distance of each θ from a singular equation: min |1 - λθ| over the eigenvalues λ, in the shape of ``theta``.

    If μ lacks eigenvectors, its λ may be wrong by much more than rounding; then 0 where I - θμ itself is singular.
    """
    poles = form.eigenvalues
    if theta.is_complex():
        gaps = (1.0 - theta.unsqueeze(-1) * poles).abs().amin(-1)
    else:
        # (1 - θ Re λ)² + (θ Im λ)², cheaper than a complex absolute value.
        along, across = 1.0 - theta.unsqueeze(-1) * poles.real, theta.unsqueeze(-1) * poles.imag
        gaps = (along.square() + across.square()).amin(-1).sqrt()
    if form.defective and bool((close := gaps < 0.1).any()):
        eye = torch.eye(len(form.upper), dtype=form.upper.dtype, device=form.upper.device)
        smallest = torch.linalg.svdvals(eye - theta[close][:, None, None] * form.upper)[:, -1]
        gaps[close] = torch.where(smallest <= SINGULAR_GAP, 0.0, gaps[close])
    return gaps


def solve_diagonal(theta: Tensor, mu: Tensor, form: SchurForm, rhs: Tensor, gaps: Tensor) -> tuple[Tensor, Tensor]:
    """Solve ``Y = diag(θ) Y μ + S``.

    Args:
        theta: ``[P, J]``, the diagonal of H.
        mu: ``[k, k]``, and ``form`` its Schur form.
        rhs: S, ``[P, J, k]``.
        gaps: ``[P, J]`` from :func:`pole_gaps`.

    Returns:
        Y ``[P, J, k]`` and the norm of each row's residual ``[P, J]``, zero unless the row is singular. A singular row
        gets its minimum-norm least-squares solution.
    """
    turned = rhs.to(torch.complex128) @ form.vectors
    near = gaps < SINGULAR_GAP
    if form.normal:
        poles = 1.0 - theta.unsqueeze(-1) * form.eigenvalues
        turned = turned / torch.where(poles == 0, torch.ones_like(poles), poles)
    else:
        turned = _substitute(theta, form, turned)
    y = turned @ form.vectors.mH
    y = y if rhs.is_complex() or mu.is_complex() else y.real
    residual = torch.zeros(theta.shape, dtype=torch.float64, device=theta.device)
    if bool(near.any()):
        rows = near.nonzero(as_tuple=True)
        eye = torch.eye(len(mu), dtype=mu.dtype, device=mu.device)
        # Row vectors: y (I - θμ) = s.
        values, which = distinct_values(theta[rows])
        operator = eye - values[:, None, None] * mu
        inverse = torch.linalg.pinv(operator, atol=SINGULAR_GAP).to(y.dtype)
        operator = operator[which]
        solved = rhs[rows].to(y.dtype).unsqueeze(1) @ inverse[which]
        y[rows] = solved.squeeze(1)
        left = solved @ operator.to(y.dtype) - rhs[rows].unsqueeze(1)
        residual[rows] = torch.linalg.vector_norm(left, dim=(1, 2))
    return y, residual


def distinct_values(theta: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct values of ``theta``, up to 1e-13 relatively, and the index of each entry among them.

    Thousands of molecules share the eigenvalue that makes them singular: its pseudo-inverse is computed once.
    """
    mantissa, exponent = torch.frexp(theta)
    values, which = torch.unique(torch.ldexp((mantissa * 2.0**44).round() * 2.0**-44, exponent), return_inverse=True)
    return values, which


def _substitute(theta: Tensor, form: SchurForm, rhs: Tensor) -> Tensor:
    """Solve ``Y = diag(θ) Y T + S`` by substitution, column by column, for ``rhs`` ``[P, J, k]``."""
    # Transposed, so that a column is contiguous; updates of eight columns at a time are one product.
    shape, theta = rhs.shape, theta.flatten()
    y = rhs.flatten(0, 1).T.contiguous()
    for start in range(0, len(y), 8):
        stop = min(start + 8, len(y))
        if start:
            y[start:stop] += theta * (form.upper[:start, start:stop].T @ y[:start])
        for j in range(start, stop):
            if j > start:
                y[j] += theta * (form.upper[start:j, j] @ y[start:j])
            pole = 1.0 - theta * form.upper[j, j]
            y[j] /= torch.where(pole == 0, torch.ones_like(pole), pole)
    return y.T.reshape(shape)


def solve_matrix(h: Tensor, mu: Tensor, form: SchurForm, rhs: Tensor, *, upper: bool) -> Tensor:
    """Solve ``Y = H Y μ + S`` for ``h`` ``[P, J, J]``, upper triangular or not, and ``rhs`` ``[P, J, k]``."""
    step = max(1, MAX_SYSTEM_ELEMENTS // max(1, h.shape[-1] ** 2 * (rhs.shape[-1] if form.normal else 1)))
    real = not (rhs.is_complex() or mu.is_complex() or h.is_complex())
    solved = []
    for start in range(0, len(h), step):
        block, right = h[start : start + step].to(torch.complex128), rhs[start : start + step].to(torch.complex128)
        solved.append(_solve_block(block, form, right @ form.vectors, upper) @ form.vectors.mH)
    y = torch.cat(solved) if solved else rhs.to(torch.complex128)
    return y.real if real else y


def _solve_block(h: Tensor, form: SchurForm, right: Tensor, upper: bool) -> Tensor:
    eye = torch.eye(h.shape[-1], dtype=h.dtype, device=h.device)

    def solve(matrix: Tensor, rhs: Tensor) -> Tensor:
        if not upper:
            return solve_systems(matrix, rhs)
        solved: Tensor = torch.linalg.solve_triangular(matrix, rhs, upper=True)
        return solved

    if form.normal:
        # One system per eigenvalue of μ: [P, k, J, J].
        systems = eye - form.eigenvalues[:, None, None] * h.unsqueeze(1)
        return solve(systems, right.mT.unsqueeze(-1)).squeeze(-1).mT
    columns: list[Tensor] = []
    for j in range(right.shape[-1]):
        rhs = right[..., j]
        if j:
            passed_on = torch.stack(columns, -1) @ form.upper[:j, j]
            rhs = rhs + (h @ passed_on.unsqueeze(-1)).squeeze(-1)
        columns.append(solve(eye - form.upper[j, j] * h, rhs.unsqueeze(-1)).squeeze(-1))
    return torch.stack(columns, -1)
