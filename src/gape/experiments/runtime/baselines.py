"""Encodings as SciPy, NumPy, PyG and NetworkX compute them, one graph at a time: what ours are compared with.

:func:`comparisons` are those of the runtime table, :func:`baselines` adds the encodings that the paper does not have.

The dense NumPy versions do what many scripts do. Eigenvectors are computed as in the authors' code (facts of the
released code): ``eig`` and a sort for LAPE, ``eigh`` for SA. PPRP has no released code; it is computed as its formula
stands. These are for undirected graphs without weights. GAPE is one dense Sylvester solve per graph with μ⁻¹,
re-implemented from its description: T⁻¹P - PA = T⁻¹C with T = μᵀ. ``solve_sylvester`` does not say when the equation is
singular, so it is timed and compared with, never used.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
import scipy.linalg
import scipy.sparse
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import AddLaplacianEigenvectorPE, AddRandomWalkPE
from torch_geometric.utils import degree, to_networkx, to_scipy_sparse_matrix

from gape.encodings import (
    GAPE,
    PRESETS,
    Communicability,
    Encoding,
    HeatKernel,
    Laplacian,
    MagneticLaplacian,
    PageRank,
    PageRankPowers,
    RandomWalk,
    RelativeRandomWalk,
    ShortestPath,
    SingularVectors,
    Spectrum,
)
from gape.encodings.gape import node_softmax
from gape.experiments.graph_tasks.registry import find_row, make_encoding
from gape.experiments.runtime.workloads import Workload
from gape.graph.convert import as_graph
from gape.graph.labels import OneLabel

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Baseline:
    """Another implementation of an encoding, applied to one graph at a time.

    Args:
        name: of the library.
        compute: the timed part, from what ``prepare`` returned.
        agrees: compares our encoding, ``[n, k]`` or ``[n, n]``, with the baseline's.
        prepare: conversion before the clock starts.
        min_nodes: of the graphs for which it works.
    """

    name: str
    compute: Callable[[Any], Any]
    agrees: Callable[[Tensor, Any], bool]
    prepare: Callable[[Data], Any] = lambda data: data
    min_nodes: int = 0


@dataclass(frozen=True)
class Comparison:
    """One of our encodings, with k features, and its baseline."""

    encoding: str
    k: int | None
    ours: Encoding
    baseline: Baseline


def comparisons(states: Sequence[int] = (20, 32), encodings: Sequence[str] | None = None) -> list[Comparison]:
    """Return the encodings of the paper's comparison, with the paper's k = 20 unless noted.

    Args:
        states: numbers of states of GAPE.
        encodings: names of some of them; ``None`` for all.
    """
    stars = [name for name in PRESETS if name.startswith(("gape-star", "gape-2star"))]
    vectors = AddLaplacianEigenvectorPE(8, is_undirected=True)
    every = [
        *(_gape("gape", k) for k in states),
        *(_gape(name, 20) for name in stars),
        Comparison("rw", 20, RandomWalk(20), _pyg(AddRandomWalkPE(20), _close_values)),
        Comparison("pprp", 20, PageRankPowers(20), _numpy(_close_values, pagerank_encoding, 20, PageRankPowers().beta)),
        # PyG's eigenvectors fail on graphs of k + 1 nodes or fewer: with k = 20 on most molecules.
        Comparison("lape", 8, Laplacian(8), _pyg(vectors, _close_up_to_signs, min_nodes=10)),
        Comparison("lape", 20, Laplacian(20), _numpy(_close_up_to_signs, laplacian_encoding, 20)),
        Comparison("sa", 10, Spectrum(10), _numpy(_close_up_to_signs, spectral_encoding, 10)),
        Comparison("spd", None, ShortestPath(memory=16), _NETWORKX),
    ]
    known = list(dict.fromkeys(one.encoding for one in every))
    if absent := [name for name in encodings or () if name not in known]:
        raise ValueError(f"runtimes are not measured for {', '.join(absent)}; there are {', '.join(known)}")
    return [one for one in every if encodings is None or one.encoding in encodings]


def sylvester_encoding(transition: Array, matrix: Array, rhs: Array) -> Array:
    """Compute GAPE ``[n, k]`` in float32 from μ ``[k, k]``, a dense adjacency matrix ``[n, n]`` and αℓ ``[k, n]``.

    Example:
        >>> sylvester_encoding(np.array([[0.25]]), np.array([[0.0, 1.0], [1.0, 0.0]]), np.ones((1, 2)))
        array([[1.3333334],
               [1.3333334]], dtype=float32)
    """
    inverse = np.linalg.inv(transition.T)
    weights = scipy.linalg.solve_sylvester(inverse, -matrix, inverse @ rhs)
    return np.asarray(weights.T, dtype=np.float32)


def laplacian_encoding(matrix: Array, k: int) -> Array:
    """Compute eigenvectors 2 to k + 1 of the normalised Laplacian, ``[n, k]``, zeros if there are fewer.

    >>> laplacian_encoding(np.array([[0.0, 1.0], [1.0, 0.0]]), 2).round(2)
    array([[ 0.71,  0.  ],
           [-0.71,  0.  ]], dtype=float32)
    """
    values, vectors = np.linalg.eig(_laplacian(matrix))
    chosen = np.real(vectors[:, np.argsort(values)])[:, 1 : k + 1]
    return np.pad(chosen, ((0, 0), (0, k - chosen.shape[1]))).astype(np.float32)


def spectral_encoding(matrix: Array, k: int) -> Array:
    """Compute the k lowest eigenvectors, each node's entries scaled to norm 1, and eigenvalues, ``[n, k, 2]``.

    >>> spectral_encoding(np.array([[0.0, 1.0], [1.0, 0.0]]), 3)[0, :, 1]
    array([ 0.,  2., nan], dtype=float32)
    """
    values, vectors = np.linalg.eigh(_laplacian(matrix))
    values, vectors = np.abs(values[:k]), vectors[:, :k]
    vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    both = np.stack([vectors, np.broadcast_to(values, vectors.shape)], -1)
    return np.pad(both, ((0, 0), (0, k - len(values)), (0, 0)), constant_values=np.nan).astype(np.float32)


def pagerank_encoding(matrix: Array, k: int, beta: float) -> Array:
    """Compute the diagonals of β(I - (1-β)Wⁱ)⁻¹ for i = 1 … k, ``[n, k]``, scaled to [0, 1] within each node.

    >>> pagerank_encoding(np.ones((3, 3)) - np.eye(3), 3, 0.999)[0].round(2)
    array([0. , 1. , 0.5], dtype=float32)
    """
    walk = _walk(matrix)
    power, eye, columns = walk, np.eye(len(matrix)), []
    for _ in range(k):
        columns.append(beta * np.diagonal(np.linalg.inv(eye - (1 - beta) * power)))
        power = power @ walk
    found = np.stack(columns, 1)
    low, width = found.min(1, keepdims=True), np.ptp(found, 1, keepdims=True)
    return np.where(width > 1e-14, (found - low) / np.where(width > 0, width, 1), 0).astype(np.float32)


def _walk(matrix: Array) -> Array:
    return np.asarray(matrix / np.maximum(matrix.sum(1, keepdims=True), 1))


def _laplacian(matrix: Array) -> Array:
    scale = np.maximum(matrix.sum(1), 1) ** -0.5
    return np.asarray(np.eye(len(matrix)) - scale[:, None] * matrix * scale)


def dense_adjacency(data: Data) -> Array:
    """Return the dense adjacency matrix of one graph."""
    matrix = np.zeros((data.num_nodes, data.num_nodes))
    matrix[tuple(data.edge_index.numpy())] = 1.0
    return matrix


def dense_rhs(machine: GAPE, data: Data) -> Array:
    """Return αℓ of one graph, ``[k, n]`` in float64, for :func:`sylvester_encoding`."""
    automaton, graph = machine.automaton, machine.labelled(as_graph(data))
    if machine.initial == "softmax_nodes":
        return node_softmax(automaton, graph).T.numpy()
    labels = OneLabel()(graph) if graph.labels is None else graph.labels
    return automaton.initial[:, labels].numpy()


def sample_graphs(work: Workload, sample: int, min_nodes: int = 0) -> list[Data]:
    """Return up to ``sample`` graphs of a workload as PyG ``Data``, always the same random ones."""
    edge_ptr, ptr = work.edge_ptr, work.ptr.tolist()
    large = [i for i in range(work.num_graphs) if ptr[i + 1] - ptr[i] >= min_nodes]
    return [
        Data(edge_index=work.edge_index[:, edge_ptr[i] : edge_ptr[i + 1]] - ptr[i], num_nodes=ptr[i + 1] - ptr[i])
        # At random rather than at equal distances: datasets come in pairs, class by class.
        for i in random.Random(0).sample(large, min(sample, len(large)))
    ]


def _gape(name: str, states: int) -> Comparison:
    """Compare GAPE as in the comparison of encodings with SciPy, with the same automaton and the same labels."""
    machine = make_encoding(name, **find_row(name).options, states=states)
    assert isinstance(machine, GAPE)
    transition = machine.automaton.transition.numpy()

    def prepare(data: Data) -> tuple[Data, Array]:
        return data, dense_rhs(machine, data)

    def compute(prepared: tuple[Data, Array]) -> Array:
        data, rhs = prepared
        return sylvester_encoding(transition, dense_adjacency(data), rhs)

    return Comparison(name, states, machine, Baseline("SciPy", compute, _close_relative, prepare))


def _numpy(agrees: Callable[[Tensor, Any], bool], encode: Callable[..., Any], *settings: Any) -> Baseline:
    return Baseline("NumPy", lambda data: encode(dense_adjacency(data), *settings), agrees)


def _pyg(transform: Any, agrees: Callable[[Tensor, Any], bool], min_nodes: int = 0) -> Baseline:
    def compute(data: Data) -> Any:
        return transform(data.clone())[transform.attr_name].numpy()

    return Baseline("PyG", compute, agrees, min_nodes=min_nodes)


def _close_relative(ours: Tensor, theirs: Any) -> bool:
    other = torch.from_numpy(theirs)
    return bool((ours - other).abs().max() <= 1e-3 * other.abs().max())


def _close_values(ours: Tensor, theirs: Any) -> bool:
    return torch.allclose(ours, torch.from_numpy(theirs), atol=1e-4)


def _close_up_to_signs(ours: Tensor, theirs: Any) -> bool:
    return torch.allclose(ours.abs(), torch.from_numpy(theirs).abs(), atol=1e-3, equal_nan=True)


def _equal_distances(ours: Tensor, theirs: dict[int, dict[int, int]]) -> bool:
    found = ours.tolist()
    return all(found[u][v] == steps for u, reached in theirs.items() for v, steps in reached.items())


def _undirected(data: Data) -> Any:
    return to_networkx(data, to_undirected=True)


_NETWORKX = Baseline(
    "NetworkX",
    lambda graph: dict(nx.all_pairs_shortest_path_length(graph)),
    _equal_distances,
    prepare=_undirected,
)


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


def _powers(data: Data) -> Array:
    walk, power, found = _walk(dense_adjacency(data)), np.eye(int(data.num_nodes)), []
    for _ in range(RelativeRandomWalk().length):
        found.append(power)
        power = power @ walk
    return np.stack(found, -1)


def _degrees(data: Data) -> Tensor:
    source, target = data.edge_index
    return torch.stack([degree(end, data.num_nodes, dtype=torch.long) for end in (target, source)], 1)


def _pagerank(data: Data) -> Array:
    beta = PageRank().beta
    return np.asarray(beta * np.linalg.inv(np.eye(int(data.num_nodes)) - (1 - beta) * _walk(dense_adjacency(data))))


def _heat(data: Data) -> Array:
    laplacian = _laplacian(dense_adjacency(data))
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
