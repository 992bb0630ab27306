"""The paper's "vec trick": one dense linear system in all n·k unknowns. The oracle."""

from __future__ import annotations

from dataclasses import dataclass

import scipy.linalg
import torch
from torch import Tensor

from gape.solvers.outcome import NO, SINGULAR_GAP, YES, Outcome, judge
from gape.solvers.problem import Problem


@dataclass(frozen=True)
class Kronecker:
    """Form I - A ⊗ μ and solve it, graph by graph. Handles every kind of transition; O((nk)³).

    Args:
        max_unknowns: the largest n·k it accepts.
    """

    max_unknowns: int = 8192

    def __post_init__(self) -> None:
        if self.max_unknowns < 1:
            raise ValueError(f"max_unknowns must be at least 1, got {self.max_unknowns}")

    def run(self, problem: Problem) -> Outcome:
        ptr = problem.walk.ptr.tolist()
        source = problem.source
        x = torch.zeros_like(source).contiguous()
        graphs = problem.num_graphs
        radius, separation = torch.zeros(2, graphs, dtype=torch.float64, device=source.device)
        dense, poles = problem.walk.dense().detach(), torch.linalg.eigvals(problem.transition)
        for i, matrix in enumerate(operator_matrices(problem, self.max_unknowns)):
            nodes = slice(ptr[i], ptr[i + 1])
            if len(matrix) == 0:
                separation[i] = 1.0
                continue
            if problem.typed:
                spectrum = torch.linalg.eigvals(matrix)
            else:
                # Those of A ⊗ μ are the products; padding adds zeros, which change neither number below.
                spectrum = torch.outer(torch.linalg.eigvals(dense[i]), poles).flatten()
            radius[i] = spectrum.abs().max()
            separation[i] = (1 - spectrum).abs().min().clamp(max=1.0)
            solved = _solve(matrix, source[nodes].reshape(-1), singular=bool(separation[i] <= SINGULAR_GAP))
            x[nodes] = solved.reshape(-1, x.shape[1])
        residual = problem.residual(x)
        rounding = problem.rounding(problem.norms(x), problem.walk.norm_bounds)
        regular = separation > SINGULAR_GAP
        status = judge(residual, radius, tolerance=1e-10, exhausted=True, rounding=torch.where(regular, rounding, 0.0))
        unique = torch.where(regular, YES, NO)
        return Outcome(x, residual, radius, separation, unique, status, problem.walk.num_nodes)


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


def _solve(operator: Tensor, source: Tensor, singular: bool) -> Tensor:
    """(I - F)⁻¹ s, or the shortest least-squares solution where that does not exist."""
    system = torch.eye(len(operator), dtype=operator.dtype, device=operator.device) - operator
    solved, info = torch.linalg.solve_ex(system, source)
    return shortest_least_squares(system, source) if singular or int(info) else solved


def shortest_least_squares(system: Tensor, source: Tensor) -> Tensor:
    """The solution of least norm among those of least residual; singular values below 1e-10 count as zero."""
    # QR with column pivoting: a tenth of the time of singular values. (PyTorch's own is not the same twice.)
    norm = float(torch.linalg.matrix_norm(system, 1) * torch.linalg.matrix_norm(system, torch.inf)) ** 0.5
    if norm <= SINGULAR_GAP:
        return torch.zeros_like(source)
    solved = scipy.linalg.lstsq(
        system.cpu().numpy(),
        source.resolve_conj().cpu().numpy(),
        cond=SINGULAR_GAP / norm,
        lapack_driver="gelsy",
        check_finite=False,
    )
    return torch.from_numpy(solved[0]).to(system.device)
