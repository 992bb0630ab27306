"""Invariants of graphs in exact arithmetic: multisets of integers modulo a prime, one for each node or pair of nodes.

An encoding that sums weights of walks of all lengths is a function of generating functions such as
Σ_t xᵗ (Aᵗ)_vv = (I - xA)⁻¹_vv. At a random x modulo a prime p two of them are equal if they are the same function, and
otherwise with a probability of at most 2n / p (Schwartz, 1980; Zippel, 1979), here about 10⁻⁵. So a difference proves
that the encoding can tell two graphs apart, and no difference means, but for that chance, that it cannot, whatever its
weights.

Weisfeiler-Leman tests refine colours of nodes (1-WL) and of pairs of nodes (2-FWL, as strong as 3-WL). Multisets of
colours are hashed by sums of random numbers. Colours that a hash tells apart are different; a collision would leave two
graphs undistinguished, with a probability below 2⁻⁴⁰ per pair of colours.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from gape._internal.threads import map_threads
from gape.graph.batching import Block, blocks
from gape.graph.graph import Graph
from gape.graph.walk_matrix import WalkMatrix
from gape.linalg.elimination import eliminate
from gape.linalg.hops import hop_distances
from gape.linalg.selected_inverse import PRIME, ModularArithmetic, SparseMatrices, modular_inverse, selected_inverse

Array = np.ndarray[Any, Any]
#: One array per graph: the multiset, sorted.
Multisets = list[Array]

# A prime below 2²²: sums of 500 products of two remainders are exact in float64.
SMALL_PRIME = 4_194_301
MAX_PAIR_NODES = 511
# Numbers in one array at a time.
BLOCK_ELEMENTS = 1 << 20
# A pivot vanishes with a probability of about n / p; then other random numbers are drawn.
ATTEMPTS = 8


def adjacency_blocks(graph: Graph, elements: int) -> list[Block]:
    """Return adjacency matrices of 0 and 1, graphs of the same size together, about ``elements`` entries at a time."""
    found = blocks(WalkMatrix("adjacency", graph.adjacency), dtype=torch.int64, entries=elements)
    return [Block(block.graphs, block.nodes, (block.matrices != 0).long()) for block in found]


def degrees(graph: Graph) -> Multisets:
    """Degrees of the nodes."""
    return _split(graph.adjacency.out_degree.numpy().astype(np.int64), graph.ptr.numpy())


def colours(graph: Graph) -> Multisets:
    """Stable colours of 1-WL."""
    return _split(refine_nodes(graph.edge_index.numpy(), graph.num_nodes), graph.ptr.numpy())


def distances(graph: Graph) -> Multisets:
    """Shortest-path distances of all pairs of nodes."""
    sizes = graph.sizes.numpy()
    found = hop_distances(graph.edge_index.numpy(), sizes, unreachable=2**15)
    return _split(found.astype(np.int64), np.append(0, np.cumsum(sizes**2)))


def random_walks(graph: Graph, length: int = 20) -> Multisets:
    """Return probabilities of random walks of 1 … ``length`` steps, modulo a prime, hashed to one number per node."""
    coefficients = np.random.default_rng(0).integers(1, PRIME, length)

    def hashed(matrix: Array) -> Array:
        inverse = np.array([pow(int(degree), -1, SMALL_PRIME) if degree else 0 for degree in matrix.sum(1)])
        walk = scipy.sparse.csr_array(matrix * inverse[:, None], dtype=np.float64)
        power, total = np.eye(len(matrix)), np.zeros(len(matrix), np.int64)
        for coefficient in coefficients:
            power = walk @ power % SMALL_PRIME
            total = (total + coefficient * power.diagonal().astype(np.int64)) % PRIME
        return total

    found = adjacency_blocks(graph, BLOCK_ELEMENTS)
    return _collect(found, [torch.from_numpy(np.stack([*map(hashed, block.matrices.numpy())])) for block in found])


def walks(graph: Graph) -> dict[str, Multisets]:
    """Walks of all lengths: into each node ("node"), back to it ("closed"), between all pairs of nodes ("pair")."""

    def invert(x: Tensor, block: Block) -> Tensor:
        matrices = block.matrices.to(torch.float64)
        identity = torch.eye(matrices.shape[1], dtype=torch.float64)
        return modular_inverse(identity - x * matrices)

    found = adjacency_blocks(graph, BLOCK_ELEMENTS)
    inverses = _with_random_numbers(invert, found, 1)
    return {
        "node": _collect(found, [inverse.sum(1) % PRIME for inverse in inverses]),
        "closed": _collect(found, [inverse.diagonal(dim1=1, dim2=2) for inverse in inverses]),
        "pair": _collect(found, [inverse.flatten(1) for inverse in inverses]),
    }


def rooted_walks(graph: Graph, layers: int) -> Multisets:
    """Closed walks of all lengths in each layer around each node, one number per node.

    Layer l holds the nodes l steps away, the last one those ``layers`` or more steps away. The weights of steps between
    layers, and those of the layers in the sum, are random numbers modulo a prime.
    """

    def solve(drawn: Tensor, block: Block) -> Tensor:
        return _rooted(block.matrices, layers, drawn)

    found = adjacency_blocks(graph, BLOCK_ELEMENTS // 64)
    return _collect(found, _with_random_numbers(solve, found, (layers + 1) * (layers + 2)))


def _rooted(adjacency: Tensor, layers: int, drawn: Tensor) -> Tensor:
    """``[B, n]``, one number per root, from ``[B, n, n]``."""
    modular, (graphs, n, _) = ModularArithmetic(), adjacency.shape
    of, source, target = np.nonzero(adjacency.numpy())
    index, sizes = np.stack([of * n + source, of * n + target]), np.full(graphs, n)
    distance = hop_distances(index, sizes, unreachable=layers + 2).astype(np.int64)
    # Label of node v for root u in row v; nodes without a path have a label of their own, of weight 0.
    labels = np.where(distance > layers + 1, layers + 1, np.minimum(distance, layers)).reshape(graphs, n, n)
    label = torch.from_numpy(labels).transpose(1, 2).reshape(graphs * n, n)
    of_layer, of_step = torch.split(drawn, [layers + 1, (layers + 1) ** 2])
    of_layer = torch.nn.functional.pad(of_layer, (0, 1))
    steps = of_step.view(layers + 1, layers + 1).triu()
    steps = torch.nn.functional.pad(steps + steps.triu(1).T, (0, 1, 0, 1)).flatten()
    schedule = eliminate(index, sizes).schedule(0, graphs)
    label = label[schedule.nodes]
    row, column = schedule.nodes[schedule.target], schedule.nodes[schedule.pivot]
    present = adjacency.reshape(graphs * n, n)[row, column % n]
    code = label[schedule.target] * (layers + 2) + label[schedule.pivot]
    ones = torch.ones(graphs * n, n, dtype=torch.float64)
    matrices = SparseMatrices(ones, -steps[code] * present.unsqueeze(1))
    closed = selected_inverse(schedule, matrices, modular).diagonal
    sums = torch.zeros(graphs, n, dtype=torch.float64)
    return modular.remainder(sums.index_add_(0, schedule.nodes // n, modular.multiply(closed, of_layer[label])))


def _with_random_numbers(compute: Callable[[Tensor, Block], Tensor], found: list[Block], count: int) -> list[Tensor]:
    """Compute something of every block and of random numbers below the prime, the same numbers for all blocks.

    If a pivot vanishes in one block, all are computed again with other numbers: the two graphs of a pair may be in
    different blocks, and their values can be compared only if the numbers are the same.
    """
    for seed in range(ATTEMPTS):
        drawn = torch.randint(1, PRIME, (count,), generator=torch.Generator().manual_seed(seed)).to(torch.float64)
        try:
            return map_threads(partial(compute, drawn), found)
        except ZeroDivisionError:
            continue
    raise ArithmeticError(
        f"a pivot vanished for each of {ATTEMPTS} random draws, whose probability is about 0; please report it"
    )


def _collect(computed: list[Block], values: list[Tensor]) -> Multisets:
    """Multisets in the order of the batch from ``[B, …]`` of each block."""
    found = {
        number: np.sort(row)
        for block, rows in zip(computed, values, strict=True)
        for number, row in zip(block.graphs.tolist(), rows.numpy(), strict=True)
    }
    return [found[number] for number in range(len(found))]


def _split(values: Array, ptr: Array) -> Multisets:
    return [np.sort(values[start:stop]) for start, stop in itertools.pairwise(ptr)]


def refine_nodes(edge_index: Array, num_nodes: int, seed: int = 0) -> Array:
    """Stable colours of 1-WL, ``[num_nodes]``: one number for nodes that it does not tell apart, in any graph.

    Args:
        edge_index: ``[2, E]``, edges of all graphs, in both directions.
        num_nodes: of all graphs.
        seed: of the hash.

    Example:
        >>> path = np.array([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> refine_nodes(path, 3).tolist()
        [0, 1, 0]
    """
    generator = np.random.default_rng(seed)
    colour, count = np.zeros(num_nodes, np.int64), 1
    while True:
        words = generator.integers(-(2**63), 2**63 - 1, count)
        around = np.zeros(num_nodes, np.int64)
        np.add.at(around, edge_index[0], words[colour[edge_index[1]]])  # sums modulo 2⁶⁴
        _, refined = np.unique(np.stack([colour, around], 1), axis=0, return_inverse=True)
        refined = refined.reshape(-1)
        found = int(refined.max(initial=-1)) + 1
        # By first occurrence, so that numbers do not depend on the hash.
        _, first = np.unique(refined, return_index=True)
        place = np.empty(found, np.int64)
        place[np.argsort(first)] = np.arange(found)
        if found == count or not num_nodes:
            return np.asarray(place[refined])
        colour, count = place[refined], found


def pairs_differ(first: Array, second: Array, seed: int = 0) -> bool:
    """Return whether 2-FWL tells two graphs apart, given by their adjacency matrices ``[n, n]``.

    The colour of a pair (u, v) is refined by the multiset of (colour of (u, w), colour of (w, v)) over all nodes w.
    With random F and G per colour, Σ_w F(u, w) G(w, v) hashes that multiset: a product of matrices.

    Example:
        >>> ring = np.roll(np.eye(6, dtype=int), 1, 1)
        >>> triangles = np.kron(np.eye(2, dtype=int), 1 - np.eye(3, dtype=int))
        >>> pairs_differ(ring + ring.T, triangles)
        True
    """
    if first.shape != second.shape:
        return True
    n = len(first)
    if n > MAX_PAIR_NODES:
        raise ValueError(f"2-FWL is exact here for graphs of at most {MAX_PAIR_NODES} nodes, got {n}")
    generator = np.random.default_rng(seed)
    colour = np.stack([2 * matrix.astype(np.int64) + np.eye(n, dtype=np.int64) for matrix in (first, second)])
    _, colour = np.unique(colour, return_inverse=True)
    colour, count = colour.reshape(2, n, n), 0
    while True:
        found = int(colour.max(initial=-1)) + 1
        if not np.array_equal(np.bincount(colour[0].ravel(), minlength=found), np.bincount(colour[1].ravel())):
            return True
        if found == count:
            return False
        count, key = found, colour.astype(np.int64)
        for _ in range(2):
            left, right = generator.integers(0, SMALL_PRIME, (2, count)).astype(np.float64)
            key = key * SMALL_PRIME + (left[colour] @ right[colour] % SMALL_PRIME).astype(np.int64)
        _, colour = np.unique(key, return_inverse=True)
        colour = colour.reshape(2, n, n)
