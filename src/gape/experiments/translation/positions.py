"""The ten position encodings of the translation model, by name.

Each is a module that adds positions to token embeddings, or biases attention. One instance serves encoder and decoder.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from gape.automaton import Automaton
from gape.encodings import CycleSpectrum, PathRandomWalk, SequenceLaplacian, Sinusoidal
from gape.encodings.sequence import sequence_graph
from gape.solvers import solve


class Positions(nn.Module, ABC):
    """Base class of position encodings. The same instance serves the encoder and the decoder.

    Args:
        max_positions: length of the longest sequence, in tokens.
    """

    def __init__(self, max_positions: int) -> None:
        super().__init__()
        if max_positions < 3:
            raise ValueError(f"max_positions must be at least 3, got {max_positions}")
        self.max_positions = max_positions

    @abstractmethod
    def forward(self, embedded: Tensor, lengths: Tensor | None = None, offset: int = 0) -> Tensor:
        """Add positions to embedded tokens.

        Args:
            embedded: ``[batch, count, width]``, tokens ``offset`` to ``offset + count - 1`` of their sequences.
            lengths: ``[batch]``, lengths of the sequences, given in the encoder only. The decoder generates its
                sequence, so it does not know the length when translating and must not be told in training.
            offset: position of the first token, counted from 0.
        """

    def bias(self, queries: int, keys: int) -> Tensor | None:
        """Bias on attention scores of the last ``queries`` of ``keys`` tokens, ``[heads, queries, keys]``, if any."""
        return None

    def _end(self, embedded: Tensor, offset: int) -> int:
        """Return the position after the last token; raise ``ValueError`` if it exceeds ``max_positions``."""
        end = offset + embedded.shape[1]
        if end > self.max_positions:
            raise ValueError(
                f"a sequence of {end} tokens is longer than the {self.max_positions} positions of this model; shorten "
                f"the sentence, or train with a larger max_positions"
            )
        return end


class NoPositions(Positions):
    """No encoding: the encoder sees a bag of tokens, the decoder only its causal mask."""

    def forward(self, embedded: Tensor, lengths: Tensor | None = None, offset: int = 0) -> Tensor:
        self._end(embedded, offset)
        return embedded


class TablePositions(Positions):
    """Adds row *i* of a fixed table, or a learned linear map of it, to token *i*.

    The table is a buffer, so it is saved with the model and a translation in another process uses the same one.

    Args:
        table: ``[max_positions, width]``, or ``[max_positions, k]`` with ``linear``.
        width: of the model.
        linear: apply a learned linear map, with bias, to the rows.

    Example:
        >>> TablePositions(torch.ones(8, 4), width=4)(torch.zeros(1, 2, 4)).sum().item()
        8.0
    """

    table: Tensor

    def __init__(self, table: Tensor, width: int, *, linear: bool = False) -> None:
        super().__init__(len(table))
        if not linear and table.shape[1] != width:
            raise ValueError(
                f"table must be [max_positions, {width}], as wide as the model, got shape {list(table.shape)}; or use "
                f"linear=True"
            )
        self.register_buffer("table", table.to(torch.float32))
        self.linear = nn.Linear(table.shape[1], width) if linear else None

    def forward(self, embedded: Tensor, lengths: Tensor | None = None, offset: int = 0) -> Tensor:
        rows = self.table[offset : self._end(embedded, offset)]
        return embedded + (rows if self.linear is None else self.linear(rows))


class SentenceRows(nn.Module):
    """Rows of an encoding of the sentence's own path or cycle, which depends on the length n (§4.1 of the paper).

    The encoder knows n. The decoder does not, so it uses the graph of ``max_positions`` nodes, whose table is a
    buffer. Tables of other lengths are closed forms, computed on first use and cached.

    Args:
        encoding: with ``length=None``.
        max_positions: length of the longest sequence.

    Example:
        >>> rows = SentenceRows(SequenceLaplacian(vectors=2, shape="cycle"), max_positions=8)
        >>> table, index = rows(torch.tensor([3, 4, 3]), start=0, end=4)
        >>> table.shape, index.tolist()
        (torch.Size([2, 4, 2]), [0, 1, 0])
    """

    table: Tensor

    def __init__(self, encoding: SequenceLaplacian | CycleSpectrum, max_positions: int) -> None:
        super().__init__()
        if encoding.length is not None:
            raise ValueError(f"encoding must have length=None, got length={encoding.length}; use TablePositions for it")
        self.encoding = encoding
        self.register_buffer("table", replace(encoding, length=max_positions).table(max_positions).to(torch.float32))
        self._cache: dict[int, Tensor] = {}

    def forward(self, lengths: Tensor | None, start: int, end: int) -> tuple[Tensor, Tensor | None]:
        """Return rows ``start`` to ``end - 1`` for each distinct length, and each sentence's index into them.

        Returns:
            ``[distinct, end - start, …]``, NaN past a sentence's end, and ``[batch]``. Without ``lengths``, one set of
            rows for all sentences, and None.
        """
        if lengths is None:
            return self.table[start:end].unsqueeze(0), None
        distinct, index = torch.unique(lengths, return_inverse=True)
        shape = (len(distinct), end - start, *self.table.shape[1:])
        rows = torch.full(shape, torch.nan, dtype=self.table.dtype, device=self.table.device)
        for i, length in enumerate(distinct.tolist()):
            present = self._table_of(length)[start:end]
            rows[i, : len(present)] = present
        return rows, index

    def _table_of(self, length: int) -> Tensor:
        if length not in self._cache:
            self._cache[length] = self.encoding.table(length).to(torch.float32)
        return self._cache[length].to(self.table.device)


class LaplacianPositions(Positions):
    """LAPE: adds a learned linear map of Laplacian eigenvectors of the sentence's path (LAPE-P) or cycle (LAPE-C).

    Signs are fixed, not flipped at random: the eigenvectors are cosines and sines whose signs are the same for all
    lengths, and flipping them when translating would destroy the encoding.

    Args:
        encoding: graph and number of eigenvectors.
        width: of the model.
        max_positions: length of the longest sequence.
    """

    def __init__(self, encoding: SequenceLaplacian, width: int, max_positions: int) -> None:
        super().__init__(max_positions)
        self.rows = SentenceRows(encoding, max_positions)
        self.linear = nn.Linear(encoding.vectors, width)

    def forward(self, embedded: Tensor, lengths: Tensor | None = None, offset: int = 0) -> Tensor:
        rows, index = self.rows(lengths, offset, self._end(embedded, offset))
        encoded: Tensor = self.linear(rows.nan_to_num(0.0))
        return embedded + (encoded if index is None else encoded[index])


class SpectralPositions(Positions):
    """SA: concatenates narrowed tokens with spectral attention (Kreuzer et al., 2021) on the sentence's cycle.

    The sizes are those of Soga & Chiang's translation runs: 20 eigenpairs, 16 channels, two transformer layers over
    the eigenpairs with feed-forward width 16, and tokens mapped to ``width - 16`` channels. That is one layer more than
    :class:`gape.nn.SpectralAttention`, which they use for graphs.

    Args:
        encoding: number of eigenpairs.
        width: of the model.
        max_positions: length of the longest sequence.
        channels: of the spectral part.
        layers: of the small transformer over the eigenpairs.
        dropout: within it.
    """

    def __init__(
        self,
        encoding: CycleSpectrum,
        width: int,
        max_positions: int,
        *,
        channels: int = 16,
        layers: int = 2,
        dropout: float = 0.1,
    ) -> None:
        super().__init__(max_positions)
        if width <= channels:
            raise ValueError(f"width must be more than the {channels} channels of spectral attention, got {width}")
        self.rows = SentenceRows(encoding, max_positions)
        self.narrow = nn.Linear(width, width - channels)
        self.pair = nn.Linear(2, channels)
        layer = nn.TransformerEncoderLayer(
            channels, nhead=4, dim_feedforward=channels, dropout=dropout, batch_first=True
        )
        self.attention = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, embedded: Tensor, lengths: Tensor | None = None, offset: int = 0) -> Tensor:
        rows, index = self.rows(lengths, offset, self._end(embedded, offset))
        encoded = self._pool(rows.flatten(0, 1)).view(*rows.shape[:2], -1)
        encoded = encoded.expand(len(embedded), -1, -1) if index is None else encoded[index]
        return torch.cat([self.narrow(embedded), encoded], -1)

    def _pool(self, pairs: Tensor) -> Tensor:
        """Map eigenpairs ``[n, k, 2]``, NaN where one does not exist, to their sum ``[n, channels]``."""
        missing = pairs.isnan().any(-1)
        # The softmax of an empty set is NaN. Past a sentence's end, where no pair exists, attend to all and sum none.
        masked = missing & ~missing.all(-1, keepdim=True)
        states = self.attention(self.pair(pairs.nan_to_num(0.0)), src_key_padding_mask=masked)
        return states.masked_fill(missing.unsqueeze(-1), 0.0).sum(1)  # type: ignore[no-any-return]


class DistancePositions(Positions):
    """SPD+C: a learned attention bias per distance |i - j| and head, and a learned embedding of each token's degree.

    Graphormer's encodings (Ying et al., 2021) on the path of ``max_positions`` nodes, in the self-attention of encoder
    and decoder, in training and translation. Only the first and the last position of the path have degree 1.

    Args:
        width: of the model.
        heads: of the model.
        max_positions: length of the longest sequence.
        num_distances: rows of the table; larger distances share the last row.

    Example:
        >>> DistancePositions(width=8, heads=2, max_positions=16).bias(1, 5).shape
        torch.Size([2, 1, 5])
    """

    def __init__(self, width: int, heads: int, max_positions: int, *, num_distances: int = 256) -> None:
        super().__init__(max_positions)
        if num_distances < 2:
            raise ValueError(f"num_distances must be at least 2, got {num_distances}")
        self.distance = nn.Embedding(num_distances, heads)
        self.degree = nn.Embedding(2, width)
        nn.init.normal_(self.distance.weight, std=0.02)
        nn.init.normal_(self.degree.weight, std=0.02)

    def forward(self, embedded: Tensor, lengths: Tensor | None = None, offset: int = 0) -> Tensor:
        position = torch.arange(offset, self._end(embedded, offset), device=embedded.device)
        inner = (position > 0) & (position < self.max_positions - 1)
        degrees: Tensor = self.degree(inner.long())
        return embedded + degrees

    def bias(self, queries: int, keys: int) -> Tensor:
        key = torch.arange(keys, device=self.distance.weight.device)
        distance = (key[keys - queries :, None] - key).abs().clamp(max=self.distance.num_embeddings - 1)
        return self.distance(distance).permute(2, 0, 1)  # type: ignore[no-any-return]


def path_table(automaton: Automaton, positions: int) -> Tensor:
    """Encode the nodes of a directed path, of which the first has label 0 and the others label 1.

    Row *i* is α₁ᵀμⁱ. The path's adjacency matrix is nilpotent, so the sum over all runs is finite for every μ, γ = 1
    included. Node *i* does not depend on later nodes, so one table serves sentences of every length.

    Returns:
        ``[positions, states]`` in float64.

    Example:
        >>> path_table(Automaton.sinusoidal(2), 2)
        tensor([[0.0000, 1.0000],
                [0.8415, 0.5403]], dtype=torch.float64)
    """
    path = sequence_graph("path", positions, directed=True).with_labels([0] + [1] * (positions - 1))
    return solve(automaton, path).weights


def gape_table(states: int, positions: int, seed: int = 0) -> Tensor:
    """GAPE of §4.1: random orthogonal μ with γ = 1, runs that start on the first token, normal α."""
    automaton = Automaton.random(states, damping=1.0, labels=2, initial_labels=(0,), seed=seed)
    return path_table(automaton, positions)


class ModelShape(NamedTuple):
    """Sizes of the model that an encoding must fit, and the seed of GAPE's automaton."""

    width: int
    heads: int
    max_positions: int
    seed: int


