"""Page settings, and built-in examples by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from gape._internal.files import asset
from gape._internal.validation import whole_number
from gape.encodings.registry import make
from gape.encodings.rooted import RootedGAPE
from gape.graph.convert import as_graph
from gape.graph.graph import Graph

#: The ranges of the page's sliders.
MAX_STATES, MAX_SEED = 64, 99
DAMPING_RANGE = (0.01, 10.0)
CSL_NODES = 41
_ATOMS = {0: "C", 1: "O", 2: "N", 8: "N⁺"}


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


def _undirected(edges: Any) -> Graph:
    return Graph.from_edges(torch.as_tensor(np.asarray(edges, dtype=np.int64)), undirected=True)


def _stored(name: str) -> Any:
    return json.loads(asset("gape.explorer", "gallery.json"))[name]


def _circle(nodes: int, centre: float = 0.0, radius: float = 3.0) -> np.ndarray[Any, Any]:
    turn = np.pi / 2 - 2 * np.pi * np.arange(nodes) / nodes
    return np.stack([centre + radius * np.cos(turn), radius * np.sin(turn)], 1)


def karate() -> Example:
    """Zachary's karate club: 34 members, two factions."""
    return Example(
        _undirected(_stored("karate")),
        "Karate club",
        "Members of a karate club and their friendships. Raise the damping: at γρ(A) = 1 the sum over runs ceases "
        "to exist, while the equation still has solutions.",
        node=0,
    )


