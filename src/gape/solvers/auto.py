"""Choice of a solver: for an equation by :class:`Auto`, for a basis by :func:`basis_solver`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from torch import Tensor

from gape._internal.validation import whole_number
from gape.automaton import Automaton
from gape.graph.graph import Graph
from gape.solvers.base import Assignment, Result, Solver
from gape.solvers.certificate import check_tolerance, radius_bounds_of
from gape.solvers.equation import Equation
from gape.solvers.fixed_point import FixedPoint
from gape.solvers.kernels import output
from gape.solvers.kronecker import Kronecker
from gape.solvers.krylov import Krylov
from gape.solvers.schur import Schur
from gape.solvers.series import Series
from gape.solvers.solution import Status
from gape.solvers.spectral import Spectral

# The sum over runs converges fast if ρ(μ)·‖A‖ is at most this.
FAST_RADIUS = 0.7
# With more labels, one space for all of them is cheaper than a Krylov space per label.
MAX_KRYLOV_LABELS = 8
# Up to this size all eigenvectors cost no more than a few Krylov steps.
MAX_EIGENVECTOR_NODES = 72
# With so few states one dense system in all unknowns costs less than a Schur form of the walk matrix. That takes long
# where all eigenvalues have the same size: 6 s for a directed ring of 400 nodes.
MAX_DENSE_SYSTEM_STATES, MAX_DENSE_SYSTEM_UNKNOWNS = 4, 1024
# Krylov steps that are always tried before eigenvectors take over.
MIN_KRYLOV_STEPS = 24


@dataclass(frozen=True)
class Auto(Solver):
    """Pick a solver by this rule, the first that fits:

    1. transitions per node label or edge type: :class:`FixedPoint`;
    2. ρ(μ)·‖A‖ ≤ 0.7 on every graph, so that the sum over runs converges fast: :class:`Series`;
    3. no graph has a cycle, so that the sum is finite: :class:`Series`;
    4. a graph is too large for a dense matrix: :class:`Krylov`;
    5. more than 8 labels have runs: :class:`Spectral` if the walk matrix is symmetric, otherwise :class:`Schur`, or
       :class:`Kronecker` for up to 4 states and 1,024 unknowns;
    6. symmetric walk matrix, and no graph has more than 72 nodes: :class:`Spectral`; otherwise :class:`Krylov`.

    Compiled kernels apply it to each graph alone, with :class:`Krylov` in the place of Spectral.

    Acyclic graphs in a batch with others are solved separately, by rule 3. Graphs on which Krylov runs out of steps go
    on to rule 5, if they are small enough for it. If that is Spectral, Krylov stops after half as many steps as the
    largest graph has nodes (up to 256), or after 24 if these did not bring half of the graphs closer to their solution.

    Args:
        tolerance: relative residual asked of the iterative solvers; if ``None`` 1e-12, or 1e-10 for weights that
            are rounded to float32 (whose own rounding is a thousand times coarser).
        dense_nodes: largest graph for which a dense matrix is made.
    """

    tolerance: float | None = None
    dense_nodes: int = 1024

    typed: ClassVar[bool] = True
    iterative: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.tolerance is not None:
            check_tolerance(self.tolerance)
        whole_number(self.dense_nodes, "dense_nodes", at_least=0)

    def choose(self, automaton: Automaton, graph: Graph, matrix: str = "adjacency") -> Solver:
        """The solver that :func:`gape.solve` would use.

        Example:
            >>> ring = Graph.from_edges([(0, 1), (1, 2), (2, 0)], undirected=True)
            >>> Auto().choose(Automaton.random(states=4, damping=0.02), ring)
            Series(tolerance=1e-12, max_steps=10000)
            >>> Auto().choose(Automaton.random(states=4, damping=0.9), ring)
            Spectral(max_nodes=4096)
        """
        return self.pick(Equation.of(automaton, graph, matrix).detached)

    def solve(self, equation: Equation) -> Result:
        return self.pick(equation).solve(equation)

    def assign(self, equation: Equation) -> Iterator[Assignment]:
        """Pick a solver for acyclic graphs and one for the others; where it iterates, a direct one as fallback."""
        acyclic = self._acyclic_subset(equation.detached)
        groups = [None] if acyclic is None else [which.nonzero().flatten() for which in (acyclic, ~acyclic)]
        for graphs in groups:
            some = equation if graphs is None else equation.select(graphs)
            picked = self.pick(some.detached)
            # Direct solvers have no typed transitions.
            fallback = self.direct(some) if picked.iterative and not some.typed else None
            for assignment in picked.assign(some):
                yield replace(assignment.among(graphs), fallback=fallback, fallback_nodes=self.dense_nodes)

    def compiled(self, equation: Equation, chosen: Tensor | None = None, *, relative: bool = False) -> Result | None:
        """Apply the rule to each graph alone, as kernels solve each alone."""
        if relative:
            # The Krylov space in which the radius is found also solves the equation.
            return Krylov(self.tolerance or equation.tolerance).compiled(equation, chosen, relative=True)
        weights = output(equation)  # all kernels write into one tensor
        if weights is not equation.out:
            equation = replace(equation, out=weights)
        fast = self._fast_graphs(equation)
        series = Series(self.tolerance or equation.tolerance)
        if bool(fast.all()):
            return series.compiled(equation)
        if equation.walk.similarity is None:
            return self._compiled_directed(equation, series)
        picked = self.pick(equation)
        if not picked.iterative:
            # Compiled, a Krylov space costs less than eigenvectors at any size.
            picked = Krylov(self.tolerance or equation.tolerance)
        result = picked.compiled(equation, ~fast)
        if not bool(fast.any()):
            return result
        summed = series.compiled(equation, fast)
        if result is None or summed is None:
            return result or summed
        result.update_where(fast, summed)
        return result

    def _compiled_directed(self, equation: Equation, series: Series) -> Result | None:
        """Series where convergence within the step limit is proven, Krylov elsewhere."""
        bounds = radius_bounds_of(equation)
        summed = series.compiled(equation, bounds=bounds)
        # Sums without cycles are finite; those that the kernel leaves out need substitution along the edges.
        left = ~equation.walk.acyclic_graphs
        if summed is not None:
            left &= summed.has_status(Status.NOT_CONVERGED)
        result = Krylov(series.tolerance).compiled(equation, left, bounds=bounds) if bool(left.any()) else None
        if summed is None or result is None:
            return result or summed
        result.update_where(~left, summed)
        return result

    def pick(self, equation: Equation) -> Solver:
        """Apply the rule to a batch of graphs that are solved together."""
        tolerance = self.tolerance or equation.tolerance
        if equation.typed:
            return FixedPoint(tolerance)
        if self._converges_fast(equation) or equation.walk.acyclic:
            return Series(tolerance)
        largest = int(equation.sizes.max())
        if largest > self.dense_nodes:
            return Krylov(tolerance)
        if len(equation.used_labels) > MAX_KRYLOV_LABELS:
            return self.direct(equation)
        if equation.walk.similarity is None:
            return Krylov(tolerance)
        if largest <= MAX_EIGENVECTOR_NODES:
            return Spectral()
        # Cap steps at n/2: beyond (J²n operations), the eigendecomposition (4n³) is cheaper.
        return Krylov(tolerance, min(largest // 2, Krylov.max_steps), give_up=MIN_KRYLOV_STEPS)

    @staticmethod
    def direct(equation: Equation) -> Solver:
        """Choose a direct solver (rule 5)."""
        unknowns = int(equation.sizes.max()) * equation.states
        small = equation.states <= MAX_DENSE_SYSTEM_STATES and unknowns <= MAX_DENSE_SYSTEM_UNKNOWNS
        solvers = (Spectral(), Kronecker() if small else Schur())
        return next(solver for solver in solvers if solver.supports(equation))

    def _acyclic_subset(self, equation: Equation) -> Tensor | None:
        """``[graphs]``: True if acyclic; ``None`` if all or none are, or if rule 2 takes the whole batch."""
        if equation.adjacency.symmetric or (not equation.typed and self._converges_fast(equation)):
            return None
        acyclic = equation.walk.acyclic_graphs
        return acyclic if 0 < int(acyclic.sum()) < len(acyclic) else None

    def _converges_fast(self, equation: Equation) -> bool:
        return bool(self._fast_graphs(equation).all())

    @staticmethod
    def _fast_graphs(equation: Equation) -> Tensor:
        """``[graphs]``: True if the sum over runs converges fast."""
        return equation.transition_radius * equation.walk.norm_bounds <= FAST_RADIUS


def basis_solver(graph: Graph, matrix: str, vectors: int, *, complete: bool = False) -> Solver:
    """Choose the solver whose vectors make a basis of ``graph``.

    Args:
        graph: the graphs.
        matrix: the walk matrix by name.
        vectors: number of Krylov vectors.
        complete: all eigenvectors, or Schur vectors, instead of ``vectors`` Krylov vectors.
    """
    if graph.num_nodes == 0:
        return Spectral()  # a Krylov space needs a vector to start from
    if not complete:
        return Krylov(max_steps=vectors)
    return Spectral() if graph.walk(matrix).similarity is not None else Schur()
