"""The graph transformer of the paper's comparison."""

from typing import Any, Literal

import torch
from torch import Tensor, nn

from gape.nn.attention.bias import fit_bias
from gape.nn.attention.pattern import AttentionPattern, Kernel
from gape.nn.encoder import Encoder
from gape.nn.inputs import Inputs, NodeInput
from gape.nn.layer import GraphTransformerLayer, Norm
from gape.nn.readout import Pooling, Readout


class GraphTransformer(nn.Module):
    """Graph transformer without edge features (Dwivedi & Bresson, 2021), as compared in Soga & Chiang (2023).

    Node features are embedded, the position encoding enters once, then ``layers`` layers of attention over
    in-neighbours, and a readout. The defaults are the published ones.

    Args:
        inputs: node features: number of categories, numbers of categories of several columns, or "constant";
            see :class:`gape.nn.NodeInput`.
        out_channels: classes, or 1 for a regression.
        layers: number of layers (10; CSL 6).
        hidden: width of the node states.
        heads: number of attention heads; divides ``hidden``.
        readout: "sum" or "mean" over each graph, or "node" for an answer per node.
        encoding: how a position encoding enters, such as ``LinearEncoder(32)``; None for no encoding.
        attention: "neighbours" for attention along the edges, "full" for all nodes of the same graph.
        clamp: bound on the absolute value of the attention scores, at most 40; None for no bound.
        norm: "batch" or "layer".
        dropout: dropout in the layers.
        input_dropout: dropout on the first node states.
        kernel: how attention is computed, see :class:`gape.nn.AttentionPattern`; a matter of speed only.

    Example:
        >>> model = GraphTransformer(inputs="constant", out_channels=2)  # CYCLES
        >>> sum(p.numel() for p in model.parameters())
        522662
        >>> from gape.nn import LinearEncoder
        >>> model = GraphTransformer(inputs=28, out_channels=1, layers=2, encoding=LinearEncoder(20))
        >>> edge_index, batch = torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]]), torch.tensor([0, 0, 1, 1])
        >>> model(torch.tensor([0, 5, 1, 5]), edge_index, batch, encoding=torch.randn(4, 20)).shape
        torch.Size([2, 1])
    """

    def __init__(
        self,
        inputs: Inputs,
        out_channels: int,
        *,
        layers: int = 10,
        hidden: int = 80,
        heads: int = 8,
        readout: Pooling = "sum",
        encoding: Encoder | None = None,
        attention: Literal["neighbours", "full"] = "neighbours",
        clamp: float | None = 5.0,
        norm: Norm = "batch",
        dropout: float = 0.0,
        input_dropout: float = 0.0,
        kernel: Kernel = "auto",
    ) -> None:
        super().__init__()
        if attention not in ("neighbours", "full"):
            raise ValueError(f"attention must be 'neighbours' or 'full', got {attention!r}")
        if layers < 0:
            raise ValueError(f"layers must not be negative, got {layers}")
        beside = 0 if encoding is None else encoding.concatenated
        if not 0 <= beside < hidden:
            raise ValueError(f"the encoding takes {beside} of hidden={hidden} channels and leaves none; widen hidden")
        self.heads, self.attention, self.kernel = heads, attention, kernel
        self.inputs = NodeInput(inputs, hidden - beside)
        self.encoding = encoding
        self.input_dropout = nn.Dropout(input_dropout)
        self.layers = nn.ModuleList(
            GraphTransformerLayer(hidden, heads, clamp=clamp, norm=norm, dropout=dropout) for _ in range(layers)
        )
        self.readout = Readout(hidden, out_channels, readout)

    def pattern(self, edge_index: Tensor, batch: Tensor, num_graphs: int | None = None) -> AttentionPattern:
        """Who attends to whom in this model; give it to :meth:`forward` to reuse it for the same graphs."""
        return AttentionPattern(
            edge_index,
            batch,
            num_graphs=num_graphs,
            heads=self.heads,
            full=self.attention == "full",
            kernel=self.kernel,
        )

    def forward(
        self,
        x: Tensor | None,
        edge_index: Tensor,
        batch: Tensor | None = None,
        encoding: Any = None,
        *,
        bias: Tensor | None = None,
        num_graphs: int | None = None,
        pattern: AttentionPattern | None = None,
    ) -> Tensor:
        """Answers for a batch of graphs.

        Args:
            x: node features, ``[num_nodes]`` or ``[num_nodes, columns]``; None for constant features.
            edge_index: ``[2, num_edges]``; the edge u→v lets v attend to u.
            batch: ``[num_nodes]``, the graph of every node, ascending; one graph if None, and then x is needed.
            encoding: what the encoder of the model takes: a tensor, or a :class:`gape.nn.WalkInput`.
            bias: further attention bias, in either shape of :func:`gape.nn.attention.bias.fit_bias`.
            num_graphs: number of graphs, if the last ones may have no nodes.
            pattern: what :meth:`pattern` made of the same graphs before.

        Returns:
            ``[num_graphs, out_channels]``, or ``[num_nodes, out_channels]`` for the "node" readout.
        """
        pattern = self._checked_pattern(x, edge_index, batch, num_graphs, pattern)
        h = self.inputs(x, pattern.num_nodes)
        if len(h) != pattern.num_nodes:
            raise ValueError(f"x has {len(h)} nodes but batch has {pattern.num_nodes}")
        h = self._with_encoding(h, encoding, pattern)
        bias = self._whole_bias(bias, encoding, pattern)
        h = self.input_dropout(h)
        for layer in self.layers:
            h = layer(h, pattern, bias)
        output: Tensor = self.readout(h, pattern.batch, pattern.num_graphs)
        return output

    def _checked_pattern(
        self,
        x: Tensor | None,
        edge_index: Tensor,
        batch: Tensor | None,
        num_graphs: int | None,
        pattern: AttentionPattern | None,
    ) -> AttentionPattern:
        """The pattern given, if it is of this model, or a new one."""
        if pattern is None:
            if batch is None:
                if x is None:
                    raise ValueError("give x or batch: without both the number of nodes is unknown")
                batch = torch.zeros(len(x), dtype=torch.long, device=edge_index.device)
            return self.pattern(edge_index, batch, num_graphs)
        if (pattern.heads, pattern.full) != (self.heads, self.attention == "full"):
            raise ValueError(
                f"the pattern has heads={pattern.heads} and full={pattern.full}, but the model has heads={self.heads} "
                f"and attention={self.attention!r}; make it with this model's pattern()"
            )
        return pattern

    def _with_encoding(self, h: Tensor, encoding: Any, pattern: AttentionPattern) -> Tensor:
        """The nodes' first states: their inputs, and beside or added to them the encoding."""
        if self.encoding is None:
            if encoding is not None:
                raise ValueError("this model was built without an encoding; build it with encoding=LinearEncoder(k)")
            return h
        code: Tensor | None = self.encoding(encoding, pattern)
        if code is None:
            return h
        if self.encoding.concatenated:
            return torch.cat([h, code], 1)
        if code.shape[1] != h.shape[1]:
            raise ValueError(
                f"the encoder gives {code.shape[1]} channels and the model has hidden={h.shape[1]}; build the "
                "encoder with that width"
            )
        return h + code

    def _whole_bias(self, bias: Tensor | None, encoding: Any, pattern: AttentionPattern) -> Tensor | None:
        """The attention bias given and the one that the encoding makes, together."""
        learned = None if self.encoding is None else self.encoding.bias(encoding, pattern)
        if learned is not None and bias is not None:
            return fit_bias(learned, pattern) + fit_bias(bias, pattern)
        only = bias if learned is None else learned
        return None if only is None else fit_bias(only, pattern)
