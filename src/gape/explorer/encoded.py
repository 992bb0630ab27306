"""Encodings that Python computes for a page, with their certificates in words."""

from __future__ import annotations

import reprlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
from numpy.typing import NDArray

from gape._internal.validation import as_tensor, check_finite
from gape.encodings.base import Encoding
from gape.encodings.gape import GAPE
from gape.encodings.registry import make
from gape.graph.graph import Graph
from gape.solvers.solution import AlgebraicOnlyWarning, Status

#: Larger graphs get no encodings but GAPE by default: those below cost n² and more.
MAX_DEFAULT_NODES = 2_000
#: What a small graph's page holds beside live GAPE.
_DEFAULTS: dict[str, dict[str, Any]] = {
    "rw": {"length": 16},
    "lape": {"vectors": 8, "symmetrize": True},
    "pprp": {"powers": 16},
}


@dataclass(frozen=True, eq=False)
class Encoded:
    """An encoding of all nodes.

    Args:
        title: its name.
        values: ``[n, k]``.
        settings: those that are not defaults, in words for the page; '' if it was given as numbers.
        status: the name of its certificate's worst status, '' without a certificate.
        radius: ρ(μ)ρ(A), NaN without a certificate.
        residual: the largest relative residual, NaN without a certificate.
    """

    title: str
    values: NDArray[Any]
    settings: str = ""
    status: str = ""
    radius: float = float("nan")
    residual: float = float("nan")


def encoded(title: str, what: Any, graph: Graph) -> Encoded:
    """Compute an encoding, or check features that were given as numbers."""
    if not isinstance(what, Encoding):
        given = as_tensor(what, f"encoding {title!r}").detach().cpu()
        if given.dim() != 2 or len(given) != graph.num_nodes or given.shape[1] == 0:
            raise ValueError(
                f"encoding {title!r} must have a row per node, [{graph.num_nodes}, k], got shape {list(given.shape)}"
            )
        check_finite(given, f"encoding {title!r}")
        return Encoded(title, given.to(torch.float64).numpy())
    if what.pairwise:
        raise ValueError(
            f"{title} has values per pair of nodes, and the explorer shows a row per node; leave it out, or give "
            f"encodings={{{title!r}: features}} with a row per node"
        )
    if not hasattr(what, "solve"):
        values = torch.as_tensor(what(graph)).double().flatten(1)
        return Encoded(title, values.numpy(), _changed_settings(what))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AlgebraicOnlyWarning)  # the page says it
        solution = what.solve(graph)
    worst = max(solution.status, key=list(Status).index)
    radius, residual = (float(torch.nan_to_num(each).max()) for each in (solution.spectral_radius, solution.residual))
    return Encoded(title, solution.weights.double().numpy(), _changed_settings(what), worst.name, radius, residual)


def _changed_settings(encoding: Encoding) -> str:
    """Name an encoding and those of its settings that are not defaults, as one would type it."""
    default = {item.name: item.default for item in fields(encoding)}
    changed = {name: getattr(encoding, name) for name in default if getattr(encoding, name) != default[name]}
    changed.pop("dtype", None)
    return f"{type(encoding).__name__}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"


def chosen_encodings(
    encodings: Mapping[str, Any] | Sequence[str] | None, graph: Graph, gape: GAPE | None
) -> list[Encoded]:
    """Compute the encodings that a user chose, by name or as features; ``gape`` comes first if given."""
    if isinstance(encodings, str):
        encodings = [encodings]
    if encodings is None:
        small = 0 < graph.num_nodes <= MAX_DEFAULT_NODES
        items = [(name, make(name, **options)) for name, options in _DEFAULTS.items()] if small else []
    elif isinstance(encodings, Mapping):
        items = [(str(title), make(what) if isinstance(what, str) else what) for title, what in encodings.items()]
    elif isinstance(encodings, Sequence) and all(isinstance(name, str) for name in encodings):
        items = [(name, make(name)) for name in encodings]
    else:
        raise ValueError(
            "encodings must be names of encodings, or a mapping from titles to encodings or features [n, k], got "
            f"{reprlib.repr(encodings)}"
        )
    if gape is not None:
        taken = any(title == "GAPE" for title, _ in items)
        items.insert(0, ("GAPE, computed" if taken else "GAPE", gape))
    return [encoded(title, what, graph) for title, what in items]
