"""Lowest eigenpairs of batches of dense symmetric matrices, and rules for signs and multiple eigenvalues."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import torch
from torch import Tensor

Array = np.ndarray[Any, Any]

# From this many nodes on, LAPACK's solver for a few eigenpairs (syevr) is faster than the one for all (syevd).
MIN_SUBSET_NODES = 100
# Numbers that differ by less than this fraction count as equal where a sign or a node is chosen.
TIE_TOLERANCE = 1e-6
# Eigenvalues that differ by less than this fraction of the largest count as equal.
EQUAL_TOLERANCE = 1e-10


# ---------------------------------------------------------------------- signs


def fix_signs(vectors: Tensor) -> Tensor:
    """Choose the signs of eigenvectors ``[B, n, k]`` so that the sum of the cubes of their entries is positive.

    The rule does not depend on the order of the nodes. On symmetric graphs, such as paths and even cycles, the cubes of
    a vector may cancel, and no rule independent of the order exists; there the first entry that is not negligible is
    made positive.

    Example:
        >>> fix_signs(torch.tensor([[[-0.9], [0.1]], [[-0.5], [0.5]]])).squeeze(-1)
        tensor([[ 0.9000, -0.1000],
                [ 0.5000, -0.5000]])
    """
    return vectors * torch.from_numpy(signs(vectors.detach().cpu().numpy())).to(vectors.device).unsqueeze(-2)


def signs(vectors: Array) -> Array:
    """Return the factors, 1 or -1, by which :func:`fix_signs` multiplies the vectors ``[…, n, k]``: ``[…, k]``."""
    squares = vectors * vectors
    total, size = (squares * vectors).sum(-2), (squares * np.abs(vectors)).sum(-2)
    tie = np.abs(total) <= TIE_TOLERANCE * size
    if vectors.size and tie.any():
        sizes = np.abs(vectors)
        first = (sizes > 1e-3 * sizes.max(-2, keepdims=True)).argmax(-2)[..., None, :]
        total = np.where(tie, np.take_along_axis(vectors, first, -2)[..., 0, :], total)
    return np.where(total < 0, -1.0, 1.0).astype(vectors.dtype)


# ---------------------------------------------------------------------- multiple eigenvalues


def canonical_basis(theta: Array, basis: Array, scale: Array, wanted: slice = slice(None)) -> Array:
    """Replace the basis of every multiple eigenvalue by one that depends on the eigenspace and the node order alone.

    LAPACK returns any orthonormal basis, and another one after a change in the last digit. Here the first vector is the
    projection of the node with the largest projection (of equal ones, the first node) on the eigenspace, scaled to norm
    1; the next one is found in the same way in what is left of the space, and so on: Gram–Schmidt with pivoting.

    Args:
        theta: ``[B, k]`` eigenvalues, ascending, each with all its copies.
        basis: ``[B, n, k]`` orthonormal eigenvectors.
        scale: ``[B]``, size of the matrices; eigenvalues closer than ``EQUAL_TOLERANCE`` times this are equal.
        wanted: the columns that matter; eigenspaces without one of them may stay as they are.

    Example:
        >>> turned = np.array([[[0.6, 0.8], [-0.8, 0.6]]])
        >>> canonical_basis(np.ones((1, 2)), turned, np.ones(1)).round(9) + 0.0
        array([[[1., 0.],
                [0., 1.]]])
    """
    equal = np.diff(theta) <= EQUAL_TOLERANCE * scale[:, None]
    start, stop, _ = wanted.indices(theta.shape[1])
    if not equal[:, max(start - 1, 0) : stop].any():
        return basis
    # Runs of equal eigenvalues: +1 where one begins, -1 where it ends.
    steps = np.zeros((len(theta), theta.shape[1] + 1), np.int8)
    steps[:, 1:-1] = equal
    steps = np.diff(steps)
    (which, first), last = (steps > 0).nonzero(), (steps < 0).nonzero()[1]
    chosen = (first < stop) & (last >= start)
    which, first, sizes = which[chosen], first[chosen], (last - first + 1)[chosen]
    basis = basis.copy()
    for size in set(sizes.tolist()):
        chosen = sizes == size
        rows, columns = which[chosen, None], first[chosen, None] + np.arange(size)
        basis[rows, :, columns] = _pivoted(basis[rows, :, columns].swapaxes(1, 2)).swapaxes(1, 2)
    return basis


def _pivoted(space: Array) -> Array:
    """Turn orthonormal bases ``[B, n, m]`` into the canonical ones of their spaces."""
    out, spaces = np.empty_like(space), np.arange(len(space))
    for i in range(space.shape[2]):
        share = (space * space.conj()).real.sum(2)
        node = (share >= (1.0 - TIE_TOLERANCE) * share.max(1, keepdims=True)).argmax(1)
        direction = space[spaces, node].conj() / np.sqrt(share[spaces, node, None])
        along = space @ direction[:, :, None]
        out[:, :, i] = along[:, :, 0]
        space = space - along * direction.conj()[:, None]
    return out


def fix_phases(vectors: Tensor) -> Tensor:
    """Choose the phases of complex eigenvectors ``[B, n, k]`` so that Σ v|v|² is real and positive.

    For real vectors that is the rule of :func:`fix_signs`, and likewise independent of the order of the nodes. Where
    the sum vanishes, the first entry that is not negligible is made positive.

    Example:
        >>> fix_phases(torch.tensor([[[0.6j], [0.8]]])).squeeze()
        tensor([0.2332+0.5528j, 0.7371-0.3110j])
    """
    size = vectors.abs()
    cubes = vectors * size.square()
    total = cubes.sum(1)
    clear = total.abs() > TIE_TOLERANCE * (size**3).sum(1)
    first = (size > 1e-3 * size.amax(1, keepdim=True)).to(torch.int8).argmax(1, keepdim=True)
    chosen = torch.where(clear, total, vectors.gather(1, first).squeeze(1))
    length = chosen.abs()
    turn = torch.where(length > 0, chosen.conj() / torch.where(length > 0, length, 1.0), 1.0)
    return vectors * turn.unsqueeze(1)


# ---------------------------------------------------------------------- dense


def dense_eigenpairs(matrices: Tensor, skip: int, k: int) -> tuple[Tensor, Tensor]:
    """Eigenpairs number ``skip`` to ``skip + k - 1``, ascending, of symmetric matrices ``[B, n, n]``.

    Returns eigenvalues ``[B, j]`` and eigenvectors ``[B, n, j]``, where j is ``k`` or as many as exist; those of
    multiple eigenvalues as :func:`canonical_basis` chooses them.
    """
    n = matrices.shape[1]
    last = min(skip + k, n)
    if last <= skip:
        return matrices.new_zeros(len(matrices), 0), matrices.new_zeros(len(matrices), n, 0)
    wanted = slice(skip, last)
    scale = matrices.diagonal(dim1=1, dim2=2).abs().amax(1).cpu().numpy()
    if n < MIN_SUBSET_NODES or matrices.device.type != "cpu" or last > n // 3:
        theta, basis = (part.cpu().numpy() for part in torch.linalg.eigh(matrices))
        basis = canonical_basis(theta, basis, scale, wanted)
        theta, basis = theta[:, wanted], basis[..., wanted]
    else:
        pairs = [_lowest_pairs(matrix, wanted) for matrix in matrices.numpy()]
        theta, basis = np.stack([theta for theta, _ in pairs]), np.stack([basis for _, basis in pairs])
    return torch.from_numpy(theta).to(matrices.device), torch.from_numpy(basis).to(matrices.device)


def _lowest_pairs(matrix: Array, wanted: slice) -> tuple[Array, Array]:
    """The ``wanted`` eigenpairs of one matrix, by LAPACK's solver for a few."""
    # One pair more than wanted shows if the last eigenvalue has further copies.
    theta, basis = scipy.linalg.eigh(
        matrix, subset_by_index=(wanted.start, wanted.stop), driver="evr", check_finite=False
    )
    scale = np.abs(matrix.diagonal()).max()
    keep = slice(0, -1)
    if theta[-1] - theta[-2] <= EQUAL_TOLERANCE * scale:
        theta, basis = np.linalg.eigh(matrix)
        keep = wanted
    return theta[keep], canonical_basis(theta[None], basis[None], scale[None], keep)[0][:, keep]
