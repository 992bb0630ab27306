"""The content of a page and the settings it starts with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from numpy.typing import NDArray

from gape._internal.validation import whole_number
from gape.graph.graph import Graph

#: The ranges of the page's sliders.
MAX_STATES, MAX_SEED = 64, 99
DAMPING_RANGE = (0.01, 10.0)


@dataclass(frozen=True)
class View:
    """One side of a page: an encoding and its settings, which sliders change afterwards.

    Args:
        encoding: ``"gape"``, or the title of an encoding that Python computed.
        automaton: ``"random"`` or ``"sinusoidal"``.
        matrix: the walk matrix.
        damping: γ·ρ(A); γ itself on a graph without cycles.
        states: number of states k.
        seed: of the random automaton, and of random labels.
        readout: ``"node"``, ``"closed"``, or ``"pair"``: runs from the selected node.
        column: the feature, from 0, that colours the graph.
        labels: ``"one"``, ``"random"`` (20 labels) or ``"given"`` with the graph.
    """

    encoding: str = "gape"
    automaton: Literal["random", "sinusoidal"] = "random"
    matrix: str = "adjacency"
    damping: float = 0.9
    states: int = 16
    seed: int = 0
    readout: str = "node"
    labels: Literal["one", "random", "given"] = "one"
    column: int = 0

    def __post_init__(self) -> None:
        whole_number(self.states, "states", at_least=1, at_most=MAX_STATES)
        whole_number(self.seed, "seed", at_least=0, at_most=MAX_SEED)
        low, high = DAMPING_RANGE
        if not low <= self.damping <= high:
            raise ValueError(f"damping must be {low} to {high}, the range of the page's slider, got {self.damping!r}")


@dataclass(frozen=True, eq=False)
class Example:
    """A graph with all that its page shows.

    Args:
        graph: the graph, or a batch.
        title: of the page.
        text: a sentence or two under the title.
        names: of the nodes; their numbers if ``None``.
        graphs: names of the graphs of a batch.
        positions: ``[n, 2]``; computed if ``None``.
        encodings: what Python computes, see :func:`gape.explore`.
        views: one view, or two side by side.
        node: the node that is selected at first.
        notes: messages for the reader.
    """

    graph: Graph
    title: str
    text: str = ""
    names: Sequence[str] | None = None
    graphs: Sequence[str] | None = None
    positions: NDArray[Any] | None = None
    encodings: Mapping[str, Any] | Sequence[str] | None = None
    views: tuple[View, ...] = field(default=(View(),))
    node: int | None = None
    notes: tuple[str, ...] = ()
