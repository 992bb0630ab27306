"""Encodings of one graph from its dense adjacency matrix with NumPy, as yardsticks: what many a script does.

Eigenvectors as in the authors' code (facts of the released code): `eig` and a sort for LAPE, `eigh` for SA. PPRP has no
released code; it is computed as its formula stands. All are for undirected graphs without weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def laplacian_encoding(matrix: Array, k: int) -> Array:
    """``[n, k]``: eigenvectors 2 to k + 1 of the normalised Laplacian, zeros where there are fewer.

    >>> laplacian_encoding(np.array([[0.0, 1.0], [1.0, 0.0]]), 2).round(2)
    array([[ 0.71,  0.  ],
           [-0.71,  0.  ]], dtype=float32)
    """
    values, vectors = np.linalg.eig(_laplacian(matrix))
    chosen = np.real(vectors[:, np.argsort(values)])[:, 1 : k + 1]
    return np.pad(chosen, ((0, 0), (0, k - chosen.shape[1]))).astype(np.float32)


def spectral_encoding(matrix: Array, k: int) -> Array:
    """``[n, k, 2]``: entries of the k lowest eigenvectors, each node's scaled to norm 1, and their eigenvalues.

    >>> spectral_encoding(np.array([[0.0, 1.0], [1.0, 0.0]]), 3)[0, :, 1]
    array([ 0.,  2., nan], dtype=float32)
    """
    values, vectors = np.linalg.eigh(_laplacian(matrix))
    values, vectors = np.abs(values[:k]), vectors[:, :k]
    vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    both = np.stack([vectors, np.broadcast_to(values, vectors.shape)], -1)
    return np.pad(both, ((0, 0), (0, k - len(values)), (0, 0)), constant_values=np.nan).astype(np.float32)


def pagerank_encoding(matrix: Array, k: int, beta: float) -> Array:
    """``[n, k]``: the diagonals of β(I - (1-β)Wⁱ)⁻¹ for i = 1 … k, brought to [0, 1] within each node.

    >>> pagerank_encoding(np.ones((3, 3)) - np.eye(3), 3, 0.999)[0].round(2)
    array([0. , 1. , 0.5], dtype=float32)
    """
    walk = matrix / np.maximum(matrix.sum(1, keepdims=True), 1)
    power, eye, columns = walk, np.eye(len(matrix)), []
    for _ in range(k):
        columns.append(beta * np.diagonal(np.linalg.inv(eye - (1 - beta) * power)))
        power = power @ walk
    found = np.stack(columns, 1)
    low, width = found.min(1, keepdims=True), np.ptp(found, 1, keepdims=True)
    return np.where(width > 1e-14, (found - low) / np.where(width > 0, width, 1), 0).astype(np.float32)


def _laplacian(matrix: Array) -> Array:
    scale = np.maximum(matrix.sum(1), 1) ** -0.5
    return np.asarray(np.eye(len(matrix)) - scale[:, None] * matrix * scale)
