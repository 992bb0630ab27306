"""Solvers of the walk equation P = μᵀPA + αℓ, one per file; :func:`solve` is the entry point."""

from gape.solvers.auto import Auto
from gape.solvers.base import Result, Solver
from gape.solvers.basis import Basis, GraphBasis
from gape.solvers.equation import Equation
from gape.solvers.fixed_point import FixedPoint
from gape.solvers.kronecker import Kronecker
from gape.solvers.krylov import Krylov
from gape.solvers.schur import Schur
from gape.solvers.series import Series
from gape.solvers.solution import AlgebraicOnlyWarning, LeastSquaresWarning, Solution, SolveError, Status
from gape.solvers.solve import prepare, solve
from gape.solvers.spectral import Spectral
from gape.solvers.walk_basis import WalkBasis, walk_basis

__all__ = [
    "AlgebraicOnlyWarning",
    "Auto",
    "Basis",
    "Equation",
    "FixedPoint",
    "GraphBasis",
    "Kronecker",
    "Krylov",
    "LeastSquaresWarning",
    "Result",
    "Schur",
    "Series",
    "Solution",
    "SolveError",
    "Solver",
    "Spectral",
    "Status",
    "WalkBasis",
    "prepare",
    "solve",
    "walk_basis",
]
