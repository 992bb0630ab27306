"""The published way to compute GAPE, as a yardstick: one dense SciPy Sylvester solve per graph, with μ⁻¹.

Re-implemented from its description: T⁻¹P - PA = T⁻¹C with T = μᵀ (facts of the released code). It is timed and compared
with, never used: `solve_sylvester` does not say when the equation is singular.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

Array = np.ndarray[Any, Any]


def sylvester_encoding(transition: Array, matrix: Array, source: Array) -> Array:
    """``[n, k]`` in float32 from μ ``[k, k]``, one dense adjacency matrix ``[n, n]`` and the source αℓ ``[k, n]``.

    Example:
        >>> sylvester_encoding(np.array([[0.25]]), np.array([[0.0, 1.0], [1.0, 0.0]]), np.ones((1, 2)))
        array([[1.3333334],
               [1.3333334]], dtype=float32)
    """
    inverse = np.linalg.inv(transition.T)
    weights = scipy.linalg.solve_sylvester(inverse, -matrix, inverse @ source)
    return np.asarray(weights.T, dtype=np.float32)
