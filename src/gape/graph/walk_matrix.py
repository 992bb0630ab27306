"""Walk matrices: how weight moves along the edges of a graph.

Every walk matrix of the library has the form ``M = diag(d) + s · diag(l) A diag(r)`` with one sparse adjacency
matrix A, so A is sorted once and the named matrices only differ in three vectors and a sign:

====================  ==================================  =========================
name                  matrix                              remark
====================  ==================================  =========================
adjacency             A                                   the paper's equation (2)
random_walk           D⁻¹A, D the out-degrees             rows sum to 1
random_walk_in        AD⁻¹, D the in-degrees              columns sum to 1
symmetric             D_out^(-1/2) A D_in^(-1/2)
laplacian             D - A, D the out-degrees
normalized_laplacian  I - D_out^(-1/2) A D_in^(-1/2)      no 1 on isolated nodes
====================  ==================================  =========================

D⁻¹ is the pseudo-inverse: a node of degree 0 (without edges on the side in question, or whose weights cancel) gets a
zero row (column), never a division by zero. Weights may be negative; degrees under a square root may not.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from gape._internal.validation import check_one_of
from gape._internal.warnings import warn_caller
from gape.graph.adjacency import Adjacency

MatrixName = Literal["adjacency", "random_walk", "random_walk_in", "symmetric", "laplacian", "normalized_laplacian"]

#: Append only: saved bases hold the index of their matrix in it.
NAMES: tuple[str, ...] = get_args(MatrixName)
# Smallest degree whose inverse is finite in float64.
SMALLEST_DEGREE = 1e-290


def needs_edges_only(matrix: str) -> str:
    """The error of transitions by edge type on a walk matrix with a diagonal."""
    return (
        f"transitions by edge type need a walk matrix of edges only, got {matrix!r}, whose diagonal belongs to no "
        "edge; use 'adjacency', 'random_walk', 'random_walk_in' or 'symmetric'"
    )


@dataclass(frozen=True, eq=False)
class WalkMatrix:
    """One walk matrix of a batch of graphs, block-diagonal, mostly used through its products.

    Args:
        name: one of the names above.
        adjacency: the sparse matrix A.
        left, right: the vectors l and r, ``None`` for ones.
        diagonal: the vector d, ``None`` for zeros.
        sign: the sign s.
    """

    name: str
    adjacency: Adjacency
    left: Tensor | None = None
    right: Tensor | None = None
    diagonal: Tensor | None = None
    sign: float = 1.0

    @property
    def num_nodes(self) -> int:
        return self.adjacency.num_nodes

    @property
    def ptr(self) -> Tensor:
        return self.adjacency.ptr

    @cached_property
    def symmetric(self) -> bool:
        """True if the matrix equals its transpose by construction, whatever the degrees.

        D⁻¹A of a regular graph also happens to be symmetric; that is left to :attr:`similarity`.
        """
        if not self.adjacency.symmetric:
            return False
        if self.left is None or self.right is None:
            return self.left is self.right
        return torch.equal(self.left, self.right)

    @cached_property
    def similarity(self) -> Tensor | None:
        """Positive c with ``diag(c) M diag(1/c)`` symmetric, ``None`` if none is known.

        D⁻¹A and AD⁻¹ of an undirected graph are similar to D^(-1/2) A D^(-1/2); all ones if M is symmetric.
        """
        if self.symmetric:
            return torch.ones(self.num_nodes, dtype=torch.float64, device=self.ptr.device)
        if not self.adjacency.symmetric:
            return None
        # c_u l_u A_uv r_v / c_v is symmetric when c = sqrt(r / l). A node with l = 0 or r = 0 has no edges, so that
        # its c is free, unless it has weights of both signs that cancel.
        ones = torch.ones(self.num_nodes, dtype=torch.float64, device=self.ptr.device)
        left = ones if self.left is None else self.left.detach()
        right = ones if self.right is None else self.right.detach()
        signed = self.adjacency.weighted and bool((self.adjacency.weights < 0).any())
        if signed and not bool(((left > 0) & (right > 0)).all()):
            return None
        return torch.where((left > 0) & (right > 0), right / left, ones).sqrt()

    def push(self, x: Tensor) -> Tensor:
        """Return ``Mᵀ x`` for ``x`` ``[n]`` or ``[n, c]``: one step along the edges."""
        y = _scale(self.adjacency.push(_scale(x, self.left)), self.right)
        return self._combine(x, y)

    def pull(self, x: Tensor) -> Tensor:
        """Return ``M x``: one step against the edges."""
        y = _scale(self.adjacency.pull(_scale(x, self.right)), self.left)
        return self._combine(x, y)

    def _combine(self, x: Tensor, y: Tensor) -> Tensor:
        if self.sign < 0:
            y = -y
        return y if self.diagonal is None else y + _scale(x, self.diagonal)

    def entries(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return rows, columns and values of all entries; the values are differentiable in the edge weights."""
        source, target = self.adjacency.edge_index
        values = self.adjacency.weights
        if self.left is not None:
            values = values * self.left[source]
        if self.right is not None:
            values = values * self.right[target]
        values = values * self.sign
        if self.diagonal is None:
            return source, target, values
        loops = torch.arange(self.num_nodes, device=source.device)
        return torch.cat([source, loops]), torch.cat([target, loops]), torch.cat([values, self.diagonal])

    @cached_property
    def _norms(self) -> tuple[Tensor, Tensor]:
        """The ∞-norm and the 1-norm of each graph's matrix: its largest row and column sums of absolute values.

        Upper bounds where coinciding entries (parallel edges, loops in a Laplacian) cancel.
        """
        if self.left is None and self.right is None and self.diagonal is None and not self.adjacency.weighted:
            if self.adjacency.scan is not None:
                return self.adjacency.scan.most_out, self.adjacency.scan.most_in
            rows, columns = self.adjacency.out_degree, self.adjacency.in_degree
        else:
            source, target, values = (part.detach() for part in self.entries())
            zero = torch.zeros(self.num_nodes, dtype=torch.float64, device=values.device)
            rows = zero.index_add(0, source, values.abs())
            columns = zero.index_add(0, target, values.abs())
            check_range(rows, "out-degree")
            check_range(columns, "in-degree")
        return self.adjacency.segment_max(rows), self.adjacency.segment_max(columns)

    @property
    def norm_bounds(self) -> Tensor:
        """``[graphs]``: an upper bound of each spectral radius, the smaller of the two norms."""
        return torch.minimum(*self._norms)

    @property
    def two_norm_bounds(self) -> Tensor:
        """``[graphs]``: an upper bound of each 2-norm, the geometric mean of the two norms."""
        rows, columns = self._norms
        return (rows * columns).sqrt()

    @cached_property
    def nonnegative(self) -> bool:
        """True if no entry is negative; coinciding entries count one by one."""
        if self.sign > 0 and not self.adjacency.weighted:
            return True
        return bool((self.entries()[2] >= 0).all())

    @cached_property
    def absolute(self) -> WalkMatrix:
        """The matrix of absolute values, whose spectral radius is no smaller; itself if no entry is negative."""
        return self if self.nonnegative else self._with_values(self.entries()[2].detach().abs())

    @cached_property
    def within_components(self) -> WalkMatrix:
        """The matrix without the entries between :attr:`components`, which change no eigenvalue."""
        source, target, values = self.entries()
        return self._with_values(torch.where(self.components[source] == self.components[target], values.detach(), 0.0))

    def _with_values(self, values: Tensor) -> WalkMatrix:
        source, target, _ = self.entries()
        edges = torch.stack([source, target])
        return WalkMatrix(self.name, Adjacency(edges, self.num_nodes, self.ptr, values))

    @cached_property
    def acyclic(self) -> bool:
        """True if no graph of the batch has a cycle."""
        if self.adjacency.edge_index.shape[1] == 0:
            return self.diagonal is None
        return bool(self.acyclic_graphs.all())

    @cached_property
    def acyclic_graphs(self) -> Tensor:
        """``[graphs]``: True if the graph has no cycle: its strong components are single nodes without a loop.

        All ``False`` for undirected unweighted batches, without checking each graph.
        """
        edges, graphs = self.adjacency.edge_index, len(self.ptr) - 1
        undirected = edges.shape[1] and not self.adjacency.weighted and self.adjacency.symmetric
        if self.diagonal is not None or undirected:
            return torch.zeros(graphs, dtype=torch.bool, device=self.ptr.device)
        component = self.components
        together = torch.bincount(component)[component] > 1
        cyclic = together.index_fill(0, edges[0][edges[0] == edges[1]], True)
        return self.adjacency.segment_max(cyclic.to(torch.float64)) == 0

    @cached_property
    def components(self) -> Tensor:
        """``[n]``: the number of each node's strongly connected component.

        Entries between components change no eigenvalue, but make them ill-conditioned: computed with them, the
        eigenvalues of a long directed path come out near 0.1 instead of 0.
        """
        source, target = self.adjacency.edge_index.cpu().numpy()
        shape = (self.num_nodes, self.num_nodes)
        matrix = scipy.sparse.coo_array((np.ones(len(source), dtype=np.int8), (source, target)), shape=shape)
        _, component = scipy.sparse.csgraph.connected_components(matrix, directed=True, connection="strong")
        return torch.from_numpy(component).to(self.ptr.device, torch.int64)

    def dense(self, *, within_components: bool = False) -> Tensor:
        """Return the matrices of all graphs, zero-padded to the largest: ``[graphs, n_max, n_max]``.

        ``within_components`` drops the entries between :attr:`components`.
        """
        source, target, values = self.entries()
        if within_components:
            values = torch.where(self.components[source] == self.components[target], values, 0.0)
        batch, local = self.adjacency.batch, self.adjacency.local
        size = int(self.adjacency.sizes.max())
        out = torch.zeros(len(self.ptr) - 1, size, size, dtype=values.dtype, device=values.device)
        return out.index_put((batch[source], local[source], local[target]), values, accumulate=True)


