"""Encoders: modules that turn position encodings and node features into the first node states of a model."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from gape._internal.validation import positive, whole_number
from gape.graph.batching import offsets
from gape.nn.attention import AttentionPattern
from gape.nn.feed_forward import WideFeedForward
from gape.nn.scaling import FeatureScaling, Scaling

#: Numbers of categories of the nine columns of atom features of the package ``ogb`` (``get_atom_feature_dims``): atomic
#: number, chirality, degree, formal charge, hydrogens, radical electrons, hybridisation, aromatic, in a ring. PyG and
#: :mod:`gape.data` number the same nine columns differently, see :data:`gape.data.ATOM_CATEGORIES`.
OGB_ATOM = (119, 5, 12, 12, 10, 6, 6, 2, 2)

#: "constant", a number of categories, or the numbers of categories of several columns.
Inputs = str | int | tuple[int, ...]


class Encoder(nn.Module, ABC):
    """Map a position encoding to channels of the first node states, and optionally to an attention bias.

    Attributes:
        concatenated: number of channels to concatenate to the embedded node features, which are then embedded into
            that many channels fewer; 0 if the output is added to them.
    """

    concatenated: int = 0

    @abstractmethod
    def forward(self, encoding: Tensor | None, pattern: AttentionPattern) -> Tensor | None:
        """Return ``[num_nodes, hidden]`` to add, ``[num_nodes, concatenated]`` to concatenate, or None."""

    def fit_scaling(self, batches: Iterable[tuple[Any, AttentionPattern]]) -> None:
        """Fit scales on the training set before training; does nothing for encoders without such scales.

        Args:
            batches: encoding and pattern of the training batches, as for :meth:`forward`.
        """
        return

    def bias(self, encoding: Tensor | None, pattern: AttentionPattern) -> Tensor | None:
        """Return the attention bias of all layers, in either shape of ``attention.multi_head.fit_bias``, or None."""
        return None


class LinearEncoder(Encoder):
    """Linear layer on the encoding, added to the embedded node features.

    Used for GAPE, random-walk and Laplacian encodings (Soga & Chiang, 2023).

    Args:
        channels: width k of the encoding.
        hidden: width of the model.
        flip_signs: in training, multiply each column by a random sign, drawn once per batch: for eigenvectors, whose
            sign is arbitrary.
        scaling: of the columns: "none", or fitted on the training set by :meth:`fit_scaling`: "fixed" to mean 0 and
            variance 1, "whitened" to uncorrelated columns of variance 1, see :class:`gape.nn.FeatureScaling`.
        width: repeat the scaled columns in turn to so many, as a control for the width of a wider encoding; 0 for
            no copies.

    Example:
        >>> pattern = AttentionPattern(torch.tensor([[0], [1]]), num_nodes=2, heads=8)
        >>> LinearEncoder(channels=32)(torch.randn(2, 32), pattern).shape
        torch.Size([2, 80])
    """

    def __init__(
        self,
        channels: int,
        hidden: int = 80,
        *,
        flip_signs: bool = False,
        scaling: Scaling = "none",
        width: int = 0,
    ) -> None:
        super().__init__()
        if width and width < channels:
            raise ValueError(f"width must be at least the {channels} columns of the encoding, got width={width}")
        self.channels, self.flip_signs = channels, flip_signs
        self.scaling = FeatureScaling(channels, scaling)
        self.width = width or channels
        self.linear = nn.Linear(self.width, hidden)

    def forward(self, encoding: Tensor | None, pattern: AttentionPattern) -> Tensor:
        """Map ``[num_nodes, channels]`` to ``[num_nodes, hidden]``."""
        if encoding is None or list(encoding.shape) != [pattern.num_nodes, self.channels]:
            got = "None" if encoding is None else f"shape {list(encoding.shape)}"
            raise ValueError(f"encoding must have shape [{pattern.num_nodes}, {self.channels}], got {got}")
        encoding = self.scaling(encoding).to(self.linear.weight.dtype)
        if self.flip_signs and self.training:
            signs = torch.randint(0, 2, (self.channels,), device=encoding.device) * 2 - 1
            encoding = encoding * signs
        if self.width > self.channels:
            encoding = encoding[:, torch.arange(self.width, device=encoding.device) % self.channels]
        output: Tensor = self.linear(encoding)
        return output

    def fit_scaling(self, batches: Iterable[tuple[Any, AttentionPattern]]) -> None:
        if self.scaling.from_training_set:
            self.scaling.fit(torch.cat([encoding for encoding, _ in batches]))


class DegreeAndDistance(Encoder):
    """SPD+C: embeddings of in- and out-degree, and a learned attention bias per shortest-path distance and head.

    The encodings of Graphormer (Ying et al., 2021), named SPD+C in Soga & Chiang (2023). Attention over
    neighbours only has pairs at distance 1 (0 for a self-loop), so there the bias is one number per head, which the
    softmax cancels unless the clamp is active, and only the degree embedding has an effect. The distances matter when
    the model attends to all nodes (``attention="full"``), where they are required.

    Args:
        hidden: width of the model.
        heads: attention heads of the model.
        degrees: rows of the degree tables; larger degrees share the last row. Row 0 stays zero.
        distances: rows of the distance table; larger and negative numbers share the last row. Row 0, the distance
            of a node to itself, stays zero. :class:`gape.encodings.ShortestPath` uses 510 for pairs without a path,
            which have a row of their own if there are more than 510 rows, as by default.

    Example:
        >>> pattern = AttentionPattern(torch.tensor([[0], [1]]), num_nodes=2, heads=8, full=True)
        >>> encoder = DegreeAndDistance()
        >>> encoder(None, pattern).shape
        torch.Size([2, 80])
        >>> encoder.bias(torch.tensor([[[0, 510], [1, 0]]]), pattern).shape
        torch.Size([1, 8, 2, 2])
    """

    def __init__(self, hidden: int = 80, heads: int = 8, *, degrees: int = 128, distances: int = 512) -> None:
        super().__init__()
        if degrees < 2 or distances < 2:
            raise ValueError(
                f"degrees and distances need at least 2 rows, the first of which stays zero; "
                f"got degrees={degrees} and distances={distances}"
            )
        self.in_degree = nn.Embedding(degrees, hidden, padding_idx=0)
        self.out_degree = nn.Embedding(degrees, hidden, padding_idx=0)
        self.distance = nn.Embedding(distances, heads, padding_idx=0)

    def forward(self, encoding: Tensor | None, pattern: AttentionPattern) -> Tensor:
        """Embed the degrees of the graphs of ``pattern``: ``[num_nodes, hidden]``."""
        source, target = pattern.edge_index
        largest = self.in_degree.num_embeddings - 1
        arriving = torch.bincount(target, minlength=pattern.num_nodes).clamp(max=largest)
        leaving = torch.bincount(source, minlength=pattern.num_nodes).clamp(max=largest)
        output: Tensor = self.in_degree(arriving) + self.out_degree(leaving)
        return output

    def bias(self, encoding: Tensor | None, pattern: AttentionPattern) -> Tensor:
        """Return the bias of each pair.

        Args:
            encoding: ``[num_graphs, n, n]`` integers, the distance from the column's node to the row's node,
                nodes numbered within their graph and padding arbitrary. Not read if ``pattern`` is not full.
            pattern: the pairs that attend.

        Returns:
            ``[num_graphs, heads, n, n]``, or ``[num_pairs, heads]`` if ``pattern`` is not full.
        """
        if not pattern.full:
            source, target = pattern.edge_index
            between_neighbours: Tensor = self.distance((source != target).long())
            return between_neighbours
        if encoding is None or encoding.is_floating_point() or encoding.dim() != 3:
            got = "None" if encoding is None else f"{encoding.dtype} of shape {list(encoding.shape)}"
            raise ValueError(
                f"full attention needs the shortest-path distances, integers of shape [num_graphs, n, n]; got {got}"
            )
        last = self.distance.num_embeddings - 1
        rows = torch.where(encoding < 0, last, encoding).clamp(max=last)
        bias: Tensor = self.distance(rows).permute(0, 3, 1, 2)
        return bias


class NodeInput(nn.Module):
    """Embed the node features of a dataset.

    Args:
        inputs: an integer, for that many categories (ZINC 28, PATTERN 3, CLUSTER 7; CSL 1, where all nodes
            share one embedding); a tuple, for several columns of categories whose embeddings are added
            (:data:`gape.data.ATOM_CATEGORIES` for molecules of :mod:`gape.data` and PyG, :data:`OGB_ATOM` for those of
            the package ``ogb``); or "constant", for a linear layer on the number 1 at every node, as in CYCLES,
            CYCLES-V and PLANAR.
        width: number of output channels.

    Example:
        >>> NodeInput(28, width=80)(torch.tensor([0, 27, 5])).shape
        torch.Size([3, 80])
        >>> NodeInput((119, 5), width=80)(torch.tensor([[6, 0], [8, 1]])).shape
        torch.Size([2, 80])
        >>> NodeInput("constant", width=80)(torch.ones(3, 1)).shape
        torch.Size([3, 80])
    """

    first: Tensor
    sizes: Tensor

    def __init__(self, inputs: Inputs, width: int) -> None:
        super().__init__()
        self.inputs = inputs
        categories = (inputs,) if isinstance(inputs, int) else inputs
        self.columns = 1
        if categories == "constant":
            self.embedding: nn.Linear | nn.EmbeddingBag = nn.Linear(1, width)
            return
        if isinstance(categories, str) or not categories or min(categories) < 1:
            raise ValueError(
                f"inputs must be 'constant', a positive number of categories, or a tuple of these; got {inputs!r}"
            )
        # All columns in one table, so that one look-up sums them.
        self.columns = len(categories)
        self.embedding = nn.EmbeddingBag(sum(categories), width, mode="sum")
        if self.columns > 1:  # the initialisation of the benchmark's atom encoder
            for column in torch.split(self.embedding.weight.detach(), list(categories)):
                nn.init.xavier_uniform_(column)
        sizes = torch.tensor(categories)
        self.register_buffer("first", offsets(sizes)[:-1], persistent=False)
        self.register_buffer("sizes", sizes, persistent=False)

    def forward(self, x: Tensor | None, num_nodes: int | None = None) -> Tensor:
        """Map ``[num_nodes]`` or ``[num_nodes, columns]`` to ``[num_nodes, width]``; None if all nodes are equal."""
        if x is None:
            x = self._equal_nodes(num_nodes)
        rows = x[:, None] if x.dim() == 1 else x
        if rows.dim() != 2 or rows.shape[1] != self.columns:
            raise ValueError(
                f"inputs={self.inputs!r} takes x of shape [num_nodes, {self.columns}], got {list(x.shape)}"
            )
        if self.inputs == "constant":
            output: Tensor = self.embedding(rows.to(self.embedding.weight.dtype))
            return output
        rows = self._categories(rows)
        if rows.numel() and (int(rows.min()) < 0 or bool((rows >= self.sizes).any())):
            raise ValueError(
                f"inputs={self.inputs!r} takes categories from 0 to that number less 1 in each column, "
                f"got {rows.amin(0).tolist()} to {rows.amax(0).tolist()}"
            )
        output = self.embedding(rows + self.first)
        return output

    def _categories(self, rows: Tensor) -> Tensor:
        """Convert features to integers; floating-point features must be whole numbers."""
        if rows.is_floating_point() and len(places := (rows.frac() != 0).nonzero()):
            place = places[0].tolist()
            raise ValueError(
                f"inputs={self.inputs!r} takes categories, which are whole numbers, got {rows[*place].item():.6g} at "
                f"{place} of x; number the categories from 0, or sort real values into classes (torch.bucketize)"
            )
        return rows.long()

    def _equal_nodes(self, num_nodes: int | None) -> Tensor:
        if self.inputs not in ("constant", 1) or num_nodes is None:
            raise ValueError(
                f"x may be left out only for inputs='constant' or inputs=1, and then the number of nodes "
                f"must be known; here inputs={self.inputs!r} and num_nodes={num_nodes}"
            )
        device = next(self.parameters()).device
        return torch.full((num_nodes, 1), 1 if self.inputs == "constant" else 0, device=device)


class SignInvariantEncoder(Encoder):
    """Encoder of eigenvectors with the same output for v and -v: ρ([φ(v) + φ(-v)]) (SignNet; Lim et al., 2023).

    φ is a message-passing network over the entries of one eigenvector at a time, the same for all of them: without
    messages it would see the size of every entry only, and not which neighbours have the same sign. ρ is a feed-forward
    network over the results for all eigenvectors. Signs are free per graph and eigenvector; the bases of multiple
    eigenvalues are not.

    Args:
        vectors: number of eigenvectors k, as of :class:`gape.encodings.Laplacian`.
        hidden: width of the output.
        width: width of φ.
        layers: number of rounds of messages in φ.

    Example:
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> encoder, vectors = SignInvariantEncoder(vectors=2, hidden=16), torch.randn(3, 2)
        >>> torch.equal(encoder(vectors, path), encoder(vectors * torch.tensor([-1.0, 1.0]), path))
        True
    """

    def __init__(self, vectors: int, hidden: int = 80, *, width: int = 16, layers: int = 2) -> None:
        super().__init__()
        self.vectors, width = positive(vectors, "vectors"), positive(width, "width")
        layers = whole_number(layers, "layers", at_least=0)
        self.entry = nn.Linear(1, width)
        self.messages = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(layers))
        self.output = nn.Sequential(
            nn.Linear(vectors * width, hidden), nn.ReLU(), nn.Linear(hidden, positive(hidden, "hidden"))
        )

    def forward(self, encoding: Tensor | None, pattern: AttentionPattern | Tensor) -> Tensor:
        """Map eigenvectors ``[num_nodes, vectors]`` to ``[num_nodes, hidden]``; ``pattern`` may be ``edge_index``."""
        edges = pattern if isinstance(pattern, Tensor) else pattern.edge_index
        if encoding is None or encoding.dim() != 2 or encoding.shape[1] != self.vectors:
            got = "None" if encoding is None else f"shape {list(encoding.shape)}"
            raise ValueError(f"encoding must have shape [num_nodes, {self.vectors}], one column per vector, got {got}")
        entries = encoding.to(self.entry.weight.dtype).unsqueeze(-1)
        found: Tensor = self.output((self._phi(entries, edges) + self._phi(-entries, edges)).flatten(1))
        return found

    def _phi(self, entries: Tensor, edges: Tensor) -> Tensor:
        """Map ``[num_nodes, vectors, 1]`` to ``[num_nodes, vectors, width]``."""
        states = torch.relu(self.entry(entries))
        degree = torch.bincount(edges[1], minlength=len(entries)).clamp(min=1).view(-1, 1, 1)
        for layer in self.messages:
            heard = torch.zeros_like(states).index_add_(0, edges[1], states[edges[0]]) / degree
            states = torch.relu(layer(torch.cat([states, heard], -1)))
        return states


class SpectralAttention(Encoder):
    """Transformer over the eigenvector entries and eigenvalues of each node (Kreuzer et al., 2021).

    Each node is a sequence of k pairs (entry of the eigenvector at the node, eigenvalue). A linear layer, one
    transformer layer and a sum over the sequence give ``width`` channels, which are concatenated to the embedded node
    features. As in Soga & Chiang (2023), the feed-forward network has PyTorch's default width of 2,048 and
    dropout of 0.1, and signs are not flipped.

    Args:
        width: number of channels.
        heads: attention heads of the small transformer; divides ``width``.
        feed_forward: width of its feed-forward network.
        dropout: its dropout.

    Example:
        >>> pattern = AttentionPattern(torch.tensor([[0], [1]]), num_nodes=2, heads=8)
        >>> spectrum = torch.randn(2, 10, 2)  # two nodes, ten eigenpairs
        >>> spectrum[:, 2:] = torch.nan  # of which eight do not exist
        >>> SpectralAttention()(spectrum, pattern).shape
        torch.Size([2, 8])
    """

    def __init__(self, width: int = 8, heads: int = 4, *, feed_forward: int = 2048, dropout: float = 0.1) -> None:
        super().__init__()
        if heads < 1 or width % heads:
            raise ValueError(f"heads must divide width, got heads={heads} and width={width}")
        self.concatenated = width
        self.linear = nn.Linear(2, width)
        self.attention = nn.MultiheadAttention(width, heads, dropout, batch_first=True)
        self.attention_norm = nn.LayerNorm(width)
        self.feed_forward = WideFeedForward(width, feed_forward, dropout)
        self.feed_forward_norm = nn.LayerNorm(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, encoding: Tensor | None, pattern: AttentionPattern) -> Tensor:
        """Map ``[num_nodes, k, 2]``, NaN where an eigenpair does not exist, to ``[num_nodes, width]``."""
        if encoding is None or encoding.dim() != 3 or [len(encoding), encoding.shape[2]] != [pattern.num_nodes, 2]:
            got = "None" if encoding is None else f"shape {list(encoding.shape)}"
            raise ValueError(
                f"encoding must have shape [{pattern.num_nodes}, k, 2], the eigenvector entry and the eigenvalue "
                f"of each of k eigenpairs, NaN where an eigenpair does not exist; got {got}"
            )
        missing = encoding.isnan().any(-1)
        # A softmax over nothing is NaN: a node without eigenpairs attends to all its padding, and its sum is 0.
        hidden_keys = missing & ~missing.all(-1, keepdim=True)
        states = self.linear(encoding.masked_fill(missing[..., None], 0).to(self.linear.weight.dtype))
        # PyTorch's transformer encoder layer with norm_first=False.
        attended, _ = self.attention(states, states, states, key_padding_mask=hidden_keys, need_weights=False)
        states = self.attention_norm(states + self.dropout(attended))
        states = self.feed_forward_norm(states + self.dropout(self.feed_forward(states)))
        return torch.where(missing[..., None], 0, states).sum(1)
