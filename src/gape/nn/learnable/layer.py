"""GAPE as a layer: an automaton whose weights are trained with the model."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Literal, Self, TypeVar

import torch
from torch import Tensor, nn

from gape._internal.validation import whole_number
from gape.automaton import RootedAutomaton
from gape.graph.convert import batched_graph
from gape.graph.graph import Graph
from gape.graph.hetero import hetero_graph, node_counts, relation_types
from gape.graph.labels import DegreeLabels
from gape.graph.walk_matrix import MatrixName
from gape.nn.learnable.automaton import LearnableAutomaton, RootedAutomata, TransitionBy, TransitionForm
from gape.nn.learnable.runs import GraphRuns, LayerReadout, check_basis, check_fixed_weights, smith_sum
from gape.nn.learnable.settings import check_labels, check_rooted, check_settings, check_walk
from gape.nn.scaling import FeatureScaling, Scaling
from gape.solvers.basis import Basis, enough_vectors, prepare_layer
from gape.solvers.certificate import lost_rows
from gape.solvers.solve import solve

#: Settings of layers by name. ``gape-closed``, as in our tables: one feature per run length, each scaled by the
#: training set, since closed runs around a long cycle weigh about 1e-5 of those that go there and back, and statistics
#: of small batches of similar graphs would be noise. ``gape-rooted``: as many features as the encoding of that name,
#: from the same weights; there is no result of it yet.
RECIPES: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "gape-closed": MappingProxyType(
            {
                "states": 4,
                "readout": "closed",
                "length": 20,
                "matrix": "random_walk",
                "damping": 1.0,
                "scaling": "fixed",
            }
        ),
        "gape-rooted": MappingProxyType({"states": 12, "readout": "rooted", "damping": 0.97, "scaling": "fixed"}),
    }
)


Method = TypeVar("Method", bound=Callable[..., Any])


def _not_compiled(method: Method) -> Method:
    """Leave a method out of compiled regions: :func:`torch.compiler.disable`, with the types kept."""
    return torch.compiler.disable(method)  # type: ignore[no-any-return, no-untyped-call]


class GAPE(nn.Module):
    r"""Graph automaton position encoding (Soga & Chiang, 2023) with μ and α as parameters.

    The walk matrix of each graph is divided by its spectral radius, and ‖μ‖₂ ≤ ``damping`` < 1 by construction. So the
    sum over runs converges on every graph, whatever the parameters are.

    Args:
        states: number of states k.
        out_channels: output width of a final linear layer; ``None`` for no such layer. The "pair" readout requires it:
            the number of attention heads.
        readout: "node", runs from anywhere into the node; "closed", runs from the node back to itself; "pair", runs
            from node to node, as attention bias ``[graphs, out_channels, n, n]``; "rooted", closed runs in each layer
            around the node, with weights by the layers of both ends of a step (:mod:`gape.solvers.rooted`): k machines
            of one state, k · (layers + 1) features.
        length: ``None`` to sum runs of all lengths: k features. A number T for one feature per state and run length
            1 … T: T · k features. Required for closed runs of typed automata, and for closed and pair runs on directed
            graphs. For rooted runs with ``learn=False`` only.
        transition: "dense" μ, or "diagonal": k/2 conjugate pairs of complex poles.
        transition_by: μ depends on nothing ("none"), on the label of the node left ("node"), on the type of the edge
            taken ("edge"), or on "both". Not for pairs.
        labels: number m of node labels.
        labelling: "given": labels are passed to :meth:`forward`, such as atom types; "degree": the in-degree, at most
            m - 1.
        edge_types: number of edge types.
        matrix: the walk matrix, see :mod:`gape.graph.walk_matrix`.
        damping: γ, below 1; with a ``length`` also 1, except for rooted runs.
        layers: of rooted runs: the largest distance that is told apart.
        radius: of rooted runs: they stay within so many steps of the node; ``None`` for the whole graph.
        scaling: of the features, see :class:`FeatureScaling`: "batch", "fixed" or "whitened" (call
            :meth:`fit_scaling`; "whitened" for ``learn=False`` only), or "none". Pairs are not scaled.
        final: learn final weights τ as well.
        learn: False keeps the automaton at its random initial weights; scaling and linear layer are still learned.
        memory: GiB that closed runs of typed automata may keep for the backward pass; beyond that they are recomputed.
            Of rooted runs: the limit for the matrices of one root.
        seed: of the initial weights; ``None`` draws one from PyTorch's global generator.

    Example:
        >>> layer = GAPE(states=8, out_channels=4, readout="closed", seed=0)
        >>> triangle = torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]])
        >>> layer(triangle, num_nodes=3).shape
        torch.Size([3, 4])
    """

    def __init__(
        self,
        states: int = 32,
        out_channels: int | None = None,
        *,
        readout: LayerReadout = "node",
        length: int | None = None,
        transition: TransitionForm = "dense",
        transition_by: TransitionBy = "none",
        labels: int = 1,
        labelling: Literal["given", "degree"] = "given",
        edge_types: int = 1,
        matrix: MatrixName = "adjacency",
        damping: float = 0.9,
        layers: int = 3,
        radius: int | None = None,
        scaling: Scaling = "batch",
        final: bool = False,
        learn: bool = True,
        memory: float = 1.0,
        seed: int | None = None,
    ) -> None:
        super().__init__()
        check_settings(
            readout, length, out_channels, transition_by, damping, final, labelling, scaling=scaling, learn=learn
        )
        check_labels(labels, labelling, transition_by)
        check_walk(matrix, memory)
        self.readout, self.length, self.matrix, self.memory = readout, length, matrix, memory
        self.labelling, self.damping, self.out_channels = labelling, damping, out_channels
        self.radius = None if radius is None else whole_number(radius, "radius", at_least=0)
        seed = int(torch.randint(2**31, ())) if seed is None else seed
        self.machine: LearnableAutomaton | RootedAutomata
        if readout == "rooted":
            walk = {"transition": transition, "transition_by": transition_by, "matrix": matrix, "final": final}
            check_rooted(length, damping, learn, **walk, labels=labels, edge_types=edge_types)
            self.machine = RootedAutomata(states, layers, damping=damping, seed=seed)
        elif layers != 3 or radius is not None:
            raise ValueError(f"layers and radius are for readout='rooted', got layers={layers} and radius={radius}")
        else:
            self.machine = LearnableAutomaton(
                states,
                labels,
                form=transition,
                transition_by=transition_by,
                edge_types=edge_types,
                damping=damping,
                final=final,
                seed=seed,
            )
        self.machine.requires_grad_(learn)
        self.features = states * (length or 1) * (layers + 1 if readout == "rooted" else 1)
        self.scaling = FeatureScaling(self.features, "none" if readout == "pair" else scaling)
        self.linear = None if out_channels is None else nn.Linear(self.features, out_channels, bias=readout != "pair")

    @classmethod
    def recipe(cls, name: str, out_channels: int | None = None, **settings: Any) -> Self:
        """Build a layer from one of :data:`RECIPES`, with other ``settings`` if given; then call :meth:`fit_scaling`.

        Example:
            >>> GAPE.recipe("gape-closed", out_channels=80).features
            80
            >>> GAPE.recipe("gape-open")
            Traceback (most recent call last):
            ValueError: there is no recipe 'gape-open'; there are gape-closed, gape-rooted
        """
        if name not in RECIPES:
            raise ValueError(f"there is no recipe {name!r}; there are {', '.join(RECIPES)}")
        return cls(out_channels=out_channels, **{**RECIPES[name], **settings})

    @property
    def basis_settings(self) -> dict[str, Any]:
        """Settings of :class:`gape.pyg.AddWalkBasis` for this layer: ``AddWalkBasis(**layer.basis_settings)``.

        ``vectors=None``, as many as nodes, is for whole datasets; give a number for single graphs.
        """
        if self.machine.typed or self.length is not None or self.readout == "rooted":
            returns = 0 if self.machine.typed or self.readout != "closed" else self.length
            return {"matrix": self.matrix, "vectors": 0, "complete": False, "returns": returns}
        complete = self.machine.labels > 1 or self.readout != "node"
        vectors = None if complete else enough_vectors(self.damping)
        return {"matrix": self.matrix, "vectors": vectors, "complete": complete, "returns": 0}

    def prepare(self, graph: Graph) -> Basis:
        """Compute a basis of the graph for :meth:`forward` and :meth:`encode`, to use more than once."""
        return prepare_layer(graph, **self.basis_settings)

    def forward(
        self,
        edge_index: Tensor,
        batch: Tensor | None = None,
        *,
        num_nodes: int | None = None,
        edge_weight: Tensor | None = None,
        labels: Tensor | None = None,
        edge_type: Tensor | None = None,
        basis: Basis | None = None,
    ) -> Tensor:
        """Encode a batch of graphs.

        Args:
            edge_index: ``[2, E]``, row 0 sources, row 1 targets.
            batch: ``[n]``, the graph of each node, ascending; one graph if ``None``.
            num_nodes: n; needed if none of ``batch``, ``labels`` and ``basis`` is given.
            edge_weight: ``[E]``, ones if ``None``; not differentiated.
            labels: ``[n]`` integers below m.
            edge_type: ``[E]`` integers below the number of edge types.
            basis: computed here if ``None``. Precomputed by :meth:`prepare`; of PyG data by
                :class:`gape.pyg.AddWalkBasis` and ``gape.pyg.basis_of(batch)``; or by
                ``gape.prepare(graph, matrix=layer.matrix, labels=1, unit_radius=True)``.

        Returns:
            ``[n, out_channels]``, or ``[graphs, out_channels, n, n]`` for pairs: row v, column u holds the runs u → v.
        """
        more = {"num_nodes": num_nodes, "edge_weight": edge_weight}
        return self.encode(
            *self._model_input(edge_index, batch, labels=labels, edge_type=edge_type, basis=basis, **more)
        )

    @_not_compiled
    def _model_input(
        self,
        edge_index: Tensor,
        batch: Tensor | None = None,
        *,
        basis: Basis | None = None,
        **others: Any,
    ) -> tuple[Graph, Basis | None]:
        """Build the graph from the arguments of :meth:`forward`; return it with the basis."""
        self._refuse_unused(others.get("labels"), others.get("edge_type"))
        # Empty graphs at the end of a batch do not appear in ``batch``, but they have a row in the basis.
        graphs = basis.num_graphs if isinstance(basis, Basis) else 0
        if isinstance(basis, Basis) and batch is None and others.get("labels") is None:
            others["num_nodes"] = basis.graph.num_nodes if others.get("num_nodes") is None else others["num_nodes"]
        return batched_graph(edge_index, batch, **others, num_graphs=graphs), basis

    def _refuse_unused(self, labels: Tensor | None, edge_type: Tensor | None) -> None:
        """Raise if labels or edge types were given that the layer does not read."""
        if labels is not None and (self.machine.labels == 1 or self.labelling == "degree"):
            raise ValueError(
                f"labels were given, but a layer with labels={self.machine.labels} and labelling={self.labelling!r} "
                "does not read them; build it with the number of labels and labelling='given', or leave them out"
            )
        if edge_type is not None and self.machine.by_edge == 1:
            raise ValueError(
                f"edge_type was given, but a layer with edge_types=1 and transition_by={self.machine.transition_by!r} "
                "does not read it; build it with edge_types=R and transition_by='edge' or 'both', or leave it out"
            )

    def encode(self, graph: Graph, basis: Basis | None = None) -> Tensor:
        """Encode a :class:`gape.Graph` as :meth:`forward` does, but ignore labels and types that are not read."""
        found = self.read(graph, basis)
        return found.to(next(self.machine.parameters()).dtype) if self.readout == "pair" else self._project(found)

    def _project(self, found: Tensor) -> Tensor:
        """Scale features and apply the linear layer."""
        # The features are float32 or float64; the rest of the model may have lower precision.
        scaled: Tensor = self.scaling(found).to(next(self.machine.parameters()).dtype)
        return scaled if self.linear is None else self.linear(scaled)

    def from_basis(self, vectors: Tensor, spectrum: Tensor, scale: Tensor, batch: Tensor) -> Tensor:
        """Encode by a basis alone: tensors only and no checks, for ``torch.compile(fullgraph=True)`` and export.

        For ``readout="node"``, one label, one transition matrix, no length, and bases of undirected graphs by
        ``AddWalkBasis(**layer.basis_settings)``; equal to ``layer(edge_index, batch, basis=basis_of(data))``.

        Args:
            vectors, spectrum, scale: ``data.walk_vectors`` ``[n, J]``, ``data.walk_spectrum`` ``[graphs, J]`` and
                ``data.walk_scale`` ``[n]``.
            batch: ``[n]``, the graph of each node.
        """
        machine = self.machine
        if isinstance(machine, RootedAutomata) or machine.typed or machine.labels > 1 or machine.final is not None:
            raise ValueError(f"from_basis is for one label and one transition matrix, got {self.extra_repr()}")
        if self.readout != "node" or self.length is not None or spectrum.dim() != 2:
            raise ValueError(
                f"from_basis is for readout='node' without a length and for undirected graphs, got {self.extra_repr()} "
                f"and a spectrum of {spectrum.dim()} dimensions"
            )
        transition, initial = machine.weights()
        vectors, theta, scale = vectors.to(transition.dtype), spectrum.to(transition.dtype), scale.unsqueeze(1)
        start = torch.zeros_like(theta).index_add(0, batch, vectors / scale)
        runs = smith_sum(theta.unsqueeze(-1), start.unsqueeze(-1) * initial[:, 0], transition, self.damping)
        found = (vectors.unsqueeze(1) @ runs[batch]).squeeze(1) * scale
        return self._project(found.to(machine.dtype))

    def encode_hetero(self, data: Any, *, reverse_relations: bool = False) -> dict[str, Tensor]:
        """Encode a PyG ``HeteroData``: node types are labels, relations edge types; one tensor per node type.

        Args:
            data: the graph. The layer needs as many ``labels`` as it has node types if α or μ depends on them, and as
                many ``edge_types`` as relations if μ does.
            reverse_relations: walk every relation in both directions; the reverse is a relation of its own.
        """
        sizes, relations = node_counts(data), len(relation_types(data, reverse_relations))
        if self.machine.labels not in (1, len(sizes)) or self.machine.by_edge not in (1, relations):
            raise ValueError(
                f"the graph has {len(sizes)} node types and {relations} relations, the layer labels="
                f"{self.machine.labels} and edge_types={self.machine.by_edge}; build it with labels={len(sizes)} and "
                f"edge_types={relations}"
            )
        rows = self.encode(hetero_graph(data, reverse=reverse_relations))
        return dict(zip(sizes, torch.split(rows, list(sizes.values())), strict=True))

    # Graphs, bases and checks depend on the numbers in the tensors: they stay outside of a compiled region, and the
    # rest of the model is compiled once.
    @_not_compiled
    def read(self, graph: Graph, basis: Basis | None = None) -> Tensor:
        """Compute the features before scaling and linear layer, ``[n, features]``; for pairs the bias itself."""
        if self.labelling == "degree":
            graph = graph.with_labels(DegreeLabels(self.machine.labels))
        # No half precision here: a resolvent near its poles needs the digits.
        with torch.autocast(graph.device.type, enabled=False):
            if isinstance(self.machine, RootedAutomata):
                if basis is not None:  # not used, but a basis of other graphs is a mistake
                    check_basis(basis, graph, self.matrix)
                return self._rooted(graph, self.machine)
            runs = GraphRuns(graph, self.machine, self.matrix, self.length, basis, self.memory)
            if self.linear is not None and self.readout == "pair":
                return runs.pair(self.linear.weight).to(self.machine.dtype)
            found = runs.per_node(self.readout)
            if self.machine.final is not None:
                final = self.machine.final.T.to(found.dtype)
                found = found * (final if self.machine.labels == 1 else final[graph.labels]).unsqueeze(1)
            found = found.flatten(1).to(self.machine.dtype)
            self._check_range(found, graph)
            return found

    def _rooted(self, graph: Graph, machine: RootedAutomata) -> Tensor:
        check_fixed_weights(graph)
        transition = machine.transition()
        # A machine of weights that are not finite gives features that are not finite, as other automata do.
        if not bool(torch.isfinite(transition).all()):
            return transition.sum().expand(graph.num_nodes, self.features).to(machine.dtype)
        automaton = RootedAutomaton(transition, self.radius, self.length)
        return solve(automaton, graph, readout="rooted", dtype=machine.dtype, memory=self.memory).weights

    def _check_range(self, found: Tensor, graph: Graph) -> None:
        """Raise if weights overflow, unless the parameters themselves are not finite."""
        lost = lost_rows(found.detach())
        if lost is None or not all(bool(torch.isfinite(one).all()) for one in self.machine.parameters()):
            return
        node = int(lost.nonzero()[0])
        dtype = str(found.dtype).removeprefix("torch.")
        raise ArithmeticError(
            f"the weights of runs into node {node} of graph {int(graph.batch[node])} overflow {dtype}. A graph without "
            f"cycles has spectral radius 0 and is not rescaled, so weights grow with its depth: build the layer with "
            f"matrix='random_walk' (got matrix={self.matrix!r}), or with a length"
        )

    @torch.no_grad()
    def fit_scaling(self, batches: Iterable[Mapping[str, Any] | Graph | tuple[Graph, Basis | None]]) -> None:
        """Fit the scaling of the features on the training set, for ``scaling="fixed"`` and ``"whitened"``.

        Args:
            batches: the training graphs, each batch as a mapping of arguments of :meth:`forward`, as a
                :class:`gape.Graph`, or as a tuple (graph, basis).

        Example:
            >>> layer = GAPE(states=2, scaling="fixed", seed=0)
            >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
            >>> layer.fit_scaling([{"edge_index": path, "num_nodes": 3}])
            >>> layer(path, num_nodes=3).mean(0).abs() < 1e-6
            tensor([True, True])
        """
        if isinstance(batches, Mapping | Graph):
            raise ValueError(f"fit_scaling takes a list of batches, got one {type(batches).__name__}; put it in a list")
        rows = [self.read(*self._batch(batch)) for batch in batches]
        if not rows:
            raise ValueError("fit_scaling needs at least one batch of the training set, got none")
        self.scaling.fit(torch.cat(rows))

    def _batch(self, batch: Any) -> tuple[Graph, Basis | None]:
        if isinstance(batch, Mapping):
            known = list(inspect.signature(self.forward).parameters)
            if unknown := [name for name in batch if name not in known]:
                raise ValueError(f"forward has no argument {', '.join(map(str, unknown))}; it has {', '.join(known)}")
            if "edge_index" not in batch:
                raise ValueError(
                    f"a batch needs edge_index, as forward does, got {', '.join(map(str, batch)) or 'nothing'}"
                )
            return self._model_input(**batch)
        graph, basis = batch if isinstance(batch, tuple) and len(batch) == 2 else (batch, None)
        if not isinstance(graph, Graph):
            raise ValueError(
                f"fit_scaling takes batches as mappings of arguments of forward, got {type(graph).__name__}: "
                'layer.fit_scaling({"edge_index": b.edge_index, "batch": b.batch} for b in loader)'
            )
        return graph, basis

    def extra_repr(self) -> str:
        """Return the settings that the submodules do not show, for ``print(model)``."""
        machine = self.machine
        shown: dict[str, Any] = {"states": machine.states, "readout": self.readout, "length": self.length}
        if isinstance(machine, RootedAutomata):
            shown |= {"layers": machine.layers, "radius": self.radius}
        if machine.labels > 1:
            shown |= {"labels": machine.labels, "labelling": self.labelling}
        shown["transition_by"] = machine.transition_by
        if machine.by_edge > 1:
            shown["edge_types"] = machine.by_edge
        shown |= {"matrix": self.matrix, "damping": self.damping, "scaling": self.scaling.kind}
        if machine.final is not None:
            shown["final"] = True
        if not next(machine.parameters()).requires_grad:
            shown["learn"] = False
        return ", ".join(f"{name}={value!r}" for name, value in shown.items())
