"""Probabilities of random walks: of return, exact and estimated for large graphs, and between all pairs of nodes."""

from __future__ import annotations

from collections.abc import Iterator
from ctypes import c_int32, c_int64, c_void_p
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from gape._internal.validation import check_at_least, positive, seed_number, whole_number
from gape.encodings.base import DenseEncoding, DenseReadout, NodeEncoding
from gape.graph.batching import BLOCK_ELEMENTS, Block, blocks, check_memory, dense_parts, scatter_rows
from gape.graph.convert import as_graph
from gape.graph.graph import Graph
from gape.graph.small_graphs import SmallGraphs, single_matrix
from gape.graph.walk_matrix import WalkMatrix
from gape.linalg.integers import mix
from gape.linalg.powers import PowerDiagonals, baby_steps, matrix_powers, power_diagonals
from gape.native import kernel as find_kernel

# Matrix elements per batched product, chosen by measurement: fewer cost more calls, more do not fit into the cache.
POWER_BLOCK_ELEMENTS = 1 << 18
# Samples are skewed: the standard error estimated from fewer of them is too small.
MIN_SAMPLES = 32


@dataclass(frozen=True)
class RandomWalk(NodeEncoding):
    r"""Probability that a random walk from a node is back after 1, 2, …, ``length`` steps.

    Introduced as an encoding by Dwivedi et al. (2022): [W_vv, (W²)_vv, …] with W = D⁻¹A, D the weighted out-degrees.
    Equal to the closed readout of :meth:`gape.Automaton.shift` on W. On directed graphs the walk follows the edges; it
    ends at a node without outgoing edges.

    On small graphs a compiled kernel computes in float64, each graph by itself: its numbers are the same to the last
    bit alone and in any batch. PyTorch, which does the rest, computes the powers for float32 results in float32, with a
    relative error of about 1e-6.

    Args:
        length: number of steps, and so of features.
        memory: memory limit, in GiB, for the dense powers of one graph where PyTorch computes them; they are dense even
            if the graph is sparse.

    Returns, when called on a graph: ``[num_nodes, length]``.

    Example:
        >>> triangle = Graph.from_edges([(0, 1), (1, 2), (2, 0)], undirected=True)
        >>> RandomWalk(length=3)(triangle)[0]
        tensor([0.0000, 0.5000, 0.2500])
    """

    length: int = 20
    memory: float = 4.0

    version: ClassVar[int] = 2  # version 1 computed small graphs in float32, for float32
    alternatives: ClassVar[str] = "'lape'"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(1, length=self.length)

    def compute(self, graph: Graph) -> Tensor:
        compiled = return_probabilities(graph, self.length, self.dtype)
        if compiled is not None:
            out, left = compiled
            if len(left):
                out[graph.nodes_of(left)] = super().compute(graph.select(left))
            return out
        matrix = single_matrix(graph)
        return super().compute(graph) if matrix is None else self._single(matrix)

    def _single(self, matrix: np.ndarray) -> Tensor:
        """Compute the same for one small graph."""
        degree, symmetric = matrix.sum(1), bool((matrix == matrix.T).all())
        inverse = 1.0 / np.where(degree == 0, np.inf, degree)
        if symmetric:
            inverse = np.sqrt(inverse)
            matrix = matrix * inverse
        walk = (inverse[:, None] * matrix).astype(np.float32 if self.dtype == torch.float32 else np.float64)
        return torch.from_numpy(np.ascontiguousarray(power_diagonals(walk, self.length, symmetric=symmetric)))

    def parts(self, graph: Graph) -> list[Graph]:
        return dense_parts(graph)

    def rows(self, graph: Graph) -> Tensor:
        largest = int(graph.sizes.max()) if graph.num_graphs else 0
        diagonals = PowerDiagonals(self.length, self.dtype)
        check_memory(
            self.memory,
            (diagonals.baby + diagonals.giant + 3) * largest**2 * self.dtype.itemsize,
            f"RandomWalk on a graph of {largest} nodes, dense after a few steps,",
            "raise memory, or estimate with gape.encodings.estimate_random_walk",
        )
        out = torch.zeros(graph.num_nodes, self.length, dtype=self.dtype, device=graph.device)
        # Weights may exceed the range of float32; normalised weights do not, so those are normalised in float64.
        walk = graph.walk("adjacency") if graph.edge_weight is None else _return_walk(graph)
        for block in blocks(walk, dtype=self.dtype, multiple=4, entries=POWER_BLOCK_ELEMENTS):
            symmetric = _normalise(block.matrices) if walk.name == "adjacency" else walk.name == "symmetric"
            scatter_rows(out, block, diagonals(block.matrices, symmetric=symmetric))
        return out


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


