"""What other libraries take for the same encoding: SciPy, NumPy, NetworkX and PyG, one graph at a time.

Beyond the baselines of the runtime table. Each computes the numbers of our encoding with its default settings, or those
of which ours are made; ``agrees`` compares them.
"""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import scipy.linalg
import scipy.sparse
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import degree, to_networkx, to_scipy_sparse_matrix

from gape.encodings import Communicability, HeatKernel, MagneticLaplacian, PageRank, RelativeRandomWalk, SingularVectors
from gape.experiments.runtime.baselines import Baseline, comparisons, dense_adjacency

Array = np.ndarray[Any, Any]


def baselines() -> dict[str, Baseline]:
    """The usual implementation of each encoding that has one, by the name of ours."""
    # The runtime table's GAPE is the paper's; of several numbers of eigenvectors PyG's comes first.
    paper = {one.encoding: one.baseline for one in reversed(comparisons((32,)))}
    return (
        {"gape-paper": paper["gape"]}
        | {name: paper[name] for name in ("rw", "lape", "sa", "spd", "pprp")}
        | {
            "rrwp": Baseline("NumPy", _powers, _close),
            "degree": Baseline("PyG", _degrees, _close),
            "ppr": Baseline("NumPy", _pagerank, _close),
            "heat": Baseline("SciPy", _heat, _close),
            "resistance": Baseline("NetworkX", _resistance, _close, prepare=_undirected),
            "electrostatic": Baseline("NumPy", _potentials, _potentials_agree),
            "communicability": Baseline("SciPy", _communicability, _close),
            "svd": Baseline("SciPy", _singular_values, _singular_values_agree),
            "magnetic": Baseline("NumPy", _magnetic, _magnetic_agree),
        }
    )


def _undirected(data: Data) -> Any:
    return to_networkx(data, to_undirected=True)


def _walk(data: Data) -> Array:
    matrix = dense_adjacency(data)
    return np.asarray(matrix / np.maximum(matrix.sum(1, keepdims=True), 1))


def _powers(data: Data) -> Array:
    walk, power, found = _walk(data), np.eye(int(data.num_nodes)), []
    for _ in range(RelativeRandomWalk().length):
        found.append(power)
        power = power @ walk
    return np.stack(found, -1)


def _degrees(data: Data) -> Tensor:
    source, target = data.edge_index
    return torch.stack([degree(end, data.num_nodes, dtype=torch.long) for end in (target, source)], 1)


def _pagerank(data: Data) -> Array:
    beta = PageRank().beta
    return np.asarray(beta * np.linalg.inv(np.eye(int(data.num_nodes)) - (1 - beta) * _walk(data)))


def _heat(data: Data) -> Array:
    matrix = dense_adjacency(data)
    scale = np.maximum(matrix.sum(1), 1) ** -0.5
    laplacian = np.eye(len(matrix)) - scale[:, None] * matrix * scale
    return np.stack([np.diagonal(scipy.linalg.expm(-time * laplacian)) for time in HeatKernel().times], 1)


def _resistance(graph: Any) -> Array:
    found = nx.resistance_distance(graph)
    return np.array([[[found[u][v]] for v in graph] for u in graph])


def _potentials(data: Data) -> Array:
    """The pseudo-inverse of the Laplacian, and minimum and mean of the potentials made of it, ``[n, 2]``."""
    matrix = dense_adjacency(data)
    inverse = np.linalg.pinv(np.diag(matrix.sum(1)) - matrix)
    potentials = inverse - np.diagonal(inverse)
    return np.stack([potentials.min(0), potentials.mean(0)], 1)


def _potentials_agree(ours: Tensor, theirs: Any) -> bool:
    return _close(ours[:, [0, 2]], theirs)


def _communicability(data: Data) -> Array:
    matrix = dense_adjacency(data)
    radius = np.abs(np.linalg.eigvalsh(matrix)).max()
    betas = Communicability().betas
    return np.stack([np.diagonal(scipy.linalg.expm(beta / radius * matrix)) for beta in betas], 1)


def _singular_values(data: Data) -> tuple[Array, Array, Array]:
    """The largest singular triples, sparse where SciPy can."""
    rank, n = SingularVectors().rank, int(data.num_nodes)
    if n > 3 * rank:
        return scipy.sparse.linalg.svds(to_scipy_sparse_matrix(data.edge_index, num_nodes=n).astype(float), rank)  # type: ignore[no-any-return]
    return scipy.linalg.svd(dense_adjacency(data))  # type: ignore[no-any-return]


def _singular_values_agree(ours: Tensor, theirs: Any) -> bool:
    """Vectors of multiple values differ, so singular values are compared: ours are the squared norms of columns."""
    rank = SingularVectors().rank
    found, known = ours[:, :rank].square().sum(0), -np.sort(-theirs[1])[:rank]
    return _close(found[: len(known)], known)


def _magnetic(data: Data) -> tuple[Array, Array, Array]:
    """All eigenpairs of the normalised magnetic Laplacian, and the matrix."""
    there = dense_adjacency(data)
    matrix = (there + there.T) / 2 * np.exp(2j * np.pi * MagneticLaplacian().potentials[0] * (there - there.T))
    scale = np.maximum(np.abs(matrix).sum(1), 0.5) ** -0.5
    laplacian = np.eye(len(matrix)) - scale[:, None] * matrix * scale
    return (*np.linalg.eigh(laplacian), laplacian)


def _magnetic_agree(ours: Tensor, theirs: Any) -> bool:
    """Vectors of multiple values differ, so ours have to be eigenvectors of the lowest eigenvalues of their matrix."""
    values, _, laplacian = theirs
    real, imaginary = ours.double().numpy().reshape(len(ours), 2, -1).transpose(1, 0, 2)
    vectors = (real + 1j * imaginary)[:, : len(values)]
    return bool(np.allclose(laplacian @ vectors, vectors * values[: vectors.shape[1]], atol=1e-4))


def _close(ours: Tensor, theirs: Any) -> bool:
    return torch.allclose(ours.double(), torch.as_tensor(np.asarray(theirs)).double(), rtol=1e-4, atol=1e-4)
