"""Graph position encodings from weighted graph-walking automata.

An :class:`Automaton` walks a :class:`Graph`; :func:`solve` sums the weights of its runs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gape import encodings, solvers
    from gape.automaton import Automaton
    from gape.encodings import encode
    from gape.encodings.store import Store
    from gape.explorer import explore
    from gape.graph.convert import as_graph
    from gape.graph.graph import Graph
    from gape.native import show_config
    from gape.solvers import Solution, SolveError, Status, prepare, solve

__all__ = [
    "Automaton",
    "Graph",
    "Solution",
    "SolveError",
    "Status",
    "Store",
    "as_graph",
    "encode",
    "encodings",
    "explore",
    "prepare",
    "show_config",
    "solve",
    "solvers",
]
__version__ = "0.1.0"

# Public names are imported when first used (PEP 562), so that `gape --help` need not wait for PyTorch.
_HOME = {
    "Automaton": "gape.automaton",
    "Graph": "gape.graph",
    "Solution": "gape.solvers",
    "SolveError": "gape.solvers",
    "Status": "gape.solvers",
    "as_graph": "gape.graph",
    "Store": "gape.encodings.store",
    "encode": "gape.encodings",
    "explore": "gape.explorer",
    "prepare": "gape.solvers",
    "show_config": "gape.native",
    "solve": "gape.solvers",
}
_MODULES = ("data", "encodings", "experiments", "explorer", "graph", "nn", "pyg", "scale", "solvers")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"gape.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'gape' has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES, "__version__"})
