"""Spectral radius ρ(A) of walk matrices, bounds of it, and walk matrices rescaled to ρ = 1."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from ctypes import c_double, c_int64, c_void_p
from dataclasses import replace
from itertools import count

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg
import torch
from torch import Tensor

from gape.graph.adjacency import Adjacency
from gape.graph.batching import blocks
from gape.graph.graph import Graph
from gape.graph.small_graphs import SmallGraphs, address
from gape.graph.walk_matrix import WalkMatrix
from gape.linalg.radius_bounds import radius_bounds
from gape.native import kernel as find_kernel

# Settings of ARPACK: ample where the largest eigenvalue is separated.
ARPACK_OPTIONS = {"tol": 1e-13, "ncv": 40, "maxiter": 100}
# Relative width of the Collatz–Wielandt bounds at which Noda's iteration ends, and its most steps.
NODA_TOLERANCE = 1e-12
MAX_NODA_STEPS = 100
# Most steps of the compiled Lanczos process, and the relative residual of the Ritz pair at which it ends.
MAX_LANCZOS_STEPS = 128
RITZ_TOLERANCE = 1e-13
# Smallest and largest absolute edge weight of compiled Lanczos processes, which square them.
LANCZOS_WEIGHT_RANGE = 1e-100, 1e100
# Larger graphs use ARPACK instead of dense eigenvalues.
MAX_DENSE_RADIUS_NODES = 512
#: Matrices with ρ ≤ 1 for nonnegative weights: rows or columns sum to 1, or the 2-norm is at most 1 (Schur test).
STOCHASTIC = ("random_walk", "random_walk_in", "symmetric")


def spectral_radius(walk: WalkMatrix, only: Tensor | None = None) -> Tensor:
    """Return ρ of each graph's matrix, ``[graphs]``: exactly 0 without cycles, and independent of the batch.

    Directed graphs are treated per strongly connected component, see :attr:`WalkMatrix.components`.

    Args:
        walk: the walk matrix.
        only: ``[graphs]`` of bools, the graphs to compute; the others get 0.

    Example:
        >>> ring = Graph.from_edges([(0, 1), (1, 2), (2, 0)], undirected=True)
        >>> round(float(spectral_radius(ring.walk("adjacency"))), 6)
        2.0
    """
    similar = walk.similarity
    source, target, values = _own_entries(walk)
    sizes = walk.adjacency.sizes
    out = torch.zeros(len(sizes), dtype=torch.float64, device=walk.ptr.device)
    large, small = sizes > MAX_DENSE_RADIUS_NODES, sizes <= MAX_DENSE_RADIUS_NODES
    if only is not None:
        large, small = large & only, small & only
    found = _compiled_radius(walk, small) if has_moderate_weights(values) else None
    if found is not None:
        known = small & ~found.isnan()
        out, small = torch.where(known, found, out), small & ~known
    for graphs, matrices in _dense_matrices(walk, small):
        out[graphs] = _dense_radius(matrices, similar is not None)
    for i in large.nonzero().flatten().tolist():
        inside = walk.adjacency.batch[source] == i
        out[i] = _sparse_radius(source[inside], target[inside], values[inside], similar is not None)
    return out


def spectral_radius_bounds(walk: WalkMatrix, only: Tensor) -> tuple[Tensor, Tensor]:
    """Return bounds of ρ of each graph's matrix, ``[graphs]`` each, that hold in spite of rounding.

    0 and infinity for graphs that ``only`` ``[graphs]`` leaves out, or that are too large for a dense matrix.

    Example:
        >>> path = Graph.from_edges([(0, 1), (1, 2)])
        >>> spectral_radius_bounds(path.walk("adjacency"), torch.tensor([True]))
        (tensor([0.], dtype=torch.float64), tensor([0.], dtype=torch.float64))
    """
    sizes = walk.adjacency.sizes
    lower = torch.zeros(len(sizes), dtype=torch.float64, device=walk.ptr.device)
    upper = torch.full_like(lower, torch.inf)
    symmetric = walk.similarity is not None
    for graphs, matrices in _dense_matrices(walk, only & (sizes <= MAX_DENSE_RADIUS_NODES)):
        if symmetric:
            # Eigenvalues of symmetric matrices move by no more than the rounding error.
            radius, error = _dense_radius(matrices, True), 2.0**-50 * matrices.shape[-1]
            found = radius * (1.0 - error), radius * (1.0 + error)
        else:
            found = radius_bounds(matrices)
        lower[graphs], upper[graphs] = found
    return lower, upper


def growth_bounds(push: Callable[[Tensor], Tensor], ones: Tensor, adjacency: Adjacency) -> Iterator[Tensor]:
    """Yield for t = 1, 2, … the upper bound ‖Fᵗ1‖∞^(1/t) of each graph's ρ(F), ``[graphs]``, of a nonnegative F.

    Infinite where the walk counts Fᵗ1 have overflowed or nearly underflowed.

    Args:
        push: the operator F.
        ones: ``[n]`` or ``[n, k]``, the vector 1.
        adjacency: which nodes belong to which graph.

    Example:
        >>> path = Graph.from_edges([(0, 1), (1, 2)], undirected=True)
        >>> bounds = growth_bounds(path.walk().push, torch.ones(3, dtype=torch.float64), path.adjacency)
        >>> [round(next(bounds).item(), 3) for t in range(3)]
        [2.0, 1.414, 1.587]
    """
    counts = ones
    for t in count(1):
        counts = push(counts)
        largest = adjacency.segment_max(counts if counts.dim() == 1 else counts.real.amax(1))
        # Rounding adds at most a few units of the last place per edge and step.
        bound = (largest * (1.0 + 1e-12 * t)) ** (1.0 / t)
        yield torch.where((largest > 1e-280) & torch.isfinite(largest), bound, torch.inf)


def least_growth(walk: WalkMatrix, steps: int) -> Tensor:
    """Return for A ≥ 0 a lower bound of ρ(A), ``[graphs]``: min (Aᵀy)_v / y_v over a component, for some y > 0.

    Args:
        walk: without negative entries.
        steps: of the power iteration that improves y.
    """
    inside, component = walk.within_components, walk.components
    y = torch.ones(walk.num_nodes, dtype=torch.float64, device=walk.ptr.device)
    best = torch.zeros(int(component.max()) + 1, dtype=torch.float64, device=walk.ptr.device)
    for _ in range(steps):
        pushed = inside.push(y)
        least = torch.full_like(best, torch.inf).scatter_reduce(0, component, pushed / y, "amin")
        best = torch.maximum(best, least)
        # A shift keeps periodic components from oscillating, and y positive.
        y = pushed + y * least[component].clamp(min=1e-300)
        y = y / torch.zeros_like(best).scatter_reduce(0, component, y, "amax")[component]
        y = y.clamp(min=1e-200)
    return walk.adjacency.segment_max(best[component]) * (1.0 - 1e-12)


def _own_entries(walk: WalkMatrix) -> tuple[Tensor, Tensor, Tensor]:
    """The entries of a matrix with the same eigenvalues: symmetric, or without those between components."""
    source, target, values = (part.detach() for part in walk.entries())
    similar = walk.similarity
    if similar is None:
        return source, target, torch.where(walk.components[source] == walk.components[target], values, 0.0)
    return source, target, values * (similar[source] / similar[target])


def _dense_matrices(walk: WalkMatrix, only: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield graphs of ``only`` ``[graphs]`` and their matrices ``[B, n, n]`` with the same eigenvalues."""
    if not bool(only.any()):
        return
    source, _, values = _own_entries(walk)
    for block in blocks(walk, values=torch.where(only[walk.adjacency.batch[source]], values, 0.0)):
        asked = only[block.graphs]
        if bool(asked.any()):
            yield block.graphs[asked], block.matrices[asked]


