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


def encode_graph_by_graph(automaton: Automaton, edge_index: Array, ptr: Array, edge_ptr: Array, count: int) -> Array:
    """The first ``count`` graphs of a collated batch whose edges lie graph by graph, one after the other."""
    out = np.empty((int(ptr[count]), automaton.states), dtype=np.float32)
    for i in range(count):
        first, size = ptr[i], ptr[i + 1] - ptr[i]
        source, target = edge_index[:, edge_ptr[i] : edge_ptr[i + 1]] - first
        matrix = np.zeros((size, size))
        matrix[source, target] = 1.0
        out[first : first + size] = sylvester_encoding(automaton, matrix)
    return out
