"""Bounds of the spectral radius that hold in spite of rounding.

Computed eigenvalues are those of a matrix that differs by rounding. If eigenvectors are missing or nearly so, they are
wrong by much more: those of a rotated nilpotent matrix of norm 1 and size 4 come out near 1e-4 instead of 0.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
import scipy.sparse.csgraph
import torch
from torch import Tensor

from gape.linalg.lu import inverses

EPSILON = 2.0**-52
# Squarings of a matrix: bounds from its powers up to the 4096th.
MAX_SQUARINGS = 12


def radius_bounds(matrices: Tensor) -> tuple[Tensor, Tensor]:
    r"""A lower and an upper bound of the spectral radius of ``matrices`` ``[..., n, n]``, each ``[...]``.

    Two kinds, the second where the first is wide:

    * With computed eigenvectors X, X⁻¹MX = Λ + D, where D holds all rounding errors. Every eigenvalue of M is within
      ‖D‖ of one in Λ (Bauer & Fike, 1960), and ρ(M) ≥ max|Λ| - 2n‖D‖, because discs that overlap share theirs.
    * |tr Mᵗ| / n ≤ ρ(M)ᵗ ≤ ‖Mᵗ‖ for t = 1, 2, 4, …, with the rounding errors of the powers added.

    Example:
        >>> lower, upper = radius_bounds(torch.tensor([[0.5, 1.0], [0.0, 0.25]], dtype=torch.float64))
        >>> (0.4999 < lower) & (lower <= 0.5) & (upper >= 0.5) & (upper < 0.5001)
        tensor(True)
    """
    n = matrices.shape[-1]
    if n == 0:
        zero = torch.zeros(matrices.shape[:-2], dtype=torch.float64, device=matrices.device)
        return zero, zero
    # By a power of two, which is exact, so that nothing overflows.
    scale = torch.ldexp(torch.ones_like(matrices.real[..., 0, 0]), torch.frexp(matrices.abs().amax((-2, -1)))[1])
    unit = matrices / torch.where(scale > 0, scale, 1.0)[..., None, None]
    radius, spread = _eigenvalue_bounds(unit)
    lower, upper = (radius - 2 * n * spread).clamp(min=0.0), radius + spread
    wide = ~(spread <= 1e-11)
    if bool(wide.any()):
        least, most = _power_bounds(unit[wide])
        lower[wide], upper[wide] = torch.maximum(lower[wide], least), torch.minimum(upper[wide], most)
    return lower * scale, upper * scale


def split_components(matrix: Tensor) -> Tensor:
    """``matrix`` ``[n, n]`` without the entries between strongly connected components, which change no eigenvalue.

    Example:
        >>> split_components(torch.tensor([[2.0, 1e9], [0.0, 3.0]]))
        tensor([[2., 0.],
                [0., 3.]])
    """
    pattern = (matrix != 0).cpu().numpy().astype(np.int8)
    found = scipy.sparse.csgraph.connected_components(pattern, directed=True, connection="strong")[1]
    component = torch.from_numpy(found).to(matrix.device)
    return torch.where(component.unsqueeze(1) == component, matrix, 0.0)


def balanced(matrix: Tensor) -> Tensor:
    """A matrix with the same eigenvalues as ``matrix`` ``[n, n]``, rows and columns scaled by powers of two.

    Example:
        >>> balanced(torch.tensor([[0.0, 2.0**-40], [2.0**38, 0.0]]))
        tensor([[0.0000, 0.5000],
                [0.5000, 0.0000]])
    """
    found = scipy.linalg.matrix_balance(matrix.resolve_conj().cpu().numpy(), permute=False)[0]
    return torch.from_numpy(found).to(matrix.device)


def _eigenvalue_bounds(matrices: Tensor) -> tuple[Tensor, Tensor]:
    """max|Λ| and a bound of ‖D‖, infinite if there are too few eigenvectors, each ``[...]``."""
    n = matrices.shape[-1]
    values, vectors = torch.linalg.eig(matrices)
    matrices = matrices.to(values.dtype)
    inverse = inverses(vectors)
    sizes = [torch.linalg.matrix_norm(matrix) for matrix in (inverse, matrices, vectors)]
    radius = values.abs().amax(-1)
    # The computed inverse Y is not X⁻¹ either: X⁻¹MX = (YX)⁻¹ YMX, and YX is within ``off`` of the identity.
    eye = torch.eye(n, dtype=matrices.dtype, device=matrices.device)
    off = torch.linalg.matrix_norm(inverse @ vectors - eye) + 4 * n * EPSILON * sizes[0] * sizes[2]
    left = torch.linalg.matrix_norm(inverse @ matrices @ vectors - torch.diag_embed(values))
    left = left + 8 * n * EPSILON * sizes[0] * sizes[1] * sizes[2]
    spread = (left + off * radius) / (1.0 - off)
    return radius, torch.where(off < 0.5, spread, torch.inf)


def _power_bounds(matrices: Tensor) -> tuple[Tensor, Tensor]:
    n = matrices.shape[-1]
    power, size = matrices, torch.linalg.matrix_norm(matrices)
    # The exact power is ``grown`` times as large as ``power``, up to ``error`` (Frobenius norm).
    grown, error, exponent = torch.zeros_like(size), torch.zeros_like(size), 1
    lower = power.diagonal(dim1=-2, dim2=-1).sum(-1).abs() / n * (1.0 - n * EPSILON)
    upper = size * (1.0 + n * EPSILON)
    for _ in range(MAX_SQUARINGS):
        error = 2 * size * error + error.square() + 4 * n * EPSILON * size.square()
        power, exponent, grown = power @ power, 2 * exponent, 2 * grown
        # Once more by a power of two; its logarithm is kept.
        shift = torch.frexp(torch.linalg.matrix_norm(power) + error)[1].to(torch.float64)
        back = torch.exp2(-shift.clamp(-1000, 1000))
        power, error, grown = power * back[..., None, None], error * back, grown + shift.clamp(-1000, 1000)
        size = torch.linalg.matrix_norm(power)
        trace = power.diagonal(dim1=-2, dim2=-1).sum(-1).abs()
        least = ((trace - n * error) / n).clamp(min=0.0) ** (1.0 / exponent) * torch.exp2(grown / exponent)
        most = (size + error) ** (1.0 / exponent) * torch.exp2(grown / exponent)
        lower, upper = torch.maximum(lower, least), torch.minimum(upper, most * (1.0 + 4 * EPSILON))
    return lower * (1.0 - 1e-13), upper * (1.0 + 1e-13)
