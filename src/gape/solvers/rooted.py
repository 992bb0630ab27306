r"""Rooted automata: transition weights that depend on the distance from a root, and closed runs read by layer.

For a root u every node v has the label d(u, v), the number of edges from u to v, at most L. Machine κ multiplies a step
from label a to label b by T_κ[a, b]. With ρ = ρ(|A|)

    M_{κ,u} = A ∘ T_κ[d(u,·), d(u,·)] / ρ,   C_{κ,u} = diag (I - M_{κ,u})⁻¹,   e(u)[κ, l] = Σ_{v: d(u,v)=l} C_{κ,u}(v).

This is Definition 2 of Soga & Chiang (2023) with labels that come from the graph itself. Since entrywise
|M_{κ,u}| ≤ max |T_κ| · |A| / ρ, the radius ρ(|M_{κ,u}|) is at most max |T_κ|: below 1 the equation is regular and the
weights are proven to be the sum over runs.

Nodes without a path from the root have no part in a closed run of a node that has one: a run along edges comes back
only through nodes that can be reached. They are left out. With a radius so are all nodes further away than that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gape._internal.threads import map_threads
from gape.graph.batching import dense_parts
from gape.graph.graph import Graph
from gape.graph.spectral_radius import spectral_radii
from gape.solvers.certificate import MAX_CONSISTENT_RESIDUAL, STATUSES, code, judge, overflowing
from gape.solvers.rooted_balls import WHOLE_NODES, RootedGraphs, Shape, ball_parts, whole_parts
from gape.solvers.rooted_part import RootedPart, closed_by_layer, lengths_by_layer, table_of
from gape.solvers.solution import Solution, Status

# Roots of a large graph whose balls are one piece of work for a thread.
ROOTS_PER_JOB = 256

_Job = Callable[[], Iterator[RootedPart]]
_Found = tuple[Tensor, Tensor, Tensor, Tensor]


def rooted(
    transition: Tensor,
    graph: Graph,
    *,
    radius: int | None = None,
    length: int | None = None,
    dtype: torch.dtype = torch.float64,
    memory: float = 4.0,
) -> Solution:
    """Weights of the closed runs in each layer around every node, ``[num_nodes, K (L + 1)]``, with certificates.

    Exact; float64 inside. Where the transition weights require gradients, the result has them (once, and not with
    ``length``). The residual of a graph is the largest |diag(Z(I - M)) - 1| over its nodes, roots and machines, Z being
    the computed inverse; ``spectral_radius`` is the bound max |T|.

    Args:
        transition: ``[K, L + 1, L + 1]``, weights T of steps from layer to layer, each below 1 in absolute value and
            symmetric: T[a, b] = T[b, a].
        graph: directed graphs: distances and runs follow the edges.
        radius: nodes further from the root than that do not exist for its runs; ``None`` to keep all.
        length: give the runs of 1, 2, … ``length`` steps each on its own, ``[num_nodes, K (L + 1) length]``, instead of
            the sum over all lengths.
        dtype: of the weights.
        memory: largest memory, in GiB, for the matrices of one root.

    Example:
        >>> ring = Graph.from_edges([(0, 1), (1, 2), (2, 0)], undirected=True)
        >>> rooted(torch.full((1, 2, 2), 0.9), ring).weights[0]
        tensor([3.7931, 7.5862], dtype=torch.float64)
    """
    transition, layers, machines = _checked(transition), transition.shape[-1], len(transition)
    table, learns = table_of(transition), torch.is_grad_enabled() and transition.requires_grad
    if learns and length is not None:
        raise ValueError(f"runs by length have no gradients, got length={length} and weights that require them")

    def solve(job: _Job) -> list[_Found]:
        return [_solve(part, table, length) for part in job()]

    jobs = list(_jobs(graph, Shape(layers, machines, radius, dense=length is not None, memory=memory)))
    done = [solve(job) for job in jobs] if learns else map_threads(solve, jobs)
    found = [one for some in done for one in some]
    weights = torch.zeros(graph.num_nodes, machines * layers * (length or 1), dtype=torch.float64)
    residual = torch.zeros(graph.num_graphs, dtype=torch.float64)
    if found:
        rows, values, graphs, gaps = (torch.cat(parts) for parts in zip(*found, strict=True))
        weights.index_copy_(0, rows, values)
        residual.scatter_reduce_(0, graphs, gaps, "amax")
    return _certified(weights.to(graph.device, dtype), residual, transition, graph)


def _checked(transition: Tensor) -> Tensor:
    """The weights in float64 on the CPU."""
    if transition.dim() != 3 or transition.shape[1] != transition.shape[2] or 0 in transition.shape:
        raise ValueError(f"transition must have shape [machines, layers, layers], got {list(transition.shape)}")
    weights = transition.detach()
    if not torch.equal(weights, weights.mT):
        raise ValueError("transition must be symmetric: a step from layer a to b weighs as much as one from b to a")
    if not bool((weights.abs() < 1).all()):
        raise ValueError(
            f"transition weights must be below 1 in absolute value, got {weights.abs().max().item():.3g}; they are "
            "relative to 1/ρ(A), and runs sum up below that only"
        )
    return transition.to("cpu", torch.float64)


def _jobs(graph: Graph, shape: Shape) -> Iterator[_Job]:
    """Pieces of work that are independent of each other."""
    for graphs in map_threads(_prepare, list(_parts(graph))):
        large = (graphs.sizes > WHOLE_NODES) & (shape.radius is not None)
        if not large.all():
            yield partial(whole_parts, graphs.take(np.flatnonzero(~large)), shape)
        for number in np.flatnonzero(large):
            one = graphs.take(np.array([number]))
            busiest = np.argmax(np.bincount(one.source, minlength=1), keepdims=True)
            # The largest ball is likely there: if it is too large, say so before any work is done.
            next(ball_parts(one, busiest, shape))
            for roots in np.array_split(np.arange(len(one.nodes)), -(-len(one.nodes) // ROOTS_PER_JOB)):
                yield partial(ball_parts, one, roots, shape)


def _parts(graph: Graph) -> Iterator[tuple[Graph, int, int]]:
    """Runs of whole graphs, with the number of the first node and graph of each."""
    node = number = 0
    for part in dense_parts(graph) if graph.num_nodes else ():
        yield part, node, number
        node, number = node + part.num_nodes, number + part.num_graphs


def _prepare(part: tuple[Graph, int, int]) -> RootedGraphs:
    graph, node, number = part
    return RootedGraphs.of(graph, _scales(graph), node, number)


def _scales(graph: Graph) -> np.ndarray[Any, Any]:
    """``[graphs]``: 1/ρ(|A|), or 1 where that is 0."""
    if graph.edge_weight is not None:
        graph = replace(graph, edge_weight=graph.edge_weight.detach().abs())
    radius = spectral_radii(graph, "adjacency").cpu().numpy()
    return 1.0 / np.where(radius > 0, radius, 1.0)


def _solve(part: RootedPart, table: Tensor, length: int | None) -> _Found:
    """Rows of the result and their values, graphs and their residuals."""
    if length is None:
        values, residual = closed_by_layer(part, table)
    else:
        values, residual = lengths_by_layer(part, table, length), torch.zeros(len(part.sizes), dtype=torch.float64)
    here = part.roots >= 0
    return part.roots[here], values[here].flatten(1), part.graphs, residual


def _certified(weights: Tensor, residual: Tensor, transition: Tensor, graph: Graph) -> Solution:
    bound = transition.detach().abs().max().to(graph.device).expand(graph.num_graphs)
    residual = residual.to(graph.device)
    codes = judge(residual, bound, tolerance=MAX_CONSISTENT_RESIDUAL, exhausted=False, run_sum=True)
    lost = overflowing(weights.detach(), graph.sizes)
    if lost is not None:
        codes[lost] = code(Status.OVERFLOW)
    solution = Solution(
        weights=weights,
        status=[STATUSES[i] for i in codes.tolist()],
        residual=residual,
        spectral_radius=bound,
        radius_kind="bound",
        separation=1.0 - bound,
        unique=[True] * graph.num_graphs,
        solver=["SelectedInverse"] * graph.num_graphs,
        steps=int(graph.sizes.max()) if graph.num_graphs else 0,
    )
    return solution.checked()
