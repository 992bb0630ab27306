"""Arrays of integers: segment offsets and ranges, and hashes for stateless random numbers and digests of edge sets."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


def offsets(counts: NDArray[Any] | Sequence[int]) -> NDArray[np.int64]:
    """Segment offsets (exclusive cumulative sum), like PyG's ``ptr``; :func:`gape.graph.batching.offsets` of tensors.

    >>> offsets([2, 0, 3]).tolist()
    [0, 2, 2, 5]
    """
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])


def ranges(first: NDArray[Any], counts: NDArray[Any]) -> NDArray[np.int64]:
    """Concatenate ``first[i], first[i] + 1, …``, ``counts[i]`` of them for each i.

    >>> ranges(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    return np.asarray(np.arange(counts.sum()) + np.repeat(first - offsets(counts)[:-1], counts))


def mix(x: Tensor) -> Tensor:
    """Hash 64-bit integers elementwise with the finaliser of SplitMix64 (Steele, Lea & Flood, 2014).

    Exact integer arithmetic modulo 2⁶⁴, so the same on every device, batch size and number of threads.

    Example:
        >>> states = torch.tensor([0, -0x61C8864680B583EB])  # first two states of SplitMix64 with seed 0
        >>> [f"{number % 2**64:016x}" for number in mix(states).tolist()]  # its published first two outputs
        ['e220a8397b1dcdaf', '6e789e6aa1b965f4']
    """
    x = x + -0x61C8864680B583EB
    x = (x ^ _shift_right(x, 30)) * -0x40A7B892E31B1A47
    x = (x ^ _shift_right(x, 27)) * -0x6B2FB644ECCEEE15
    return x ^ _shift_right(x, 31)


def _shift_right(x: Tensor, bits: int) -> Tensor:
    # torch shifts signed integers arithmetically; the mask clears the copies of the sign bit.
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def uniform_integers(keys: Tensor, below: int) -> Tensor:
    """Map 64-bit ``keys`` to uniform integers in ``0 … below - 1``, ``below`` < 2³¹."""
    return (_shift_right(mix(keys), 33) * below) >> 31


def digest_edges(source: Tensor, target: Tensor, weight_bits: Tensor, graph: Tensor, num_graphs: int) -> Tensor:
    """Compute a 64-bit digest per graph of its multiset of weighted edges, independent of their order."""
    per_edge = mix(mix(mix(source) + target) + weight_bits)
    return torch.zeros(num_graphs, dtype=torch.int64, device=source.device).index_add_(0, graph, per_edge)
