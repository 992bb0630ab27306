"""Positions of nodes in the plane, deterministic: stress majorisation for small components, forces for large ones."""

from __future__ import annotations

import math
from functools import cache
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import scipy.fft
import scipy.sparse
import scipy.sparse.csgraph
from numpy.typing import NDArray

from gape.graph.graph import Graph

Points = NDArray[np.float64]

#: Larger components are drawn by forces instead of stress majorisation, which needs all distances.
MAX_STRESS_NODES = 600
MAX_STRESS_STEPS = 200
# Relative decrease of the stress at which its majorisation stops.
STRESS_TOLERANCE = 1e-5
# Graphs of at most so many nodes start from each pair of so many principal axes.
MAX_STARTS_NODES, STRESS_AXES = 150, 5
NUM_PIVOTS = 40
# Least and largest number of cells along each side of the grid on which repulsion is computed.
MIN_GRID, MAX_GRID = 64, 256
FORCE_STEPS = 120
# Width of the picture divided by its height.
WIDTH_PER_HEIGHT = 1.35
# Space between components, in units of an edge's length.
GAP_EDGE_LENGTHS = 1.2


def layout(graph: Graph) -> Points:
    """Place the nodes, ``[n, 2]``: components side by side in each graph, and graphs side by side in order.

    Edges have a length of about 1. The same graph gets the same picture in every process.

    Example:
        >>> two = Graph.from_edges([(0, 1), (2, 3)], undirected=True)
        >>> places = layout(two)
        >>> float(np.linalg.norm(places[0] - places[1]).round(6))
        1.0
    """
    n = graph.num_nodes
    source, target = graph.edge_index.cpu().numpy()
    proper = source != target
    ones = np.ones(int(proper.sum()))
    matrix = scipy.sparse.csr_array((ones, (source[proper], target[proper])), shape=(n, n))
    matrix = ((matrix + matrix.T) > 0).astype(np.float64).tocsr()
    component = scipy.sparse.csgraph.connected_components(matrix, directed=False)[1]
    places = np.zeros((n, 2))
    boxes = []
    ptr = graph.ptr.cpu().numpy()
    for start, stop in pairwise(ptr.tolist()):
        parts = _nodes_by_component(component[start:stop], start)
        for nodes in parts:
            places[nodes] = _component(matrix if len(nodes) == n else matrix[nodes][:, nodes])
        _pack(places, parts)
        boxes.append(np.arange(start, stop))
    _pack(places, boxes, gap=2 * GAP_EDGE_LENGTHS)
    return places


def _nodes_by_component(component: NDArray[Any], start: int) -> list[NDArray[Any]]:
    """Return the nodes of each component, the largest first."""
    order = np.argsort(component, kind="stable")
    bounds = np.flatnonzero(np.diff(component[order])) + 1
    return sorted((part + start for part in np.split(order, bounds) if len(part)), key=len, reverse=True)


def _component(matrix: scipy.sparse.csr_array) -> Points:
    n = matrix.shape[0]
    if n <= 2:
        return np.array([[0.0, 0.0], [1.0, 0.0]])[:n]
    if n <= MAX_STRESS_NODES:
        distance = scipy.sparse.csgraph.shortest_path(matrix, unweighted=True, directed=False)
        return _turned(_stress_layout(distance))
    return _turned(_force_layout(matrix))


def _turned(places: Points) -> Points:
    """Turn the longest axis into the horizontal; fix the signs by the nodes farthest out."""
    centred = places - places.mean(0)
    axes = np.linalg.eigh(centred.T @ centred)[1][:, ::-1]
    turned = centred @ axes
    rows = np.abs(turned).argmax(0)
    signs = np.sign(turned[rows, [0, 1]])
    result: Points = turned * np.where(signs == 0, 1.0, signs)
    return result


def _stress_layout(distance: Points) -> Points:
    """Minimise Σ (|x_u - x_v| - d_uv)² / d_uv² by majorisation (SMACOF), from classical scaling."""
    n = len(distance)
    weight = np.divide(1.0, distance**2, out=np.zeros_like(distance), where=distance > 0)
    laplacian = np.diag(weight.sum(1)) - weight
    inverse = np.linalg.inv(laplacian + 1.0 / n) - 1.0 / n
    squares = distance**2
    centred = -0.5 * (squares - squares.mean(0) - squares.mean(1)[:, None] + squares.mean())
    values, vectors = np.linalg.eigh(centred)
    # Equal distances leave a symmetric start on which majorisation may stall; a fixed spiral breaks ties.
    turn = np.arange(n) * 2.4
    spiral = np.stack([np.cos(turn), np.sin(turn)], 1) * 0.05
    axes = vectors[:, ::-1][:, :STRESS_AXES] * np.sqrt(np.maximum(values[::-1][:STRESS_AXES], 0.0))
    # A ring seen from its edge comes out twisted; other views of small graphs may show it open.
    pairs = list(combinations(range(axes.shape[1]), 2)) if n <= MAX_STARTS_NODES else [(0, 1)]
    found = [_majorised(axes[:, list(pair)] + spiral, distance, weight, inverse) for pair in pairs]
    return min(found, key=lambda one: one[0])[1]


def _majorised(places: Points, distance: Points, weight: Points, inverse: NDArray[Any]) -> tuple[float, Points]:
    before = stress = np.inf
    for _ in range(MAX_STRESS_STEPS):
        gaps = np.linalg.norm(places[:, None] - places[None], axis=2)
        stress = float((weight * (gaps - distance) ** 2).sum())
        if before - stress < STRESS_TOLERANCE * stress:
            break
        before = stress
        ratio = np.divide(weight * distance, gaps, out=np.zeros_like(gaps), where=gaps > 1e-12)
        places = inverse @ (ratio.sum(1)[:, None] * places - ratio @ places)
    return stress, places