def path() -> Example:
    """A directed path: with the sinusoidal automaton, Proposition 1 as a slider."""
    n, states = 64, 16
    labels = torch.ones(n, dtype=torch.int64)
    labels[0] = 0
    graph = Graph.from_edges([(i, i + 1) for i in range(n - 1)], labels=labels)
    row = np.arange(n)
    # In lines of 16, alternately to the right and to the left.
    across = np.where(row // 16 % 2 == 0, row % 16, 15 - row % 16)
    return Example(
        graph,
        "Path and sinusoids",
        "Proposition 1: an automaton of rotations that starts at the first node of a path gives the sinusoids of the "
        "transformer. At damping 1 both sides agree; below it the waves fade along the path.",
        positions=np.stack([across, -2.0 * (row // 16)], 1).astype(np.float64),
        encodings={"sinusoidal": make("sinusoidal", width=states, dtype="float64")},
        views=(
            View(automaton="sinusoidal", labels="given", damping=1.0, states=states),
            View(encoding="sinusoidal"),
        ),
    )


def cycle() -> Example:
    """A cycle: every node looks the same to walks, and eigenvectors break the symmetry."""
    n = 24
    return Example(
        _undirected([(i, (i + 1) % n) for i in range(n)]),
        "Cycle",
        "All nodes of a cycle are alike: runs into a node, and runs back to it, give every node the same row. "
        "Laplacian eigenvectors tell them apart, but by a choice of basis. Runs from a selected node (readout) "
        "measure distance from it.",
        positions=_circle(n),
        views=(View(damping=0.8), View(encoding="lape")),
        node=0,
    )


def _skip_links(skip: int) -> Graph:
    """The ring of 41 nodes with a link from each node to the one ``skip`` positions on, as in CSL."""
    return _undirected([(i, (i + step) % CSL_NODES) for step in (1, skip) for i in range(CSL_NODES)])


def csl() -> Example:
    """Two circular skip link graphs: equal for runs into nodes, different for closed runs."""
    return Example(
        Graph.union([_skip_links(2), _skip_links(5)]),
        "A pair of CSL graphs",
        "Both graphs are 4-regular, so that runs into a node (first) give all 82 nodes the same row. Closed runs "
        "(second) count triangles and longer cycles and separate the two graphs.",
        graphs=["skip 2", "skip 5"],
        positions=np.concatenate([_circle(CSL_NODES), _circle(CSL_NODES, 8.0)]),
        views=(View(damping=0.6), View(damping=0.6, readout="closed")),
    )


def rook() -> Example:
    """Rook's and Shrikhande graph: only the rooted automaton tells them apart."""
    cells = [(a, b) for a in range(4) for b in range(4)]
    rooks = [(i, j) for i, (a, b) in enumerate(cells) for j, (c, d) in enumerate(cells) if i < j and (a == c or b == d)]
    steps = ((1, 0), (0, 1), (1, 1))
    shrikhande = [(4 * a + b, 4 * ((a + x) % 4) + (b + y) % 4) for a, b in cells for x, y in steps]
    return Example(
        Graph.union([_undirected(rooks), _undirected(shrikhande)]),
        "Rook's and Shrikhande graph",
        "Strongly regular with the same parameters: closed runs (first) agree in all lengths. Automata that see the "
        "distance from a root (second) tell the graphs apart.",
        graphs=["Rook's graph 4 × 4", "Shrikhande graph"],
        positions=np.concatenate([_circle(16), _circle(16, 8.0)]),
        encodings={"gape-rooted": RootedGAPE(machines=4, layers=2)},
        views=(View(damping=0.6, readout="closed"), View(encoding="gape-rooted", column=1)),
    )


def molecule() -> Example:
    """A molecule of ZINC with its atoms as labels."""
    atoms = _stored("atoms")
    kinds = sorted(set(atoms))
    graph = _undirected(_stored("molecule")).with_labels(torch.tensor([kinds.index(atom) for atom in atoms]))
    return Example(
        graph,
        "A molecule of ZINC",
        "Each kind of atom starts runs with weights of its own. Select an atom to see which atoms have similar "
        "surroundings.",
        names=[f"{_ATOMS[atom]} {i}" for i, atom in enumerate(atoms)],
        encodings={
            "rw": make("rw", length=16),
            "lape": make("lape"),
            "gape-rooted": RootedGAPE(machines=4, layers=3),
        },
        views=(View(labels="given", damping=0.7),),
        node=3,
    )


def sbm() -> Example:
    """A stochastic block model of four communities."""
    community = np.repeat(np.arange(4), 30)
    probability = np.where(community[:, None] == community, 0.25, 0.015)
    drawn = np.random.default_rng(3).random(probability.shape) < probability
    return Example(
        _undirected(np.argwhere(np.triu(drawn, 1))),
        "Stochastic block model",
        "Four communities of 30 nodes. Walks that start at the selected node (first) mostly stay in its community; "
        "Laplacian eigenvectors (second) separate the four.",
        views=(View(readout="pair", matrix="random_walk", damping=0.95), View(encoding="lape")),
        node=0,
    )


def planar() -> Example:
    """A planar graph and a non-planar one with the same degrees."""
    across, down = 6, 4
    plane = [(across * y + x, across * y + x + 1) for y in range(down) for x in range(across - 1)]
    plane += [(across * y + x, across * (y + 1) + x) for y in range(down - 1) for x in range(across)]
    plane += [(across * y + x, across * (y + 1) + x + 1) for y in range(down - 1) for x in range(across - 1)]
    # Two edges that exchange their ends: the degrees stay, the drawing crosses itself.
    crossed = [edge for edge in plane if edge not in ((0, 1), (22, 23))] + [(0, 23), (1, 22)]
    grid = np.stack([np.arange(across * down) % across, -(np.arange(across * down) // across)], 1) * 1.0
    return Example(
        Graph.union([_undirected(plane), _undirected(crossed)]),
        "Planar and not planar",
        "A triangulated grid, and the same after two edges have exchanged ends. The second has no drawing without "
        "crossings. Degrees agree; runs differ near the new edges.",
        graphs=["planar", "not planar"],
        positions=np.concatenate([grid, grid + np.array([across + 1.0, 0.0])]),
        views=(View(damping=0.5, readout="closed"),),
    )


def citations() -> Example:
    """A sample of arXiv citations, directed."""
    return Example(
        Graph.from_edges(_stored("citations")),
        "Citations",
        "140 papers of arXiv's hep-ph; edges run from a paper to those it cites, and are drawn thinner towards their "
        "end. Nearly all eigenvalues are 0: citations hardly ever form cycles.",
        views=(View(damping=0.8, column=7),),
    )


def rw_pprp() -> Example:
    """The paper's figure of RW and PPRP on a graph of CYCLES."""
    from gape.data.cycles import Cycles  # brings PyG, which the other examples do without

    data = Cycles(train=2, val=2, test=2).build(cache=False)[0]
    return Example(
        as_graph(data),
        "RW and PPRP of a graph of CYCLES",
        "A figure of the paper: return probabilities of random walks (first) and of walks that restart (second, "
        "β = 0.999) have other numbers and the same differences between nodes.",
        encodings={
            "RW": make("rw", length=5),
            "PPRP": make("pprp", powers=5, beta=0.999, scale=False, dtype="float64"),
        },
        views=(View(encoding="RW", column=1), View(encoding="PPRP", column=1)),
    )


def csl_labels() -> Example:
    """The paper's figure of GAPE on a CSL graph with one label and with 20."""
    return Example(
        _skip_links(5),
        "One label and twenty",
        "A figure of the paper: on a circular skip link graph one label gives all nodes the same row (first), twenty "
        "random labels tell them apart (second), at the price of equivariance.",
        positions=_circle(CSL_NODES),
        views=(View(damping=0.08, states=32, seed=41), View(damping=0.08, states=32, seed=41, labels="random")),
    )


GALLERY: dict[str, Callable[[], Example]] = {
    "karate": karate,
    "path": path,
    "cycle": cycle,
    "csl": csl,
    "rook": rook,
    "molecule": molecule,
    "sbm": sbm,
    "planar": planar,
    "citations": citations,
    "rw-pprp": rw_pprp,
    "csl-labels": csl_labels,
}


def example(name: str) -> Example:
    """Return an example of the gallery by name.

    >>> example("karate").graph
    Graph(graphs=1, nodes=34, edges=156, undirected)
    """
    if name not in GALLERY:
        raise ValueError(f"there is no example {name!r}; there are {', '.join(GALLERY)}")
    return GALLERY[name]()
