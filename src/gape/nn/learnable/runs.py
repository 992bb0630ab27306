"""Runs of a learnable automaton on a batch of graphs: selects how the runs of each readout are summed.

Runs of all lengths are summed in the coordinates of a basis. With Aᵀ V = V H the row form X = AᵀXμ + S becomes
Y = H Y μ + VᴴS, many small systems, which :func:`gape.solvers.gradient.stein_solve` solves and differentiates; X = V Y.
Closed and pair runs need the eigenvectors of a symmetric A = V Θ Vᵀ, or of one that is similar to a symmetric matrix:

    closed(v) = Σ_j V_vj² α(ℓ(v)) (I - θ_jμ)⁻¹,      pair(u, v) = c_v/c_u Σ_j V_uj V_vj α(ℓ(u)) (I - θ_jμ)⁻¹,

so the system of each θ is solved once per label (or once per state, if there are fewer states), never once per node.

With a diagonal H = Θ the small systems are solved by the squared Smith iteration (Smith, 1968), in real products only:

    Y = Σ_t Θᵗ S μᵗ,      and with Y_p the first 2ᵖ terms of it      Y_{p+1} = Y_p + Θ^{2ᵖ} Y_p μ^{2ᵖ}.

With |θ| ≤ 1 and ‖μ‖₂ ≤ γ the error of Y_p is below γ^{2ᵖ}, so for γ = 0.9 nine steps give every digit of float64. A
learnable automaton on a walk matrix of unit radius satisfies both bounds; :mod:`gape.solvers.schur_form` has the
general solver.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from gape.graph.batching import Padding
from gape.graph.graph import Graph
from gape.graph.spectral_radius import unit_walk, walk_radius
from gape.graph.walk_matrix import WalkMatrix
from gape.nn.learnable.automaton import LearnableAutomaton
from gape.nn.learnable.lengths import (
    Steps,
    closed_by_length,
    pair_by_length,
    runs_back,
    runs_into,
    weights_by_length,
)
from gape.solvers.basis import Basis, enough_vectors, prepare_layer, return_weights
from gape.solvers.equation import Equation
from gape.solvers.gradient import MAX_DENSE_ADJOINT_NODES, BasisSystem, EdgeSystem, stein_solve
from gape.solvers.projection import Projection

#: Readouts of a layer; rooted runs have a machine of their own, see :class:`gape.nn.GAPE`.
LayerReadout = Literal["node", "closed", "pair", "rooted"]


class GraphRuns:
    """Runs of ``machine`` on ``graph``.

    Args:
        graph: with labels and edge types if the automaton reads them.
        machine: the automaton.
        matrix: the walk matrix.
        length: T, for one feature per run length 1 … T; ``None`` to sum runs of all lengths.
        basis: precomputed, or ``None``.
        memory: GiB that may be kept for the backward pass.
    """

    def __init__(
        self,
        graph: Graph,
        machine: LearnableAutomaton,
        matrix: str,
        length: int | None,
        basis: Basis | None,
        memory: float,
    ) -> None:
        self.graph, self.machine, self.matrix, self.length, self.memory = graph, machine, matrix, length, memory
        check_graph(graph, machine)
        self.precomputed = basis
        self.radius = None if basis is None else check_basis(basis, graph, matrix)
        self.labels = graph.labels if machine.labels > 1 else None

    def per_node(self, readout: str) -> Tensor:
        """Return ``[n, T or 1, k]`` by the name of a readout that has a row per node."""
        by_name = {"node": self.node, "closed": self.closed}
        return by_name[readout]()

    def node(self) -> Tensor:
        """Return ``[n, T or 1, k]``: runs from anywhere into each node."""
        transition, initial = self.machine.weights()
        if self.graph.num_nodes == 0:
            return self._no_nodes()
        if self.length is not None:
            return runs_into(self._steps, *self._stepwise(transition, initial), self.length)
        directed = self.precomputed is None and self._directed
        if self.machine.typed or (directed and int(self.graph.sizes.max()) > MAX_DENSE_ADJOINT_NODES):
            return self._fixed_point(transition, initial).unsqueeze(1)
        parts = self._resolvent_runs(self._basis(complete=directed or self.labels is not None))
        return torch.cat([runs.node(transition, initial) for runs in parts]).unsqueeze(1)

    def closed(self) -> Tensor:
        """Return ``[n, T or 1, k]``: runs from each node back to itself."""
        transition, initial = self.machine.weights()
        if self.graph.num_nodes == 0:
            return self._no_nodes()
        if self.machine.typed:
            assert self.length is not None
            stepwise = self._stepwise(transition, initial)
            return runs_back(self._steps, self.graph.adjacency, *stepwise, self.length, self.memory)
        if self.length is not None:
            # A product of two numbers loses nothing by rounding first, and n · T · k of them are many.
            weights = weights_by_length(transition, initial, self.length).to(self.machine.dtype)
            return closed_by_length(self._returns(self.length).to(self.machine.dtype), weights, self.labels)
        parts = self._resolvent_runs(self._symmetric_basis("closed"))
        return torch.cat([runs.closed(transition, initial) for runs in parts]).unsqueeze(1)

    def pair(self, mix: Tensor) -> Tensor:
        """Return ``[graphs, heads, n, n]`` for ``mix`` ``[heads, T · k]``: row v, column u holds the runs u → v."""
        transition, initial = self.machine.weights()
        mix = mix.to(transition.dtype)
        if self.graph.num_nodes == 0:
            return mix.sum(1)[:, None, None] * mix.new_zeros(self.graph.num_graphs, 1, 0, 0)
        if self.length is None:
            parts = self._resolvent_runs(self._symmetric_basis("pair"))
            tables, n = [runs.pair(transition, initial, mix) for runs in parts], int(self.graph.sizes.max())
            return torch.cat([F.pad(table, [0, n - table.shape[3], 0, n - table.shape[2]]) for table in tables])
        labels = None if self.labels is None else Padding(self.graph.adjacency).pad(self.labels)
        weights = weights_by_length(transition, initial, self.length)
        return pair_by_length(self._walk.dense().detach(), weights, mix, labels)

    @property
    def _damping(self) -> float:
        return self.machine.transition.damping

    @property
    def _directed(self) -> bool:
        return self.graph.walk(self.matrix).similarity is None

    @cached_property
    def _walk(self) -> WalkMatrix:
        """The walk matrix of unit radius."""
        radius = self.radius
        if radius is None:
            radius = walk_radius(self.graph, self.matrix, absolute=True)
        return unit_walk(self.graph, self.matrix, radius)

    @cached_property
    def _steps(self) -> Steps:
        kind = self.graph.edge_type if self.machine.by_edge > 1 else None
        return Steps.of(self._walk, kind, self.machine.by_edge, self.machine.dtype)

    def _returns(self, length: int) -> Tensor:
        """Return weights (Aᵗ)_vv, ``[n, T]``."""
        known = None if self.precomputed is None else self.precomputed.returns
        if known is None:
            return return_weights(self._walk, length)
        if known.shape[1] < length:
            raise ValueError(
                f"the basis has {known.shape[1]} return weights, the layer needs {length}; use layer.prepare(graph) or "
                f"AddWalkBasis(returns={length})"
            )
        return known[:, :length].to(torch.float64)

    def _resolvent_runs(self, basis: Basis) -> list[ResolventRuns]:
        """Split the labels by the parts of the basis."""
        sizes = [part.adjacency.num_nodes for part in basis.parts]
        labels = [None] * len(sizes) if self.labels is None else torch.split(self.labels, sizes)
        return [ResolventRuns(part, own, self._damping) for part, own in zip(basis.parts, labels, strict=True)]

    def _basis(self, complete: bool) -> Basis:
        """Return the precomputed basis if it is sufficient, or compute one."""
        largest = int(self.graph.sizes.max())
        enough = min(largest, enough_vectors(self._damping))
        basis = self.precomputed
        if basis is None:
            return prepare_layer(self.graph, self.matrix, vectors=largest if complete else enough, complete=complete)
        if not basis.parts:
            raise ValueError(
                "the basis lacks vectors; use layer.prepare(graph) or AddWalkBasis(**layer.basis_settings)"
            )
        if basis.complete:
            return basis
        if complete:
            raise ValueError(
                "the basis lacks vectors: several labels, closed and pair readouts need a complete basis; use "
                "AddWalkBasis(**layer.basis_settings), or gape.prepare with Spectral()"
            )
        for part in basis.parts:
            if part.complete or (part.last is not None and bool(part.exhausted.all())):
                continue
            if part.form == "dense":
                raise ValueError(
                    "a Krylov basis of a directed graph is not exact for every automaton; use "
                    "AddWalkBasis(**layer.basis_settings), or gape.prepare with Schur()"
                )
            if part.dimension < enough:
                raise ValueError(
                    f"the basis has {part.dimension} vectors and damping={self._damping} needs {enough} to be exact; "
                    "use AddWalkBasis(**layer.basis_settings), or gape.prepare with more Krylov steps"
                )
        return basis

    def _symmetric_basis(self, readout: str) -> Basis:
        """Return a basis of eigenvectors."""
        if self.precomputed is None and self._directed:
            raise ValueError(
                f"runs of all lengths with readout={readout!r} need graphs that are undirected and, unless "
                f"matrix='adjacency', without negative weights, got {self.graph!r}; give a length"
            )
        basis = self._basis(complete=True)
        if any(part.form != "diagonal" for part in basis.parts):
            raise ValueError(f"the basis is for directed graphs, for which readout={readout!r} needs a length")
        return basis

    def _stepwise(self, transition: Tensor, initial: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return μ ``[m or 1, R, k, k]``, α of each node ``[n, k]``, and the labels if μ depends on them."""
        machine, dtype = self.machine, self.machine.dtype
        matrices = transition.reshape(machine.by_label, machine.by_edge, machine.states, machine.states).to(dtype)
        start = initial.T.to(dtype)
        start = start.expand(self.graph.num_nodes, -1) if self.labels is None else start[self.labels]
        return matrices.contiguous(), start, self.labels if machine.by_label > 1 else None

    def _fixed_point(self, transition: Tensor, initial: Tensor) -> Tensor:
        """Return ``[n, k]``: runs of all lengths of a typed automaton, by :class:`gape.solvers.FixedPoint`."""
        graph, machine = self.graph, self.machine
        kind = None
        if machine.by_edge > 1:
            assert graph.edge_type is not None
            kind = graph.edge_type
            if machine.by_label > 1:
                assert graph.labels is not None
                kind = kind + machine.by_edge * graph.labels[graph.edge_index[0]]
        # A single matrix is an untyped equation, also with transition_by="edge".
        flat = transition.reshape(-1, machine.states, machine.states)
        flat = flat if len(flat) > 1 else flat[0]
        equation = Equation(self._walk, initial.detach(), flat.detach(), self.labels, kind)
        rhs = initial.T[self.labels] if self.labels is not None else initial[:, 0].expand(graph.num_nodes, -1)
        return stein_solve(flat, rhs, None, EdgeSystem(equation))

    def _no_nodes(self) -> Tensor:
        # Zero rows that still depend on the parameters, so that backward() works.
        weight = sum(parameter.sum() for parameter in self.machine.parameters())
        return weight * torch.zeros(
            0, self.length or 1, self.machine.states, device=self.graph.device, dtype=self.machine.dtype
        )


