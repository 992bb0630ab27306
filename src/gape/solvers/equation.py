r"""The equation that solvers solve, on one part of a batch.

In row convention, with X = Pᵀ ``[n, k]`` and S = (αℓ)ᵀ, equation (2) of the paper reads ``X = AᵀXμ + S``. With one
transition per type it is ``X = F(X) + S``, where F multiplies each node's row by the μ of its type and then pushes it
along the edges (for edge types: type by type).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from gape._internal.validation import as_tensor, check_finite
from gape.automaton import Automaton
from gape.graph.adjacency import Adjacency
from gape.graph.graph import Graph
from gape.graph.walk_matrix import WalkMatrix, needs_edges_only
from gape.linalg.radius_bounds import EPSILON, balanced, radius_bounds, split_components


@dataclass(frozen=True, eq=False)
class Equation:
    """One automaton on one batch of graphs, in float64 (or complex128).

    Its tensors may require gradients. Solvers get :attr:`detached`, in which none does.

    Args:
        walk: the walk matrix A.
        initial: α, ``[k, m]``.
        transition: μ, ``[k, k]`` or ``[types, k, k]``.
        labels: ``[n]`` node labels, ``None`` if there is only one.
        edge_type: ``[E]`` if the transition goes by edge type.
        final: τ, ``[k, m]``, ``None`` for ones. Solvers leave it out.
        given_rhs: S itself, real ``[n, k]``, instead of αℓ. Its columns then take the place of the label indicators,
            and the identity that of α, so that every solver takes it.
        graph: the graphs, which :meth:`select` needs.
        dtype: of the weights that are returned in the end.
        out: ``[n, k]`` of that dtype. A solver may write the weights there and return it.
        every_label: follow also labels whose initial vector is zero, because α has a gradient.
    """

    walk: WalkMatrix
    initial: Tensor
    transition: Tensor
    labels: Tensor | None = None
    edge_type: Tensor | None = None
    final: Tensor | None = None
    given_rhs: Tensor | None = None
    graph: Graph | None = None
    dtype: torch.dtype = torch.float64
    out: Tensor | None = None
    every_label: bool = False

    @classmethod
    def of(
        cls,
        automaton: Automaton,
        graph: Graph,
        matrix: str = "adjacency",
        *,
        rhs: Tensor | None = None,
        dtype: torch.dtype | None = None,
        out: Tensor | None = None,
    ) -> Equation:
        """Write down the equation of ``automaton`` on ``graph``; detached if gradients are disabled."""
        exact = torch.complex128 if automaton.dtype.is_complex else torch.float64

        def tensor(value: Tensor) -> Tensor:
            return (value if torch.is_grad_enabled() else value.detach()).to(graph.device, exact)

        initial = automaton.initial if rhs is None else torch.eye(automaton.states)
        return cls(
            walk=graph.walk(matrix),
            initial=tensor(initial),
            transition=tensor(automaton.transition),
            labels=graph.labels if automaton.labels > 1 else None,
            edge_type=graph.edge_type if automaton.typed and automaton.transition_by == "edge" else None,
            final=None if automaton.final is None else tensor(automaton.final),
            given_rhs=rhs if rhs is None or torch.is_grad_enabled() else rhs.detach(),
            graph=graph,
            dtype=automaton.dtype if dtype is None else dtype,
            # The weights have to be multiplied by τ before they are rounded.
            out=out if automaton.final is None else None,
        )

    # ------------------------------------------------------------------ gradients

    @property
    def learns_edges(self) -> bool:
        """True if the edge weights require gradients."""
        weight = self.adjacency.edge_weight
        return weight is not None and weight.requires_grad and torch.is_grad_enabled()

    @property
    def requires_grad(self) -> bool:
        """True if anything in the equation requires gradients."""
        tensors = (self.initial, self.transition, self.final, self.given_rhs)
        return self.learns_edges or any(tensor is not None and tensor.requires_grad for tensor in tensors)

    @cached_property
    def detached(self) -> Equation:
        """The same equation without gradients."""
        if not self.requires_grad:
            return self
        return replace(
            self,
            initial=self.initial.detach(),
            transition=self.transition.detach(),
            final=None if self.final is None else self.final.detach(),
            given_rhs=None if self.given_rhs is None else self.given_rhs.detach(),
            every_label=self.initial.requires_grad,
        )

    # ------------------------------------------------------------------ some of the graphs

    def select(self, graphs: Tensor) -> Equation:
        """The equation of some of the graphs, in the order they have here."""
        assert self.graph is not None
        return self._on(self.graph.select(graphs), self.nodes_of(graphs))

    def alone(self, i: int) -> Equation:
        """The equation of graph ``i``."""
        assert self.graph is not None
        return self._on(self.graph.slice(i, i + 1), self.nodes(i))

    def nodes(self, i: int) -> slice:
        """The nodes of graph ``i``."""
        return slice(int(self.walk.ptr[i]), int(self.walk.ptr[i + 1]))

    def labels_of(self, nodes: Tensor) -> Tensor | None:
        """The labels of some nodes, the last one's for padding (-1); ``None`` if there is only one label."""
        return None if self.labels is None else self.labels[nodes]

    def nodes_of(self, graphs: Tensor) -> Tensor:
        """The nodes of some of the graphs, in order."""
        assert self.graph is not None
        return self.graph.nodes_of(graphs)

    def _on(self, graph: Graph, nodes: Tensor | slice) -> Equation:
        return replace(
            self,
            walk=graph.walk(self.walk.name),
            labels=None if self.labels is None else graph.labels,
            edge_type=None if self.edge_type is None else graph.edge_type,
            given_rhs=None if self.given_rhs is None else self.given_rhs[nodes],
            graph=graph,
            out=None if self.out is None else self.out.new_empty(graph.num_nodes, self.out.shape[1]),
        )

    # ------------------------------------------------------------------ properties

    @property
    def adjacency(self) -> Adjacency:
        return self.walk.adjacency

    @property
    def num_graphs(self) -> int:
        return len(self.walk.ptr) - 1

    @property
    def sizes(self) -> Tensor:
        """``[graphs]``: number of nodes of each graph."""
        return self.adjacency.sizes

    @property
    def states(self) -> int:
        """Number of states k."""
        return len(self.initial)

    @property
    def typed(self) -> bool:
        """True if the transition depends on a node label or an edge type."""
        return self.transition.dim() == 3

    @property
    def finite(self) -> bool:
        """True if the automaton and the edge weights are finite."""
        tensors = (self.initial, self.transition, self.adjacency.edge_weight)
        return all(bool(torch.isfinite(tensor.detach()).all()) for tensor in tensors if tensor is not None)

    @cached_property
    def tolerance(self) -> float:
        """The relative residual to ask for: far below the rounding error of the weights."""
        return 1e-12 if self.out is None or self.out.dtype in (torch.float64, torch.complex128) else 1e-10

    @cached_property
    def used_labels(self) -> Tensor:
        """The labels whose initial vector is not zero: only their walks have to be followed. At least one."""
        used = self.initial.abs().sum(0).nonzero().flatten()
        if self.every_label or not len(used):
            return torch.arange(self.initial.shape[1] if self.every_label else 1, device=self.initial.device)
        return used

    @cached_property
    def indicator(self) -> Tensor:
        """``[n, used labels]``: one where a node has the label."""
        if self.given_rhs is not None:
            return self.given_rhs
        if self.labels is None:
            return torch.ones(
                self.walk.num_nodes, len(self.used_labels), dtype=torch.float64, device=self.walk.ptr.device
            )
        return (self.labels.unsqueeze(1) == self.used_labels).to(torch.float64)

    @cached_property
    def counts_walks(self) -> bool:
        """True if products with A count walks with nonnegative weights."""
        return self.given_rhs is None and self.walk.nonnegative

    # ------------------------------------------------------------------ right-hand side, norms and bounds

    @cached_property
    def rhs(self) -> Tensor:
        """The right-hand side S, ``[n, k]``."""
        if self.given_rhs is not None:
            return self.given_rhs.to(self.initial.dtype)
        if self.labels is None:
            return self.initial[:, 0].expand(self.walk.num_nodes, -1)
        return self.initial.T[self.labels]

    @cached_property
    def rhs_norm(self) -> Tensor:
        """``[graphs]``: ‖S‖ of each graph."""
        if self.given_rhs is not None:
            return self.norms(self.given_rhs)
        peak = self.initial.abs().amax()
        each: Tensor = peak * torch.linalg.vector_norm(self.initial / torch.where(peak > 0, peak, 1.0), dim=0)
        if self.labels is None:
            return self.sizes.to(torch.float64).sqrt() * each[0]
        return self.norms(each[self.labels].unsqueeze(1))

    @cached_property
    def transition_radius(self) -> float:
        """ρ(μ); for typed transitions the largest 2-norm of any of them, an upper bound."""
        if self.typed:
            return float(torch.linalg.matrix_norm(self.transition, 2).max())
        return float(torch.linalg.eigvals(self.transition.cpu()).abs().max())

    @cached_property
    def transition_norm(self) -> float:
        """‖μ‖₂, the largest of any type."""
        if self.typed:
            return self.transition_radius
        return float(torch.linalg.matrix_norm(self.transition.cpu(), 2))

    @cached_property
    def transition_bounds(self) -> tuple[float, float]:
        """A lower and an upper bound of ρ(μ), for one μ, that hold in spite of rounding."""
        radius, norm = self.transition_radius, self.transition_norm
        if radius >= norm * (1.0 - 1e-12):  # an eigenvalue as large as the norm is well-conditioned
            return norm * (1.0 - 1e-12), norm * (1.0 + 1e-14)
        lower, upper = radius_bounds(balanced(split_components(self.transition.cpu())))
        return float(lower), min(float(upper), norm * (1.0 + 1e-14))

    @cached_property
    def nilpotent(self) -> bool:
        """True if no run comes back to a state it left, as with the shift automaton: it has fewer than k steps."""
        matrix = self.transition.abs()
        return not bool(split_components(matrix.sum(0) if self.typed else matrix).any())

    @property
    def reliable_poles(self) -> bool:
        """True if the eigenvalues of μ are accurate to ``SINGULAR_GAP``, 1e-10."""
        upper = self.transition_bounds[1]
        return upper - self.transition_radius <= 1e-10 * max(1.0, upper)

    @property
    def absolute(self) -> Equation:
        """The operator with absolute values in A and μ: no run weighs less than in the equation itself."""
        return replace(self, walk=self.walk.absolute, transition=self.transition.abs(), final=None, out=None)

    @property
    def row_norms(self) -> Equation:
        """The operator ‖μ‖₂|A|, with one state: it bounds the norms of the rows of F(X) by those of X."""
        norms = torch.linalg.matrix_norm(self.transition, 2)
        alpha = torch.ones(1, self.initial.shape[1], dtype=norms.dtype, device=norms.device)
        return replace(self.absolute, initial=alpha, transition=norms[..., None, None], given_rhs=None)

    @property
    def radius_bound(self) -> Tensor:
        """``[graphs]``: an upper bound of the spectral radius of F, 0 for acyclic graphs and nilpotent transitions.

        ρ(μ) times a norm of A for one μ; max ‖μ_a‖₂ times √(‖A‖₁‖A‖∞) ≥ ‖A‖₂ for several, because products of different
        matrices can grow although each has a small radius.
        """
        norms = self.walk.two_norm_bounds if self.typed else self.walk.norm_bounds
        largest = self.transition_radius if self.typed else self.transition_bounds[1]
        return torch.where(self.finite_runs, 0.0, largest * norms)

    @property
    def finite_runs(self) -> Tensor:
        """``[graphs]``: True if the runs end after finitely many steps, by the graph or by the transitions."""
        return self.walk.acyclic_graphs | self.nilpotent

    def norms(self, x: Tensor) -> Tensor:
        """``[graphs]``: the norm of each graph's rows of ``x`` ``[n, k]``, without over- or underflow.

        Each graph's entries are divided by the largest before they are squared.
        """
        sizes = x.abs()
        peak = self.adjacency.segment_max(sizes.amax(1))
        sizes = sizes / torch.where(peak > 0, peak, 1.0)[self.adjacency.batch].unsqueeze(1)
        return peak * self.adjacency.segment_sum(sizes.square().sum(1)).sqrt()

    def relative(self, norm: Tensor) -> Tensor:
        """``norm`` divided by ‖S‖, 0 where S is zero."""
        return torch.where(self.rhs_norm > 0, norm / self.rhs_norm, torch.zeros_like(norm))

    def residual(self, x: Tensor) -> Tensor:
        """``[graphs]``: ‖X - F(X) - S‖ / ‖S‖, at the cost of one more product over the edges."""
        return self.relative(self.norms(x - (self.apply(x) + self.rhs)))

    def rounding(self, size: Tensor, graph_norm: Tensor) -> Tensor:
        """The relative residual that float64 alone costs a solution of norm ``size``, all ``[graphs]``."""
        return self.relative(EPSILON * (1.0 + self.transition_norm * graph_norm) * size)

    def rounding_of(self, x: Tensor) -> Tensor:
        """Entrywise rounding bound of ``x``; tighter than :meth:`rounding` on hubs, for one more product."""
        absolute, size = self.absolute, x.abs()
        moved = absolute.apply(size.to(absolute.transition.dtype)) + size + self.rhs.abs()
        return self.relative(EPSILON * self.norms(moved))

    # ------------------------------------------------------------------ the operator F and its adjoint

    def apply(self, x: Tensor) -> Tensor:
        """``F(X)``."""
        if not self.typed:
            return self.walk.push(x @ self.transition)
        if self.edge_type is None:
            return self.walk.push(self.by_label(x, self.transition))
        return sum_tensors(walk.push(x @ mu) for walk, mu in zip(self.walks_by_type, self.transition, strict=True))

    def adjoint(self, z: Tensor) -> Tensor:
        """``F*(Z)``, with ⟨Z, F(X)⟩ = ⟨F*(Z), X⟩."""
        if not self.typed:
            return self.walk.pull(z) @ self.transition.mH
        if self.edge_type is None:
            return self.by_label(self.walk.pull(z), self.transition.mH)
        return sum_tensors(walk.pull(z) @ mu.mH for walk, mu in zip(self.walks_by_type, self.transition, strict=True))

    def by_label(self, x: Tensor, matrices: Tensor) -> Tensor:
        """Multiply each row of ``x`` ``[n, k]`` by the matrix of its label."""
        if self.labels is None:
            return x @ matrices[0]
        order, place, sizes = self._label_order
        groups = torch.split(x[order], sizes)
        return torch.cat([rows @ matrix for rows, matrix in zip(groups, matrices, strict=True) if len(rows)])[place]

    @cached_property
    def _label_order(self) -> tuple[Tensor, Tensor, list[int]]:
        """The nodes sorted by label, the inverse of that order, and the number of nodes of each label."""
        assert self.labels is not None
        order = torch.argsort(self.labels, stable=True)
        sizes = torch.bincount(self.labels, minlength=len(self.transition)).tolist()
        return order, torch.argsort(order), sizes

    @cached_property
    def walks_by_type(self) -> list[WalkMatrix]:
        """One walk matrix per edge type, with the degrees of the whole graph."""
        assert self.edge_type is not None
        if self.walk.diagonal is not None:
            raise ValueError(needs_edges_only(self.walk.name))
        whole = self.adjacency
        walks = []
        for kind in range(len(self.transition)):
            chosen = self.edge_type == kind
            part = Adjacency(
                whole.edge_index[:, chosen],
                whole.num_nodes,
                whole.ptr,
                None if whole.edge_weight is None else whole.edge_weight[chosen],
            )
            walks.append(WalkMatrix(self.walk.name, part, self.walk.left, self.walk.right))
        return walks


