"""Graph transformer of the paper's comparison: the model, its layer, and the pooling of node states."""

from typing import Any, Literal

import torch
from torch import Tensor, nn

from gape.nn.attention import AttentionPattern, Kernel, MultiHeadAttention, fit_bias
from gape.nn.encoders import Encoder, Inputs, NodeInput

Norm = Literal["batch", "layer"]
PoolingName = Literal["sum", "mean", "node"]


class GraphTransformer(nn.Module):
    """Graph transformer without edge features (Dwivedi & Bresson, 2021), as compared in Soga & Chiang (2023).

    Node features are embedded and the position encoding is added (or concatenated) once. Then follow ``layers`` layers
    of attention over in-neighbours, and a pooling of the node states. The defaults are the published ones.

    Args:
        inputs: node features: number of categories, tuple of such numbers for several columns, or "constant";
            see :class:`gape.nn.NodeInput`.
        out_channels: number of classes, or 1 for regression.
        layers: number of layers (10; CSL 6).
        hidden: width of the node states.
        heads: number of attention heads; divides ``hidden``.
        pooling: "sum" or "mean" over each graph, or "node" for one output per node.
        encoding: encoder of the position encoding, such as ``LinearEncoder(32)``; None for no encoding.
        attention: "neighbours" for attention along the edges, "full" for all nodes of the same graph.
        clamp: bound on the absolute value of the attention scores, at most 40; None for no bound.
        norm: "batch" or "layer".
        dropout: dropout in the layers.
        input_dropout: dropout on the first node states.
        kernel: attention kernel, see :class:`gape.nn.AttentionPattern`; affects speed only.

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
        pooling: PoolingName = "sum",
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
        concatenated = 0 if encoding is None else encoding.concatenated
        if not 0 <= concatenated < hidden:
            raise ValueError(
                f"the encoder concatenates {concatenated} channels, which leaves none of hidden={hidden} for the node "
                "features; raise hidden"
            )
        self.heads, self.attention, self.kernel = heads, attention, kernel
        self.inputs = NodeInput(inputs, hidden - concatenated)
        self.encoding = encoding
        self.input_dropout = nn.Dropout(input_dropout)
        self.layers = nn.ModuleList(
            GraphTransformerLayer(hidden, heads, clamp=clamp, norm=norm, dropout=dropout) for _ in range(layers)
        )
        self.pooling = Pooling(hidden, out_channels, pooling)

    def pattern(self, edge_index: Tensor, batch: Tensor, num_graphs: int | None = None) -> AttentionPattern:
        """Build the attention pattern of this model; pass it to :meth:`forward` to reuse it for the same graphs."""
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
        """Compute the outputs for a batch of graphs.

        Args:
            x: node features, ``[num_nodes]`` or ``[num_nodes, columns]``; None for constant features.
            edge_index: ``[2, num_edges]``; the edge u→v lets v attend to u.
            batch: ``[num_nodes]``, the graph of each node, ascending; one graph if None, and then x is required.
            encoding: input of the model's encoder: a tensor, or a :class:`gape.nn.WalkInput`.
            bias: additional attention bias, in either shape of :func:`gape.nn.attention.fit_bias`.
            num_graphs: number of graphs, if the last ones may have no nodes.
            pattern: result of :meth:`pattern` for the same graphs.

        Returns:
            ``[num_graphs, out_channels]``, or ``[num_nodes, out_channels]`` for ``pooling="node"``.
        """
        pattern = self._checked_pattern(x, edge_index, batch, num_graphs, pattern)
        h = self.inputs(x, pattern.num_nodes)
        if len(h) != pattern.num_nodes:
            raise ValueError(f"x has {len(h)} nodes but batch has {pattern.num_nodes}")
        h = self._with_encoding(h, encoding, pattern)
        bias = self._total_bias(bias, encoding, pattern)
        h = self.input_dropout(h)
        for layer in self.layers:
            h = layer(h, pattern, bias)
        output: Tensor = self.pooling(h, pattern.batch, pattern.num_graphs)
        return output

    def _checked_pattern(
        self,
        x: Tensor | None,
        edge_index: Tensor,
        batch: Tensor | None,
        num_graphs: int | None,
        pattern: AttentionPattern | None,
    ) -> AttentionPattern:
        """Check that ``pattern`` fits this model, or build a new one."""
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
        """Add the encoder's output to the embedded node features, or concatenate it."""
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

    def _total_bias(self, bias: Tensor | None, encoding: Any, pattern: AttentionPattern) -> Tensor | None:
        """Add up the attention bias of the caller and the one of the encoder."""
        learned = None if self.encoding is None else self.encoding.bias(encoding, pattern)
        if learned is not None and bias is not None:
            return fit_bias(learned, pattern) + fit_bias(bias, pattern)
        only = bias if learned is None else learned
        return None if only is None else fit_bias(only, pattern)


