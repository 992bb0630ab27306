r"""The equation to solve, on one part of a batch.

In row convention, with X = Pᵀ ``[n, k]`` and S = (αℓ)ᵀ, equation (2) of the paper reads ``X = AᵀXμ + S``; with a
transition per type ``X = F(X) + S`` where F first multiplies each node's row by the μ of its type and then pushes it
along the edges (for edge types: type by type).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from gape.automaton import Automaton
from gape.graph.adjacency import Adjacency
from gape.graph.graph import Graph
from gape.graph.walk_matrix import WalkMatrix


@dataclass(frozen=True, eq=False)
class Problem:
    """One automaton on one batch of graphs, in float64 and without gradients.

    Args:
        walk: the walk matrix A.
        initial: α, ``[k, m]``.
        transition: μ, ``[k, k]`` or ``[types, k, k]``.
        labels: ``[n]``, ``None`` if there is only one.
        edge_type: ``[E]`` when the transition goes by edge type.
        dtype: what the caller will round the weights to; a solver may return them so rounded.
        out: ``[n, k]`` of that dtype, where the caller wants them; a solver may write them there and return it.
        every_label: follow also labels whose initial vector is zero, because it has a gradient.
        given: S itself, real ``[n, k]``, in the place of αℓ. Its columns stand in for label indicators, with the
            identity for α, so that every solver takes it.
    """

    walk: WalkMatrix
    initial: Tensor
    transition: Tensor
    labels: Tensor | None = None
    edge_type: Tensor | None = None
    dtype: torch.dtype = torch.float64
    out: Tensor | None = None
    every_label: bool = False
    given: Tensor | None = None

    @classmethod
    def of(
        cls,
        automaton: Automaton,
        graph: Graph,
        matrix: str,
        out: Tensor | None = None,
        every_label: bool = False,
        source: Tensor | None = None,
    ) -> Problem:
        dtype = torch.complex128 if automaton.dtype.is_complex else torch.float64
        by_edge = automaton.typed and automaton.transition_by == "edge"
        initial = automaton.initial.detach() if source is None else torch.eye(automaton.states)
        return cls(
            walk=graph.walk(matrix),
            initial=initial.to(graph.device, dtype),
            transition=automaton.transition.detach().to(graph.device, dtype),
            labels=graph.labels if automaton.labels > 1 else None,
            edge_type=graph.edge_type if by_edge else None,
            dtype=dtype if out is None else out.dtype,
            out=out,
            every_label=every_label,
            given=None if source is None else source.detach().to(graph.device, torch.float64),
        )

    @property
    def adjacency(self) -> Adjacency:
        return self.walk.adjacency

    @property
    def num_graphs(self) -> int:
        return len(self.walk.ptr) - 1

    @property
    def typed(self) -> bool:
        return self.transition.dim() == 3

    @cached_property
    def source(self) -> Tensor:
        """S, ``[n, k]``."""
        if self.given is not None:
            return self.given.to(self.initial.dtype)
        if self.labels is None:
            return self.initial[:, 0].expand(self.walk.num_nodes, -1)
        return self.initial.T[self.labels]

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
        if self.given is not None:
            return self.given
        if self.labels is None:
            return torch.ones(
                self.walk.num_nodes, len(self.used_labels), dtype=torch.float64, device=self.walk.ptr.device
            )
        return (self.labels.unsqueeze(1) == self.used_labels).to(torch.float64)

    @cached_property
    def counts_walks(self) -> bool:
        """Whether what moves over the edges are walks counted with weights of at least 0."""
        return self.given is None and self.walk.nonnegative

    @cached_property
    def source_norm(self) -> Tensor:
        """``[graphs]``: ‖αℓ‖ of each graph."""
        if self.given is not None:
            return self.norms(self.given)
        peak = self.initial.abs().amax()
        each: Tensor = peak * torch.linalg.vector_norm(self.initial / torch.where(peak > 0, peak, 1.0), dim=0)
        if self.labels is None:
            return self.adjacency.sizes.to(torch.float64).sqrt() * each[0]
        return self.norms(each[self.labels].unsqueeze(1))

    @cached_property
    def transition_radius(self) -> float:
        """ρ(μ); for typed transitions the largest 2-norm of any of them, an upper bound of what they can do."""
        if self.typed:
            return float(torch.linalg.matrix_norm(self.transition, 2).max())
        return float(torch.linalg.eigvals(self.transition.cpu()).abs().max())

    @cached_property
    def transition_norm(self) -> float:
        """‖μ‖₂, the largest of any type."""
        if self.typed:
            return self.transition_radius
        return float(torch.linalg.matrix_norm(self.transition.cpu(), 2))

    def rounding(self, size: Tensor, graph_norm: Tensor) -> Tensor:
        """The relative residual that float64 alone costs a solution of norm ``size``, all ``[graphs]``."""
        return self.relative(2.0**-52 * (1.0 + self.transition_norm * graph_norm) * size)

    @cached_property
    def tolerance(self) -> float:
        """The relative residual worth asking for: far below what rounding to ``dtype`` costs."""
        return 1e-12 if self.dtype in (torch.float64, torch.complex128) else 1e-10

    def relative(self, norm: Tensor) -> Tensor:
        """``norm`` over the norm of the source, 0 where there is no source."""
        return torch.where(self.source_norm > 0, norm / self.source_norm, torch.zeros_like(norm))

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
        """Each row of ``x`` ``[n, k]`` times the matrix of its label."""
        if self.labels is None:
            return x @ matrices[0]
        order, place, sizes = self._label_order
        groups = torch.split(x[order], sizes)
        return torch.cat([rows @ matrix for rows, matrix in zip(groups, matrices, strict=True) if len(rows)])[place]

    @cached_property
    def _label_order(self) -> tuple[Tensor, Tensor, list[int]]:
        """The nodes sorted by label, the place of each there, and how many have each label."""
        assert self.labels is not None
        order = torch.argsort(self.labels, stable=True)
        sizes = torch.bincount(self.labels, minlength=len(self.transition)).tolist()
        return order, torch.argsort(order), sizes

    @cached_property
    def walks_by_type(self) -> list[WalkMatrix]:
        """One walk matrix per edge type, with the degrees of the whole graph."""
        assert self.edge_type is not None
        if self.walk.diagonal is not None:
            raise ValueError(
                f"transitions by edge type need a walk matrix of edges only, got {self.walk.name!r}, whose diagonal "
                "belongs to no edge; use 'adjacency', 'random_walk', 'random_walk_in' or 'symmetric'"
            )
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

    def residual(self, x: Tensor) -> Tensor:
        """``[graphs]``: ‖X - F(X) - S‖ / ‖S‖, computed outright (one more product over the edges)."""
        return self.relative(self.norms(x - self.apply(x) - self.source))

    def norms(self, x: Tensor) -> Tensor:
        """``[graphs]``: the norm of each graph's rows of ``x`` ``[n, k]``, whatever their size.

        Each graph's entries are divided by the largest before they are squared, so that nothing over- or underflows.
        """
        sizes = x.abs()
        peak = self.adjacency.segment_max(sizes.amax(1))
        sizes = sizes / torch.where(peak > 0, peak, 1.0)[self.adjacency.batch].unsqueeze(1)
        return peak * self.adjacency.segment_sum(sizes.square().sum(1)).sqrt()


def sum_tensors(tensors: Iterable[Tensor]) -> Tensor:
    return functools.reduce(operator.add, tensors)


def check_fit(automaton: Automaton, graph: Graph, labels: bool = True) -> None:
    """Refuse a graph whose labels or edge types the automaton does not know; ``labels``: α or τ are read by them."""
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


def rounded_dtype(automaton: Automaton, dtype: torch.dtype | None) -> torch.dtype:
    """What the weights are rounded to: ``dtype`` if it can hold them, the automaton's own if it is ``None``."""
    if dtype is None:
        return automaton.dtype
    if not isinstance(dtype, torch.dtype) or not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(f"dtype must be a floating-point torch.dtype, got {dtype!r}")
    if automaton.dtype.is_complex and not dtype.is_complex:
        raise ValueError(f"the automaton is {automaton.dtype}, and weights in {dtype} would lose their imaginary part")
    return dtype
