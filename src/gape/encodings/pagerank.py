r"""Personalised PageRank between all pairs of nodes (PPR), and its diagonals for powers of the walk (PPRP).

Π = β(I - (1-β)W)⁻¹ with W = D⁻¹A is the sum over all runs of the automaton μ = (1-β)I, αℓ = βI on W (remark after
equation (3) of Soga & Chiang, 2023). Row u is the distribution of a walk from u that restarts there with probability β.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

import numpy as np
import torch
from torch import Tensor

from gape._internal.threads import map_threads
from gape._internal.validation import check_at_least, check_one_of
from gape.encodings.base import NodeEncoding, PairEncoding
from gape.encodings.pairs import Pairs
from gape.encodings.random_walk import return_probabilities
from gape.graph.batching import (
    Block,
    blocks,
    check_memory,
    dense_parts,
    offsets,
    scatter_pairs,
    scatter_rows,
    symmetrised,
)
from gape.graph.graph import Graph
from gape.graph.validate import check_nonnegative
from gape.graph.walk_matrix import WalkMatrix
from gape.linalg.lu import inverses
from gape.native import library

Dangling = Literal["restart", "stop"]
# Rounding errors of 1 - β grow by 1/β: below this fewer than six digits are correct, at 1e-17 the matrix is singular.
MIN_BETA = 1e-10
# The rest of a sum that is left out, and the most steps of walks for which it is faster than eigenvectors.
MAX_REMAINDER, MAX_RETURN_STEPS = 2.0**-56, 256
# Graphs with a larger share of all pairs as edges are dense; nodes whose return probabilities are computed together.
MAX_SPARSE_SHARE, RETURN_NODES = 0.15, 2048


@dataclass(frozen=True)
class PageRank(PairEncoding):
    """Personalised PageRank between all pairs of nodes (Page et al., 1999).

    Row ``u`` is the distribution of a walk that restarts at ``u``, on directed graphs too, and equals NetworkX's
    ``pagerank`` with ``alpha = 1 - beta`` and ``personalization={u: 1}``. (The paper's W = AD⁻¹ gives column ``u``, on
    undirected graphs only.)

    Args:
        beta: restart probability, at least 1e-10.
        dangling: behaviour of a walk at a node without outgoing edges: "restart" where it began, as in NetworkX, or
            "stop", as the automaton does; then rows sum to less than 1.
        memory: memory limit, in GiB, for the matrices of all graphs.

    Returns, when called on a graph: :class:`Pairs`.

    Example:
        >>> edge = Graph.from_edges([(0, 1)], undirected=True)
        >>> PageRank(beta=0.5)(edge).matrices()[0]
        tensor([[0.6667, 0.3333],
                [0.3333, 0.6667]])
    """

    beta: float = 0.15
    dangling: Dangling = "restart"
    memory: float = 4.0

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_beta(self.beta)
        check_one_of(get_args(Dangling), dangling=self.dangling)

    def compute(self, graph: Graph) -> Pairs:
        pairs, largest = int(graph.sizes.square().sum()), int(graph.sizes.max())
        check_memory(
            self.memory,
            pairs * self.dtype.itemsize + 6 * 8 * largest**2,
            f"PageRank between {pairs} pairs of nodes",
            "encode fewer graphs at a time, or raise memory",
        )
        return Pairs(torch.cat(map_threads(self._matrices, dense_parts(graph))), graph.sizes)

    def _matrices(self, part: Graph) -> Tensor:
        squares = part.sizes.square()
        out, ptr = torch.zeros(int(squares.sum()), dtype=self.dtype, device=part.device), offsets(squares)
        for block in blocks(_nonnegative_walk(part, "PageRank")):
            ranks = _resolvent(block.matrices, self.beta)
            if self.dangling == "restart":
                # Probability lost at dangling nodes returns to the start: the same row, scaled to sum 1.
                ranks.div_(ranks.sum(-1, keepdim=True))
            scatter_pairs(out, ptr, block, ranks)
        return out


@dataclass(frozen=True)
class PageRankPowers(NodeEncoding):
    r"""Probability that a restarting walk, moving 1, 2, …, ``powers`` steps at a time, is at its start (PPRP).

    Feature i is the diagonal of β(I - (1-β)Wⁱ)⁻¹ (Soga & Chiang, 2023, §3.3.3), then scaled to [0, 1] within each
    node. Without the scaling all features are close to β and models do not train. On directed graphs W = D⁻¹A follows
    the edges.

    Args:
        powers: number of powers k, and so of features.
        beta: restart probability, at least 1e-10.
        scale: scale each node's features to [0, 1] by their minimum and maximum; to 0 if they are equal.
        memory: memory limit, in GiB, for the dense matrices of one graph where PyTorch computes them.

    Returns, when called on a graph: ``[num_nodes, powers]``.

    Example:
        >>> triangle = Graph.from_edges([(0, 1), (1, 2), (2, 0)], undirected=True)
        >>> PageRankPowers(powers=3)(triangle)[0]
        tensor([0.0000, 1.0000, 0.4998])
    """

    powers: int = 20
    beta: float = 0.999
    scale: bool = True
    memory: float = 4.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(1, powers=self.powers)
        _check_beta(self.beta)

    def parts(self, graph: Graph) -> Sequence[Graph]:
        if not self._sums(graph) or graph.edge_ptr is None:
            return graph.parts
        # So few nodes that their return probabilities stay in cache.
        ptr = graph.ptr.cpu().numpy()
        cuts = np.searchsorted(ptr, np.arange(RETURN_NODES, graph.num_nodes, RETURN_NODES))
        bounds = sorted({0, *cuts.tolist(), graph.num_graphs})
        return [graph.slice(first, last) for first, last in pairwise(bounds)]

    def rows(self, graph: Graph) -> Tensor:
        check_nonnegative(graph, "PageRankPowers")
        found = return_probabilities(graph, self._steps, torch.float64) if self._sums(graph) else None
        if found is None:
            out = self._dense(graph)
        else:
            out, left = self._sum(found[0]), found[1]
            if len(left):
                out[graph.nodes_of(left)] = self._dense(graph.select(left))
        if not self.scale:
            return out
        low, high = out.aminmax(dim=1, keepdim=True)
        width = high - low
        # Rows whose entries differ only by rounding count as constant.
        return torch.where(width > 1e-14, (out - low) / torch.where(width > 0, width, 1.0), 0.0)

    @property
    def _steps(self) -> int:
        """Longest walk in the terms of Σ (1-β)ᵐ diag(Wⁱᵐ) before the rest, less than (1-β)ᵐ, is negligible."""
        decay = -math.inf if self.beta == 1 else math.log(1.0 - self.beta)
        return self.powers * max(1, math.ceil(math.log(MAX_REMAINDER) / decay) - 1)

    def _sums(self, graph: Graph) -> bool:
        """True if summing return probabilities by the compiled kernel is faster: few terms, and a sparse graph."""
        sparse = graph.num_edges < MAX_SPARSE_SHARE * int(graph.sizes.square().sum())
        return library() is not None and sparse and self._steps <= MAX_RETURN_STEPS

    def _sum(self, returns: Tensor) -> Tensor:
        """Add up the terms from the return probabilities ``[n, steps]``, the smallest first."""
        out = returns.new_zeros(len(returns), self.powers)
        for m in range(returns.shape[1] // self.powers, 0, -1):
            out.add_(returns[:, m - 1 : m * self.powers : m]).mul_(1.0 - self.beta)
        return out.add_(1.0).mul_(self.beta)

    def _dense(self, graph: Graph) -> Tensor:
        largest = int(graph.sizes.max())
        what = f"PageRankPowers on a graph of {largest} nodes"
        check_memory(self.memory, 9 * 8 * largest**2, what, "raise memory to allow it")
        walk = graph.walk("random_walk")
        out = torch.zeros(graph.num_nodes, self.powers, dtype=torch.float64, device=graph.device)
        for block in blocks(walk):
            scatter_rows(out, block, self._diagonals(block, walk))
        return out

    def _diagonals(self, block: Block, walk: WalkMatrix) -> Tensor:
        steps = torch.arange(1, self.powers + 1, device=block.matrices.device)
        if walk.similarity is not None:
            theta, vectors = torch.linalg.eigh(symmetrised(block, walk))
            ranks: Tensor = self.beta / (1.0 - (1.0 - self.beta) * theta.unsqueeze(-1) ** steps)
            found: Tensor = vectors.square() @ ranks
            return found
        power, columns = block.matrices, []
        for _ in steps:
            columns.append(_resolvent(power, self.beta).diagonal(dim1=-2, dim2=-1))
            power = power @ block.matrices
        return torch.stack(columns, -1)


def _resolvent(matrices: Tensor, beta: float) -> Tensor:
    """Compute β(I - (1-β)W)⁻¹, which exists since no row of W sums to more than 1."""
    system = (beta - 1.0) * matrices
    system.diagonal(dim1=-2, dim2=-1).add_(1.0)
    return inverses(system).mul_(beta)


def _check_beta(beta: float) -> None:
    if not 0 < beta <= 1:
        raise ValueError(f"beta is a restart probability in (0, 1], got {beta!r}")
    if beta < MIN_BETA:
        raise ValueError(
            f"beta={beta!r} is too small: the rounding error of 1 - beta would dominate the result; "
            f"take at least {MIN_BETA:g}"
        )


def _nonnegative_walk(graph: Graph, what: str) -> WalkMatrix:
    """Return D⁻¹A; raises for negative weights, which are not probabilities."""
    check_nonnegative(graph, what)
    return graph.walk("random_walk")
