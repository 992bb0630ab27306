"""The spectral radius ρ of walk matrices on disk.

Entries between strongly connected components change no eigenvalue, but make them so ill-conditioned that Krylov methods
fail: on a web graph they find vectors with a residual of 1e-8 that are no eigenvectors. So components are found first,
and ρ is the largest of theirs. Components with few edges are solved in memory, by the library's own method; the others
by Arnoldi on disk.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph
import torch
from numpy.typing import NDArray

from gape._internal.files import replacing
from gape.graph.graph import Graph
from gape.graph.spectral_radius import STOCHASTIC, spectral_radii
from gape.native import kernel
from gape.scale.build import Progress
from gape.scale.disk_graph import DiskGraph
from gape.scale.walk import BY_IN_DEGREE, BY_OUT_DEGREE, Array, SplitWalk

# Edges within components that are solved in memory, about 100 bytes each.
MAX_MEMORY_EDGES = 1 << 22
# Restarted Arnoldi: vectors, restarts, and the relative residual of the eigenvector at which it ends.
KRYLOV_STEPS = 16
MAX_RESTARTS = 60
RADIUS_TOLERANCE = 1e-12
# Edges looked at together.
CHUNK_EDGES = 1 << 22


def spectral_radius(walk: SplitWalk, progress: Progress) -> float:
    """Return ρ of a nonnegative walk matrix on all ranks; exactly 0 without cycles, and 1 where it is by construction.

    Memory is :data:`KRYLOV_STEPS` vectors of this rank's rows and, on the first rank of a directed graph, 32 bytes per
    node for its components, which are kept in the folder of the graph.
    """
    graph = walk.graph
    if graph.edges == 0:
        return 0.0
    if graph.undirected:
        return 1.0 if walk.matrix in STOCHASTIC else _largest_eigenvalue(walk, None, progress)
    large: list[int] = []
    radius, error = 0.0, ""
    if walk.ranks.first:
        progress("finding components", 0, None)
        try:
            radius, large = _in_memory(graph, walk.matrix, components(graph))
        except ValueError as failed:
            error = str(failed)
    radius, large, error = walk.ranks.agree((radius, large, error))
    if error:
        raise ValueError(error)
    for component in large:
        inside = _components_file(graph)[walk.first : walk.last] == component
        radius = max(radius, _largest_eigenvalue(walk, inside, progress))
    return float(radius)


def components(graph: DiskGraph) -> NDArray[np.int32]:
    """Return the number of each node's strongly connected component, from a file beside the graph if it is there."""
    path = graph.folder / "components.bin"
    if not path.exists():
        found = np.empty(graph.nodes, dtype=np.int32)
        compiled = kernel("components", *[ctypes.c_int64] * 2, *[ctypes.c_void_p] * 8)
        if compiled is None:
            ones = np.ones(graph.edges, dtype=np.int8)
            shape = (graph.nodes, graph.nodes)
            try:
                matrix = scipy.sparse.csr_array((ones, np.array(graph.columns), np.array(graph.offsets)), shape=shape)
                matrix.check_format(full_check=True)
            except ValueError as error:
                raise graph.damaged() from error
            found[:] = scipy.sparse.csgraph.connected_components(matrix, directed=True, connection="strong")[1]
        else:
            work = [np.empty(graph.nodes, dtype=np.int32) for _ in range(4)]
            arrays: list[NDArray[Any]] = [
                graph.offsets,
                graph.columns,
                found,
                *work,
                np.empty(graph.nodes, dtype=np.int64),
            ]
            if compiled(graph.nodes, graph.edges, *(array.ctypes.data for array in arrays)) < 0:
                raise graph.damaged()
        with replacing(path) as temporary:
            found.tofile(temporary)
    return _components_file(graph)


def _components_file(graph: DiskGraph) -> NDArray[np.int32]:
    return np.memmap(Path(graph.folder, "components.bin"), dtype=np.int32, mode="r", shape=(graph.nodes,))