def _scale(x: Tensor, by: Tensor | None) -> Tensor:
    if by is None:
        return x
    return x * by if x.dim() == 1 else x * by.unsqueeze(-1)


def walk_matrix(adjacency: Adjacency, name: str) -> WalkMatrix:
    """Build the walk matrix of that name."""
    check_one_of(NAMES, matrix=name)
    if name == "adjacency":
        return WalkMatrix(name, adjacency)
    out_degree, in_degree = adjacency.out_degree, adjacency.in_degree
    if adjacency.weighted and name != "laplacian":
        _warn_if_cancelled(adjacency)
    if name == "laplacian":
        return WalkMatrix(name, adjacency, diagonal=out_degree, sign=-1.0)
    if name == "random_walk":
        return WalkMatrix(name, adjacency, left=_inverse(out_degree, "out-degree"))
    if name == "random_walk_in":
        return WalkMatrix(name, adjacency, right=_inverse(in_degree, "in-degree"))
    left = _inverse(out_degree, "out-degree", root=True)
    right = left if in_degree is out_degree else _inverse(in_degree, "in-degree", root=True)
    if name == "symmetric":
        return WalkMatrix(name, adjacency, left=left, right=right)
    assert name == "normalized_laplacian", name
    connected = ((out_degree > 0) | (in_degree > 0)).to(out_degree.dtype)
    return WalkMatrix(name, adjacency, left=left, right=right, diagonal=connected, sign=-1.0)