def check_graph(graph: Graph, machine: LearnableAutomaton) -> None:
    """Validate labels, edge types and weights of the graph for the automaton."""
    check_fixed_weights(graph)
    for name, what, place, count, values in (
        ("labels", "node labels", "node", machine.labels, graph.labels),
        ("edge_type", "edge types", "edge", machine.by_edge, graph.edge_type),
    ):
        if count == 1:
            continue
        if values is None:
            raise ValueError(f"the automaton has {count} {what} and the graph has none; give {name}")
        if values.numel() and int(values.max()) >= count:
            at = int((values >= count).nonzero()[0])
            raise ValueError(f"{name} must lie below {count}, got {int(values[at])} at {place} {at}")


def check_fixed_weights(graph: Graph) -> None:
    """Raise if the edge weights require gradients."""
    if graph.edge_weight is not None and graph.edge_weight.requires_grad:
        raise ValueError("edge_weight requires gradients, which a learnable automaton does not compute; detach it")


def check_basis(basis: Basis, graph: Graph, matrix: str) -> Tensor:
    """Check that the basis belongs to this walk matrix and to these graphs; return their radii."""
    if not isinstance(basis, Basis):
        raise ValueError(
            "basis must be a Basis, such as layer.prepare(graph) or gape.pyg.basis_of(batch), "
            f"got {type(basis).__name__}"
        )
    return basis.check_layer(graph, matrix)