def _in_memory(graph: DiskGraph, matrix: str, component: NDArray[np.int32]) -> tuple[float, list[int]]:
    """Return ρ of the components with few edges, and the numbers of the others."""
    inner = np.zeros(int(component.max()) + 1, dtype=np.int64)
    for source, target, _ in _inner_edges(graph, component):
        inner += np.bincount(component[target[: len(source)]], minlength=len(inner))
    # The largest first, until the rest fits into memory.
    order = np.argsort(inner)[::-1]
    rest = np.cumsum(inner[order][::-1])[::-1]
    large = order[: int(np.searchsorted(-rest, -MAX_MEMORY_EDGES))]
    skipped = np.zeros(len(inner), dtype=bool)
    skipped[large] = True
    found = [
        (source[keep], target[keep], None if weight is None else weight[keep])
        for source, target, weight in _inner_edges(graph, component)
        for keep in [~skipped[component[target]]]
    ]
    source, target = (np.concatenate([part[i] for part in found]) for i in (0, 1))
    if len(source) == 0:
        return 0.0, large.tolist()
    weight = np.concatenate([part[2] for part in found]) if graph.weighted else np.ones(len(source))
    in_degree = np.diff(graph.offsets).astype(np.float64) if matrix in BY_IN_DEGREE else None
    if in_degree is not None and graph.weights is not None:
        in_degree = np.add.reduceat(np.append(graph.weights, 0.0), graph.offsets[:-1]) * (in_degree > 0)
    if matrix in BY_OUT_DEGREE:
        weight = weight / (graph.out_degree[source] ** (0.5 if matrix == "symmetric" else 1.0))
    if in_degree is not None:
        weight = weight / (in_degree[target] ** (0.5 if matrix == "symmetric" else 1.0))
    nodes, ends = np.unique(np.stack([source, target]), return_inverse=True)
    small = Graph(torch.from_numpy(ends.reshape(2, -1)), len(nodes), edge_weight=torch.from_numpy(weight))
    return float(spectral_radii(small, "adjacency")[0]), large.tolist()


def _inner_edges(
    graph: DiskGraph, component: NDArray[np.int32]
) -> Iterator[tuple[NDArray[Any], NDArray[Any], Array | None]]:
    """Yield the edges within components, in chunks: sources, targets, weights."""
    parts = max(1, graph.edges // CHUNK_EDGES)
    bounds = graph.rows_by_edges(parts)
    for low, high in pairwise(bounds):
        offsets = np.asarray(graph.offsets[low : high + 1])
        entries = slice(int(offsets[0]), int(offsets[-1]))
        source, target = np.asarray(graph.columns[entries]), np.repeat(np.arange(low, high), np.diff(offsets))
        keep = component[source] == component[target]
        yield source[keep], target[keep], None if graph.weights is None else np.asarray(graph.weights[entries])[keep]


def _largest_eigenvalue(walk: SplitWalk, inside: NDArray[np.bool_] | None, progress: Progress) -> float:
    """Return ρ of the walk within the nodes ``inside``, by Arnoldi restarted with the best Ritz vector.

    ρ is an eigenvalue itself (Perron, Frobenius), so of all Ritz values the one with the largest real part is taken:
    graphs with a period have others as large as ρ.
    """
    mask = None if inside is None else inside[:, None].astype(np.float64)
    x = np.ones((walk.rows, 1)) if mask is None else mask
    radius = residual = math.inf
    for restart in range(MAX_RESTARTS):
        radius, residual, x = _arnoldi(walk, x, mask)
        progress("finding the spectral radius", restart + 1, None)
        if residual <= RADIUS_TOLERANCE:
            return radius
    raise ValueError(
        f"the spectral radius is about {radius:.6g} and cannot be found more closely (residual {residual:.0e}); "
        "use a damping that needs none: matrix='random_walk' and relative=False (--no-relative)"
    )


def _arnoldi(walk: SplitWalk, x: Array, mask: Array | None) -> tuple[float, float, Array]:
    """Return the Ritz value with the largest real part, its relative residual and its vector."""
    x = x / math.sqrt(walk.dot((x, x))[0])
    basis, h = [x], np.zeros((KRYLOV_STEPS + 1, KRYLOV_STEPS))
    size = KRYLOV_STEPS
    for j in range(KRYLOV_STEPS):
        y = walk.step(basis[j])
        if mask is not None:
            y *= mask
        scale = math.sqrt(walk.dot((y, y))[0])
        for _ in range(2):  # once more for orthogonality
            along = walk.dot(*((v, y) for v in basis))
            for i, v in enumerate(basis):
                y -= along[i] * v
                h[i, j] += along[i]
        h[j + 1, j] = math.sqrt(walk.dot((y, y))[0])
        if h[j + 1, j] <= 1e-14 * scale:
            size = j + 1
            break
        basis.append(y / h[j + 1, j])
    values, vectors = np.linalg.eig(h[:size, :size])
    best = int(np.argmax(values.real))
    vector = vectors[:, best].real
    radius = float(values[best].real)
    residual = float(abs(h[size, size - 1] * vector[-1]) / np.linalg.norm(vector) / max(abs(radius), 1e-300))
    found = np.zeros_like(x)
    for weight, v in zip(vector, basis, strict=False):
        found += weight * v
    return radius, residual, found
