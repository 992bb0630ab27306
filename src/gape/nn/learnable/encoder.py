"""Encoder of the graph transformer with learnable automata, optionally together with a fixed encoding."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from gape.graph.batching import offsets
from gape.graph.graph import Graph
from gape.nn.attention import AttentionPattern, fit_bias
from gape.nn.encoders import Encoder
from gape.nn.learnable.layer import GAPE
from gape.solvers.basis import Basis, prepare_layer


@dataclass(frozen=True, eq=False)
class WalkInput:
    """Input of a :class:`GAPEEncoder`, passed to the model as its ``encoding``.

    Args:
        labels: ``[num_nodes]`` node labels, such as atom types.
        edge_type: ``[num_edges]`` edge types, such as bond types.
        edge_weight: ``[num_edges]``.
        basis: precomputed, by :meth:`GAPEEncoder.prepare` or ``gape.pyg.basis_of(batch)``.
        fixed: ``[num_nodes, channels]``, input of ``extra_encoder``.
    """

    labels: Tensor | None = None
    edge_type: Tensor | None = None
    edge_weight: Tensor | None = None
    basis: Basis | None = None
    fixed: Tensor | None = None

    def to(self, device: torch.device | str, non_blocking: bool = False) -> WalkInput:
        """Move all tensors to a device."""
        present = {name: value for name, value in vars(self).items() if value is not None}
        return replace(self, **{name: value.to(device, non_blocking=non_blocking) for name, value in present.items()})


class GAPEEncoder(Encoder):
    """Learnable automata as position encoding of a graph transformer.

    Node and closed readouts are added to the embedded node features, pair readouts to the attention bias.

    Args:
        layers: one or more :class:`gape.nn.GAPE`, with ``out_channels`` the width of the model (of a pair readout, its
            heads); their outputs are summed. They share labels and basis.
        extra_encoder: encoder of a fixed encoding to add, such as ``LinearEncoder(20)`` for random walks.

    Example:
        >>> from gape.nn import GraphTransformer
        >>> encoder = GAPEEncoder(GAPE(states=8, out_channels=80, readout="closed"))
        >>> model = GraphTransformer(inputs=28, out_channels=1, layers=2, encoding=encoder)
        >>> edge_index = torch.tensor([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]])
        >>> model(torch.tensor([0, 5, 1]), edge_index).shape
        torch.Size([1, 1])
    """

    def __init__(self, *layers: GAPE, extra_encoder: Encoder | None = None) -> None:
        super().__init__()
        if not layers:
            raise ValueError("GAPEEncoder needs at least one GAPE layer, got none")
        for layer in layers:
            if not isinstance(layer, GAPE):
                raise ValueError(f"the layers of a GAPEEncoder are gape.nn.GAPE, got {type(layer).__name__}")
        if any(layer.out_channels is None for layer in layers):
            raise ValueError("the layers of a GAPEEncoder need out_channels, the width (or heads) of the model")
        if extra_encoder is not None and extra_encoder.concatenated:
            raise ValueError(f"extra_encoder must add to the features, {type(extra_encoder).__name__} concatenates")
        widths = {layer.out_channels for layer in layers if layer.readout != "pair"}
        if len(widths) > 1:
            raise ValueError(f"the outputs of the layers are summed, so their out_channels must agree, got {widths}")
        self.automata = torch.nn.ModuleList(layers)
        self.extra_encoder = extra_encoder

    @property
    def layers(self) -> list[GAPE]:
        """The :class:`gape.nn.GAPE` layers."""
        return [layer for layer in self.automata if isinstance(layer, GAPE)]

    @property
    def basis_settings(self) -> dict[str, Any]:
        """Settings of :class:`gape.pyg.AddWalkBasis` for one basis that serves all layers."""
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

    def prepare(self, graph: Graph) -> Basis:
        """Compute one basis that serves all layers."""
        return prepare_layer(graph, **self.basis_settings)

    def fit_scaling(self, batches: Iterable[tuple[Any, AttentionPattern]]) -> None:
        """Fit the scaling of the layers with ``scaling="fixed"`` or ``"whitened"`` on the training set."""
        known = [(_input(encoding), pattern) for encoding, pattern in batches]
        waiting = [layer for layer in self.layers if layer.scaling.from_training_set]
        if waiting:
            graphs = [(_graph(model_input, pattern), model_input.basis) for model_input, pattern in known]
            for layer in waiting:
                layer.fit_scaling(graphs)
        if self.extra_encoder is not None:
            self.extra_encoder.fit_scaling((model_input.fixed, pattern) for model_input, pattern in known)

    def forward(self, encoding: Tensor | WalkInput | None, pattern: AttentionPattern) -> Tensor | None:
        """Return ``[num_nodes, hidden]``, None if all readouts are pairs. A tensor is taken as ``fixed``."""
        model_input, graph = _input(encoding), None
        if model_input.fixed is not None and self.extra_encoder is None:
            raise ValueError(
                "a fixed encoding was given, but there is no encoder for it; build with extra_encoder=LinearEncoder(k)"
            )
        found: list[Tensor] = []
        for layer in self.layers:
            if layer.readout != "pair":
                graph = graph or _graph(model_input, pattern)
                found.append(layer.encode(graph, model_input.basis))
        if self.extra_encoder is not None:
            found.append(self.extra_encoder(model_input.fixed, pattern))
        return torch.stack(found).sum(0) if found else None

    def bias(self, encoding: Tensor | WalkInput | None, pattern: AttentionPattern) -> Tensor | None:
        """Return the sum of the pair readouts in the shape of the model's kernel, None if there are none."""
        model_input, graph = _input(encoding), None
        found: list[Tensor] = []
        for layer in self.layers:
            if layer.readout == "pair":
                graph = graph or _graph(model_input, pattern)
                found.append(fit_bias(layer.encode(graph, model_input.basis), pattern))
        fixed = None if self.extra_encoder is None else self.extra_encoder.bias(model_input.fixed, pattern)
        if fixed is not None:
            found.append(fit_bias(fixed, pattern))
        return torch.stack(found).sum(0) if found else None


def _input(encoding: Tensor | WalkInput | None) -> WalkInput:
    return encoding if isinstance(encoding, WalkInput) else WalkInput(fixed=encoding)


def _graph(model_input: WalkInput, pattern: AttentionPattern) -> Graph:
    ptr = offsets(pattern.sizes)
    return Graph(
        pattern.edge_index, pattern.num_nodes, model_input.edge_weight, model_input.labels, model_input.edge_type, ptr
    )
