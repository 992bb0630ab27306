"""Solvers of the walk equation P = μᵀPA + αℓ, one per file; :func:`solve` is the entry point."""

from gape.solvers.auto import Auto
from gape.solvers.base import Result, Solver
from gape.solvers.basis import Basis, prepare
from gape.solvers.equation import Equation
from gape.solvers.fixed_point import FixedPoint
from gape.solvers.kronecker import Kronecker
from gape.solvers.krylov import Krylov
from gape.solvers.schur import Schur
from gape.solvers.series import Series
from gape.solvers.solution import AlgebraicOnlyWarning, LeastSquaresWarning, Solution, SolveError, Status
from gape.solvers.solve import solve
from gape.solvers.spectral import Spectral

__all__ = [
    "AlgebraicOnlyWarning",
    "Auto",
    "Basis",
    "Equation",
    "FixedPoint",
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
    "prepare",
    "solve",
]