def sum_tensors(tensors: Iterable[Tensor]) -> Tensor:
    return functools.reduce(operator.add, tensors)


# ---------------------------------------------------------------------- validation of the input


def check_fit(automaton: Automaton, graph: Graph, labels: bool = True) -> None:
    """Raise if the graph lacks labels or edge types, or has more than the automaton; ``labels``: α or τ uses them."""
    if automaton.labels > 1 and (labels or (automaton.typed and automaton.transition_by == "node")):
        if graph.labels is None:
            raise ValueError(
                f"the automaton has {automaton.labels} labels and the graph has none; "
                "give them with graph.with_labels(...)"
            )
        top = int(graph.labels.max()) if graph.labels.numel() else 0
        if top >= automaton.labels:
            node = int(graph.labels.argmax())
            raise ValueError(f"node {node} has label {top}; the automaton knows labels 0 … {automaton.labels - 1}")
    if automaton.typed and automaton.transition_by == "edge":
        types = len(automaton.transition)
        if graph.edge_type is None:
            raise ValueError(f"the automaton's transition goes by {types} edge types and the graph has no edge_type")
        top = int(graph.edge_type.max()) if graph.edge_type.numel() else 0
        if top >= types:
            edge = int(graph.edge_type.argmax())
            raise ValueError(f"edge {edge} has type {top}; the automaton knows types 0 … {types - 1}")


def output_dtype(automaton: Automaton, dtype: torch.dtype | None) -> torch.dtype:
    """Validate ``dtype`` of the weights; the automaton's own if ``None``."""
    if dtype is None:
        return automaton.dtype
    if not isinstance(dtype, torch.dtype) or not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(f"dtype must be a floating-point torch.dtype, got {dtype!r}")
    if automaton.dtype.is_complex and not dtype.is_complex:
        raise ValueError(f"the automaton is {automaton.dtype}, and weights in {dtype} would lose their imaginary part")
    return dtype


def as_rhs(value: Any, automaton: Automaton, graph: Graph) -> Tensor:
    """Convert and validate a right-hand side: float64 on the graph's device."""
    rhs = as_tensor(value, "rhs")
    expected = [graph.num_nodes, automaton.states]
    if list(rhs.shape) != expected:
        raise ValueError(f"rhs must be [nodes, states] = {expected}, got shape {list(rhs.shape)}")
    if rhs.is_complex():
        raise ValueError(f"rhs must be real, got {rhs.dtype}; solve for its two parts and add".replace("torch.", ""))
    check_finite(rhs, "rhs")
    return rhs.to(graph.device, torch.float64)
