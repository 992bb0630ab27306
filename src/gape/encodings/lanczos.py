"""The lowest nontrivial eigenpairs of one large sparse Laplacian."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

Array = np.ndarray[Any, Any]

TOLERANCE = 1e-11
# The probe's tolerance tells graphs with a spectral gap from those without; its steps are a small part of the work.
PROBE = {"tol": 1e-6, "ncv": 32, "maxiter": 6}
# The inverse is taken this far below zero, relative to the mean of the diagonal, so that it exists.
SHIFT = -1e-4


def lowest_eigenpairs(
    laplacian: scipy.sparse.csr_array, k: int, trivial: Array, component: Array
) -> tuple[Array, Array]:
    """The ``k`` lowest eigenpairs orthogonal to the trivial ones, ascending: ``[k]`` and ``[n, k]``.

    The trivial vectors, one for each component, are known and projected away, so any number of components costs
    nothing. Lanczos's method on the matrix itself is tried first, with a few steps. Where a graph has no gap at the
    bottom of its spectrum (web graphs, long chains) these get nowhere, and the inverse of the matrix, by one sparse
    factorisation, takes its place. Graphs with a gap are those where that factorisation would fill in. The start
    vector is fixed, so the same graph gives the same numbers.

    Args:
        laplacian: symmetric, positive semi-definite, ``[n, n]``.
        k: how many; less than n minus the number of components.
        trivial: ``[n]``, the vectors of eigenvalue zero side by side, each of norm one on its component.
        component: ``[n]``, the component of each node, counted from 0.
    """
    n = laplacian.shape[0]

    def project(x: Array) -> Array:
        x = x.ravel()
        return np.asarray(x - trivial * np.bincount(component, trivial * x)[component])

    top = 2.0 * float(laplacian.diagonal().max())
    turned = LinearOperator((n, n), matvec=lambda x: project(top * x.ravel() - laplacian @ x.ravel()), dtype=np.float64)
    start = project(np.random.default_rng(0).standard_normal(n))
    room = min(n, max(2 * k + 1, 64))
    try:
        eigsh(turned, k=1, which="LA", v0=start, **{**PROBE, "ncv": min(n, PROBE["ncv"])})
        values, vectors = eigsh(turned, k=k, which="LA", v0=start, tol=TOLERANCE, ncv=room, maxiter=60)
        values = top - values
    except ArpackNoConvergence:
        values, vectors = _shift_invert(laplacian, k, project, start, room)
    order = np.argsort(values, kind="stable")
    return values[order], vectors[:, order]


def _shift_invert(
    laplacian: scipy.sparse.csr_array, k: int, project: Any, start: Array, room: int
) -> tuple[Array, Array]:
    n = laplacian.shape[0]
    sigma = SHIFT * float(laplacian.diagonal().mean())
    shifted = scipy.sparse.csc_array(laplacian - sigma * scipy.sparse.eye_array(n))
    # Positive definite, so no pivoting: the ordering for symmetric matrices keeps the fill low.
    factors = scipy.sparse.linalg.splu(
        shifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
    )
    inverse = LinearOperator((n, n), matvec=lambda x: project(factors.solve(project(x))), dtype=np.float64)
    values, vectors = eigsh(inverse, k=k, which="LA", v0=start, tol=TOLERANCE, ncv=room)
    return sigma + 1.0 / values, vectors