def _compiled_radius(walk: WalkMatrix, chosen: Tensor) -> Tensor | None:
    """ρ of the chosen graphs by the compiled Lanczos process, NaN where it does not converge; ``None`` without it."""
    kernel = find_kernel("radius", c_void_p, c_int64, c_int64, c_void_p, c_int64, c_double, c_void_p)
    if kernel is None or walk.adjacency.scan is None or not walk.nonnegative or walk.similarity is None:
        return None
    found = torch.zeros(len(chosen), dtype=torch.float64)
    scale = None if walk.symmetric else walk.similarity.contiguous()
    SmallGraphs(walk, chosen).run(kernel, address(scale), MAX_LANCZOS_STEPS, RITZ_TOLERANCE, address(found))
    return found


def spectral_radii(graph: Graph, matrix: str) -> Tensor:
    """Return ρ of each graph's matrix, ``[graphs]``, part by part to limit padding."""
    return torch.cat([spectral_radius(part.walk(matrix)) for part in graph.parts])


def radius_lower_bound(graph: Graph) -> float:
    """Return a lower bound of the largest ρ(A) of undirected graphs without weights, 0 for others; one pass of edges.

    √(largest degree), because a star is a subgraph of any graph.

    Example:
        >>> radius_lower_bound(Graph.from_edges([(0, 1), (0, 2), (0, 3), (0, 4)], undirected=True))
        2.0
    """
    if graph.edge_weight is not None or graph.num_edges == 0 or not graph.undirected:
        return 0.0
    return math.sqrt(float(graph.adjacency.out_degree.max()))