@dataclass(frozen=True, eq=False)
class ResolventRuns:
    """Sum runs of all lengths on a batch of graphs, in the coordinates of its basis.

    Args:
        projection: of walk matrices of unit radius.
        labels: ``[n]``, ``None`` if there is only one.
        damping: bound of ‖μ‖₂.
    """

    projection: Projection
    labels: Tensor | None
    damping: float

    def node(self, transition: Tensor, initial: Tensor) -> Tensor:
        """Return ``[n, k]``: runs from anywhere into each node, for μ ``[k, k]`` and α ``[k, m]``, in float64."""
        projection = self.projection
        if self.labels is not None:
            projection = projection.with_labels(self.labels, initial.shape[1])
        y = stein_solve(transition, projection.project(initial), None, self._system(projection))
        return projection.expand(y)

    def closed(self, transition: Tensor, initial: Tensor) -> Tensor:
        """Return ``[n, k]``: runs from each node back to itself."""
        table = self.projection.padding.unpad(self._vectors.square() @ self._resolvents(transition, initial))
        if self.labels is None:
            return table
        return (self._start_weights(initial).unsqueeze(1) @ _split(table, len(initial))).squeeze(1)

    def pair(self, transition: Tensor, initial: Tensor, mix: Tensor) -> Tensor:
        """Return ``[graphs, heads, n, n]`` for ``mix`` ``[heads, k]``: row v, column u holds the runs u → v."""
        padding = self.projection.padding
        # Eigenvectors of eigenvalue 0 may have entries in padding, which elsewhere are never read.
        real = padding.pad(torch.ones(self.projection.adjacency.num_nodes, 1, dtype=torch.float64, device=mix.device))
        vectors = self._vectors * real
        graphs, n, _ = vectors.shape
        mixed = _split(self._resolvents(transition, initial), len(transition)) @ mix.T
        if self.labels is None:
            start = mixed.squeeze(2).unsqueeze(1)
        else:
            start = torch.einsum("gua,gjah->gujh", padding.pad(self._start_weights(initial)), mixed)
        # [graph, head, from u, j], then to every v. Summing over states first avoids n × n × k numbers.
        start = (vectors.unsqueeze(-1) * start).permute(0, 3, 1, 2)
        table = vectors.unsqueeze(1) @ start.mT
        if self.projection.scale is not None:
            c = padding.pad(self.projection.scale)
            c = torch.where(c > 0, c, 1.0)
            table = table * (c.unsqueeze(2) / c.unsqueeze(1)).unsqueeze(1)
        return table.reshape(graphs, len(mix), n, n)

    @property
    def _vectors(self) -> Tensor:
        """``[graphs, n_max, J]``."""
        return self.projection.vectors[:, 0].mT

    def _system(self, projection: Projection) -> BasisSystem:
        # Ritz values of a directed graph may lie outside the unit disc, so these use the general solver.
        return SmithSystem(projection, self.damping) if projection.form == "diagonal" else BasisSystem(projection)

    def _resolvents(self, transition: Tensor, initial: Tensor) -> Tensor:
        """Apply (I - θ_jμ)⁻¹ to each label's α, or to each state if those are fewer: ``[graphs, J, starts · k]``."""
        starts = initial.T if initial.shape[1] <= len(initial) else torch.eye(len(initial), device=initial.device)
        graphs, dimension = len(self.projection.h), self.projection.dimension
        # One system per graph and start, which share Θ.
        projection = replace(self.projection, h=self.projection.h.expand(-1, len(starts), -1))
        rhs = starts.to(torch.float64)[:, None].expand(graphs, -1, dimension, -1).flatten(0, 1)
        y = stein_solve(transition, rhs, None, self._system(projection))
        return y.reshape(graphs, len(starts), dimension, -1).transpose(1, 2).flatten(2)

    def _start_weights(self, initial: Tensor) -> Tensor:
        """Return ``[n, starts]``: α of each node as a combination of the starts of :meth:`_resolvents`."""
        assert self.labels is not None
        if initial.shape[1] <= len(initial):
            return torch.nn.functional.one_hot(self.labels, initial.shape[1]).to(torch.float64)
        return initial.T[self.labels]


