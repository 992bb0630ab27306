"""The published way to compute GAPE, as a yardstick: one dense SciPy Sylvester solve per graph, with μ⁻¹.

Re-implemented from its description: T⁻¹P - PA = T⁻¹C with T = μᵀ (facts of the released code). It is timed and compared
with, never used: `solve_sylvester` does not say when the equation is singular.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from gape.automaton import Automaton

Array = np.ndarray[Any, Any]


def sylvester_encoding(automaton: Automaton, matrix: Array) -> Array:
    """``[n, k]`` in float32 from one dense adjacency matrix, for an automaton with one label.

    Example:
        >>> sylvester_encoding(Automaton.katz(0.25), np.array([[0.0, 1.0], [1.0, 0.0]])).shape
        (2, 1)
    """
    inverse = np.linalg.inv(automaton.transition.numpy().T)
    source = np.repeat(automaton.initial.numpy()[:, :1], len(matrix), axis=1)
    weights = scipy.linalg.solve_sylvester(inverse, -matrix, inverse @ source)
    return np.asarray(weights.T, dtype=np.float32)
