"""The block-diagonal sparse adjacency matrix of a batch of graphs and its products."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from gape.hashing import mix


@dataclass(frozen=True, eq=False)
class Adjacency:
    """``A[u, v]``: the total weight of the edges u → v.

    Args:
        edge_index: ``[2, E]``, sources and targets.
        num_nodes: n.
        ptr: ``[graphs + 1]``, where each graph's nodes begin.
        edge_weight: ``[E]``, ones if ``None``.
    """

    edge_index: Tensor
    num_nodes: int
    ptr: Tensor
    edge_weight: Tensor | None = None

    # ------------------------------------------------------------------ parts

    @property
    def weighted(self) -> bool:
        return self.edge_weight is not None

    @cached_property
    def weights(self) -> Tensor:
        """``[E]`` in float64."""
        if self.edge_weight is None:
            return torch.ones(self.edge_index.shape[1], dtype=torch.float64, device=self.ptr.device)
        return self.edge_weight.to(torch.float64)

    @cached_property
    def sizes(self) -> Tensor:
        """Number of nodes of each graph."""
        return self.ptr.diff()

    @cached_property
    def batch(self) -> Tensor:
        """The graph of each node."""
        graphs = torch.arange(len(self.ptr) - 1, device=self.ptr.device)
        return torch.repeat_interleave(graphs, self.sizes, output_size=self.num_nodes)

    @cached_property
    def local(self) -> Tensor:
        """The number of each node within its graph."""
        return torch.arange(self.num_nodes, device=self.ptr.device) - self.ptr[self.batch]

    @cached_property
    def out_degree(self) -> Tensor:
        """Total weight of the edges out of each node."""
        return self._degree(0)

    @cached_property
    def in_degree(self) -> Tensor:
        """Total weight of the edges into each node."""
        return self._degree(1)

    def _degree(self, end: int) -> Tensor:
        if self.edge_weight is None:
            return torch.bincount(self.edge_index[end], minlength=self.num_nodes).to(torch.float64)
        zero = torch.zeros(self.num_nodes, dtype=torch.float64, device=self.ptr.device)
        return zero.index_add(0, self.edge_index[end], self.weights)

    # ------------------------------------------------------------------ sums over the nodes of each graph

    @cached_property
    def _segments(self) -> Tensor:
        return _csr(self.ptr, torch.arange(self.num_nodes, device=self.ptr.device), None, self.num_nodes)

    def segment_sum(self, x: Tensor) -> Tensor:
        """``[n]`` or ``[n, c]`` to ``[graphs]`` or ``[graphs, c]``."""
        if len(self.ptr) == 2:
            return x.sum(0, keepdim=True)
        if self.num_nodes == 0 or x.dtype != torch.float64:
            return torch.zeros(len(self.ptr) - 1, *x.shape[1:], dtype=x.dtype, device=x.device).index_add_(
                0, self.batch, x
            )
        product: Tensor = self._segments @ x
        return product

    def segment_max(self, x: Tensor) -> Tensor:
        """Largest entry of the nonnegative ``[n]`` in each graph, 0 where a graph has no nodes."""
        out = torch.zeros(len(self.ptr) - 1, dtype=x.dtype, device=x.device)
        return out.scatter_reduce_(0, self.batch, x, "amax")

    # ------------------------------------------------------------------ products

    def push(self, x: Tensor) -> Tensor:
        """``Aᵀ x`` for ``x`` ``[n]`` or ``[n, c]``."""
        return _product(self._push_matrix, x)

    def pull(self, x: Tensor) -> Tensor:
        """``A x`` for ``x`` ``[n]`` or ``[n, c]``."""
        return _product(self._pull_matrix, x)

    @cached_property
    def _target_sorted(self) -> bool:
        return _is_sorted(self.edge_index[1])

    @cached_property
    def _push_matrix(self) -> Tensor:
        # Aᵀ = A when symmetric: an edge list sorted by source, as PyG keeps it, then needs no second sort.
        if not self._target_sorted and self.symmetric:
            return self._pull_matrix
        return self._sorted_matrix(1)

    @cached_property
    def _pull_matrix(self) -> Tensor:
        if self._target_sorted and self.symmetric and not _is_sorted(self.edge_index[0]):
            return self._sorted_matrix(1)
        return self._sorted_matrix(0)

    def _sorted_matrix(self, rows_end: int) -> Tensor:
        rows, columns = self.edge_index[rows_end], self.edge_index[1 - rows_end]
        values = None if self.edge_weight is None else self.weights.detach()
        if not (self._target_sorted if rows_end == 1 else _is_sorted(rows)):
            rows, order = torch.sort(rows, stable=True)
            columns = columns[order]
            values = None if values is None else values[order]
        counts = torch.bincount(rows, minlength=self.num_nodes)
        starts = torch.zeros(self.num_nodes + 1, dtype=torch.int64, device=counts.device)
        torch.cumsum(counts, 0, out=starts[1:])
        return _csr(starts, columns, values, self.num_nodes)

    @cached_property
    def symmetric(self) -> bool:
        """Whether A equals its transpose.

        With weights: sorts the edges and their reverses and compares. Without: compares ``rᵀAq`` with ``qᵀAr``
        in every graph for four pairs of hashed integer vectors, in exact arithmetic. An asymmetric graph fails
        each comparison with probability at least 1 - 2⁻¹⁰, so it passes all four with less than 2⁻⁴⁰.
        """
        source, target = self.edge_index
        if self.edge_index.shape[1] == 0:
            return True
        if self.edge_weight is not None:
            return _same_reversed(source, target, self.weights.detach(), self.num_nodes)
        nodes = torch.arange(self.num_nodes * 8, device=source.device).view(-1, 8)
        probes = (mix(nodes) & 0x7FF).to(torch.float64)
        seen = self._sorted_matrix(1 if self._target_sorted else 0) @ probes
        gap = self.segment_sum(probes[:, :4] * seen[:, 4:] - probes[:, 4:] * seen[:, :4])
        return not bool(gap.any())


def _is_sorted(x: Tensor) -> bool:
    return bool((x[1:] >= x[:-1]).all())


def _csr(starts: Tensor, columns: Tensor, values: Tensor | None, num_columns: int) -> Tensor:
    # 32-bit indices halve the memory traffic of a product.
    small = torch.int32 if max(len(columns), num_columns) < 2**31 - 1 else torch.int64
    if values is None:
        values = torch.ones(len(columns), dtype=torch.float64, device=columns.device)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
        return torch.sparse_csr_tensor(
            starts.to(small),
            columns.to(small),
            values,
            size=(len(starts) - 1, num_columns),
            check_invariants=False,
        )


def _product(matrix: Tensor, x: Tensor) -> Tensor:
    if x.is_complex():
        return torch.complex(_product(matrix, x.real), _product(matrix, x.imag))
    if matrix.shape[0] == 0 or x.numel() == 0:
        return torch.zeros_like(x)
    return matrix @ x.to(torch.float64).contiguous()


def _same_reversed(source: Tensor, target: Tensor, weights: Tensor, num_nodes: int) -> bool:
    # Sorted by weight first, parallel edges are added up in the same order on both sides.
    by_weight = torch.argsort(weights, stable=True)
    source, target, weights = source[by_weight], target[by_weight], weights[by_weight]
    forth, total = _coalesce(source * num_nodes + target, weights)
    back, reverse_total = _coalesce(target * num_nodes + source, weights)
    return torch.equal(forth, back) and torch.equal(total, reverse_total)


def _coalesce(keys: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    keys, order = torch.sort(keys, stable=True)
    keys, inverse = torch.unique_consecutive(keys, return_inverse=True)
    return keys, torch.zeros(len(keys), dtype=weights.dtype, device=keys.device).index_add_(0, inverse, weights[order])
