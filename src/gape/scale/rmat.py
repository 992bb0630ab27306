"""R-MAT graphs (Chakrabarti, Zhan & Faloutsos, 2004), drawn block by block."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from gape._internal.validation import seed_number, whole_number
from gape.io.edge_chunks import EdgeChunk
from gape.linalg.integers import mix

BLOCK_EDGES = 1 << 20
# Edges drawn together: their arrays stay in the cache.
PIECE_EDGES = 1 << 16
# Two levels of the recursion are drawn with 16 random bits, so four draws with one hash.
DRAWS_PER_HASH = 4


@dataclass(frozen=True)
class RMAT:
    """Random directed graph with 2^``scale`` nodes and a skewed degree distribution, as in the Graph500 benchmark.

    Edge i depends on the seed and on i only, so any block of edges can be drawn again. Edges may repeat.

    Args:
        scale: logarithm of the number of nodes, at most 31.
        edges: number of edges drawn.
        seed: of the draws.
        quadrants: probabilities of the quadrants a, b, c, d of the adjacency matrix.
        shuffle: renumber the nodes by a random bijection, as Graph500 does; otherwise low numbers have high degrees.

    Example:
        >>> block = next(RMAT(scale=10, edges=5000).chunks())
        >>> len(block.source), int(block.source.max()) < 1024
        (5000, True)
    """

    scale: int
    edges: int
    seed: int = 0
    quadrants: tuple[float, float, float, float] = (0.57, 0.19, 0.19, 0.05)
    shuffle: bool = False

    def __post_init__(self) -> None:
        whole_number(self.scale, "scale", 1, 31)
        whole_number(self.edges, "edges", 0)
        seed_number(self.seed)
        if len(self.quadrants) != 4 or min(self.quadrants) < 0 or abs(sum(self.quadrants) - 1) > 1e-9:
            raise ValueError(f"quadrants must be four probabilities that sum to 1, got {self.quadrants!r}")

    @property
    def name(self) -> str:
        return f"R-MAT {self.edges:,} edges"

    @property
    def nodes(self) -> int:
        return 1 << self.scale

    @property
    def fingerprint(self) -> str:
        return repr(self)

    def chunks(self, skip: int = 0) -> Iterator[EdgeChunk]:
        """Yield the edges in blocks, without the first ``skip`` blocks."""
        for first in range(skip * BLOCK_EDGES, self.edges, BLOCK_EDGES):
            last = min(first + BLOCK_EDGES, self.edges)
            pieces = range(first, last, PIECE_EDGES)
            keys = np.concatenate([self._keys(piece, min(piece + PIECE_EDGES, last)) for piece in pieces])
            source, target = keys >> np.uint64(32), keys & np.uint64(0xFFFFFFFF)
            if self.shuffle:
                source, target = self._renumbered(source), self._renumbered(target)
            yield EdgeChunk(source.astype(np.int64), target.astype(np.int64), None, last / self.edges)

    def _keys(self, first: int, last: int) -> NDArray[np.uint64]:
        """Edges as source · 2³² + target: every draw appends two bits to both."""
        table, half = self._table()
        draws = -(-self.scale // 2)
        hashes = -(-draws // DRAWS_PER_HASH)
        start = splitmix(np.array([self.seed % 2**64], dtype=np.uint64))
        counter = np.arange(first * hashes, last * hashes, dtype=np.uint64).reshape(-1, hashes).T
        keys = np.zeros(last - first, dtype=np.uint64)
        for i in range(draws):
            if i % DRAWS_PER_HASH == 0:
                # Little-endian order of the four 16-bit pieces on every machine.
                bits = splitmix(counter[i // DRAWS_PER_HASH] + start).astype("<u8").view("<u2").reshape(-1, 4)
            single = self.scale % 2 == 1 and i == draws - 1
            keys <<= np.uint64(1 if single else 2)
            keys |= (half if single else table)[bits[:, i % DRAWS_PER_HASH]]
        return keys

    def _table(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """``[2¹⁶]``: the bits of source and target that 16 random bits draw, for two levels and for one."""
        one = np.array([0, 1, 1 << 32, 1 << 32 | 1], dtype=np.uint64)
        chance = np.array(self.quadrants)
        two = ((one[:, None] << np.uint64(1)) | one[None, :]).ravel()
        return _inverse_distribution(two, np.outer(chance, chance).ravel()), _inverse_distribution(one, chance)

    def _renumbered(self, nodes: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Map 0 … 2^scale - 1 onto itself: odd factors and xor-shifts are bijective."""
        mask, shift = np.uint64(self.nodes - 1), np.uint64(self.scale // 2 + 1)
        factors = splitmix(np.arange(1, 4, dtype=np.uint64) + np.uint64(self.seed % 2**64)) | np.uint64(1)
        for factor in factors:
            nodes = (nodes * factor) & mask
            nodes = nodes ^ (nodes >> shift)
        return nodes


def _inverse_distribution(values: NDArray[np.uint64], chance: NDArray[np.float64]) -> NDArray[np.uint64]:
    ends = np.round(np.cumsum(chance) * 65536).astype(np.int64)
    return np.repeat(values, np.diff(ends, prepend=0))


def splitmix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Hash unsigned 64-bit integers, elementwise; :func:`gape.linalg.integers.mix` of their bits.

    >>> [f"{number:016x}" for number in splitmix(np.array([0, 0x9E3779B97F4A7C15], dtype=np.uint64))]
    ['e220a8397b1dcdaf', '6e789e6aa1b965f4']
    """
    return np.asarray(mix(torch.from_numpy(x.view(np.int64))).numpy().view(np.uint64))
