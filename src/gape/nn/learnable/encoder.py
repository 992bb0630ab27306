"""Learnable automata in the graph transformer, alone or beside a fixed encoding."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from gape.graph.batching import offsets
from gape.graph.graph import Graph
from gape.nn.attention.multi_head import fit_bias
from gape.nn.attention.pattern import AttentionPattern
from gape.nn.encoders import Encoder
from gape.nn.learnable.basis import WalkBasis
from gape.nn.learnable.layer import GAPE


@dataclass(frozen=True, eq=False)
class WalkInput:
    """What a :class:`GAPEEncoder` may be told about a batch, given to the model as its ``encoding``.

    Args:
        labels: ``[num_nodes]`` node labels, such as atom types.
        edge_type: ``[num_edges]`` edge types, such as bond types.
        edge_weight: ``[num_edges]``.
        basis: what :class:`gape.pyg.AddWalkBasis` computed, ``WalkBasis.of(batch)``.
        fixed: ``[num_nodes, channels]``, the fixed encoding beside the learned one.
    """

    labels: Tensor | None = None
    edge_type: Tensor | None = None
    edge_weight: Tensor | None = None
    basis: WalkBasis | None = None
    fixed: Tensor | None = None

    def to(self, device: torch.device | str, non_blocking: bool = False) -> WalkInput:
        """The same on another device."""
        present = {name: value for name, value in vars(self).items() if value is not None}
        return replace(self, **{name: value.to(device, non_blocking=non_blocking) for name, value in present.items()})


class GAPEEncoder(Encoder):
    """Lets a graph transformer learn the automata of its position encoding.

    Node and closed readouts are added to the embedded node features, a pair readout is an attention bias.

    Args:
        layers: one or more :class:`gape.nn.GAPE`, with ``out_channels`` the width of the model (of a pair readout, its
            heads); what they give is added up. They share labels and basis.
        beside: how a fixed encoding enters too, such as ``LinearEncoder(20)`` for random walks.

    Example:
        >>> from gape.nn import GraphTransformer
        >>> encoder = GAPEEncoder(GAPE(states=8, out_channels=80, readout="closed"))
        >>> model = GraphTransformer(inputs=28, out_channels=1, layers=2, encoding=encoder)
        >>> edge_index = torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]])
        >>> model(torch.tensor([0, 5, 1]), edge_index).shape
        torch.Size([1, 1])
    """

    def __init__(self, *layers: GAPE, beside: Encoder | None = None) -> None:
        super().__init__()
        if not layers:
            raise ValueError("GAPEEncoder needs at least one GAPE layer, got none")
        for layer in layers:
            if not isinstance(layer, GAPE):
                raise ValueError(f"the layers of a GAPEEncoder are gape.nn.GAPE, got {type(layer).__name__}")
        if any(layer.out_channels is None for layer in layers):
            raise ValueError("the layers of a GAPEEncoder need out_channels, the width (or heads) of the model")
        if beside is not None and beside.concatenated:
            raise ValueError(f"{type(beside).__name__} stands beside the features, and GAPEEncoder adds to them")
        widths = {layer.out_channels for layer in layers if layer.readout != "pair"}
        if len(widths) > 1:
            raise ValueError(f"what the layers give is added up, so their out_channels must agree, got {widths}")
        self.automata = torch.nn.ModuleList(layers)
        self.beside = beside

    @property
    def layers(self) -> list[GAPE]:
        """The automata, as :class:`gape.nn.GAPE`."""
        return [layer for layer in self.automata if isinstance(layer, GAPE)]

    @property
    def basis_settings(self) -> dict[str, Any]:
        """What :class:`gape.pyg.AddWalkBasis` has to compute so that one basis serves all the layers."""
        each = [layer.basis_settings for layer in self.layers]
        matrices = {needed["matrix"] for needed in each}
        if len(matrices) > 1:
            raise ValueError(f"layers on different walk matrices ({', '.join(sorted(matrices))}) cannot share a basis")
        sizes = [needed["vectors"] for needed in each]
        return {
            "matrix": each[0]["matrix"],
            "vectors": None if None in sizes else max(sizes),
            "complete": any(needed["complete"] for needed in each),
            "returns": max(needed["returns"] for needed in each),
        }

    def fit_scaling(self, batches: Iterable[tuple[Any, AttentionPattern]]) -> None:
        """Take scales from the training set, for the layers that need it; the others learn theirs."""
        known = [(_input(encoding), pattern) for encoding, pattern in batches]
        waiting = [layer for layer in self.layers if layer.scaling.from_training_set]
        if waiting:
            graphs = [(_graph(given, pattern), given.basis) for given, pattern in known]
            for layer in waiting:
                layer.fit_scaling(graphs)
        if self.beside is not None:
            self.beside.fit_scaling((given.fixed, pattern) for given, pattern in known)

    def forward(self, encoding: Tensor | WalkInput | None, pattern: AttentionPattern) -> Tensor | None:
        """``[num_nodes, hidden]``; None with pairs alone. A tensor counts as ``fixed``."""
        given, graph = _input(encoding), None
        if given.fixed is not None and self.beside is None:
            raise ValueError("a fixed encoding was given and nothing takes it; build with beside=LinearEncoder(k)")
        found: list[Tensor] = []
        for layer in self.layers:
            if layer.readout != "pair":
                graph = graph or _graph(given, pattern)
                found.append(layer.encode(graph, given.basis))
        if self.beside is not None:
            found.append(self.beside(given.fixed, pattern))
        return torch.stack(found).sum(0) if found else None

    def bias(self, encoding: Tensor | WalkInput | None, pattern: AttentionPattern) -> Tensor | None:
        """The pair readouts, in the shape that the model's kernel takes; None if there are none."""
        given, graph = _input(encoding), None
        found: list[Tensor] = []
        for layer in self.layers:
            if layer.readout == "pair":
                graph = graph or _graph(given, pattern)
                found.append(fit_bias(layer.encode(graph, given.basis), pattern))
        fixed = None if self.beside is None else self.beside.bias(given.fixed, pattern)
        if fixed is not None:
            found.append(fit_bias(fixed, pattern))
        return torch.stack(found).sum(0) if found else None


def _input(encoding: Tensor | WalkInput | None) -> WalkInput:
    return encoding if isinstance(encoding, WalkInput) else WalkInput(fixed=encoding)


def _graph(given: WalkInput, pattern: AttentionPattern) -> Graph:
    ptr = offsets(pattern.sizes)
    return Graph(pattern.edge_index, pattern.num_nodes, given.edge_weight, given.labels, given.edge_type, ptr)
