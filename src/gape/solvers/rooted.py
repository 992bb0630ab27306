r"""Rooted automata: transition weights that depend on the distance from a root, and closed runs read by layer.

For a root u every node v has the label d(u, v), the number of edges from u to v, at most L. Machine κ multiplies a step
from label a to label b by T_κ[a, b]. With ρ = ρ(|A|)

    M_{κ,u} = A ∘ T_κ[d(u,·), d(u,·)] / ρ,   C_{κ,u} = diag (I - M_{κ,u})⁻¹,   e(u)[κ, l] = Σ_{v: d(u,v)=l} C_{κ,u}(v).

This is Definition 2 of Soga & Chiang (2023) with labels that come from the graph itself. Since entrywise
|M_{κ,u}| ≤ max |T_κ| · |A| / ρ, the radius ρ(|M_{κ,u}|) is at most max |T_κ|: below 1 the equation is regular and the
weights are proven to be the sum over runs.

Nodes without a path from the root have no part in a closed run of a node that has one: a run along edges comes back
only through nodes that can be reached. They are left out. With a radius so are all nodes further away than that.

M_{κ,u} has the pattern of the graph. So a graph is eliminated symbolically once, and roots times machines are the lanes
of one selected inversion (:mod:`gape.linalg.selected_inverse`). Graphs with many edges take dense inverses instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np
import torch
from torch import Tensor

from gape._internal.threads import map_threads
from gape.automaton import RootedAutomaton
from gape.graph.batching import dense_parts
from gape.graph.graph import Graph
from gape.graph.spectral_radius import walk_radius
from gape.linalg.elimination import Schedule
from gape.linalg.lu import inverses
from gape.linalg.powers import PowerDiagonals
from gape.linalg.selected_inverse import SparseMatrices, inverse_diagonal
from gape.solvers.base import Result
from gape.solvers.certificate import MAX_CONSISTENT_RESIDUAL, YES, code, judge, overflowing
from gape.solvers.rooted_balls import (
    MAX_SHARED_PATTERN_NODES,
    RootedGraphs,
    RootedPart,
    Shape,
    ball_parts,
    largest_ball,
    whole_parts,
)
from gape.solvers.solution import Status

# Roots of a large graph whose balls are one piece of work for a thread.
ROOTS_PER_JOB = 256

_Job = Callable[[], Iterator[RootedPart]]
_Found = tuple[Tensor, Tensor, Tensor, Tensor]


def rooted(automaton: RootedAutomaton, graph: Graph, dtype: torch.dtype, memory: float) -> Result:
    """Sum the closed runs in each layer around every node: ``[num_nodes, K (L + 1)]``, times ``length`` if given.

    Exact; float64 inside. Where the transition weights require gradients, the result has them (once, and not with
    ``length``). The residual of a graph is the largest |diag(Z(I - M)) - 1| over its nodes, roots and machines, Z being
    the computed inverse; ``spectral_radius`` is the bound max |T|.

    Args:
        automaton: the machines.
        graph: directed graphs: distances and runs follow the edges.
        dtype: of the weights.
        memory: largest memory, in GiB, for the matrices of one root.
    """
    transition, length = automaton.transition.to("cpu", torch.float64), automaton.length
    layers, machines = transition.shape[-1], len(transition)
    table, learns = table_of(transition), torch.is_grad_enabled() and transition.requires_grad

    def solve(job: _Job) -> list[_Found]:
        return [_solve(part, table, length) for part in job()]

    jobs = list(_jobs(graph, Shape(layers, machines, automaton.radius, dense=length is not None, memory=memory)))
    done = [solve(job) for job in jobs] if learns else map_threads(solve, jobs)
    found = [one for some in done for one in some]
    weights = torch.zeros(graph.num_nodes, machines * layers * (length or 1), dtype=torch.float64)
    residual = torch.zeros(graph.num_graphs, dtype=torch.float64)
    if found:
        rows, values, graphs, gaps = (torch.cat(parts) for parts in zip(*found, strict=True))
        weights.index_copy_(0, rows, values)
        residual.scatter_reduce_(0, graphs, gaps, "amax")
    return _result(weights.to(graph.device, dtype), residual, transition, graph)


def _jobs(graph: Graph, shape: Shape) -> Iterator[_Job]:
    """Yield independent pieces of work."""
    for graphs in map_threads(_prepare, list(_parts(graph))):
        large = (graphs.sizes > MAX_SHARED_PATTERN_NODES) & (shape.radius is not None)
        if not large.all():
            yield partial(whole_parts, graphs.select(np.flatnonzero(~large)), shape)
        for number in np.flatnonzero(large):
            one = graphs.select(np.array([number]))
            # If the largest ball is too large, say so before any work is done.
            next(ball_parts(one, np.array([largest_ball(one, shape.radius or 0)]), shape))
            for roots in np.array_split(np.arange(len(one.nodes)), -(-len(one.nodes) // ROOTS_PER_JOB)):
                yield partial(ball_parts, one, roots, shape)


def _parts(graph: Graph) -> Iterator[tuple[Graph, int, int]]:
    """Yield parts of the batch, with the number of the first node and graph of each."""
    node = number = 0
    for part in dense_parts(graph) if graph.num_nodes else ():
        yield part, node, number
        node, number = node + part.num_nodes, number + part.num_graphs


def _prepare(part: tuple[Graph, int, int]) -> RootedGraphs:
    graph, node, number = part
    scale = 1.0 / walk_radius(graph, "adjacency", absolute=True)
    return RootedGraphs.of(graph, scale.cpu().numpy(), node, number)


def _solve(part: RootedPart, table: Tensor, length: int | None) -> _Found:
    """Compute rows of the result and their values, graphs and their residuals."""
    if length is None:
        values, residual = closed_by_layer(part, table)
    else:
        values, residual = lengths_by_layer(part, table, length), torch.zeros(len(part.sizes), dtype=torch.float64)
    here = part.roots >= 0
    return part.roots[here], values[here].flatten(1), part.graphs, residual


def table_of(transition: Tensor) -> Tensor:
    """Convert ``[K, L + 1, L + 1]`` to a table with a row per pair of labels, zero for nodes left out."""
    return torch.nn.functional.pad(transition, (0, 1, 0, 1)).flatten(1).T.contiguous()


def closed_by_layer(part: RootedPart, table: Tensor) -> tuple[Tensor, Tensor]:
    """``[B, R, K, L + 1]``: weight of the closed runs in each layer, and ``[B]``, a relative residual.

    The residual is the largest entry of |diag(Z(I - M)) - 1| over nodes, roots and machines, where Z is the computed
    inverse.

    Args:
        part: graphs with their roots.
        table: :func:`table_of` the transition weights.
    """
    if part.schedule is None:
        return _dense(part, table)
    return _sparse(part, part.schedule, table)


def lengths_by_layer(part: RootedPart, table: Tensor, length: int) -> Tensor:
    """``[B, R, K, L + 1, length]``: weight of the closed runs of 1 … ``length`` steps in each layer."""
    (b, r), k, n = part.roots.shape, table.shape[1], part.padding.size
    diagonals = PowerDiagonals(length, torch.float64)
    counts = diagonals(_dense_matrices(part, table).reshape(-1, n, n), symmetric=part.symmetric)
    inside = _layers(part).unsqueeze(2)  # [B, R, 1, layers, n]
    return inside @ counts.reshape(b, r, k, n, length)


def _sparse(part: RootedPart, schedule: Schedule, table: Tensor) -> tuple[Tensor, Tensor]:
    (b, r), k = part.roots.shape, table.shape[1]
    labels = part.labels[schedule.nodes]
    lower = _entries(part, schedule.target, schedule.pivot, schedule, labels, table)
    upper = None if part.symmetric else _entries(part, schedule.pivot, schedule.target, schedule, labels, table)
    rows = torch.arange(schedule.num_nodes, device=labels.device)
    loops = bool((part.source == part.target).any())
    diagonal = torch.ones(schedule.num_nodes, r * k, dtype=torch.float64, device=labels.device)
    if loops:
        diagonal = diagonal + _entries(part, rows, rows, schedule, labels, table)
    found, gap = inverse_diagonal(schedule, SparseMatrices(diagonal, lower, upper))
    by_root = part.padding.pad(found, nodes=schedule.nodes).view(b, -1, r, k).transpose(1, 2)
    return (_layers(part) @ by_root).mT, part.padding.pad(gap, nodes=schedule.nodes).amax(1)


def _entries(
    part: RootedPart, row: Tensor, column: Tensor, schedule: Schedule, labels: Tensor, table: Tensor
) -> Tensor:
    """``[entries, R * K]``: entries of -M at rows and columns of the schedule, zero where there is no edge."""
    n = schedule.num_nodes
    keys = part.source * n + part.target
    wanted = schedule.nodes[row] * n + schedule.nodes[column]
    weight = torch.zeros(len(wanted), dtype=torch.float64, device=labels.device)
    if len(keys):
        edge = torch.searchsorted(keys, wanted).clamp_(max=len(keys) - 1)
        weight = torch.where(keys[edge] == wanted, -part.weight[edge], weight)
    code = labels.index_select(0, row) * (part.layers + 1) + labels.index_select(0, column)
    values = table.index_select(0, code.flatten()).view(len(code), labels.shape[1] * table.shape[1])
    return values * weight.unsqueeze(1)


def _dense(part: RootedPart, table: Tensor) -> tuple[Tensor, Tensor]:
    n = part.padding.size
    system = torch.eye(n, dtype=torch.float64, device=table.device) - _dense_matrices(part, table)
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(system)) if part.symmetric else inverses(system)
    gap = ((inverse.detach() * system.detach().mT).sum(-1) - 1.0).abs().amax((1, 2, 3))
    found = inverse.diagonal(dim1=-2, dim2=-1)  # [B, R, K, n]
    return found @ _layers(part).mT, gap


def _dense_matrices(part: RootedPart, table: Tensor) -> Tensor:
    """``[B, R, K, n, n]``: M, zero where a graph has fewer nodes."""
    (b, r), k, n, layers = part.roots.shape, table.shape[1], part.padding.size, part.layers
    matrices = torch.zeros(b * n * n, dtype=torch.float64, device=table.device)
    matrices[(part.batch[part.source] * n + part.local[part.source]) * n + part.local[part.target]] = part.weight
    labels = _padded_labels(part)
    code = labels.unsqueeze(-1) * (layers + 1) + labels.unsqueeze(-2)  # [B, R, n, n]
    values = table.T[:, code.flatten()].view(k, b, r, n, n).movedim(0, 2)
    return values * matrices.view(b, 1, 1, n, n)


def _padded_labels(part: RootedPart) -> Tensor:
    """``[B, R, n]``; nodes that a graph does not have are left out."""
    return part.padding.pad(part.labels, fill=part.layers).transpose(1, 2)


def _layers(part: RootedPart) -> Tensor:
    """``[B, R, L + 1, n]``: 1 where a node is in a layer, else 0."""
    layers = torch.arange(part.layers, device=part.labels.device)
    return (_padded_labels(part).unsqueeze(2) == layers.unsqueeze(1)).to(torch.float64)


def _result(weights: Tensor, residual: Tensor, transition: Tensor, graph: Graph) -> Result:
    bound = transition.detach().abs().max().to(graph.device).expand(graph.num_graphs)
    residual = residual.to(graph.device)
    converges = torch.full_like(graph.sizes, YES)
    status = judge(residual, converges, tolerance=MAX_CONSISTENT_RESIDUAL, exhausted=False)
    overflowed = overflowing(weights.detach(), graph.sizes)
    if overflowed is not None:
        status[overflowed] = code(Status.OVERFLOW)
    return Result(
        weights=weights,
        residual=residual,
        spectral_radius=bound,
        separation=1.0 - bound,
        unique=torch.full_like(status, YES),
        status=status,
        steps=int(graph.sizes.max()) if graph.num_graphs else 0,
        radius_kind="bound",
        solver=["SelectedInverse"] * graph.num_graphs,
    )
