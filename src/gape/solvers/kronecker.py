"""The paper's "vec trick": one dense linear system in all n·k unknowns. The oracle."""

from __future__ import annotations

import math
from dataclasses import dataclass

import scipy.linalg
import torch
from torch import Tensor

from gape.solvers.outcome import NEARLY_SINGULAR, NO, SINGULAR_GAP, YES, Outcome, below_one, judge
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
        regular = torch.ones(graphs, dtype=torch.bool, device=source.device)
        dense = problem.walk.dense(within_components=True).detach()
        poles = torch.linalg.eigvals(problem.transition)
        for i, matrix in enumerate(operator_matrices(problem, self.max_unknowns)):
            nodes = slice(ptr[i], ptr[i + 1])
            if len(matrix) == 0:
                separation[i] = 1.0
                continue
            if problem.typed:
                spectrum = torch.linalg.eigvals(_within(matrix, problem.walk.components[nodes]))
            else:
                # Those of A ⊗ μ are the products; padding adds zeros, which change neither number below.
                spectrum = torch.outer(torch.linalg.eigvals(dense[i]), poles).flatten()
            radius[i] = spectrum.abs().max()
            separation[i] = (1 - spectrum).abs().min().clamp(max=1.0)
            singular = bool(separation[i] <= SINGULAR_GAP)
            solved, regular[i] = _solve(matrix, source[nodes].reshape(-1), singular, bool(below_one(radius[i])))
            x[nodes] = solved.reshape(-1, x.shape[1])
        residual = problem.residual(x)
        rounding = problem.rounding(problem.norms(x), problem.walk.norm_bounds)
        status = judge(
            residual,
            radius,
            tolerance=1e-10,
            exhausted=True,
            rounding=torch.where(regular, rounding, 0.0),
            regular=below_one(radius),
        )
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


def _within(operator: Tensor, component: Tensor) -> Tensor:
    """The operator of a graph without what it does between strongly connected components, ``[n]``."""
    states = len(operator) // len(component)
    component = component.repeat_interleave(states)
    return torch.where(component.unsqueeze(1) == component, operator, 0.0)


def _solve(operator: Tensor, source: Tensor, singular: bool, contracts: bool) -> tuple[Tensor, bool]:
    """(I - F)⁻¹ s, or the shortest least-squares solution where that does not exist; and whether it exists.

    Eigenvalues do not always tell: one that belongs to a chain of vectors comes out wrong by much more than rounding.
    But then elimination leaves weights so large that they solve nothing. (So may they be where runs sum up, and
    there they are right.)
    """
    system = torch.eye(len(operator), dtype=operator.dtype, device=operator.device) - operator
    if not singular:
        solved, info = torch.linalg.solve_ex(system, source)
        lost = 2.0**-52 * matrix_scale(system) * float(torch.linalg.vector_norm(solved))
        if not int(info) and (contracts or lost <= NEARLY_SINGULAR * float(torch.linalg.vector_norm(source))):
            return solved, True
    return shortest_least_squares(system, source), False


def matrix_scale(system: Tensor) -> float:
    """√(‖M‖₁‖M‖∞), an upper bound of the 2-norm."""
    return math.sqrt(float(torch.linalg.matrix_norm(system, 1) * torch.linalg.matrix_norm(system, torch.inf)))


def shortest_least_squares(system: Tensor, source: Tensor) -> Tensor:
    """The solution of least norm among those of least residual; singular values below 1e-10 count as zero."""
    # QR with column pivoting: a tenth of the time of singular values. (PyTorch's own is not the same twice.)
    norm = matrix_scale(system)
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