class GraphTransformerLayer(nn.Module):
    """Attention and a feed-forward network, each with a residual connection followed by normalisation.

    Args:
        hidden: width of the node states; the feed-forward network is twice as wide.
        heads: number of attention heads.
        clamp: bound on the absolute value of the attention scores, None for no bound.
        norm: "batch" for BatchNorm1d over the nodes of the batch, as published; "layer" for LayerNorm.
        dropout: dropout after attention and inside the feed-forward network.

    Example:
        >>> layer = GraphTransformerLayer()
        >>> sum(p.numel() for p in layer.parameters())
        51840
    """

    def __init__(
        self,
        hidden: int = 80,
        heads: int = 8,
        *,
        clamp: float | None = 5.0,
        norm: Norm = "batch",
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if norm not in ("batch", "layer"):
            raise ValueError(f"norm must be 'batch' or 'layer', got {norm!r}")
        normalise = nn.BatchNorm1d if norm == "batch" else nn.LayerNorm
        self.attention = MultiHeadAttention(hidden, heads, clamp=clamp, dropout=dropout)
        self.attention_norm = normalise(hidden)
        self.widen = nn.Linear(hidden, 2 * hidden)
        self.dropout = nn.Dropout(dropout)
        self.narrow = nn.Linear(2 * hidden, hidden)
        self.feed_forward_norm = normalise(hidden)

    def forward(self, h: Tensor, pattern: AttentionPattern, bias: Tensor | None = None) -> Tensor:
        """Map ``[num_nodes, hidden]`` to ``[num_nodes, hidden]``."""
        # In place where nothing else reads the value: memory bandwidth limits a step as much as arithmetic does.
        h = self.attention_norm(self.attention(h, pattern, bias).add_(h))
        wide = self.dropout(torch.relu_(self.widen(h)))
        output: Tensor = self.feed_forward_norm(self.narrow(wide).add_(h))
        return output


class Pooling(nn.Module):
    """Pool the node states of each graph, then apply a multilayer perceptron that halves its width twice.

    Args:
        hidden: width of the node states; the perceptron goes hidden → hidden / 2 → hidden / 4 → out_channels.
        out_channels: width of the output.
        pooling: "sum" or "mean" over the nodes of each graph, or "node" for one output per node.

    Example:
        >>> h, batch = torch.randn(5, 80), torch.tensor([0, 0, 0, 1, 1])
        >>> Pooling(80, 10, "mean")(h, batch, num_graphs=2).shape
        torch.Size([2, 10])
        >>> Pooling(80, 10, "node")(h, batch, num_graphs=2).shape
        torch.Size([5, 10])
    """

    def __init__(self, hidden: int, out_channels: int, pooling: PoolingName = "sum") -> None:
        super().__init__()
        if pooling not in ("sum", "mean", "node"):
            raise ValueError(f"pooling must be 'sum', 'mean' or 'node', got {pooling!r}")
        if out_channels < 1 or hidden < 4:
            raise ValueError(
                f"the perceptron halves hidden twice, so hidden must be at least 4, and out_channels at least 1; "
                f"got hidden={hidden} and out_channels={out_channels}"
            )
        self.pooling = pooling
        self.perceptron = nn.Sequential(
            nn.Linear(hidden, hidden // 2),
            nn.ReLU(),
            nn.Linear(hidden // 2, hidden // 4),
            nn.ReLU(),
            nn.Linear(hidden // 4, out_channels),
        )

    def forward(self, h: Tensor, batch: Tensor, num_graphs: int) -> Tensor:
        """Map ``[num_nodes, hidden]`` to ``[num_graphs or num_nodes, out_channels]``."""
        if self.pooling != "node":
            h = h.new_zeros(num_graphs, h.shape[1]).index_add(0, batch, h)
        if self.pooling == "mean":
            sizes = torch.bincount(batch, minlength=num_graphs).clamp(min=1)
            h = h / sizes[:, None]
        output: Tensor = self.perceptron(h)
        return output
