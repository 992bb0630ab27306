"""The block-diagonal sparse adjacency matrix of a batch of graphs and its products."""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from gape.graph.small_graphs import Scan
from gape.linalg.integers import mix


@dataclass(frozen=True, eq=False)
class Adjacency:
    """``A[u, v]``: the total weight of the edges u → v.

    Args:
        edge_index: ``[2, E]``, sources and targets.
        num_nodes: n.
        ptr: ``[graphs + 1]``, node offsets of the graphs.
        edge_weight: ``[E]``, ones if ``None``.
        known_sorted: whether the edges are known to be sorted by source.
        scan: facts from a compiled pass over the edges, if there was one.
    """

    edge_index: Tensor
    num_nodes: int
    ptr: Tensor
    edge_weight: Tensor | None = None
    known_sorted: bool = False
    scan: Scan | None = None

    # ------------------------------------------------------------------ properties

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
        if not self.symmetric:
            return self._degree(1)
        if not self.weights.requires_grad:
            return self.out_degree
        # Bit-identical to the out-degree, but differentiable in the edges into the node.
        own = self._degree(1)
        return self.out_degree.detach() + (own - own.detach())

    def _degree(self, end: int) -> Tensor:
        if self.edge_weight is None:
            if end == 0 and self.source_sorted:
                return self._by_source.crow_indices().diff().to(torch.float64)
            if end == 1 and not self.source_sorted:
                return self._by_target.crow_indices().diff().to(torch.float64)
            return torch.bincount(self.edge_index[end], minlength=self.num_nodes).to(torch.float64)
        zero = torch.zeros(self.num_nodes, dtype=torch.float64, device=self.ptr.device)
        return zero.index_add(0, self.edge_index[end], self.weights)

    # ------------------------------------------------------------------ sums over the nodes of each graph

    @cached_property
    def _segments(self) -> Tensor:
        ones = torch.ones(self.num_nodes, dtype=torch.float64, device=self.ptr.device)
        return _csr(self.ptr, torch.arange(self.num_nodes, device=self.ptr.device), ones, self.num_nodes)

    def segment_sum(self, x: Tensor) -> Tensor:
        """Sum ``[n]`` or ``[n, c]`` over the nodes of each graph."""
        if len(self.ptr) == 2:
            return x.sum(0, keepdim=True)
        if self.num_nodes == 0 or x.dtype != torch.float64:
            return torch.zeros(len(self.ptr) - 1, *x.shape[1:], dtype=x.dtype, device=x.device).index_add_(
                0, self.batch, x
            )
        product: Tensor = self._segments @ x
        return product

    def segment_max(self, x: Tensor) -> Tensor:
        """Return the maximum of a nonnegative ``[n]`` in each graph, 0 for a graph without nodes."""
        out = torch.zeros(len(self.ptr) - 1, dtype=x.dtype, device=x.device)
        return out.scatter_reduce_(0, self.batch, x, "amax")

    # ------------------------------------------------------------------ products

    def push(self, x: Tensor) -> Tensor:
        """Return ``Aᵀ x`` for ``x`` ``[n]`` or ``[n, c]``."""
        # Aᵀ = A when symmetric: an edge list sorted by source, as PyG keeps it, then needs no second sort.
        by_target = self.target_sorted or not self.symmetric
        return _product(self._by_target if by_target else self._by_source, x)

    def pull(self, x: Tensor) -> Tensor:
        """Return ``A x`` for ``x`` ``[n]`` or ``[n, c]``."""
        by_source = self.source_sorted or not self.symmetric
        return _product(self._by_source if by_source else self._by_target, x)

    @cached_property
    def source_sorted(self) -> bool:
        if self.scan is not None:
            return self.scan.all_sorted
        return self.known_sorted or _is_sorted(self.edge_index[0])

    @cached_property
    def target_sorted(self) -> bool:
        return _is_sorted(self.edge_index[1])

    @cached_property
    def _by_source(self) -> Tensor:
        """A in CSR."""
        return self._compressed(0, self.source_sorted)

    @cached_property
    def _by_target(self) -> Tensor:
        """Aᵀ in CSR."""
        return self._compressed(1, self.target_sorted)

    def _compressed(self, end: int, is_sorted: bool) -> Tensor:
        rows, columns = self.edge_index[end], self.edge_index[1 - end]
        values = self.weights.detach()
        if is_sorted:
            return _csr(_row_offsets(rows, self.num_nodes), columns, values, self.num_nodes)
        if rows.device.type == "cpu":
            if self.edge_weight is None and self.num_nodes < 2**31:
                return _csr(*key_sorted(rows, columns, self.num_nodes), values, self.num_nodes)
            return _csr(*bucket_sorted(rows, columns, values, self.num_nodes), self.num_nodes)
        return _csr(*comparison_sorted(rows, columns, values, self.num_nodes), self.num_nodes)

    def mark_symmetric(self) -> None:
        """Record that A = Aᵀ, where it is known, so that :attr:`symmetric` need not compare all edges."""
        vars(self)["symmetric"] = True

    @cached_property
    def symmetric(self) -> bool:
        """True if A equals its transpose.

        With weights: sorts the edges and their reverses and compares. Without: compares ``rᵀAq`` with ``qᵀAr`` in every
        graph, in exact arithmetic, for hashed integer vectors r and q. An asymmetric graph passes with probability
        below 2⁻⁵⁰ (few edges per node: 64-bit vectors, modulo 2⁶⁴), 2⁻³⁰ (many: two pairs of 16 bits) or 2⁻⁴⁰
        (more than two million edges: four pairs of 11 bits).
        """
        if self.edge_index.shape[1] == 0:
            return True
        if self.edge_weight is not None:
            source, target = self.edge_index
            return _same_reversed(source, target, self.weights.detach(), self.num_nodes)
        if self.scan is not None:
            return self.scan.all_symmetric
        large, sparse = self.edge_index.shape[1] > 1 << 21, self.edge_index.shape[1] < 8 * self.num_nodes
        if sparse and self.source_sorted and not large:
            return self._same_edge_sums()
        if not self.source_sorted and not torch.equal(self.out_degree, self._degree(1)):
            return False
        matrix = self._by_source if self.source_sorted and not self.target_sorted else self._by_target
        return all(self._same_products(matrix, turn, bits=11 if large else 16) for turn in range(2 if large else 1))

    def _same_edge_sums(self) -> bool:
        """Check that Σ r_u q_v - q_u r_v over the edges u → v of each graph is 0, with q = r², modulo 2⁶⁴."""
        source, target = self.edge_index
        r = mix(torch.arange(self.num_nodes, device=self.ptr.device))
        behind, ahead = r.index_select(0, source), r.index_select(0, target)
        gaps = (ahead - behind).mul_(behind).mul_(ahead)
        running = torch.zeros(len(gaps) + 1, dtype=torch.int64, device=gaps.device)
        torch.cumsum(gaps, 0, out=running[1:])
        edge_ptr = self._by_source.crow_indices().index_select(0, self.ptr)
        return not bool(running.index_select(0, edge_ptr).diff().any())

    def _same_products(self, matrix: Tensor, turn: int, bits: int) -> bool:
        """Check the same by products with A, whose float64 sums stay below 2⁵³ and are exact."""
        words = mix(torch.arange(self.num_nodes, device=self.ptr.device) + (turn << 40))
        # Four small integers per node out of one scrambled word: two of r, two of q.
        shifts = torch.tensor([0, 16, 32, 48], device=words.device)
        probes = ((words.unsqueeze(1) >> shifts) & ((1 << bits) - 1)).to(torch.float64)
        seen = matrix @ probes
        gaps = probes[:, :2] * seen[:, 2:] - seen[:, :2] * probes[:, 2:]
        return not bool(self.segment_sum(gaps).any())


