"""The choice of a solver."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from gape._internal.validation import whole_number
from gape.automaton import Automaton
from gape.graph.graph import Graph
from gape.solvers.fixed_point import FixedPoint
from gape.solvers.krylov import Krylov
from gape.solvers.outcome import check_tolerance
from gape.solvers.problem import Problem
from gape.solvers.schur import Schur
from gape.solvers.series import Series
from gape.solvers.spectral import Spectral

# Krylov steps that are always worth a try, and the largest graph for which all eigenvectors cost no more than these.
FEW_STEPS = 24
SMALL_NODES = 72

Solver = Series | Krylov | Spectral | Schur | FixedPoint


@dataclass(frozen=True)
class Auto:
    """Pick a solver by this rule, the first that fits:

    1. transitions per node label or edge type: :class:`FixedPoint`;
    2. ρ(μ)·‖A‖ ≤ 0.7 on every graph, so that the sum over runs converges fast: :class:`Series`;
    3. no graph has a cycle, so that the sum is finite: :class:`Series`;
    4. a graph is too large for a dense matrix: :class:`Krylov`;
    5. more than 8 labels have runs: :class:`Spectral` if the walk matrix is symmetric, otherwise :class:`Schur`;
    6. symmetric walk matrix, and no graph has more than 72 nodes: :class:`Spectral`; otherwise :class:`Krylov`.

    Graphs without cycles that share a batch with others are solved apart, by rule 3. Graphs on which Krylov runs out
    of steps go on to rule 5, if they are small enough for it; where Spectral is what follows, that is after half as
    many steps as the largest graph has nodes (up to 256), or after 24 if these did not bring half of the graphs nearer
    to their solution.

    Args:
        tolerance: relative residual asked of the iterative solvers; if ``None`` 1e-12, or 1e-10 for weights that
            are rounded to float32 (whose own rounding is a thousand times coarser).
        dense_nodes: largest graph that is made a dense matrix.
    """

    tolerance: float | None = None
    dense_nodes: int = 1024

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
        return self.pick(Problem.of(automaton, graph, matrix))

    def pick(self, problem: Problem) -> Solver:
        tolerance = self.tolerance or problem.tolerance
        if problem.typed:
            return FixedPoint(tolerance)
        if self._converges_fast(problem) or problem.walk.acyclic:
            return Series(tolerance)
        largest = int(problem.adjacency.sizes.max())
        if largest > self.dense_nodes:
            return Krylov(tolerance)
        if len(problem.used_labels) > 8:
            return self.dense(problem)
        if problem.walk.similarity is None:
            return Krylov(tolerance)
        if largest <= SMALL_NODES:
            return Spectral()
        # Not beyond where all eigenvectors are cheaper (J²n operations against some 4n³).
        return Krylov(tolerance, min(largest // 2, Krylov.max_steps), give_up=FEW_STEPS)

    def dense(self, problem: Problem) -> Spectral | Schur:
        """What rule 5 says."""
        return Spectral() if problem.walk.similarity is not None else Schur()

    def apart(self, problem: Problem) -> Tensor | None:
        """``[graphs]``: those without a cycle, where only some are and rule 2 does not take them all."""
        if problem.walk.adjacency.symmetric or (not problem.typed and self._converges_fast(problem)):
            return None
        acyclic = problem.walk.acyclic_graphs
        return acyclic if 0 < int(acyclic.sum()) < len(acyclic) else None

    @staticmethod
    def _converges_fast(problem: Problem) -> bool:
        return bool((problem.transition_radius * problem.walk.norm_bounds <= 0.7).all())