def has_moderate_weights(weights: Tensor | None) -> bool:
    """Return whether the squares of weights are far from over- and underflow, as the compiled Lanczos process needs."""
    if weights is None or not weights.numel():
        return True
    size = weights.detach().abs()
    smallest = torch.where(size > 0, size, 1.0).min()
    return bool((smallest >= LANCZOS_WEIGHT_RANGE[0]) & (size.max() <= LANCZOS_WEIGHT_RANGE[1]))


def has_unit_radius(walk: WalkMatrix) -> bool:
    """Return whether ρ is 1 by construction (0 without edges): √degree is an eigenvector up to similarity."""
    return walk.name in STOCHASTIC and walk.nonnegative and walk.adjacency.symmetric


def walk_radius(graph: Graph, matrix: str, *, absolute: bool) -> Tensor:
    """Return the divisor of each graph's walk matrix A, ``[graphs]``: its spectral radius, or 1 where that is 0.

    Args:
        graph: the graphs.
        matrix: the walk matrix by name.
        absolute: False for ρ(A) itself: the sum over runs of one μ converges if and only if ρ(μ) is below 1, as
            :class:`gape.encodings.GAPE` uses it. True for ρ(|A|), or 1 for nonnegative stochastic matrices, whose
            radius is at most 1: an upper bound that also holds for typed and rooted automata, as :class:`gape.nn.GAPE`
            and rooted runs need it. They differ for weights of both signs, and for stochastic matrices of directed
            graphs.

    Example:
        >>> pair = Graph(torch.tensor([[0, 0, 1, 1], [0, 1, 0, 1]]), 2, edge_weight=torch.tensor([1.0, 1.0, 1.0, -1.0]))
        >>> [round(walk_radius(pair, "adjacency", absolute=absolute).item(), 6) for absolute in (False, True)]
        [1.414214, 2.0]
    """
    known = torch.zeros(graph.num_graphs, dtype=torch.bool, device=graph.device)
    if absolute:
        walk = graph.walk(matrix)
        if (matrix in STOCHASTIC and walk.nonnegative) or graph.num_nodes == 0:
            return torch.ones(graph.num_graphs, dtype=torch.float64, device=graph.device)
        if not walk.nonnegative:
            source, target, values = (part.detach() for part in walk.entries())
            if matrix in STOCHASTIC:
                least = torch.ones(graph.num_graphs, dtype=torch.float64, device=graph.device)
                known = least.scatter_reduce(0, graph.batch[source], values, "amin") >= 0
            edges = torch.stack([source, target])
            graph = Graph(edges, graph.num_nodes, edge_weight=values.abs(), ptr=graph.ptr, _trusted=True)
            matrix = "adjacency"
    radius = spectral_radii(graph, matrix)
    return torch.where((radius > 0) & ~known, radius, 1.0)


def unit_radius(graph: Graph, matrix: str) -> Graph:
    """Return the graph whose adjacency is the walk matrix divided by ρ(A), or by 1 where that is 0.

    Its weights carry no gradient, since that of ρ would be missing.
    """
    walk = graph.walk(matrix)
    source, target = walk.adjacency.edge_index
    factor = (1.0 / walk_radius(graph, matrix, absolute=False))[walk.adjacency.batch]
    values = walk.adjacency.weights * walk.sign
    # Multiply left by right first: an edge and its reverse then round alike if the matrix is symmetric.
    if walk.left is not None and walk.right is not None:
        values = values * (walk.left[source] * walk.right[target])
    elif walk.left is not None:
        values = values * walk.left[source]
    elif walk.right is not None:
        values = values * walk.right[target]
    values = values * factor[source]
    index = graph.edge_index
    if walk.diagonal is not None:
        loops = torch.arange(graph.num_nodes, device=graph.device)
        index, values = torch.cat([index, loops.expand(2, -1)], 1), torch.cat([values, walk.diagonal * factor])
    types = graph.edge_type
    if types is not None and walk.diagonal is not None:
        raise ValueError(f"the diagonal of {matrix!r} has no edge types; choose another walk matrix")
    made = Graph(index, graph.num_nodes, values.detach(), graph.labels, types, graph.ptr, _trusted=True)
    if walk.symmetric:
        made.adjacency.mark_symmetric()
    return made


