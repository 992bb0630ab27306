"""Random numbers that depend on what they are for and on nothing else."""

import torch
from torch import Tensor


def mix(x: Tensor) -> Tensor:
    """Scramble 64-bit integers: the finaliser of SplitMix64 (Steele, Lea & Flood, 2014), elementwise.

    Exact integer arithmetic modulo 2⁶⁴, so the same on every device, batch size and number of threads.

    Example:
        >>> states = torch.tensor([0, -0x61C8864680B583EB])  # the first two of the generator with seed 0
        >>> [f"{number % 2**64:016x}" for number in mix(states).tolist()]  # and the numbers it is known for
        ['e220a8397b1dcdaf', '6e789e6aa1b965f4']
    """
    x = x + -0x61C8864680B583EB
    x = (x ^ _shift_right(x, 30)) * -0x40A7B892E31B1A47
    x = (x ^ _shift_right(x, 27)) * -0x6B2FB644ECCEEE15
    return x ^ _shift_right(x, 31)


def _shift_right(x: Tensor, bits: int) -> Tensor:
    # torch shifts signed integers arithmetically; the mask takes the copies of the sign bit away.
    return (x >> bits) & ((1 << (64 - bits)) - 1)


def uniform_integers(keys: Tensor, below: int) -> Tensor:
    """Integers in ``0 … below - 1`` (``below`` < 2³¹), uniform over the scrambled 64-bit ``keys``."""
    return (_shift_right(mix(keys), 33) * below) >> 31


def digest_edges(source: Tensor, target: Tensor, weight_bits: Tensor, graph: Tensor, num_graphs: int) -> Tensor:
    """One 64-bit number per graph that depends on its multiset of weighted edges, not on their order."""
    per_edge = mix(mix(mix(source) + target) + weight_bits)
    return torch.zeros(num_graphs, dtype=torch.int64, device=source.device).index_add_(0, graph, per_edge)