def _is_sorted(x: Tensor) -> bool:
    # Unsorted lists mostly fail on the first few entries.
    return all(bool((part[1:] >= part[:-1]).all()) for part in (x[:64], x))


@functools.cache
def _accept_beta_state() -> None:
    """Trigger, and suppress, the one-time warning that sparse CSR tensors are in beta."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
        torch.sparse_csr_tensor([0, 1], [0], [1.0], size=(1, 1), check_invariants=False)


def _row_offsets(rows: Tensor, num_rows: int) -> Tensor:
    """Return row offsets ``[num_rows + 1]`` of sorted ``rows``."""
    if len(rows) > 16 * num_rows:
        return torch.searchsorted(rows, torch.arange(num_rows + 1, dtype=rows.dtype, device=rows.device))
    starts = torch.zeros(num_rows + 1, dtype=torch.int64, device=rows.device)
    torch.cumsum(torch.bincount(rows, minlength=num_rows), 0, out=starts[1:])
    return starts


def comparison_sorted(rows: Tensor, columns: Tensor, values: Tensor, num_rows: int) -> tuple[Tensor, Tensor, Tensor]:
    """Convert COO to CSR (offsets, columns, values) by a stable sort, on any device."""
    rows, order = torch.sort(rows.to(torch.int32) if num_rows < 2**31 else rows, stable=True)
    return _row_offsets(rows, num_rows), columns.index_select(0, order), values.index_select(0, order)


def key_sorted(rows: Tensor, columns: Tensor, num_rows: int) -> tuple[Tensor, Tensor]:
    """Convert unweighted COO to CSR (offsets, columns) by NumPy's vectorised sort of one 64-bit key per entry."""
    keys = (rows << 32).bitwise_or_(columns)
    keys.numpy().sort()
    lower_half = keys.to(torch.int32)
    return _row_offsets(keys.bitwise_right_shift_(32), num_rows), lower_half


def bucket_sorted(rows: Tensor, columns: Tensor, values: Tensor, num_rows: int) -> tuple[Tensor, Tensor, Tensor]:
    """Convert COO to CSR by SciPy's bucket sort, on the CPU: twice as fast as a comparison sort."""
    small = np.int32 if max(num_rows, len(rows)) < 2**31 - 1 else np.int64
    places = (rows.numpy().astype(small), columns.numpy().astype(small))
    matrix = scipy.sparse.coo_array((values.numpy(), places), shape=(num_rows, num_rows))
    # Products add up parallel edges, so SciPy need not merge them.
    matrix.has_canonical_format = True
    matrix = matrix.tocsr()
    return torch.from_numpy(matrix.indptr), torch.from_numpy(matrix.indices), torch.from_numpy(matrix.data)


def _csr(starts: Tensor, columns: Tensor, values: Tensor, num_columns: int) -> Tensor:
    # 32-bit indices halve the memory traffic of a product.
    small = torch.int32 if max(len(columns), num_columns) < 2**31 - 1 else torch.int64
    _accept_beta_state()
    return torch.sparse_csr_tensor(
        starts.to(small), columns.to(small), values, size=(len(starts) - 1, num_columns), check_invariants=False
    )


def _product(matrix: Tensor, x: Tensor) -> Tensor:
    if x.is_complex():
        return torch.complex(_product(matrix, x.real), _product(matrix, x.imag))
    if matrix.shape[0] == 0 or x.numel() == 0:
        return torch.zeros_like(x, dtype=torch.float64)
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
    total = torch.zeros(len(keys), dtype=weights.dtype, device=keys.device).index_add_(0, inverse, weights[order])
    # An edge of weight 0, or edges that cancel, are no entry of the matrix.
    return keys[total != 0], total[total != 0]
