"""The paper's "vec trick": one dense linear system in all n·k unknowns. The oracle."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gape._internal.validation import positive
from gape.solvers.dense_system import solve_or_nearest, within
from gape.solvers.outcome import DIRECT_TOLERANCE, NO, YES, Result, below_one, judge
from gape.solvers.problem import Problem


@dataclass(frozen=True)
class Kronecker:
    """Form I - A ⊗ μ and solve it, graph by graph. Handles every kind of transition; O((nk)³).

    Args:
        max_unknowns: the largest n·k it accepts.
    """

    max_unknowns: int = 8192

    def __post_init__(self) -> None:
        positive(self.max_unknowns, "max_unknowns")

    def run(self, problem: Problem) -> Result:
        ptr = problem.walk.ptr.tolist()
        source = problem.source
        x = torch.zeros_like(source).contiguous()
        graphs = problem.num_graphs
        radius, separation = torch.zeros(2, graphs, dtype=torch.float64, device=source.device)
        regular = torch.ones(graphs, dtype=torch.bool, device=source.device)
        dense = problem.walk.dense(within_components=True).detach()
        poles = torch.linalg.eigvals(problem.transition)
        for i, matrix in enumerate(operator_matrices(problem, self.max_unknowns)):
            nodes = slice(ptr[i], ptr[i + 1])
            if len(matrix) == 0:
                separation[i] = 1.0
                continue
            if problem.typed:
                spectrum = torch.linalg.eigvals(within(matrix, problem.walk.components[nodes]))
            else:
                # Those of A ⊗ μ are the products; padding adds zeros, which change neither number below.
                spectrum = torch.outer(torch.linalg.eigvals(dense[i]), poles).flatten()
            radius[i] = spectrum.abs().max()
            separation[i] = (1 - spectrum).abs().min().clamp(max=1.0)
            right, component = source[nodes].reshape(-1), problem.walk.components[nodes]
            solved, regular[i] = solve_or_nearest(matrix, right, component, bool(below_one(radius[i])))
            x[nodes] = solved.reshape(-1, x.shape[1])
        residual = problem.residual(x)
        rounding = problem.rounding(problem.norms(x), problem.walk.norm_bounds)
        status = judge(
            residual,
            radius,
            tolerance=DIRECT_TOLERANCE,
            exhausted=True,
            rounding=torch.where(regular, rounding, 0.0),
            regular=regular,
        )
        unique = torch.where(regular, YES, NO)
        return Result(x, residual, radius, separation, unique, status, problem.walk.num_nodes)


def operator_matrices(problem: Problem, max_unknowns: int) -> list[Tensor]:
    """The operator F of each graph as a dense matrix on vec(X), row by row of X."""
    k = problem.initial.shape[0]
    largest = int(problem.adjacency.sizes.max()) * k
    if largest > max_unknowns:
        raise ValueError(
            f"a graph has {largest} unknowns (nodes × states); the dense system is limited to {max_unknowns} "
            f"(it needs {largest**2 * 8 / 1e9:.1f} GB); raise max_unknowns, or use Auto"
        )
    source, target, values = (part.detach() for part in problem.walk.entries())
    mu = problem.transition
    if not problem.typed:
        blocks = mu.expand(len(source), k, k)
    elif problem.edge_type is not None:
        _ = problem.walks_by_type  # refuses matrices with a diagonal
        blocks = mu[problem.edge_type]
    else:
        blocks = mu[problem.labels[source]] if problem.labels is not None else mu[:1].expand(len(source), k, k)
    graph = problem.adjacency.batch[source]
    local = problem.adjacency.local
    matrices = []
    for i, size in enumerate(problem.adjacency.sizes.tolist()):
        chosen = (graph == i).nonzero().flatten()
        matrix = torch.zeros(size, size, k, k, dtype=mu.dtype, device=mu.device)
        # Row v, column u: x_v gains A[u, v] x_u μ, that is (μᵀ x_u).
        matrix.index_put_(
            (local[target[chosen]], local[source[chosen]]),
            values[chosen, None, None].to(mu.dtype) * blocks[chosen].mT,
            accumulate=True,
        )
        matrices.append(matrix.permute(0, 2, 1, 3).reshape(size * k, size * k))
    return matrices
