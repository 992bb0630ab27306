"""Relative random-walk probabilities: walks between all pairs of nodes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor

from gape._internal.validation import check_at_least
from gape.encodings.base import DenseEncoding, DenseReadout
from gape.graph.batching import BLOCK_ELEMENTS, Block, blocks
from gape.graph.graph import Graph
from gape.linalg.powers import PowerDiagonals, matrix_powers


@dataclass(frozen=True)
class RelativeRandomWalk(DenseEncoding):
    r"""Probability that a random walk from one node is at another after 0, 1, …, ``length`` - 1 steps.

    The relative encoding of GRIT (Ma et al., 2023), [I, W, W², …] with W = D⁻¹A and D the weighted out-degrees. Equal
    to the pair readout of :meth:`gape.Automaton.shift` on W. Row ``u``, column ``v`` is the walk from ``u`` to ``v``;
    on directed graphs it follows the edges and ends at a node without outgoing edges. :class:`gape.pyg.AddRRWP` writes
    what GRIT reads.

    Args:
        length: number of features K, the first for walks of no step.
        readout: "pair", all pairs of nodes, or "closed", the diagonal, which is 1 followed by
            :class:`RandomWalk` of ``length`` - 1 steps.
        memory: memory limit, in GiB, for the dense powers of one graph and the pairs of all.

    Returns, when called on a graph: :class:`Pairs` of ``[n, n, length]``, or ``[num_nodes, length]`` if closed.

    Example:
        >>> path = Graph.from_edges([(0, 1), (1, 2)], undirected=True)
        >>> RelativeRandomWalk(length=3)(path).matrices()[0][0]
        tensor([[1.0000, 0.0000, 0.5000],
                [0.0000, 1.0000, 0.0000],
                [0.0000, 0.0000, 0.5000]])
    """

    length: int = 21
    readout: DenseReadout = field(default="pair", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(1, length=self.length)

    @property
    def channels(self) -> int:
        return self.length

    @property
    def matrices(self) -> int:
        if self.pairwise:
            return 2 * self.length + 6
        powers = PowerDiagonals(max(self.length - 1, 1), torch.float64)
        return powers.baby + powers.giant + 5

    def features(self, part: Graph) -> Iterator[tuple[Block, Tensor]]:
        # All powers of a block stay in the processor's cache.
        for block in blocks(part.walk("random_walk"), entries=BLOCK_ELEMENTS // self.length):
            compute = partial(matrix_powers, length=self.length - 1) if self.pairwise else self._diagonals
            yield block, compute(block.matrices)

    def _diagonals(self, walk: Tensor) -> Tensor:
        out = walk.new_ones(*walk.shape[:2], self.length)
        if self.length > 1:
            out[..., 1:] = PowerDiagonals(self.length - 1, walk.dtype)(walk)
        return out
