r"""Runs between single nodes by dense matrices, for the closed and the pair readout.

For runs from node u the equation is X = AᵀXμ + e_u α[:, ℓ(u)]ᵀ. With A = V Θ Vᵀ its solution at node v is
Σ_j V_uj V_vj (I - θ_jμᵀ)⁻¹ α[:, ℓ(u)]. On a directed graph the Schur forms Aᵀ = U R Uᴴ and μ = W T Wᴴ turn the equation
into triangular systems, one per state. Singular graphs without orthogonal eigenvectors get one dense system.
"""

from __future__ import annotations

from collections.abc import Iterator

import scipy.linalg
import torch
from torch import Tensor

from gape.graph.batching import Block, symmetrised
from gape.linalg.radius_bounds import EPSILON
from gape.solvers.base import Result
from gape.solvers.certificate import (
    MAX_CONSISTENT_RESIDUAL,
    MAX_ROUNDING_RESIDUAL,
    NO,
    SINGULAR_GAP,
    UNKNOWN,
    YES,
    RadiusBounds,
    code,
    dense_radius_bounds,
    judge,
    overflowing,
    radius_bounds_of,
    run_status,
    symmetric_radius_bounds,
    with_rounding,
)
from gape.solvers.equation import Equation
from gape.solvers.error_bound import MAX_INVERSE_UNKNOWNS, dense_error_bound
from gape.solvers.kronecker import solve_or_least_squares, within
from gape.solvers.schur_form import SchurForm, pole_gaps, solve_diagonal
from gape.solvers.singular import MAX_DENSE_UNKNOWNS
from gape.solvers.solution import OnSingular, Status

# Complex numbers of the triangular systems solved together.
MAX_TRIANGULAR_ELEMENTS = 1 << 22


class BlockCertificate:
    """The certificate of one part of a batch, filled in block by block.

    Args:
        equation: the equation of the part.
        solver: the name of the method.
        steps: powers summed, or the size of the largest dense matrix.

    Attributes, all ``[graphs]``: ``radius`` is ρ(μ)ρ(A) and ``separation`` min |1 - λδ|; ``gap`` is the relative
    residual and ``rounding`` the part that float64 may have added; ``suspect`` marks weights so large that nothing is
    known about their accuracy.
    """

    def __init__(self, equation: Equation, solver: str, steps: int) -> None:
        graphs, device = equation.num_graphs, equation.walk.ptr.device
        self.equation = equation
        self.solver, self.steps = solver, steps
        numbers = torch.zeros(4, graphs, dtype=torch.float64, device=device)
        self.radius, self.graph_radius, self.gap, self.rounding = numbers
        self.error_bound = torch.full_like(self.radius, torch.nan)
        # Dense check: proved regular / could not decide.
        self.regular = torch.zeros(graphs, dtype=torch.bool, device=device)
        self.unknown = torch.zeros_like(self.regular)
        self.separation = torch.ones(graphs, dtype=torch.float64, device=device)
        self.suspect = torch.zeros(graphs, dtype=torch.bool, device=device)

    @property
    def singular(self) -> Tensor:
        """``[graphs]``: True if the equation is singular, or may be."""
        return torch.logical_and(self.separation <= SINGULAR_GAP, ~self.regular) | self.suspect

    def _radius_bounds(self, summed: bool) -> RadiusBounds:
        if summed:  # the powers that were summed have proven it
            return RadiusBounds(torch.zeros_like(self.radius), torch.zeros_like(self.radius))
        if self.equation.walk.similarity is None:
            return dense_radius_bounds(self.equation)
        return symmetric_radius_bounds(self.equation, self.graph_radius, self.steps)

    def add_spectrum(self, graphs: Tensor, theta: Tensor, form: SchurForm) -> None:
        """Add the eigenvalues ``[B, J]`` of the walk matrices of ``graphs``; ``form`` is the Schur form of μ."""
        self.graph_radius[graphs] = theta.abs().amax(-1)
        self.radius[graphs] = self.graph_radius[graphs] * float(form.eigenvalues.abs().max())
        self.separation[graphs] = pole_gaps(theta, form).amin(1).clamp(max=1.0)

    def add_rounding(self, graphs: Tensor, size: Tensor, norm: Tensor | float) -> None:
        """Add the rounding error of weights of relative norm ``size`` under an operator of norm ``norm``."""
        self.rounding[graphs] = EPSILON * (1.0 + norm) * size

    def result(self, weights: Tensor, rows: Tensor, *, summed: bool) -> Result:
        """The result with the rounded ``weights``, ``rows[i]`` of them of graph i.

        Args:
            summed: whether the runs were summed by length, so that the sum converges whatever the bound of the radius.
        """
        bounds = self._radius_bounds(summed)
        status = judge(
            self.gap,
            bounds.converges,
            tolerance=MAX_CONSISTENT_RESIDUAL,
            exhausted=True,
            rounding=self.rounding,
            regular=~self.singular,
        )
        # A small error bound outweighs a large residual.
        exact = (status == code(Status.ILL_CONDITIONED)) & (self.error_bound <= MAX_ROUNDING_RESIDUAL)
        status = torch.where(exact, run_status(bounds.converges), status)
        # Suspects too large for the dense check stay ill-conditioned.
        status[self.suspect] = code(Status.ILL_CONDITIONED)
        self.error_bound[self.suspect] = torch.inf
        overflowed = overflowing(weights, rows)
        if overflowed is not None:
            status[overflowed] = code(Status.OVERFLOW)
        unique = bounds.regular(self.separation, self.steps)
        singular, known = (self.separation <= SINGULAR_GAP) & ~self.regular, ~(self.unknown | self.suspect)
        result = Result(
            weights=weights,
            residual=self.gap + self.rounding,
            spectral_radius=self.radius if summed else bounds.clamp(self.radius),
            separation=self.separation,
            unique=torch.where(known, torch.where(singular, UNKNOWN if summed else NO, unique), UNKNOWN),
            status=status,
            steps=self.steps,
            radius_kind="bound" if summed else bounds.kind,
            solver=[self.solver] * len(self.radius),
        )
        result.error_bound = self.error_bound
        return result