def _cycle_10k(shape: ModelShape) -> Positions:
    encoding = SequenceLaplacian(shape="cycle", length=max(10_000, shape.max_positions))
    return TablePositions(encoding.table(shape.max_positions), shape.width, linear=True)


#: The rows of the paper's first column, no encoding, and the automaton of Proposition 1.
ENCODINGS: dict[str, Callable[[ModelShape], Positions]] = {
    "sinusoidal": lambda s: TablePositions(Sinusoidal(s.width).table(s.max_positions), s.width),
    "gape": lambda s: TablePositions(gape_table(s.width, s.max_positions, s.seed), s.width),
    "lape-p": lambda s: LaplacianPositions(SequenceLaplacian(shape="path"), s.width, s.max_positions),
    "lape-c": lambda s: LaplacianPositions(SequenceLaplacian(shape="cycle"), s.width, s.max_positions),
    "lape-c10k": _cycle_10k,
    "sa": lambda s: SpectralPositions(CycleSpectrum(), s.width, s.max_positions),
    "rw": lambda s: TablePositions(PathRandomWalk(length=s.max_positions).table(s.max_positions), s.width, linear=True),
    "spd+c": lambda s: DistancePositions(s.width, s.heads, s.max_positions),
    "none": lambda s: NoPositions(s.max_positions),
    "sinusoidal-automaton": lambda s: TablePositions(
        path_table(Automaton.sinusoidal(s.width), s.max_positions), s.width
    ),
}


def check_encoding(name: str) -> None:
    """Validate the name of a position encoding."""
    if name not in ENCODINGS:
        raise ValueError(f"there is no position encoding {name!r}; there are {', '.join(ENCODINGS)}")


def make_positions(name: str, *, width: int, heads: int, max_positions: int = 1024, seed: int = 0) -> Positions:
    """Build a position encoding by name.

    Example:
        >>> make_positions("gape", width=8, heads=2, max_positions=16).table.shape
        torch.Size([16, 8])
    """
    check_encoding(name)
    return ENCODINGS[name](ModelShape(width, heads, max_positions, seed))
