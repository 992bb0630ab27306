"""Solvers of the walk equation, one a file; :func:`solve` is the door."""

from gape.solvers.auto import Auto
from gape.solvers.fixed_point import FixedPoint
from gape.solvers.kronecker import Kronecker
from gape.solvers.krylov import Krylov
from gape.solvers.prepare import GraphBasis, prepare
from gape.solvers.schur import Schur
from gape.solvers.series import Series
from gape.solvers.solution import AlgebraicOnlyWarning, LeastSquaresWarning, Solution, SolveError, Status
from gape.solvers.solve import solve
from gape.solvers.spectral import Spectral

__all__ = [
    "AlgebraicOnlyWarning",
    "Auto",
    "FixedPoint",
    "GraphBasis",
    "Kronecker",
    "Krylov",
    "LeastSquaresWarning",
    "Schur",
    "Series",
    "Solution",
    "SolveError",
    "Spectral",
    "Status",
    "prepare",
    "solve",
]