class DenseRuns:
    """Runs between the nodes of one part of a batch.

    Args:
        equation: with one real μ and without gradients.
        on_singular: see :func:`gape.solve`.
    """

    def __init__(self, equation: Equation, on_singular: OnSingular) -> None:
        self.equation, self.walk, self.on_singular = equation, equation.walk, on_singular
        self.form = SchurForm.of(equation.transition)
        name = "Schur" if self.walk.similarity is None else "Spectral"
        self.certificate = BlockCertificate(equation, name, int(equation.sizes.max()))

    def bytes_needed(self, *, pairs: bool) -> int:
        """Memory for the largest graph, counted in the arrays below and confirmed by measurement."""
        n, k = int(self.equation.sizes.max()), self.equation.states
        if self.walk.similarity is not None:
            return 8 * n**2 * (5 * k + 6 if pairs else 10)
        return 8 * n**2 * (14 + (3 * k // 2 if pairs else 0)) + 4 * 16 * min(MAX_TRIANGULAR_ELEMENTS, n**2 * k)

    def closed(self, block: Block) -> Tensor:
        """``[B, n, k]``: runs of each node back to itself."""
        out = block.matrices.new_zeros(*block.nodes.shape, self.equation.states)
        if self.walk.similarity is not None:
            vectors, by_label = self._eigenvectors(block)
            squares = vectors.square()
            for where, y in by_label:
                out += (squares @ y) * (where if isinstance(where, float) else where.unsqueeze(-1))
        else:
            for i, vectors, sources, columns in self._schur(block, back=True):
                # Only the rows of the source nodes themselves, which avoids an n × n × k array.
                back = torch.einsum("bs,ksb->bk", vectors[sources], columns)
                out[i, sources] = (back @ self.form.vectors.mH).real
        for i, runs in self._resolve_singular(block):
            out[i] = runs.diagonal().T
        return out

    def pair(self, block: Block) -> Tensor:
        """``[B, n, n, k]``: runs from each node to each node."""
        out = block.matrices.new_zeros(*block.matrices.shape, self.equation.states)
        if self.walk.similarity is not None:
            out = self._pairs_by_eigenvectors(block, out)
        else:
            for i, vectors, sources, columns in self._schur(block, back=False):
                table = torch.einsum("vs,ksb->bvk", vectors, columns)
                out[i, sources] = (table @ self.form.vectors.mH).real
        for i, runs in self._resolve_singular(block):
            out[i] = runs
        return out

    # ------------------------------------------------------------------ eigenvectors

    def _eigenvectors(self, block: Block) -> tuple[Tensor, Iterator[tuple[Tensor | float, Tensor]]]:
        """Eigenvectors ``[B, n, J]``; and per label, its nodes and its (I - θ_jμᵀ)⁻¹α ``[B, J, k]``."""
        theta, vectors = torch.linalg.eigh(symmetrised(block, self.walk))
        return vectors, self._solve_by_label(block, theta, vectors)

    def _solve_by_label(self, block: Block, theta: Tensor, vectors: Tensor) -> Iterator[tuple[Tensor | float, Tensor]]:
        mu, labels, gaps = self.equation.transition, self.equation.labels_of(block.nodes), pole_gaps(theta, self.form)
        gap, total, size = theta.new_zeros(3, len(theta))
        for label in [0] if labels is None else torch.unique(labels).tolist():
            rhs = self.equation.initial[:, label]
            here = torch.ones_like(theta) if labels is None else (labels == label).to(theta.dtype)
            y, residual = solve_diagonal(theta, mu, self.form, rhs.expand(*theta.shape, -1), gaps)
            share = (here.unsqueeze(1) @ vectors.square()).squeeze(1)
            gap += (share * residual.square()).sum(1)
            size += (share * y.abs().square().sum(-1)).sum(1)
            total += here.sum(1) * rhs.square().sum()
            yield (1.0 if labels is None else labels == label), y
        total = torch.where(total > 0, total, 1.0)
        norm = self.equation.transition_norm * theta.abs().amax(1)
        self.certificate.add_spectrum(block.graphs, theta, self.form)
        self.certificate.gap[block.graphs] = (gap / total).sqrt()
        self.certificate.add_rounding(block.graphs, (size / total).sqrt(), norm)
        regular = self.certificate.separation > SINGULAR_GAP
        self.certificate.suspect |= regular & (self.certificate.rounding > MAX_ROUNDING_RESIDUAL)

    def _pairs_by_eigenvectors(self, block: Block, weighted: Tensor) -> Tensor:
        vectors, by_label = self._eigenvectors(block)
        for where, y in by_label:
            # [graph, from u, eigenvector j, state]
            along = vectors.unsqueeze(-1) * y.unsqueeze(1)
            weighted += along * (where if isinstance(where, float) else where[:, :, None, None])
        table = torch.einsum("bujk,bvj->buvk", weighted, vectors)
        if self.walk.symmetric:
            return table
        assert self.walk.similarity is not None
        c = self.walk.similarity[block.nodes]
        return table * (c.unsqueeze(1) / c.unsqueeze(2)).unsqueeze(-1)

    # ------------------------------------------------------------------ Schur forms

    def _schur(self, block: Block, *, back: bool) -> Iterator[tuple[int, Tensor, Tensor, Tensor]]:
        """Yield graph of the block, Schur vectors, source nodes ``[b]`` and their runs ``[k, n, b]``, block by block.

        Singular graphs are left out. ``back``: the runs need only be right where they come back, which is in the
        strongly connected component where they began.
        """
        certificate = self.certificate
        for i, matrix in enumerate(block.matrices):
            graph = block.graphs[i : i + 1]
            inside = within(matrix, self.walk.components[block.nodes[i]])
            certificate.add_spectrum(graph, torch.linalg.eigvals(inside).unsqueeze(0), self.form)
            if certificate.singular[graph]:
                continue
            factors = scipy.linalg.schur((inside if back else matrix).mT.cpu().numpy(), output="complex")
            upper, vectors = (torch.from_numpy(factor).to(matrix.device) for factor in factors)
            initial = self._initial(block, i)
            size = torch.zeros(2, dtype=torch.float64, device=matrix.device)
            for sources, columns in _runs_from_each(upper, vectors, self.form, initial):
                size += torch.stack([columns.abs().square().sum(), initial[sources].square().sum()])
                yield i, vectors, sources, columns
            norm = self.equation.transition_norm * float(torch.linalg.matrix_norm(matrix))
            certificate.add_rounding(graph, (size[0] / size[1].clamp(min=1e-300)).sqrt(), norm)
            # Rounding errors may exceed weights this large: the dense check decides.
            certificate.suspect[graph] = certificate.rounding[graph] > MAX_ROUNDING_RESIDUAL

    # ------------------------------------------------------------------ singular graphs

    def _resolve_singular(self, block: Block) -> Iterator[tuple[int, Tensor]]:
        """Yield graphs of the block that are, or may be, singular without orthogonal eigenvectors; runs ``[n, n, k]``.

        One dense system per graph gives the solution for every source node, or its minimum-norm least squares.
        """
        certificate = self.certificate
        # The eigenvectors of a symmetric matrix have solved singular equations.
        asked = certificate.suspect if self.walk.symmetric else certificate.singular
        for i in asked[block.graphs].nonzero().flatten().tolist():
            initial, graph = self._initial(block, i), block.graphs[i]
            if initial.numel() > MAX_DENSE_UNKNOWNS:
                if certificate.suspect[graph]:
                    continue
                if self.on_singular == "least_squares":
                    raise ValueError(_too_large(*initial.shape))
                certificate.gap[graph] = torch.inf
                continue
            component, alone = self.walk.components[block.nodes[i]], self.equation.alone(int(graph))
            contracts = bool(radius_bounds_of(alone).converges == YES)
            runs, residual, regular, unique, bound = _least_squares_runs(
                block.matrices[i], self.equation.transition, initial, component, contracts
            )
            certificate.suspect[graph] = False
            # The residual of a regular system is rounding error.
            certificate.rounding[graph], certificate.gap[graph] = (residual, 0.0) if regular else (0.0, residual)
            certificate.regular[graph], certificate.unknown[graph] = regular, unique == UNKNOWN
            if not regular:
                certificate.separation[graph] = 0.0
            elif residual > MAX_ROUNDING_RESIDUAL:
                certificate.error_bound[graph] = bound
            yield i, runs

    def _initial(self, block: Block, i: int) -> Tensor:
        """``[n, k]``: the weights with which runs begin at each node of a graph."""
        labels = self.equation.labels_of(block.nodes)
        return self.equation.initial.T[torch.zeros_like(block.nodes[i]) if labels is None else labels[i]]


def _runs_from_each(
    upper: Tensor, vectors: Tensor, form: SchurForm, initial: Tensor
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield source nodes ``[b]`` and ``[k, n, b]``, the runs from them in the coordinates of U and W.

    Args:
        upper, vectors: R and U, ``[n, n]``.
        form: the Schur form of μ.
        initial: ``[n, k]``, (αℓ)ᵀ.
    """
    n, k = initial.shape
    turned = initial.to(torch.complex128) @ form.vectors
    eye = torch.eye(n, dtype=torch.complex128, device=upper.device)
    step = max(1, MAX_TRIANGULAR_ELEMENTS // (n * k))
    for first in range(0, n, step):
        sources = torch.arange(first, min(n, first + step), device=upper.device)
        start = vectors[sources].conj().T
        columns = torch.zeros(k, n, len(sources), dtype=torch.complex128, device=upper.device)
        for j in range(k):
            right = start * turned[sources, j]
            if j and not form.normal:
                right = right + upper @ torch.tensordot(form.upper[:j, j], columns[:j], dims=1)
            columns[j] = torch.linalg.solve_triangular(eye - form.upper[j, j] * upper, right, upper=True)
        yield sources, columns


def _least_squares_runs(
    matrix: Tensor, transition: Tensor, initial: Tensor, component: Tensor, contracts: bool
) -> tuple[Tensor, Tensor, bool, int, float]:
    """Solve X = AᵀXμ + e_u initial[u] for every node u by one dense system, by least squares if it is singular.

    Args:
        matrix: A, ``[n, n]``.
        transition: μ, ``[k, k]``.
        initial: ``[n, k]``, (αℓ)ᵀ.
        component: ``[n]``, the strongly connected component of each node.
        contracts: whether ρ(μ)ρ(A) < 1.

    Returns:
        ``[n, n, k]``, from, to, state; the relative residual of all of them together; whether it is regular; whether it
        is unique (YES, NO, UNKNOWN); and a bound of the relative error.
    """
    n, k = initial.shape
    operator = torch.kron(matrix.T.contiguous(), transition.T.contiguous())
    # Column u is zero but for the rows of node u.
    rhs = torch.diag_embed(initial.T).permute(1, 0, 2).reshape(n * k, n)
    found, regular, unique = solve_or_least_squares(operator, rhs, component, contracts)
    size = torch.linalg.matrix_norm(rhs).clamp(min=1e-300)
    relative = torch.linalg.matrix_norm(found - operator @ found - rhs) / size
    if regular:
        rounding = EPSILON * (1.0 + torch.linalg.matrix_norm(operator)) * torch.linalg.matrix_norm(found)
        relative = with_rounding(relative, rounding / size)
    bound = dense_error_bound(operator, rhs, found) if regular and n * k <= MAX_INVERSE_UNKNOWNS else torch.inf
    return found.reshape(n, k, n).permute(2, 0, 1), relative, regular, unique, bound


def _too_large(nodes: int, states: int) -> str:
    return (
        f"a graph of {nodes} nodes has a singular equation, and {nodes} × {states} unknowns are too many for least "
        f"squares on a walk matrix that is not symmetric (at most {MAX_DENSE_UNKNOWNS}); take fewer states, a lower or "
        "relative damping, or an undirected graph with matrix='adjacency' or 'symmetric'"
    )
