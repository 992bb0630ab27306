"""The spectral radius of a large nonnegative matrix without a gap in its spectrum."""

from __future__ import annotations

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg

TOLERANCE = 1e-12
STEPS = 100


def perron_root(matrix: scipy.sparse.csr_array) -> float:
    r"""ρ of a nonnegative matrix whose strongly connected components are not joined to each other.

    For every positive x, min (Ax)_v/x_v ≤ ρ ≤ max (Ax)_v/x_v on a component (Collatz, 1942). Noda's iteration (1971)
    takes the upper bound as the shift of an inverse iteration, x ← (ρ̄I - A)⁻¹x; x stays positive and both bounds
    close in on ρ, in the end quadratically. All components go together, each with its own shift.

    Example:
        >>> ring = scipy.sparse.csr_array(np.roll(np.eye(5), 1, axis=1))
        >>> perron_root(2.0 * ring)
        2.0
    """
    n = matrix.shape[0]
    component = scipy.sparse.csgraph.connected_components(matrix, directed=True, connection="strong")[1]
    x = np.ones(n)
    for _ in range(STEPS):
        quotient = (matrix @ x) / x
        upper, lower, largest = (np.full(component.max() + 1, fill) for fill in (0.0, np.inf, 0.0))
        np.maximum.at(upper, component, quotient)
        np.minimum.at(lower, component, quotient)
        if upper.max() - lower.max() <= TOLERANCE * upper.max():
            return float(upper.max())
        # A component that is done would make the system singular; it stays as it is with any larger shift.
        shift = np.where(upper - lower <= TOLERANCE * upper, 2.0 * upper, upper)[component]
        system = scipy.sparse.csc_array(scipy.sparse.diags_array(shift) - matrix)
        x = scipy.sparse.linalg.splu(system, diag_pivot_thresh=0.0).solve(x)
        np.maximum.at(largest, component, x)
        x = x / largest[component]
    raise ValueError(
        f"the spectral radius of a graph of {n} nodes is between {lower.max():.6g} and {upper.max():.6g} and cannot be "
        "found more closely: its weights are too different; rescale them, or use an absolute damping, relative=False"
    )