def _warn_if_cancelled(adjacency: Adjacency) -> None:
    """Warn if weights of both signs cancel in a degree, which then counts as that of a node without edges."""
    if not bool((adjacency.weights < 0).any()):
        return
    edges = torch.bincount(adjacency.edge_index[0][adjacency.weights != 0], minlength=adjacency.num_nodes)
    lost = ((edges > 0) & (adjacency.out_degree == 0)).nonzero().flatten()
    if len(lost):
        warn_caller(
            f"the weights of the edges out of {len(lost)} nodes, such as node {int(lost[0])}, cancel: its degree is 0, "
            "and walks end there as if it had no edges; use matrix='adjacency', or weights of one sign"
        )


def check_range(degree: Tensor, what: str, smallest: float = 0.0) -> None:
    """Raise if a degree ``[n]`` overflows float64, or is nonzero but below ``smallest``."""
    bad = ~torch.isfinite(degree) | ((degree != 0) & (degree.abs() < smallest))
    if bool(bad.any()):
        node = int(bad.nonzero()[0])
        raise ValueError(
            f"node {node} has {what} {degree[node].item():g}, which float64 cannot compute with; divide the edge "
            "weights by the largest of them"
        )


def _inverse(degree: Tensor, what: str, root: bool = False) -> Tensor:
    values = degree.detach()
    check_range(values, what, SMALLEST_DEGREE)
    if root and bool((values < 0).any()):
        node = int((values < 0).nonzero()[0])
        raise ValueError(
            f"node {node} has {what} {values[node].item():g}: its square root does not exist; "
            "use the adjacency or a matrix of positive weights"
        )
    # A node of degree 0 keeps a zero row. The inner where keeps the unused branch, and so its gradient, finite.
    safe = torch.where(degree == 0, torch.ones_like(degree), degree)
    inverse = safe.rsqrt() if root else 1.0 / safe
    return torch.where(degree == 0, torch.zeros_like(degree), inverse)