def _dense_radius(matrices: Tensor, symmetric: bool) -> Tensor:
    solve = torch.linalg.eigvalsh if symmetric else torch.linalg.eigvals
    radius: Tensor = solve((matrices + matrices.mT) / 2 if symmetric else matrices).abs().amax(-1)
    return radius


def _sparse_radius(source: Tensor, target: Tensor, values: Tensor, symmetric: bool) -> float:
    inside = values != 0
    if not bool(inside.any()):
        return 0.0
    nodes, ends = torch.unique(torch.stack([source[inside], target[inside]]), return_inverse=True)
    n = len(nodes)
    matrix = scipy.sparse.csr_array((values[inside].cpu().numpy(), tuple(ends.cpu().numpy())), shape=(n, n))
    if n <= MAX_DENSE_RADIUS_NODES:
        return float(_dense_radius(torch.from_numpy(matrix.toarray()), symmetric))
    solver = scipy.sparse.linalg.eigsh if symmetric else scipy.sparse.linalg.eigs
    start = np.random.default_rng(0).uniform(0.5, 1.5, n)
    try:
        value = solver(matrix, k=1, which="LM", v0=start, return_eigenvectors=False, **ARPACK_OPTIONS)
    except scipy.sparse.linalg.ArpackNoConvergence as error:
        # Long cycles and paths have many eigenvalues close to the largest, but little fill-in.
        if matrix.data.min() < 0:
            raise ValueError(
                f"the spectral radius of a graph of {n} nodes with negative weights cannot be found: {error}; "
                "use an absolute damping, relative=False"
            ) from error
        return perron_root(matrix)
    return float(abs(value[0]))


def perron_root(matrix: scipy.sparse.csr_array) -> float:
    r"""Return ρ of a nonnegative matrix without entries between its strongly connected components.

    For every positive x, min (Ax)_v/x_v ≤ ρ ≤ max (Ax)_v/x_v on a component (Collatz, 1942). Noda's iteration (1971)
    uses the upper bound as the shift of an inverse iteration, x ← (ρ̄I - A)⁻¹x: x stays positive and both bounds
    converge to ρ, quadratically in the end. All components are iterated together, each with its own shift.

    Example:
        >>> ring = scipy.sparse.csr_array(np.roll(np.eye(5), 1, axis=1))
        >>> perron_root(2.0 * ring)
        2.0
    """
    n = matrix.shape[0]
    component = scipy.sparse.csgraph.connected_components(matrix, directed=True, connection="strong")[1]
    x = np.ones(n)
    for _ in range(MAX_NODA_STEPS):
        quotient = (matrix @ x) / x
        upper, lower, largest = (np.full(component.max() + 1, fill) for fill in (0.0, np.inf, 0.0))
        np.maximum.at(upper, component, quotient)
        np.minimum.at(lower, component, quotient)
        if upper.max() - lower.max() <= NODA_TOLERANCE * upper.max():
            return float(upper.max())
        # A converged component would make the system singular; a larger shift leaves its vector unchanged.
        shift = np.where(upper - lower <= NODA_TOLERANCE * upper, 2.0 * upper, upper)[component]
        system = scipy.sparse.csc_array(scipy.sparse.diags_array(shift) - matrix)
        x = scipy.sparse.linalg.splu(system, diag_pivot_thresh=0.0).solve(x)
        np.maximum.at(largest, component, x)
        x = x / largest[component]
    raise ValueError(
        f"the spectral radius of a graph of {n} nodes is between {lower.max():.6g} and {upper.max():.6g} and cannot be "
        "found more closely: its weights are too different; rescale them, or use an absolute damping, relative=False"
    )


def unit_walk(graph: Graph, matrix: str, radius: Tensor) -> WalkMatrix:
    """Divide the walk matrix of every graph by its ``radius`` ``[graphs]``; symmetric matrices stay symmetric.

    Unlike :func:`unit_radius` this takes any divisor, mostly :func:`walk_radius` with ``absolute=True``, and keeps the
    matrix as a product of vectors and edge weights, in which the edge weights may have gradients.
    """
    walk = graph.walk(matrix)
    if bool((radius == 1).all()):
        return walk
    # The square root on either side keeps a symmetric matrix symmetric.
    shrink = radius.rsqrt()[walk.adjacency.batch]
    same = walk.left is walk.right
    left = shrink if walk.left is None else walk.left * shrink
    right = left if same else shrink if walk.right is None else walk.right * shrink
    diagonal = None if walk.diagonal is None else walk.diagonal * shrink.square()
    return replace(walk, name=f"unit {matrix}", left=left, right=right, diagonal=diagonal)
