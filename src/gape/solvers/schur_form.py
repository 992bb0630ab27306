r"""The equation in the coordinates of a basis: many small systems ``Y = H Y μ + S`` at once.

With the Schur form μ = W T Wᴴ (T upper triangular) and Ỹ = YW the columns of Ỹ come one after the other,

    (I - t_jj H) ỹ_j = s̃_j + H Σ_{i<j} ỹ_i t_ij,

and all at once when μ is normal, as a damped orthogonal matrix is: then T is diagonal. Schur's form exists for every μ
and its W is unitary, so nothing is lost where eigenvectors would be ill-conditioned (the shift automaton has one).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg
import torch
from torch import Tensor

from gape.solvers.outcome import SINGULAR_GAP

# Condition of the eigenvectors beyond which eigenvalues are not trusted.
DEFECTIVE = 1e6
# Dense systems solved together: bounds the memory of the batch.
BLOCK = 1 << 22


@dataclass(frozen=True, eq=False)
class SchurForm:
    """The Schur form of a transition matrix: ``matrix = vectors @ upper @ vectorsᴴ``."""

    upper: Tensor
    vectors: Tensor
    normal: bool

    @classmethod
    def of(cls, matrix: Tensor) -> SchurForm:
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
        """Whether it (nearly) lacks eigenvectors, so that eigenvalues are not what they seem."""
        if self.normal:
            return False
        vectors = torch.linalg.eig(self.upper)[1]
        return not float(torch.linalg.cond(vectors)) < DEFECTIVE


def pole_gaps(theta: Tensor, form: SchurForm) -> Tensor:
    """How far each θ is from being singular: min over the eigenvalues λ of |1 - λθ|, of the shape of ``theta``.

    0 where I - θμ is singular, if μ lacks eigenvectors: its λ may be wrong by much more than rounding.
    """
    poles = form.eigenvalues
    if theta.is_complex():
        found = (1.0 - theta.unsqueeze(-1) * poles).abs().amin(-1)
    else:
        # (1 - θ Re λ)² + (θ Im λ)², cheaper than a complex absolute value.
        along, across = 1.0 - theta.unsqueeze(-1) * poles.real, theta.unsqueeze(-1) * poles.imag
        found = (along.square() + across.square()).amin(-1).sqrt()
    if form.defective and bool((close := found < 0.1).any()):
        eye = torch.eye(len(form.upper), dtype=form.upper.dtype, device=form.upper.device)
        smallest = torch.linalg.svdvals(eye - theta[close][:, None, None] * form.upper)[:, -1]
        found[close] = torch.where(smallest <= SINGULAR_GAP, 0.0, found[close])
    return found


def solve_diagonal(
    theta: Tensor, mu: Tensor, form: SchurForm, source: Tensor, distance: Tensor
) -> tuple[Tensor, Tensor]:
    """``Y`` with ``Y = diag(θ) Y μ + S``, and the relative gap that remains in each row.

    Args:
        theta: ``[P, J]``, the diagonal of H.
        mu: ``[k, k]``, and ``form`` its Schur form.
        source: ``[P, J, k]``.
        distance: ``[P, J]`` from :func:`pole_gaps`.

    Returns:
        ``[P, J, k]`` and ``[P, J]``: the norm of what is left of each row's equation, zero unless it is singular.
        A singular row gets the shortest least-squares solution.
    """
    turned = source.to(torch.complex128) @ form.vectors
    near = distance < SINGULAR_GAP
    if form.normal:
        poles = 1.0 - theta.unsqueeze(-1) * form.eigenvalues
        turned = turned / torch.where(poles == 0, torch.ones_like(poles), poles)
    else:
        turned = _substitute(theta, form, turned)
    y = turned @ form.vectors.mH
    y = y if source.is_complex() or mu.is_complex() else y.real
    gap = torch.zeros(theta.shape, dtype=torch.float64, device=theta.device)
    if bool(near.any()):
        rows = near.nonzero(as_tuple=True)
        eye = torch.eye(len(mu), dtype=mu.dtype, device=mu.device)
        # Row vectors: y (I - θμ) = s.
        values, which = equal_but_for_rounding(theta[rows])
        operator = eye - values[:, None, None] * mu
        inverse = torch.linalg.pinv(operator, atol=SINGULAR_GAP).to(y.dtype)
        operator = operator[which]
        solved = source[rows].to(y.dtype).unsqueeze(1) @ inverse[which]
        y[rows] = solved.squeeze(1)
        gap[rows] = torch.linalg.vector_norm(solved @ operator.to(y.dtype) - source[rows].unsqueeze(1), dim=(1, 2))
    return y, gap


def equal_but_for_rounding(theta: Tensor) -> tuple[Tensor, Tensor]:
    """The different values of ``theta`` and which of them each is; differences below 1e-13, relatively, do not count.

    Thousands of molecules share the eigenvalue that makes them singular: what it takes is computed once.
    """
    mantissa, exponent = torch.frexp(theta)
    values, which = torch.unique(torch.ldexp((mantissa * 2.0**44).round() * 2.0**-44, exponent), return_inverse=True)
    return values, which


def _substitute(theta: Tensor, form: SchurForm, source: Tensor) -> Tensor:
    """``Y`` with ``Y = diag(θ) Y T + S``, column by column, for ``source`` ``[P, J, k]``."""
    # A column at a time lies together in memory, and what the earlier ones pass on to eight of them is one product.
    shape, theta = source.shape, theta.flatten()
    y = source.flatten(0, 1).T.contiguous()
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


def solve_matrix(h: Tensor, mu: Tensor, form: SchurForm, source: Tensor, *, upper: bool) -> Tensor:
    """``Y`` with ``Y = H Y μ + S`` for ``h`` ``[P, J, J]``, upper triangular or not, and ``source`` ``[P, J, k]``."""
    step = max(1, BLOCK // max(1, h.shape[-1] ** 2 * (source.shape[-1] if form.normal else 1)))
    real = not (source.is_complex() or mu.is_complex() or h.is_complex())
    solved = []
    for start in range(0, len(h), step):
        block, right = h[start : start + step].to(torch.complex128), source[start : start + step].to(torch.complex128)
        solved.append(_solve_block(block, form, right @ form.vectors, upper) @ form.vectors.mH)
    y = torch.cat(solved) if solved else source.to(torch.complex128)
    return y.real if real else y


def _solve_block(h: Tensor, form: SchurForm, right: Tensor, upper: bool) -> Tensor:
    eye = torch.eye(h.shape[-1], dtype=h.dtype, device=h.device)

    def solve(matrix: Tensor, rhs: Tensor) -> Tensor:
        solved: Tensor
        if upper:
            solved = torch.linalg.solve_triangular(matrix, rhs, upper=True)
        else:
            solved = torch.linalg.solve_ex(matrix, rhs)[0]
        return solved

    if form.normal:
        # One system per pole: [P, k, J, J].
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
