"""GAPE: total weights with which a random automaton reaches each node (Soga & Chiang, 2023); with relations, too."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from gape._internal.validation import check_at_least, check_one_of
from gape._internal.warnings import warn_caller
from gape.automaton import Automaton
from gape.encodings.base import Encoding
from gape.encodings.pairs import Pairs
from gape.graph.convert import as_graph
from gape.graph.graph import Graph
from gape.graph.hetero import hetero_graph, node_counts, relation_types
from gape.graph.labels import DegreeLabels, IndexLabels, RandomLabels
from gape.graph.small_graphs import single_matrix
from gape.graph.spectral_radius import has_moderate_weights, has_unit_radius, radius_lower_bound, unit_radius
from gape.graph.walk_matrix import MatrixName
from gape.solvers import LeastSquaresWarning, Solution, Status, solve
from gape.solvers.certificate import overflowing
from gape.solvers.equation import check_fit
from gape.solvers.readouts import ReadoutName
from gape.solvers.solution import OnSingular
from gape.solvers.solve import solve_relative
from gape.solvers.spectral import SmallGraphFormula

Transition = Literal["orthogonal", "stochastic"]
Initial = Literal["normal", "orthogonal", "softmax_states", "softmax_nodes"]
LabelsFrom = Literal["one", "random", "index", "degree", "given"]
EquationName = Literal["paper", "released"]


# Large graphs are warned about before any work if γρ(A) is above this.
MIN_WARNED_NODES, MAX_QUIET_RADIUS = 100_000, 2.0


@dataclass(frozen=True)
class GAPE(Encoding):
    r"""Total weight of the runs of a random automaton into every node and state (Soga & Chiang, 2023, equation (2)).

    The variants of the paper are settings of this class, by name in :data:`gape.encodings.PRESETS`; the default damping
    is not the paper's 0.02 (``gape-paper``), with which most features repeat the first. On directed graphs runs follow
    the edges. Permutation-equivariant unless labels are random or the node's index.

    Args:
        states: number of states k of the automaton, and so of features.
        damping: factor γ on the transition matrix.
        relative: take ``damping`` as a fraction of 1/ρ(A) of each graph, so that below 1 the sum over runs always
            converges; on a graph without cycles, where ρ(A) = 0, it is the damping itself. Edge weights then get no
            gradient, unless ρ(A) is 1 for all weights (random walks on undirected graphs). False for γ as it is.
        transition: random "orthogonal" μ, or "stochastic": the softmax of every row of one (the paper's `*`).
        initial: distribution of α: "normal"; "orthogonal"; and for the paper's `**` "softmax_states", a softmax over
            the states for each label (the paper's text), or "softmax_nodes", a softmax over the nodes of each graph
            for each state (the authors' code; with one label exactly 1/n for every seed).
        labels: number of node labels m. α depends on it: another number of labels draws another α.
        labelling: source of the labels: "one" for all nodes, "random", "index" in the graph, "degree", or "given"
            with the graph. "random" and "index" depend on the order of the nodes.
        matrix: name of the walk matrix A, see :mod:`gape.graph.walk_matrix`.
        readout: "node", runs from anywhere into the node; "closed", runs that return to where they began; "pair",
            runs between all pairs, n × n × k.
        equation: "paper", P = μᵀPA + αℓ, or "released": the authors' code for CSL, which uses the transpose of μᵀ for
            its inverse and so has μ⁻ᵀ in the place of μ. With an orthogonal transition the damping then is 1/γ.
        on_singular: "raise" if the equation has no solution, or "least_squares" for the least-squares solution of
            minimum norm.
        seed: of the automaton and of random labels.
        memory: memory limit, in GiB, of the "pair" and "closed" readouts.

    Returns, when called on a graph: ``[num_nodes, states]``, or :class:`Pairs` of ``[n, n, states]`` for "pair".
    :meth:`solve` gives the same weights with a certificate for every graph. A call without certificates warns how many
    graphs got weights that are not the sum over runs, or only a least-squares solution.

    Example:
        >>> ring = Graph.from_edges([(0, 1), (1, 2), (2, 0)], undirected=True)
        >>> GAPE(states=4)(ring).shape
        torch.Size([3, 4])
        >>> GAPE(states=4).solve(ring).spectral_radius
        tensor([0.9000], dtype=torch.float64)
    """

    states: int = 32
    damping: float = 0.9
    relative: bool = True
    transition: Transition = "orthogonal"
    initial: Initial = "normal"
    labels: int = 1
    labelling: LabelsFrom = "one"
    matrix: MatrixName = "adjacency"
    readout: ReadoutName = "node"
    equation: EquationName = "paper"
    on_singular: OnSingular = "raise"
    seed: int = 0
    memory: float = 4.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(1, states=self.states, labels=self.labels)
        check_one_of(get_args(Transition), transition=self.transition)
        check_one_of(get_args(Initial), initial=self.initial)
        check_one_of(get_args(LabelsFrom), labelling=self.labelling)
        check_one_of(get_args(MatrixName), matrix=self.matrix)
        check_one_of(get_args(ReadoutName), readout=self.readout)
        check_one_of(get_args(EquationName), equation=self.equation)
        check_one_of(get_args(OnSingular), on_singular=self.on_singular)
        if not 0 <= self.damping < float("inf"):
            raise ValueError(f"damping must be a number of at least 0, got {self.damping!r}")
        if self.equation == "released" and not self.damping > 0:
            raise ValueError(
                f"equation='released' inverts the transition matrix: damping must be above 0, got {self.damping!r}"
            )
        if (self.labels == 1) != (self.labelling == "one"):
            raise ValueError(
                f"labels={self.labels} and labelling={self.labelling!r} do not go together: one label needs "
                "labelling='one', several need labelling='random', 'index', 'degree' or 'given'"
            )
        if self.initial == "softmax_nodes" and self.readout != "node":
            raise ValueError(f"initial='softmax_nodes' is for readout='node', got readout={self.readout!r}")

    @property
    def pairwise(self) -> bool:
        return self.readout == "pair"

    @property
    def automaton(self) -> Automaton:
        """Automaton of these settings; with ``softmax_nodes``, before that softmax is applied."""
        return _automaton(self)

    def labelled(self, graph: Graph) -> Graph:
        """Return the graph with labels as in ``labelling``."""
        if self.labelling == "random":
            return graph.with_labels(RandomLabels(self.labels, seed=self.seed))
        if self.labelling == "index":
            largest = int(graph.sizes.max())
            if largest > self.labels:
                raise ValueError(
                    f"a graph has {largest} nodes and labelling='index' needs one label per node, got "
                    f"labels={self.labels}; set labels={largest} or more, the same for all graphs"
                )
            return graph.with_labels(IndexLabels(self.labels))
        if self.labelling == "degree":
            return graph.with_labels(DegreeLabels(self.labels))
        return graph

    def solve(self, graph: Any) -> Solution:
        """Compute the weights with certificates; ``solution.counts()`` has the number of graphs per status.

        With ``readout="pair"`` the weights are flat, ``[Σ n², states]``, as in :class:`Pairs`.
        """
        return self._solve(as_graph(graph))

    def _solve(self, graph: Graph) -> Solution:
        self._warn_if_far_beyond(graph)
        graph, matrix = self.labelled(graph), self.matrix
        machine = self.automaton.to(graph.device)
        # A walk matrix of radius 1 is not rescaled, so it stays symmetric or similar to a symmetric matrix.
        if self.relative and not has_unit_radius(graph.walk(matrix)):
            compiled = has_moderate_weights(graph.edge_weight)
            if compiled and self.readout == "node" and self.initial != "softmax_nodes":
                return solve_relative(machine, graph, matrix=matrix, on_singular=self.on_singular, dtype=self.dtype)
            graph, matrix = unit_radius(graph, matrix), "adjacency"
        if self.initial == "softmax_nodes":
            return self._solve_softmax_nodes(machine, graph, matrix)
        return solve(
            machine,
            graph,
            readout=self.readout,
            matrix=matrix,
            on_singular=self.on_singular,
            dtype=self.dtype,
            memory=self.memory,
        )

    def _warn_if_far_beyond(self, graph: Graph) -> None:
        """Warn, before any work on large graphs, where γρ(A) is surely above 1, by a lower bound of ρ."""
        if self.relative or self.damping == 0 or graph.num_nodes < MIN_WARNED_NODES or self.equation == "released":
            return
        if self.matrix != "adjacency" or graph.edge_weight is not None or int(graph.sizes.max()) < MIN_WARNED_NODES:
            return
        bound = radius_lower_bound(graph)
        if self.damping * bound > MAX_QUIET_RADIUS:
            warn_caller(
                f"damping={self.damping:g} times the spectral radius ρ(A) of the graphs is at least "
                f"{self.damping * bound:.2g}, so the sum over runs diverges and solvers may fail after a long time; "
                "with relative=True (the default of 'gape') the damping is a fraction of 1/ρ(A) and the sum converges"
            )

    def _solve_softmax_nodes(self, machine: Automaton, graph: Graph, matrix: str) -> Solution:
        if machine.labels > 1:
            check_fit(machine, graph)
            rhs = node_softmax(machine, graph)
            return solve(machine, graph, rhs=rhs, matrix=matrix, on_singular=self.on_singular, dtype=self.dtype)
        # One column instead of k: with one label the right-hand side is 1/n, and the solution is linear in it.
        ones = Automaton(torch.ones_like(machine.initial), machine.transition)
        solution = solve(ones, graph, matrix=matrix, on_singular=self.on_singular)
        weights = (solution.weights / graph.sizes[graph.batch].unsqueeze(1)).to(self.dtype)
        overflowed = overflowing(weights, graph.sizes)
        if overflowed is None:
            return replace(solution, weights=weights)
        status = [Status.OVERFLOW if bad else s for s, bad in zip(solution.status, overflowed.tolist(), strict=True)]
        return replace(solution, weights=weights, status=status).checked()

    def compute(self, graph: Graph) -> Tensor | Pairs:
        rows = self._single(graph)
        if rows is not None:
            return rows
        solution = self._solve(graph)
        if not solution.ok:
            # The certificate is dropped here, so warn about its content.
            inexact = solution.status.count(Status.LEAST_SQUARES)
            message = f"{inexact} of {len(solution.status)} graphs: {Status.LEAST_SQUARES}; solve() says which"
            warn_caller(message, LeastSquaresWarning)
        return Pairs(solution.weights, graph.sizes) if self.pairwise else solution.weights

    def _single(self, graph: Graph) -> Tensor | None:
        """Compute the rows of one small undirected graph directly; ``None`` if that is not possible."""
        if self.relative and not has_moderate_weights(graph.edge_weight):
            return None
        adjacency = single_matrix(graph) if self.readout == "node" and self.matrix == "adjacency" else None
        if adjacency is None or not bool((adjacency == adjacency.T).all()):
            return None
        formula = _small_graph_formula(self)
        weights = None if formula is None else formula.weights(adjacency, relative=self.relative)
        # A sum too large for the type of the result is for the general path to report.
        if weights is None or not np.abs(weights).max() < torch.finfo(self.dtype).max:
            return None
        return torch.from_numpy(weights).to(self.dtype)


@lru_cache(maxsize=64)
def _automaton(encoding: GAPE) -> Automaton:
    drawn = Automaton.random(
        encoding.states,
        damping=1.0,
        labels=encoding.labels,
        orthogonal_initial=encoding.initial == "orthogonal",
        seed=encoding.seed,
    )
    transition = torch.softmax(drawn.transition, 1) if encoding.transition == "stochastic" else drawn.transition
    initial = torch.softmax(drawn.initial, 0) if encoding.initial == "softmax_states" else drawn.initial
    damped = encoding.damping * transition
    # The code solves TᵀP − PA = TᵀC, with T = μᵀ, where T⁻¹P − PA = T⁻¹C is meant.
    return Automaton(initial, torch.linalg.inv(damped).mT if encoding.equation == "released" else damped)


@lru_cache(maxsize=64)
def _small_graph_formula(encoding: GAPE) -> SmallGraphFormula | None:
    return None if encoding.initial == "softmax_nodes" else SmallGraphFormula.of(_automaton(encoding))


def node_softmax(automaton: Automaton, graph: Graph) -> Tensor:
    """Compute the softmax of αℓ over the nodes of each graph, ``[n, k]``: GAPE** as in the authors' code.

    Per state q, node v gets exp(α[q, ℓ(v)]) / Σ_u exp(α[q, ℓ(u)]). No α yields this right-hand side, because the
    denominators differ between graphs. With one label it is 1/n.
    """
    if automaton.labels == 1:
        return (1.0 / graph.sizes.double())[graph.batch].unsqueeze(1).expand(-1, automaton.states)
    # Subtract the largest weight of each state, so that no exponential overflows.
    weights = automaton.initial.double()
    rows = (weights - weights.amax(1, keepdim=True)).exp().T[graph.labels]
    return rows / graph.adjacency.segment_sum(rows)[graph.batch]


# Distance between the seeds of the relations, larger than seeds that users count up.
_SEED_STEP = 1_000_003


@dataclass(frozen=True)
class RelationalGAPE(GAPE):
    r"""GAPE whose automaton has one transition matrix per relation: the type of the edge taken.

    A run that takes the relations r₁, r₂, … is weighted by α μ_{r₁} μ_{r₂} …, so that nodes are told apart by the
    kinds of paths that lead to them. ‖μ_r‖ ≤ γ for all of them, so with ``relative=True`` and a damping below 1 the
    sum over runs converges on every graph.

    Args:
        relations: number of edge types; the first has the transition matrix of :class:`GAPE` with the same seed.

    Returns, when called on a graph with edge types: ``[num_nodes, states]``.

    Example:
        >>> graph = Graph.from_edges([(0, 1), (2, 1)], edge_type=torch.tensor([0, 1]))
        >>> rows = RelationalGAPE(states=4, relations=2)(graph)
        >>> rows.shape, bool(torch.allclose(rows[0], rows[2]))
        (torch.Size([3, 4]), True)
    """

    relations: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(1, relations=self.relations)
        if self.readout != "node" or self.initial == "softmax_nodes":
            raise ValueError(
                f"relations are for readout='node' and initial other than 'softmax_nodes', got {self.readout!r} and "
                f"{self.initial!r}; for closed runs by relation use gape.nn.GAPE(transition_by='edge', length=...)"
            )

    @property
    def automaton(self) -> Automaton:
        """The automaton, typed by edges if there are several relations."""
        settings = {item.name: getattr(self, item.name) for item in fields(GAPE)}
        drawn = [GAPE(**settings | {"seed": self.seed + _SEED_STEP * r}).automaton for r in range(self.relations)]
        if self.relations == 1:
            return drawn[0]
        return Automaton(drawn[0].initial, torch.stack([one.transition for one in drawn]), transition_by="edge")

    def _single(self, graph: Graph) -> None:
        """Return ``None``: single graphs with relations have no direct path."""


def encode_relational(data: Any, encoding: Encoding, *, reverse: bool = False) -> dict[str, Tensor]:
    """Encode a PyG ``HeteroData``, and return the rows of each node type.

    :class:`GAPE` becomes :class:`RelationalGAPE`: node types are its labels, relations its edge types. Other encodings
    of nodes see one graph without types.

    Args:
        data: the graph.
        encoding: of nodes.
        reverse: walk every relation in both directions; the reverse is a relation of its own.
    """
    graph = hetero_graph(data, reverse=reverse)
    if type(encoding) is GAPE:
        encoding = relational(encoding, node_types=len(data.node_types), relations=len(relation_types(data, reverse)))
    found = encoding.compute(graph)
    if isinstance(found, Pairs):
        raise ValueError(f"{encoding!r} encodes pairs of nodes; heterogeneous graphs get encodings of nodes")
    encoding.warn_if_uninformative(found, graph)
    sizes = node_counts(data)
    return dict(zip(sizes, torch.split(found, list(sizes.values())), strict=True))


def relational(encoding: GAPE, node_types: int, relations: int) -> RelationalGAPE:
    """Return the encoding with α by node type and one μ per relation, all else equal."""
    if encoding.labelling not in ("one", "given"):
        raise ValueError(
            f"on heterogeneous graphs labels are the node types, got labelling={encoding.labelling!r}; leave it out"
        )
    settings: dict[str, Any] = {item.name: getattr(encoding, item.name) for item in fields(GAPE)}
    settings |= {"labels": node_types, "labelling": "given" if node_types > 1 else "one", "relations": relations}
    return RelationalGAPE(**settings)
