"""Lowest eigenpairs of one large sparse Laplacian, and largest singular vectors, by Lanczos's method (ARPACK).

Needs NumPy and SciPy only: :func:`sparse_eigenpairs` runs this file in a process of its own where a factorisation may
take long, because SciPy's factorisation holds the interpreter's lock and cannot be interrupted.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
from scipy.sparse.linalg import LinearOperator, eigsh

Array = np.ndarray[Any, Any]
Map = Callable[[Array], Array]

LANCZOS_TOLERANCE = 1e-10
# Vectors kept between restarts: more of them save products and cost orthogonalisation.
LANCZOS_VECTORS = 24
# Restarts after which Lanczos's method is given up; a random graph of 100,000 nodes needs some hundred.
MAX_RESTARTS = 5000
# A cheap first run for the lowest eigenvalue. Below this fraction of the largest possible one, Lanczos's method would
# take thousands of products, and small cuts, which such graphs have, keep the factors of the matrix sparse.
PROBE_STEPS, MIN_PROBED_GAP = 40, 1e-3
# Detecting a missing eigenvalue needs no accurate vector: the error of a Ritz value is quadratic in that of its vector.
CHECK_TOLERANCE = 1e-4
# Eigenvalues that differ by less than this fraction of the largest count as equal.
EQUAL_TOLERANCE = 1e-10
# Shift of the inverse below zero, as a fraction of the mean diagonal entry; makes the shifted matrix definite.
RELATIVE_SHIFT = -1e-4
# A graph fills in if more nodes than this are left, with this many neighbours on average, once those with one or two
# neighbours, which add no entries, are eliminated; its factorisation may take long.
MAX_CORE_NODES, MAX_CORE_DEGREE = 5000, 8.0


def sparse_eigenpairs(
    laplacian: scipy.sparse.csr_array, k: int, trivial: Array, component: Array
) -> tuple[Array, Array]:
    """Lowest ``k`` eigenpairs of a sparse Laplacian orthogonal to its null space, ascending: ``[k]`` and ``[n, k]``.

    The null vectors, one per component, are known and projected away, so any number of components costs nothing.
    Lanczos's method works on the matrix itself where there is a gap at the bottom of the spectrum. Graphs without one
    (grids, long chains, web graphs) use shift and invert with one sparse factorisation, in a process of its own if the
    factors may fill in, so that it can be interrupted. Graphs with a gap, such as random ones, are those on which a
    factorisation would fill in. Differs from plain :func:`scipy.sparse.linalg.eigsh`: start vectors are fixed, so the
    same graph gives the same numbers, and multiple eigenvalues are found with their multiplicity.

    Args:
        laplacian: symmetric, positive semi-definite, ``[n, n]``.
        k: number of eigenpairs; less than n minus the number of components.
        trivial: ``[n]``, on each component the unit null vector of that component.
        component: ``[n]``, the component of each node, from 0.
    """
    n = laplacian.shape[0]
    project = _projector(trivial, component)
    top = 2.0 * float(laplacian.diagonal().max())
    flipped = scipy.sparse.csr_array(top * scipy.sparse.eye_array(n) - laplacian)
    operator = _Operator(n, lambda x: flipped @ x, project)
    if top - operator.probe() > MIN_PROBED_GAP * top:
        values, vectors = operator.largest(k, maxiter=MAX_RESTARTS)
        values = top - values
    elif _fills_in(laplacian):
        values, vectors = _in_own_process(laplacian, k, trivial, component)
    else:
        values, vectors = shift_invert(laplacian, k, trivial, component)
    order = np.argsort(values, kind="stable")
    return values[order], vectors[:, order]


def shift_invert(laplacian: scipy.sparse.csr_array, k: int, trivial: Array, component: Array) -> tuple[Array, Array]:
    """Compute what :func:`sparse_eigenpairs` does by one factorisation; in no particular order."""
    sigma = RELATIVE_SHIFT * float(laplacian.diagonal().mean())
    project, solve = _projector(trivial, component), _factorise(laplacian, sigma).solve
    values, vectors = _Operator(laplacian.shape[0], lambda x: solve(project(x)), project).largest(k)
    return sigma + 1.0 / values, vectors


def _projector(trivial: Array, component: Array) -> Map:
    """The map that removes the null vectors from a vector ``[n]``."""
    if not component.any():
        return lambda x: np.asarray(x - trivial * (trivial @ x))
    return lambda x: np.asarray(x - trivial * np.bincount(component, trivial * x)[component])


def _fills_in(laplacian: scipy.sparse.csr_array) -> bool:
    """True if the factors of the matrix may have many more entries than the matrix itself."""
    pattern = scipy.sparse.csr_array((np.ones(laplacian.nnz), laplacian.indices, laplacian.indptr), laplacian.shape)
    kept = np.ones(laplacian.shape[0], dtype=bool)
    while True:
        # The diagonal entry of a node counts as one more neighbour.
        degree = pattern @ kept.astype(np.float64) - 1.0
        fewer = kept & (degree > 2)
        if fewer.sum() == kept.sum():
            return bool(kept.sum() > MAX_CORE_NODES and degree[kept].mean() > MAX_CORE_DEGREE)
        kept = fewer


def _factorise(laplacian: scipy.sparse.csr_array, sigma: float) -> Any:
    shifted = scipy.sparse.csc_array(laplacian - sigma * scipy.sparse.eye_array(laplacian.shape[0]))
    # Positive definite, so no pivoting: the ordering for symmetric matrices keeps the fill low.
    return scipy.sparse.linalg.splu(
        shifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
    )


def _in_own_process(laplacian: scipy.sparse.csr_array, k: int, trivial: Array, component: Array) -> tuple[Array, Array]:
    """Run :func:`shift_invert` in a process that ends with an interrupt of this one."""
    with tempfile.TemporaryDirectory(prefix="gape-") as folder:
        given, found = Path(folder, "given.npz"), Path(folder, "found.npz")
        matrix = {"data": laplacian.data, "indices": laplacian.indices, "indptr": laplacian.indptr}
        np.savez(given, k=k, trivial=trivial, component=component, **matrix)
        command = [sys.executable, "-P", __file__, str(given), str(found)]
        # One thread: several gain little here, and each waits for the others without giving way.
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
            try:
                _, errors = process.communicate()
            finally:
                process.kill()  # no effect on a process that has ended
        if process.returncode != 0:
            reason = errors.strip().splitlines()[-1:] or [f"its process ended with {process.returncode}"]
            raise MemoryError(
                f"the factorisation of a Laplacian of {len(trivial)} nodes failed: {reason[0]}; its factors need "
                "too much memory (fill-in): take a machine with more, or another encoding, such as 'gape'"
            )
        with np.load(found) as arrays:
            return arrays["values"], arrays["vectors"]


def sparse_singular_vectors(matrix: scipy.sparse.csr_array, k: int) -> tuple[Array, Array, Array]:
    """Singular triplets of the ``k`` largest singular values of a sparse matrix: ``[n, k]``, ``[k]`` and ``[n, k]``.

    They are the largest eigenpairs (u, v)/√2 of [[0, A], [Aᵀ, 0]]. Differs from :func:`scipy.sparse.linalg.svds`: fixed
    start vectors, multiple singular values with their multiplicity, and no squared condition number.

    Args:
        matrix: ``[n, n]``.
        k: less than n.
    """
    n, transposed = matrix.shape[0], matrix.T.tocsr()

    def apply(x: Array) -> Array:
        return np.concatenate([matrix @ x[n:], transposed @ x[:n]])

    values, vectors = _Operator(2 * n, apply, lambda x: x).largest(k)
    order = np.argsort(-values, kind="stable")
    values, vectors = values[order], vectors[:, order] * np.sqrt(2.0)
    return vectors[:n], values, vectors[n:]


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
        limits["ncv"] = min(self.n, max(2 * k + 1, LANCZOS_VECTORS))
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

    def probe(self) -> float:
        """Estimate the largest eigenvalue from below, by a few Lanczos steps without reorthogonalisation."""
        q, before = self.project(np.random.default_rng(0).standard_normal(self.n)), np.zeros(self.n)
        q, beta = q / np.linalg.norm(q), 0.0
        diagonal, off_diagonal = [], []
        for _ in range(min(PROBE_STEPS, self.n)):
            w = self.project(self.apply(q)) - beta * before
            diagonal.append(float(w @ q))
            w -= diagonal[-1] * q
            beta = float(np.linalg.norm(w))
            if beta < 1e-12:
                break
            before, q = q, w / beta
            off_diagonal.append(beta)
        size = len(diagonal)
        return float(scipy.linalg.eigh_tridiagonal(diagonal, off_diagonal[: size - 1], eigvals_only=True)[-1])

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


if __name__ == "__main__":
    with np.load(sys.argv[1]) as arrays:
        size = len(arrays["trivial"])
        parts = (arrays["data"], arrays["indices"], arrays["indptr"])
        matrix = scipy.sparse.csr_array(parts, shape=(size, size))
        values, vectors = shift_invert(matrix, int(arrays["k"]), arrays["trivial"], arrays["component"])
    np.savez(sys.argv[2], values=values, vectors=vectors)