def _force_layout(matrix: scipy.sparse.csr_array) -> Points:
    """Springs along edges, repulsion between all nodes: each step costs a convolution on a grid instead of n².

    Starts from pivot scaling (Brandes & Pich, 2007), which has the large-scale shape right.
    """
    n = matrix.shape[0]
    places = _pivot_layout(matrix)
    degree = np.asarray(matrix.sum(1)).ravel()
    mass = 1.0 + degree
    spread = math.sqrt(n)
    places *= spread / max(float(places.std()), 1e-12)
    for step in range(FORCE_STEPS):
        pull = (matrix @ places) - degree[:, None] * places
        push = _repulsion(places, mass) * mass[:, None]
        force = pull + push * (0.25 * n / mass.sum())
        # Hubs have many springs: each node moves by the force per spring, never farther than the cooling allows.
        move = force / (1.0 + degree)[:, None]
        length = np.linalg.norm(move, axis=1, keepdims=True)
        limit = spread * 0.2 * (1.0 - step / FORCE_STEPS) ** 2 + 1e-3
        places = places + move * np.minimum(1.0, limit / np.maximum(length, 1e-12))
    ends = matrix.tocoo()
    edges = np.linalg.norm(places[ends.row] - places[ends.col], axis=1)
    scaled: Points = places / max(float(np.median(edges)), 1e-12)
    return scaled


def _pivot_layout(matrix: scipy.sparse.csr_array) -> Points:
    n = matrix.shape[0]
    nearest, pivot, rows = np.full(n, np.inf), 0, []
    for _ in range(min(NUM_PIVOTS, n)):
        rows.append(scipy.sparse.csgraph.dijkstra(matrix, unweighted=True, indices=pivot))
        nearest = np.minimum(nearest, rows[-1])
        pivot = int(nearest.argmax())
    squares = np.stack(rows, 1) ** 2
    centred = -0.5 * (squares - squares.mean(0) - squares.mean(1)[:, None] + squares.mean())
    _, vectors = np.linalg.eigh(centred.T @ centred)
    places = centred @ vectors[:, [-1, -2]]
    # Leaves of one node coincide; a fixed spiral separates them.
    turn = np.arange(n) * 2.4
    jitter = 1e-3 * places.std() * np.sqrt((np.arange(n) % 97 + 1.0) / 97)
    spread: Points = places + np.stack([np.cos(turn), np.sin(turn)], 1) * jitter[:, None]
    return spread


def _repulsion(places: Points, mass: NDArray[np.float64]) -> Points:
    """Compute Σ_v mass_v (x_u - x_v) / |x_u - x_v|² on a grid, with masses and forces interpolated bilinearly."""
    grid = max(MIN_GRID, min(MAX_GRID, 1 << math.ceil(math.log2(2 * math.sqrt(len(places))))))
    low = places.min(0)
    cell = max(float((places.max(0) - low).max()), 1e-9) / (grid - 2)
    at = (places - low) / cell
    corner = at.astype(np.int64)
    part = at - corner
    corners = []
    for dx in (0, 1):
        for dy in (0, 1):
            share = np.abs(1 - dx - part[:, 0]) * np.abs(1 - dy - part[:, 1])
            corners.append(((corner[:, 0] + dx) * grid + corner[:, 1] + dy, share))
    density = sum(np.bincount(index, mass * share, minlength=grid * grid) for index, share in corners)
    transformed = scipy.fft.rfft2(np.reshape(density, (grid, grid)), (2 * grid, 2 * grid))
    out = np.empty_like(places)
    for axis, kernel in enumerate(_kernels(grid)):
        flat = np.ravel(scipy.fft.irfft2(transformed * kernel, (2 * grid, 2 * grid))[:grid, :grid])
        out[:, axis] = sum(flat[index] * share for index, share in corners) / cell
    return out


@cache
def _kernels(grid: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the transforms of dx / |d|² and dy / |d|² on a grid padded to twice its size."""
    offset = np.fft.fftfreq(2 * grid, 1.0 / (2 * grid))
    dx, dy = np.meshgrid(offset, offset, indexing="ij")
    square = dx**2 + dy**2
    square[0, 0] = 1.0
    return scipy.fft.rfft2(dx / square), scipy.fft.rfft2(dy / square)


def _pack(places: Points, boxes: list[NDArray[Any]], gap: float = GAP_EDGE_LENGTHS) -> None:
    """Move the boxes of nodes side by side into rows, in order; the whole gets about the ratio ``WIDTH_PER_HEIGHT``."""
    boxes = [box for box in boxes if len(box)]
    if not boxes:
        return
    low = np.stack([places[box].min(0) for box in boxes])
    size = np.stack([places[box].max(0) for box in boxes]) - low + gap
    width = max(float(size[:, 0].max()), math.sqrt(float(size.prod(1).sum()) * WIDTH_PER_HEIGHT))
    if len(boxes) == 2:  # a pair is compared from left to right
        width = float(size[:, 0].sum())
    x = y = height = 0.0
    for box, corner, (across, down) in zip(boxes, low, size, strict=True):
        if x > 0 and x + across > width + 1e-9:
            x, y, height = 0.0, y - height, 0.0
        places[box] += np.array([x, y - down]) - corner
        x, height = x + across, max(height, float(down))