def _split(x: Tensor, states: int) -> Tensor:
    """Reshape ``[…, starts · k]`` to ``[…, starts, k]``."""
    return x.reshape(*x.shape[:-1], -1, states)


def smith_steps(damping: float, accuracy: float = 1e-15) -> int:
    """Return the number of squared Smith steps until the error is below ``accuracy``.

    Example:
        >>> smith_steps(0.9), smith_steps(0.5)
        (9, 6)
    """
    return max(1, math.ceil(math.log2(math.log(accuracy) / math.log(damping))))


def smith_sum(theta: Tensor, rhs: Tensor, transition: Tensor, damping: float) -> Tensor:
    """Compute Σ_t Θᵗ S μᵗ by the squared Smith iteration: ``[…, J, k]``.

    Args:
        theta: ``[…, J, 1]``, the diagonal of Θ, of absolute value at most 1.
        rhs: S, ``[…, J, k]``.
        transition: μ, ``[k, k]``.
        damping: bound of ‖μ‖₂, below 1.
    """
    y, steps = rhs, smith_steps(damping)
    for step in range(steps):
        y = y.addcmul(theta, y @ transition)
        if step + 1 < steps:
            theta, transition = theta.square(), transition @ transition
    return y


@dataclass(frozen=True, eq=False)
class SmithSystem(BasisSystem):
    """Squared Smith iteration in the coordinates of a basis whose H is diagonal with entries of at most 1.

    Args:
        damping: bound of ‖μ‖₂, below 1.
    """

    damping: float

    def solve(self, transition: Tensor, rhs: Tensor, adjoint: bool) -> Tensor:
        return smith_sum(self.projection.h.flatten(0, 1).unsqueeze(-1), rhs, transition, self.damping)
