"""Graph position encodings from weighted graph-walking automata.

An :class:`Automaton` walks a :class:`Graph`; :func:`solve` sums the weights of its runs.
"""

from gape.automaton import Automaton
from gape.graph import Graph
from gape.interop import as_graph
from gape.solvers import Solution, SolveError, Status, prepare, solve

__all__ = ["Automaton", "Graph", "Solution", "SolveError", "Status", "as_graph", "prepare", "solve"]
__version__ = "0.1.0"
