"""GAPE as a layer: automata that are learned together with the model."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import torch
from torch import Tensor, nn

from gape.graph.graph import Graph
from gape.graph.labels import DegreeLabels
from gape.graph.walk_matrix import MatrixName
from gape.nn.learnable.automaton import LearnableAutomaton, TransitionBy, TransitionForm
from gape.nn.learnable.basis import WalkBasis, enough_vectors
from gape.nn.learnable.batched_graph import batched_graph
from gape.nn.learnable.graph_runs import GraphRuns
from gape.nn.learnable.settings import check_labels, check_settings, check_walk
from gape.nn.scaling import FeatureScaling, Scaling
from gape.solvers.certificate import lost_rows
from gape.solvers.solution import ReadoutName


class GAPE(nn.Module):
    r"""Graph automaton position encoding (Soga & Chiang, 2023) with μ and α as parameters.

    The walk matrix of each graph is divided by its spectral radius and ‖μ‖₂ stays at most ``damping`` below 1 by
    construction: the sum over runs converges on every graph, and no training step can change that.

    Args:
        states: number of states k.
        out_channels: width of the output, by a linear layer; of a "pair" readout the attention heads, needed there.
            ``None`` for the features themselves.
        readout: "node", runs from anywhere into the node; "closed", runs that come back to where they began; "pair",
            runs from node to node, as attention bias ``[graphs, out_channels, n, n]``.
        length: ``None`` for runs of all lengths, summed: k features. A number T to keep runs of 1 … T steps apart:
            T · k features. Closed runs of typed automata and runs on directed graphs other than "node" need it.
        transition: "dense" μ, or "diagonal": k/2 conjugate pairs of complex poles.
        transition_by: what μ depends on: nothing ("none"), the label of the node left ("node"), the type of the edge
            taken ("edge"), or "both". Not for pairs.
        labels: number m of node labels.
        labelling: "given" to :meth:`forward`, such as atom types, or "degree", the in-degree up to m - 1.
        edge_types: number of edge types.
        matrix: the walk matrix, see :mod:`gape.graph.walk_matrix`.
        damping: γ, below 1; with a ``length`` also 1.
        scaling: of each feature: "batch" as BatchNorm, "fixed" from the training set (see :meth:`fit_scaling`),
            "whitened" likewise and decorrelated (for ``learn=False``), or "none". Pairs are not scaled.
        final: whether to learn final weights τ too.
        learn: False keeps the automaton at its random start; scaling and linear layer are learned all the same.
        memory: GiB that closed runs of typed automata may keep for the backward pass before they compute twice.
        seed: of the automaton's start; ``None`` draws one from PyTorch's generator, as other layers do.

    Example:
        >>> layer = GAPE(states=8, out_channels=4, readout="closed", seed=0)
        >>> triangle = torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]])
        >>> layer(triangle).shape
        torch.Size([3, 4])
    """

    def __init__(
        self,
        states: int = 32,
        out_channels: int | None = None,
        *,
        readout: ReadoutName = "node",
        length: int | None = None,
        transition: TransitionForm = "dense",
        transition_by: TransitionBy = "none",
        labels: int = 1,
        labelling: Literal["given", "degree"] = "given",
        edge_types: int = 1,
        matrix: MatrixName = "adjacency",
        damping: float = 0.9,
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
        self.machine = LearnableAutomaton(
            states,
            labels,
            form=transition,
            transition_by=transition_by,
            edge_types=edge_types,
            damping=damping,
            final=final,
            seed=int(torch.randint(2**31, ())) if seed is None else seed,
        ).requires_grad_(learn)
        self.features = states * (length or 1)
        self.scaling = FeatureScaling(self.features, "none" if readout == "pair" else scaling)
        self.linear = None if out_channels is None else nn.Linear(self.features, out_channels, bias=readout != "pair")

    @property
    def basis_settings(self) -> dict[str, Any]:
        """What :class:`gape.pyg.AddWalkBasis` has to compute for this layer: ``AddWalkBasis(**layer.basis_settings)``.

        ``vectors=None``, as many as nodes, is for whole data sets; give a number for single graphs.
        """
        if self.machine.typed or self.length is not None:
            returns = 0 if self.machine.typed or self.readout != "closed" else self.length
            return {"matrix": self.matrix, "vectors": 0, "complete": False, "returns": returns}
        complete = self.machine.labels > 1 or self.readout != "node"
        vectors = None if complete else enough_vectors(self.damping)
        return {"matrix": self.matrix, "vectors": vectors, "complete": complete, "returns": 0}

    def forward(
        self,
        edge_index: Tensor,
        batch: Tensor | None = None,
        *,
        num_nodes: int | None = None,
        edge_weight: Tensor | None = None,
        labels: Tensor | None = None,
        edge_type: Tensor | None = None,
        basis: WalkBasis | None = None,
    ) -> Tensor:
        """Encode a batch of graphs.

        Args:
            edge_index: ``[2, E]``, sources above targets.
            batch: ``[n]``, the graph of every node, ascending; one graph if ``None``.
            num_nodes: n, if neither ``batch`` nor ``labels`` shows it and the last nodes have no edges.
            edge_weight: ``[E]``, ones if ``None``; not differentiated.
            labels: ``[n]`` integers below m.
            edge_type: ``[E]`` integers below the number of edge types.
            basis: what :class:`gape.pyg.AddWalkBasis` computed, ``WalkBasis.of(data)``; computed here if ``None``.

        Returns:
            ``[n, out_channels]``, or ``[graphs, out_channels, n, n]`` for pairs: row v, column u holds the runs u → v.
        """
        more = {"num_nodes": num_nodes, "edge_weight": edge_weight}
        return self.encode(*self._given(edge_index, batch, labels=labels, edge_type=edge_type, basis=basis, **more))

    def _given(
        self,
        edge_index: Tensor,
        batch: Tensor | None = None,
        *,
        basis: WalkBasis | None = None,
        **others: Any,
    ) -> tuple[Graph, WalkBasis | None]:
        """The graphs that :meth:`forward` was given, checked, and their basis."""
        self._refuse_unused(others.get("labels"), others.get("edge_type"))
        # An empty graph at the end of a batch has no node to show it, but a row of the basis.
        graphs = len(basis.radius) if isinstance(basis, WalkBasis) else 0
        return batched_graph(edge_index, batch, **others, num_graphs=graphs), basis

    def _refuse_unused(self, labels: Tensor | None, edge_type: Tensor | None) -> None:
        """Labels and types that the layer does not read were given by mistake, or the layer was built by one."""
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

    def encode(self, graph: Graph, basis: WalkBasis | None = None) -> Tensor:
        """As :meth:`forward`, for a :class:`gape.Graph`, whose labels and types need not be read."""
        found = self.read(graph, basis)
        # Up to here float32 at least; the rest of the model may have less.
        rest = self.machine.initial.dtype
        if self.readout == "pair":
            return found.to(rest)
        scaled: Tensor = self.scaling(found).to(rest)
        return scaled if self.linear is None else self.linear(scaled)

    def read(self, graph: Graph, basis: WalkBasis | None = None) -> Tensor:
        """The features before scaling and linear layer, ``[n, features]``; of a pair readout the bias itself."""
        if self.labelling == "degree":
            graph = graph.with_labels(DegreeLabels(self.machine.labels))
        # Half precision is for the layers around: a resolvent near its poles needs the digits.
        with torch.autocast(graph.device.type, enabled=False):
            runs = GraphRuns(graph, self.machine, self.matrix, self.length, basis, self.memory)
            if self.linear is not None and self.readout == "pair":
                return runs.pair(self.linear.weight).to(self.machine.dtype)
            found = runs.node() if self.readout == "node" else runs.closed()
            if self.machine.final is not None:
                final = self.machine.final.T.to(found.dtype)
                found = found * (final if self.machine.labels == 1 else final[graph.labels]).unsqueeze(1)
            found = found.flatten(1).to(self.machine.dtype)
            self._check_range(found, graph)
            return found

    def _check_range(self, found: Tensor, graph: Graph) -> None:
        """Refuse weights beyond the number format, unless it is the parameters that are not finite."""
        lost = lost_rows(found.detach())
        if lost is None or not all(bool(torch.isfinite(one).all()) for one in self.machine.parameters()):
            return
        node = int(lost.nonzero()[0])
        dtype = str(found.dtype).removeprefix("torch.")
        raise ArithmeticError(
            f"runs to node {node}, of graph {int(graph.batch[node])}, weigh more than {dtype} holds. Where a graph has "
            f"no cycle nothing divides its weights, and runs through many layers grow: build the layer with "
            f"matrix='random_walk', got matrix={self.matrix!r}, or with a length"
        )

    @torch.no_grad()
    def fit_scaling(self, batches: Iterable[Mapping[str, Any] | Graph | tuple[Graph, WalkBasis | None]]) -> None:
        """Take the scale of every feature from the training set, for ``scaling="fixed"`` and ``"whitened"``.

        Args:
            batches: the training graphs, each batch as the arguments of :meth:`forward` by name, or as a
                :class:`gape.Graph`, alone or with its basis.

        Example:
            >>> layer = GAPE(states=2, scaling="fixed", seed=0)
            >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
            >>> layer.fit_scaling([{"edge_index": path}])
            >>> layer(path).mean(0).abs() < 1e-6
            tensor([True, True])
        """
        if isinstance(batches, Mapping | Graph):
            raise ValueError(f"fit_scaling takes a list of batches, got one {type(batches).__name__}; put it in a list")
        rows = [self.read(*self._batch(batch)) for batch in batches]
        if not rows:
            raise ValueError("fit_scaling needs at least one batch of the training set, got none")
        self.scaling.fit(torch.cat(rows))

    def _batch(self, batch: Any) -> tuple[Graph, WalkBasis | None]:
        if isinstance(batch, Mapping):
            known = list(inspect.signature(self.forward).parameters)
            if unknown := [name for name in batch if name not in known]:
                raise ValueError(f"forward has no argument {', '.join(map(str, unknown))}; it has {', '.join(known)}")
            if "edge_index" not in batch:
                raise ValueError(
                    f"a batch needs edge_index, as forward does, got {', '.join(map(str, batch)) or 'nothing'}"
                )
            return self._given(**batch)
        graph, basis = batch if isinstance(batch, tuple) and len(batch) == 2 else (batch, None)
        if not isinstance(graph, Graph):
            raise ValueError(
                f"fit_scaling takes batches as the arguments of forward by name, got {type(graph).__name__}: "
                'layer.fit_scaling({"edge_index": b.edge_index, "batch": b.batch} for b in loader)'
            )
        return graph, basis

    def extra_repr(self) -> str:
        """For ``print(model)``: the settings that the parts below do not show."""
        machine = self.machine
        shown: dict[str, Any] = {"states": machine.states, "readout": self.readout, "length": self.length}
        if machine.labels > 1:
            shown |= {"labels": machine.labels, "labelling": self.labelling}
        shown["transition_by"] = machine.transition_by
        if machine.by_edge > 1:
            shown["edge_types"] = machine.by_edge
        shown |= {"matrix": self.matrix, "damping": self.damping, "scaling": self.scaling.kind}
        if machine.final is not None:
            shown["final"] = True
        if not machine.initial.requires_grad:
            shown["learn"] = False
        return ", ".join(f"{name}={value!r}" for name, value in shown.items())
