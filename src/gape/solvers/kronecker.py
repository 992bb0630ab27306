"""The paper's "vec trick": one dense linear system in all n·k unknowns, the reference for the other solvers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import scipy.linalg
import torch
from torch import Tensor

from gape._internal.validation import positive
from gape.graph.spectral_radius import growth_bounds
from gape.linalg.radius_bounds import EPSILON, radius_bounds
from gape.solvers.base import Result, Solver
from gape.solvers.certificate import (
    DIRECT_TOLERANCE,
    MAX_PUSHES,
    MAX_SPARSE_PUSHES,
    NO,
    SINGULAR_GAP,
    UNKNOWN,
    YES,
    RadiusBounds,
    below_one,
    dense_radius_bounds,
    judge,
    radius_bounds_of,
    with_rounding,
)
from gape.solvers.equation import Equation

# Graphs with at most so many unknowns (nodes × states) get the eigenvalues of F, if nothing else tells its radius.
MAX_DENSE_RADIUS_UNKNOWNS = 64
# Entries of LU factors larger than this times those of the matrix cost digits (Wilkinson): QR takes over.
MAX_PIVOT_GROWTH = 1e3


@dataclass(frozen=True)
class Kronecker(Solver):
    """Form I - A ⊗ μ and solve it, graph by graph. Handles every kind of transition; O((nk)³).

    Args:
        max_unknowns: the largest n·k it accepts.
    """

    max_unknowns: int = 8192

    typed: ClassVar[bool] = True

    def __post_init__(self) -> None:
        positive(self.max_unknowns, "max_unknowns")

    def solve(self, equation: Equation) -> Result:
        rhs = equation.rhs
        x = torch.zeros_like(rhs).contiguous()
        graphs = equation.num_graphs
        radius, separation, lower, upper = torch.zeros(4, graphs, dtype=torch.float64, device=rhs.device)
        regular = torch.ones(graphs, dtype=torch.bool, device=rhs.device)
        unique = torch.full((graphs,), YES, device=rhs.device)
        bounds = RadiusBounds(lower, upper) if equation.typed else dense_radius_bounds(equation)
        dense = equation.walk.dense(within_components=True).detach()
        poles = torch.linalg.eigvals(equation.transition)
        for i, matrix in enumerate(operator_matrices(equation, self.max_unknowns)):
            nodes = equation.nodes(i)
            if len(matrix) == 0:
                separation[i] = 1.0
                continue
            if equation.typed:
                inside = within(matrix, equation.walk.components[nodes])
                spectrum = torch.linalg.eigvals(inside)
                lower[i], upper[i] = radius_bounds(inside)
            else:
                # Those of A ⊗ μ are the products; padding adds zeros, which change neither number below.
                spectrum = torch.outer(torch.linalg.eigvals(dense[i]), poles).flatten()
            radius[i] = spectrum.abs().max()
            separation[i] = (1 - spectrum).abs().min().clamp(max=1.0)
            component = equation.walk.components[nodes]
            contracts = bool(bounds.converges[i] == YES)
            found = solve_or_least_squares(matrix, rhs[nodes].reshape(-1), component, contracts)
            solved, regular[i], unique[i] = found
            x[nodes] = solved.reshape(-1, x.shape[1])
        residual = equation.residual(x)
        rounding = equation.rounding(equation.norms(x), equation.walk.two_norm_bounds)
        status = judge(
            residual,
            bounds.converges,
            tolerance=DIRECT_TOLERANCE,
            exhausted=True,
            rounding=torch.where(regular, rounding, 0.0),
            regular=regular,
        )
        steps, kind = equation.walk.num_nodes, bounds.kind
        residual = with_rounding(residual, rounding)
        return Result(x, residual, bounds.clamp(radius), separation, unique, status, steps, radius_kind=kind)


def operator_matrices(equation: Equation, max_unknowns: int) -> list[Tensor]:
    """Build the operator F of each graph as a dense matrix on vec(X), row by row of X."""
    k = equation.initial.shape[0]
    largest = int(equation.adjacency.sizes.max()) * k
    if largest > max_unknowns:
        raise ValueError(
            f"a graph has {largest} unknowns (nodes × states); the dense system is limited to {max_unknowns} "
            f"(it needs {largest**2 * 8 / 1e9:.1f} GB); raise max_unknowns, or use Auto"
        )
    source, target, values = (part.detach() for part in equation.walk.entries())
    mu = equation.transition
    if not equation.typed:
        blocks = mu.expand(len(source), k, k)
    elif equation.edge_type is not None:
        _ = equation.walks_by_type  # refuses matrices with a diagonal
        blocks = mu[equation.edge_type]
    else:
        blocks = mu[equation.labels[source]] if equation.labels is not None else mu[:1].expand(len(source), k, k)
    graph = equation.adjacency.batch[source]
    local = equation.adjacency.local
    matrices = []
    for i, size in enumerate(equation.adjacency.sizes.tolist()):
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


def operator_radius_bounds(equation: Equation) -> RadiusBounds:
    """Bound the radius of F, each graph until it is decided whether that is below 1.

    With typed transitions: norms; the growth of walks weighted by ‖μ‖₂ and of runs with absolute weights, which bound
    it from above; dense matrices of small graphs.
    """
    if not equation.typed:
        return radius_bounds_of(equation)
    bounds = RadiusBounds(torch.zeros_like(equation.radius_bound), equation.radius_bound * (1.0 + 1e-14))
    if not bool((bounds.converges == UNKNOWN).any()):
        return bounds
    upper = growth_bound(equation.row_norms, bounds.upper, MAX_SPARSE_PUSHES)
    upper = growth_bound(equation.absolute, upper, MAX_PUSHES)
    bounds = RadiusBounds(bounds.lower, upper)
    small = equation.sizes * equation.states <= MAX_DENSE_RADIUS_UNKNOWNS
    for i in (small & (bounds.converges == UNKNOWN)).nonzero().flatten().tolist():
        alone = equation.alone(i)
        (operator,) = operator_matrices(alone, MAX_DENSE_RADIUS_UNKNOWNS)
        bounds.lower[i], bounds.upper[i] = radius_bounds(within(operator, alone.walk.components))
    return bounds


def growth_bound(equation: Equation, upper: Tensor, steps: int) -> Tensor:
    """Lower the bounds ``upper`` ``[graphs]`` to the growth per step of nonnegative runs, until below 1."""
    ones = torch.ones(equation.walk.num_nodes, equation.states, dtype=equation.transition.dtype)
    bounds = growth_bounds(equation.apply, ones.to(equation.walk.ptr.device), equation.adjacency)
    for _ in range(steps):
        known = below_one(upper)
        if bool(known.all()):
            break
        # A graph that is decided keeps its bound, so that it has the same one in any batch.
        upper = torch.where(known, upper, torch.minimum(upper, next(bounds)))
    return upper


def solve_or_least_squares(
    operator: Tensor, rhs: Tensor, component: Tensor, contracts: bool
) -> tuple[Tensor, bool, int]:
    """Compute (I - F)⁻¹ s, or the minimum-norm least-squares solution if I - F is singular.

    Also whether it is regular, and whether the solution is unique: YES, NO, or UNKNOWN if the smallest singular value
    is within the rounding errors of the matrix.

    Runs never come back to a strongly connected component that they left, so the system is block triangular: singular
    if and only if one of the diagonal blocks is, and solved block by block. Weights that grow from one component to the
    next do not affect that test, and do not cancel.

    Args:
        operator: F, ``[n k, n k]``.
        rhs: ``[n k]`` or ``[n k, columns]``.
        component: ``[n]``, that of each node.
        contracts: whether ρ(μ)ρ(A) < 1 is known, which makes it regular.
    """
    inside = within(operator, component)
    eye = torch.eye(len(operator), dtype=operator.dtype, device=operator.device)
    blocks = eye - inside
    factors = _factorised(blocks)
    noise = EPSILON * len(blocks) * float(torch.linalg.matrix_norm(blocks, 1))
    if not (contracts or factors.smallest > SINGULAR_GAP):
        return least_squares(eye - operator, rhs), False, NO if noise <= SINGULAR_GAP else UNKNOWN
    columns = rhs.reshape(len(rhs), -1)
    between = operator - inside
    x = factors.solve(columns)
    # After t rounds the components behind at most t others are final.
    for _ in range(len(torch.unique(component)) if bool(between.any()) else 0):
        before, x = x, factors.solve(columns + between @ x)
        if torch.equal(before, x):
            break
    return x.reshape(rhs.shape), True, YES if contracts or factors.smallest > noise else UNKNOWN


def within(operator: Tensor, component: Tensor) -> Tensor:
    """Drop the entries of an operator between strongly connected components ``[n]``."""
    component = component.repeat_interleave(len(operator) // len(component))
    return torch.where(component.unsqueeze(1) == component, operator, 0.0)


class _Factors(NamedTuple):
    """Factorised matrix: a function that solves with it, and an estimate of its smallest singular value."""

    solve: Callable[[Tensor], Tensor]
    smallest: float


def _factorised(system: Tensor) -> _Factors:
    """Factorise by LU with partial pivoting; by QR where its entries grow, as on long directed cycles."""
    upper, pivots, info = torch.linalg.lu_factor_ex(system)
    if not int(info) and not float(upper.abs().max()) > MAX_PIVOT_GROWTH * float(system.abs().max()):
        # ‖M⁻¹‖₁ is at most √n times as large as the 2-norm.
        norm = float(torch.linalg.matrix_norm(system, 1))
        smallest = _reciprocal_condition("gecon", upper, norm) * norm * math.sqrt(len(system))
        return _Factors(lambda b: torch.linalg.lu_solve(upper, pivots, b), smallest)
    q, r = torch.linalg.qr(system)
    smallest = _reciprocal_condition("trcon", r) * float(torch.linalg.matrix_norm(r, 1)) * math.sqrt(len(system))
    return _Factors(lambda b: torch.linalg.solve_triangular(r, q.mH @ b, upper=True), smallest)


def _reciprocal_condition(routine: str, factors: Tensor, *norm: float) -> float:
    """Estimate 1/(‖M‖₁‖M⁻¹‖₁) by LAPACK."""
    array = factors.resolve_conj().cpu().numpy()
    (estimate,) = scipy.linalg.get_lapack_funcs((routine,), (array,))
    return float(estimate(array, *norm)[0])


def least_squares(system: Tensor, rhs: Tensor) -> Tensor:
    """Compute the minimum-norm least-squares solution; singular values below 1e-10 count as zero."""
    # QR with column pivoting takes a tenth of the time of the SVD. PyTorch's own is not deterministic.
    norms = (torch.linalg.matrix_norm(system, 1), torch.linalg.matrix_norm(system, torch.inf))
    norm = math.sqrt(float(norms[0] * norms[1]))  # at least the 2-norm
    if norm <= SINGULAR_GAP:
        return torch.zeros_like(rhs)
    solved = scipy.linalg.lstsq(
        system.cpu().numpy(),
        rhs.resolve_conj().cpu().numpy(),
        cond=SINGULAR_GAP / norm,
        lapack_driver="gelsy",
        check_finite=False,
    )
    return torch.from_numpy(solved[0]).to(system.device)
