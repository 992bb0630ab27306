"""Weisfeiler-Leman tests: colour refinement of nodes (1-WL) and of pairs of nodes (2-FWL, as strong as 3-WL).

Multisets of colours are hashed by sums of random numbers. Colours that a hash tells apart are different; a collision
would leave two graphs undistinguished, with a probability below 2⁻⁴⁰ per pair of colours.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

# A prime below 2²²: sums of 500 products of two remainders are exact in float64.
_PRIME = 4_194_301
MAX_PAIR_NODES = 511


def refine_nodes(edge_index: Array, num_nodes: int, seed: int = 0) -> Array:
    """Stable colours of 1-WL, ``[num_nodes]``: one number for nodes that it does not tell apart, in any graph.

    Args:
        edge_index: ``[2, E]``, edges of all graphs, in both directions.
        num_nodes: of all graphs.
        seed: of the hash.

    Example:
        >>> path = np.array([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> refine_nodes(path, 3).tolist()
        [0, 1, 0]
    """
    generator = np.random.default_rng(seed)
    colour, count = np.zeros(num_nodes, np.int64), 1
    while True:
        words = generator.integers(-(2**63), 2**63 - 1, count)
        around = np.zeros(num_nodes, np.int64)
        np.add.at(around, edge_index[0], words[colour[edge_index[1]]])  # sums modulo 2⁶⁴
        _, refined = np.unique(np.stack([colour, around], 1), axis=0, return_inverse=True)
        refined = refined.reshape(-1)
        found = int(refined.max(initial=-1)) + 1
        # By first occurrence, so that numbers do not depend on the hash.
        _, first = np.unique(refined, return_index=True)
        place = np.empty(found, np.int64)
        place[np.argsort(first)] = np.arange(found)
        if found == count or not num_nodes:
            return np.asarray(place[refined])
        colour, count = place[refined], found


def pairs_differ(first: Array, second: Array, seed: int = 0) -> bool:
    """Return whether 2-FWL tells two graphs apart, given by their adjacency matrices ``[n, n]``.

    The colour of a pair (u, v) is refined by the multiset of (colour of (u, w), colour of (w, v)) over all nodes w.
    With random F and G per colour, Σ_w F(u, w) G(w, v) hashes that multiset: a product of matrices.

    Example:
        >>> ring = np.roll(np.eye(6, dtype=int), 1, 1)
        >>> triangles = np.kron(np.eye(2, dtype=int), 1 - np.eye(3, dtype=int))
        >>> pairs_differ(ring + ring.T, triangles)
        True
    """
    if first.shape != second.shape:
        return True
    n = len(first)
    if n > MAX_PAIR_NODES:
        raise ValueError(f"2-FWL is exact here for graphs of at most {MAX_PAIR_NODES} nodes, got {n}")
    generator = np.random.default_rng(seed)
    colour = np.stack([2 * matrix.astype(np.int64) + np.eye(n, dtype=np.int64) for matrix in (first, second)])
    _, colour = np.unique(colour, return_inverse=True)
    colour, count = colour.reshape(2, n, n), 0
    while True:
        found = int(colour.max(initial=-1)) + 1
        if not np.array_equal(np.bincount(colour[0].ravel(), minlength=found), np.bincount(colour[1].ravel())):
            return True
        if found == count:
            return False
        count, key = found, colour.astype(np.int64)
        for _ in range(2):
            left, right = generator.integers(0, _PRIME, (2, count)).astype(np.float64)
            key = key * _PRIME + (left[colour] @ right[colour] % _PRIME).astype(np.int64)
        _, colour = np.unique(key, return_inverse=True)
        colour = colour.reshape(2, n, n)