_RETURNS = (*[c_void_p, c_int64, c_int64, c_int64, c_int64], c_void_p, c_int32, c_void_p)


def return_probabilities(graph: Graph, length: int, dtype: torch.dtype) -> tuple[Tensor, Tensor] | None:
    """Compute the rows of :class:`RandomWalk` by the compiled kernel, in float64; ``None`` without it.

    Returns:
        ``[num_nodes, length]``, and the numbers of the graphs whose rows the kernel leaves out: dense ones of more than
        256 nodes, and those with weights that are negative or beyond 2^±300.
    """
    kernel = find_kernel("returns", *_RETURNS)
    # The walk of weights with a gradient was not scanned, even if the graph was.
    if kernel is None or not graph.num_nodes or graph.scan is None or graph.walk("adjacency").adjacency.scan is None:
        return None
    out = torch.empty(graph.num_nodes, length, dtype=dtype)
    done = torch.empty(graph.num_graphs, dtype=torch.bool)
    SmallGraphs(graph.walk("adjacency")).run(
        kernel, length, baby_steps(length), out.data_ptr(), dtype == torch.float32, done.data_ptr()
    )
    return out, (~done).nonzero().flatten()


@dataclass(frozen=True, eq=False)
class Estimate:
    """Estimate with its standard error.

    Args:
        values: ``[num_nodes, length]``, unbiased.
        standard_error: ``[num_nodes, length]``, of ``values``, estimated from the same samples.
    """

    values: Tensor
    standard_error: Tensor


def estimate_random_walk(graph: Any, length: int = 20, *, samples: int = 256, seed: int = 0) -> Estimate:
    """Estimate :class:`RandomWalk` on graphs of any size, with standard errors that fall as 1/√``samples``.

    Hutchinson's estimator: for a vector z of random signs, E[z ∘ Mᵗz] is the diagonal of Mᵗ (Hutchinson, 1990; Bekas,
    Kokiopoulou & Saad, 2007). On an undirected graph M = D^(-1/2) A D^(-1/2) is symmetric, and (Mⁱz) ∘ (Mʲz) with
    i + j = t has the same mean, which halves the number of products.

    Measured at 256 samples, about 95 % of the entries are within two standard errors and 99.7 % within three; at 64
    samples 94 % and 98 %. At least 32 samples are required. Memory grows with nodes × ``length``, time with edges ×
    ``length`` × ``samples``. The same seed gives the same numbers.

    Example:
        >>> from gape.encodings import sequence_graph
        >>> ring = sequence_graph("cycle", 9)
        >>> found = estimate_random_walk(ring, length=4, samples=2000)
        >>> bool(((found.values[:, 1] - 0.5).abs() < 5 * found.standard_error[:, 1] + 1e-12).all())
        True
    """
    length, samples = positive(length, "length"), whole_number(samples, "samples", MIN_SAMPLES)
    graph, start = as_graph(graph), mix(torch.tensor(seed_number(seed)))
    walk = _return_walk(graph)
    undirected = walk.name == "symmetric"
    total = torch.zeros(graph.num_nodes, length, dtype=torch.float64, device=graph.device)
    squares = torch.zeros_like(total)
    nodes = torch.arange(graph.num_nodes, device=graph.device)
    for sample in range(samples):
        signs = (mix(nodes + mix(start + sample).to(nodes.device)) & 1).double() * 2 - 1
        steps = [signs]
        for _ in range(-(-length // 2) if undirected else length):
            steps.append(walk.pull(steps[-1]))
        for t in range(1, length + 1):
            i = t // 2 if undirected else 0
            found = steps[i] * steps[t - i]
            total[:, t - 1] += found
            squares[:, t - 1] += found.square()
    mean = total / samples
    variance = (squares / samples - mean.square()).clamp(min=0.0) * samples / (samples - 1)
    return Estimate(mean, (variance / samples).sqrt())


def _return_walk(graph: Graph) -> WalkMatrix:
    """Return D^(-1/2) A D^(-1/2) if it is symmetric, else D⁻¹A: similar matrices, so their powers share diagonals."""
    undirected = graph.undirected and bool((graph.adjacency.out_degree >= 0).all())
    return graph.walk("symmetric" if undirected else "random_walk")


def _normalise(edges: Tensor) -> bool:
    """Normalise adjacency matrices ``[B, n, n]`` without weights in place, as in :func:`_return_walk`.

    Returns True if they are symmetric.
    """
    degree, symmetric = edges.sum(-1), torch.equal(edges, edges.mT)
    inverse = torch.where(degree == 0, 0.0, 1.0 / degree)
    if symmetric:
        inverse = inverse.sqrt()
        edges.mul_(inverse.unsqueeze(1))
    edges.mul_(inverse.unsqueeze(2))
    return symmetric
