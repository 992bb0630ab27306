"""The lowest nontrivial eigenpairs of one large sparse Laplacian."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

Array = np.ndarray[Any, Any]
Map = Callable[[Array], Array]

TOLERANCE = 1e-11
# The probe's tolerance tells graphs with a spectral gap from those without; its steps are a small part of the work.
PROBE = {"tol": 1e-6, "ncv": 32, "maxiter": 6}
# Whether an eigenvalue is missing needs no precise vector: the error of the value is the square of the vector's.
CHECK = 1e-6
# Eigenvalues this close, relative to the largest, need not be told apart.
EQUAL = 1e-10
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
    vectors are fixed, so the same graph gives the same numbers.

    Args:
        laplacian: symmetric, positive semi-definite, ``[n, n]``.
        k: how many; less than n minus the number of components.
        trivial: ``[n]``, the vectors of eigenvalue zero side by side, each of norm one on its component.
        component: ``[n]``, the component of each node, counted from 0.
    """
    n = laplacian.shape[0]

    def project(x: Array) -> Array:
        return np.asarray(x - trivial * np.bincount(component, trivial * x)[component])

    top = 2.0 * float(laplacian.diagonal().max())
    turned = _Operator(n, lambda x: top * x - laplacian @ x, project)
    try:
        turned.search(1, np.random.default_rng(0), **{**PROBE, "ncv": min(n, PROBE["ncv"])})
        values, vectors = turned.largest(k, maxiter=60)
        values = top - values
    except ArpackNoConvergence:
        sigma = SHIFT * float(laplacian.diagonal().mean())
        solve = _factors(laplacian, sigma).solve
        values, vectors = _Operator(n, lambda x: solve(project(x)), project).largest(k)
        values = sigma + 1.0 / values
    order = np.argsort(values, kind="stable")
    return values[order], vectors[:, order]


def _factors(laplacian: scipy.sparse.csr_array, sigma: float) -> Any:
    shifted = scipy.sparse.csc_array(laplacian - sigma * scipy.sparse.eye_array(laplacian.shape[0]))
    # Positive definite, so no pivoting: the ordering for symmetric matrices keeps the fill low.
    return scipy.sparse.linalg.splu(
        shifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
    )


@dataclass(frozen=True, eq=False)
class _Operator:
    """A symmetric operator on the vectors ``[n]`` that ``project`` leaves as they are."""

    n: int
    apply: Map
    project: Map

    def largest(self, k: int, **limits: Any) -> tuple[Array, Array]:
        """The ``k`` largest eigenpairs, each multiple eigenvalue as often as it is there.

        From one start Lanczos's method meets one vector of each eigenspace, and others only by rounding errors. So
        what was found is projected away and the method begins again elsewhere, until nothing larger turns up.
        """
        starts = np.random.default_rng(0)
        limits["ncv"] = min(self.n, max(2 * k + 1, 64))
        values, vectors = self.search(k, starts, tol=TOLERANCE, **limits)
        # Every round but the last finds a copy that is missing, so there are at most k.
        for _ in range(k):
            apart = self.without(vectors)
            left, _ = apart.search(1, starts, tol=CHECK, **limits)
            if left[0] <= values.min() + EQUAL * values.max():
                break
            more, beside = apart.search(k, starts, tol=TOLERANCE, **limits)
            values, vectors = np.concatenate([values, more]), np.concatenate([vectors, beside], 1)
            best = np.argsort(-values, kind="stable")[:k]
            values, vectors = values[best], vectors[:, best]
        return values, vectors

    def search(self, k: int, starts: np.random.Generator, **limits: Any) -> tuple[Array, Array]:
        """``k`` of the largest eigenpairs by Lanczos's method, from one start."""
        operator = LinearOperator(
            (self.n, self.n), matvec=lambda x: self.project(self.apply(x.ravel())), dtype=np.float64
        )
        start = self.project(starts.standard_normal(self.n))
        values, vectors = eigsh(operator, k=k, which="LA", v0=start, **limits)
        return values, vectors

    def without(self, vectors: Array) -> _Operator:
        """The operator on what is orthogonal to these eigenvectors too."""

        def project(x: Array) -> Array:
            x = self.project(x)
            return np.asarray(x - vectors @ (vectors.T @ x))

        return replace(self, project=project)
