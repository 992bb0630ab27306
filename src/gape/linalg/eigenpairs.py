"""Lowest eigenpairs of symmetric matrices, dense batches or one large sparse Laplacian, and a rule for signs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
import torch
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh
from torch import Tensor

Array = np.ndarray[Any, Any]
Map = Callable[[Array], Array]

# From this many nodes on, LAPACK's solver for a few eigenpairs (syevr) is faster than the one for all (syevd).
MIN_SUBSET_NODES = 100
# Sums of cubes below this fraction of the sum of absolute cubes count as a tie in fix_signs.
TIE_TOLERANCE = 1e-6

LANCZOS_TOLERANCE = 1e-11
# A cheap first run that detects graphs without a spectral gap, on which Lanczos's method does not converge.
PROBE = {"tol": 1e-6, "ncv": 32, "maxiter": 6}
# Detecting a missing eigenvalue needs no accurate vector: the error of a Ritz value is quadratic in that of its vector.
CHECK_TOLERANCE = 1e-6
# Eigenvalues that differ by less than this fraction of the largest count as equal.
EQUAL_TOLERANCE = 1e-10
# Shift of the inverse below zero, as a fraction of the mean diagonal entry; makes the shifted matrix definite.
RELATIVE_SHIFT = -1e-4


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
    cubes = vectors**3
    total, size = cubes.sum(1), cubes.abs().sum(1)
    clear = total.abs() > TIE_TOLERANCE * size
    notable = vectors.abs() > 1e-3 * vectors.abs().amax(1, keepdim=True)
    first = notable.to(torch.int8).argmax(1, keepdim=True)
    leading = vectors.gather(1, first).squeeze(1)
    sign = torch.where(torch.where(clear, total, leading) < 0, -1.0, 1.0).to(vectors.dtype)
    return vectors * sign.unsqueeze(1)


# ---------------------------------------------------------------------- dense


def dense_eigenpairs(matrices: Tensor, skip: int, k: int) -> tuple[Tensor, Tensor]:
    """Eigenpairs number ``skip`` to ``skip + k - 1``, ascending, of symmetric matrices ``[B, n, n]``.

    Returns eigenvalues ``[B, j]`` and eigenvectors ``[B, n, j]``, where j is ``k`` or as many as exist.
    """
    n = matrices.shape[1]
    last = min(skip + k, n)
    if last <= skip:
        return matrices.new_zeros(len(matrices), 0), matrices.new_zeros(len(matrices), n, 0)
    if n < MIN_SUBSET_NODES or matrices.device.type != "cpu" or last > n // 3:
        theta, basis = torch.linalg.eigh(matrices)
        return theta[:, skip:last], basis[..., skip:last]
    pairs = [
        scipy.linalg.eigh(matrix, subset_by_index=(skip, last - 1), driver="evr", check_finite=False)
        for matrix in matrices.numpy()
    ]
    return (
        torch.from_numpy(np.stack([theta for theta, _ in pairs])),
        torch.from_numpy(np.stack([basis for _, basis in pairs])),
    )


# ---------------------------------------------------------------------- sparse


def sparse_eigenpairs(
    laplacian: scipy.sparse.csr_array, k: int, trivial: Array, component: Array
) -> tuple[Array, Array]:
    """Lowest ``k`` eigenpairs of a sparse Laplacian orthogonal to its null space, ascending: ``[k]`` and ``[n, k]``.

    The null vectors, one per component, are known and projected away, so any number of components costs nothing.
    Lanczos's method on the matrix itself is tried first, with a few steps. It fails on graphs without a gap at the
    bottom of the spectrum (web graphs, long chains); those use shift and invert with one sparse factorisation. Graphs
    with a gap are the ones on which that factorisation would fill in. Differs from plain
    :func:`scipy.sparse.linalg.eigsh`: start vectors are fixed, so the same graph gives the same numbers, and multiple
    eigenvalues are found with their multiplicity.

    Args:
        laplacian: symmetric, positive semi-definite, ``[n, n]``.
        k: number of eigenpairs; less than n minus the number of components.
        trivial: ``[n]``, on each component the unit null vector of that component.
        component: ``[n]``, the component of each node, from 0.
    """
    n = laplacian.shape[0]

    def project(x: Array) -> Array:
        return np.asarray(x - trivial * np.bincount(component, trivial * x)[component])

    top = 2.0 * float(laplacian.diagonal().max())
    flipped = _Operator(n, lambda x: top * x - laplacian @ x, project)
    try:
        flipped.search(1, np.random.default_rng(0), **{**PROBE, "ncv": min(n, PROBE["ncv"])})
        values, vectors = flipped.largest(k, maxiter=60)
        values = top - values
    except ArpackNoConvergence:
        sigma = RELATIVE_SHIFT * float(laplacian.diagonal().mean())
        solve = _factorise(laplacian, sigma).solve
        values, vectors = _Operator(n, lambda x: solve(project(x)), project).largest(k)
        values = sigma + 1.0 / values
    order = np.argsort(values, kind="stable")
    return values[order], vectors[:, order]


def _factorise(laplacian: scipy.sparse.csr_array, sigma: float) -> Any:
    shifted = scipy.sparse.csc_array(laplacian - sigma * scipy.sparse.eye_array(laplacian.shape[0]))
    # Positive definite, so no pivoting: the ordering for symmetric matrices keeps the fill low.
    return scipy.sparse.linalg.splu(
        shifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
    )


@dataclass(frozen=True, eq=False)
class _Operator:
    """Symmetric operator on the subspace of vectors ``[n]`` that ``project`` leaves unchanged."""

    n: int
    apply: Map
    project: Map

    def largest(self, k: int, **limits: Any) -> tuple[Array, Array]:
        """Compute the ``k`` largest eigenpairs, multiple eigenvalues with their multiplicity.

        From one start vector Lanczos's method finds one vector per eigenspace, and others only through rounding errors.
        So the vectors found are projected away and the method restarts from another vector until no larger eigenvalue
        appears.
        """
        starts = np.random.default_rng(0)
        limits["ncv"] = min(self.n, max(2 * k + 1, 64))
        values, vectors = self.search(k, starts, tol=LANCZOS_TOLERANCE, **limits)
        # Every round but the last finds a missing copy, so there are at most k rounds.
        for _ in range(k):
            complement = self.without(vectors)
            left, _ = complement.search(1, starts, tol=CHECK_TOLERANCE, **limits)
            if left[0] <= values.min() + EQUAL_TOLERANCE * values.max():
                break
            more_values, more_vectors = complement.search(k, starts, tol=LANCZOS_TOLERANCE, **limits)
            values, vectors = np.concatenate([values, more_values]), np.concatenate([vectors, more_vectors], 1)
            best = np.argsort(-values, kind="stable")[:k]
            values, vectors = values[best], vectors[:, best]
        return values, vectors

    def search(self, k: int, starts: np.random.Generator, **limits: Any) -> tuple[Array, Array]:
        """Run Lanczos's method (ARPACK) once, from the next start vector, for ``k`` of the largest eigenpairs."""
        operator = LinearOperator(
            (self.n, self.n), matvec=lambda x: self.project(self.apply(x.ravel())), dtype=np.float64
        )
        start = self.project(starts.standard_normal(self.n))
        values, vectors = eigsh(operator, k=k, which="LA", v0=start, **limits)
        return values, vectors

    def without(self, vectors: Array) -> _Operator:
        """Restrict the operator to the orthogonal complement of these eigenvectors."""

        def project(x: Array) -> Array:
            x = self.project(x)
            return np.asarray(x - vectors @ (vectors.T @ x))

        return replace(self, project=project)
