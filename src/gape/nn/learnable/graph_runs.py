"""A learnable automaton on a batch of graphs: which way of summing its runs serves which readout."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from gape.graph.batching import Padding
from gape.graph.graph import Graph
from gape.graph.spectral_radius import unit_walk, walk_radius
from gape.graph.walk_matrix import WalkMatrix
from gape.nn.learnable.all_runs import AllRuns
from gape.nn.learnable.automaton import LearnableAutomaton
from gape.nn.learnable.basis import WalkBasis, enough_vectors
from gape.nn.learnable.bounded_runs import runs_back, runs_into
from gape.nn.learnable.checks import check_basis, check_graph
from gape.nn.learnable.compute_basis import return_weights, walk_basis
from gape.nn.learnable.steps import Steps
from gape.nn.learnable.untyped_lengths import closed_by_length, pair_by_length, worth
from gape.solvers.equation import Equation
from gape.solvers.gradient import MAX_DENSE_ADJOINT_NODES, EdgeSystem, stein_solve


class GraphRuns:
    """The runs of ``machine`` on ``graph``.

    Args:
        graph: with labels and edge types if the machine asks for them.
        machine: the automaton.
        matrix: the walk matrix.
        length: number of run lengths kept apart; ``None`` for all, summed.
        basis: computed before, or ``None``.
        memory: GiB for what is kept for the backward pass.
    """

    def __init__(
        self,
        graph: Graph,
        machine: LearnableAutomaton,
        matrix: str,
        length: int | None,
        basis: WalkBasis | None,
        memory: float,
    ) -> None:
        self.graph, self.machine, self.matrix, self.length, self.memory = graph, machine, matrix, length, memory
        check_graph(graph, machine)
        if basis is not None:
            check_basis(basis, graph, matrix)
        self.given = basis
        self.labels = graph.labels if machine.labels > 1 else None

    # ------------------------------------------------------------------ the three readouts

    def node(self) -> Tensor:
        """``[n, lengths, k]``, one length if they are summed."""
        transition, initial = self.machine.weights()
        if self.graph.num_nodes == 0:
            return self._nothing()
        if self.length is not None:
            return runs_into(self._steps, *self._stepwise(transition, initial), self.length)
        directed = self.given is None and self._directed
        if self.machine.typed or (directed and int(self.graph.sizes.max()) > MAX_DENSE_ADJOINT_NODES):
            return self._fixed_point(transition, initial).unsqueeze(1)
        basis = self._basis(complete=directed or self.labels is not None)
        runs = AllRuns(self.graph.adjacency, basis, self.labels, self._damping)
        return runs.node(transition, initial).unsqueeze(1)

    def closed(self) -> Tensor:
        """``[n, lengths, k]``, one length if they are summed."""
        transition, initial = self.machine.weights()
        if self.graph.num_nodes == 0:
            return self._nothing()
        if self.machine.typed:
            assert self.length is not None
            stepwise = self._stepwise(transition, initial)
            return runs_back(self._steps, self.graph.adjacency, *stepwise, self.length, self.memory)
        if self.length is not None:
            # Products of two numbers lose nothing by rounding first, and n · T · k of them want to be small.
            values = worth(transition, initial, self.length).to(self.machine.dtype)
            return closed_by_length(self._returns(self.length).to(self.machine.dtype), values, self.labels)
        runs = AllRuns(self.graph.adjacency, self._symmetric_basis("closed"), self.labels, self._damping)
        return runs.closed(transition, initial).unsqueeze(1)

    def pair(self, mix: Tensor) -> Tensor:
        """``[graphs, heads, n, n]`` for ``mix`` ``[heads, lengths · k]``: row v, column u holds the runs u → v."""
        transition, initial = self.machine.weights()
        mix = mix.to(transition.dtype)
        if self.graph.num_nodes == 0:
            return mix.sum(1)[:, None, None] * mix.new_zeros(self.graph.num_graphs, 1, 0, 0)
        if self.length is None:
            runs = AllRuns(self.graph.adjacency, self._symmetric_basis("pair"), self.labels, self._damping)
            return runs.pair(transition, initial, mix)
        labels = None if self.labels is None else Padding(self.graph.adjacency).pad(self.labels)
        return pair_by_length(self._walk.dense().detach(), worth(transition, initial, self.length), mix, labels)

    # ------------------------------------------------------------------ what they need of the graphs

    @property
    def _damping(self) -> float:
        return self.machine.transition.damping

    @property
    def _directed(self) -> bool:
        return self.graph.walk(self.matrix).similarity is None

    @cached_property
    def _walk(self) -> WalkMatrix:
        radius = walk_radius(self.graph, self.matrix) if self.given is None else self.given.radius.to(torch.float64)
        return unit_walk(self.graph, self.matrix, radius)

    @cached_property
    def _steps(self) -> Steps:
        kind = self.graph.edge_type if self.machine.by_edge > 1 else None
        return Steps.of(self._walk, kind, self.machine.by_edge, self.machine.dtype)

    def _returns(self, length: int) -> Tensor:
        if self.given is None:
            return return_weights(self._walk, length)
        known = self.given.returns
        if known is None or known.shape[1] < length:
            got = 0 if known is None else known.shape[1]
            raise ValueError(
                f"the basis has {got} return weights, the layer asks for {length}; AddWalkBasis(returns=…)"
            )
        return known[:, :length].to(torch.float64)

    def _basis(self, complete: bool) -> WalkBasis:
        enough = min(int(self.graph.sizes.max()), enough_vectors(self._damping))
        if self.given is None:
            return walk_basis(self.graph, self.matrix, vectors=None if complete else enough, complete=complete)
        vectors, whole = self.given.vectors, self.given.complete
        if vectors is None or whole is None or (complete and not bool(whole.all())):
            what = "a complete basis (several labels, closed or pair readout)" if complete else "vectors"
            raise ValueError(f"the basis lacks {what}; use AddWalkBasis(**layer.basis_settings)")
        if not complete and vectors.shape[1] < enough and not bool(whole.all()):
            raise ValueError(
                f"the basis has {vectors.shape[1]} vectors and damping={self._damping} needs {enough} to be exact; use "
                "AddWalkBasis(**layer.basis_settings)"
            )
        return self.given

    def _symmetric_basis(self, readout: str) -> WalkBasis:
        if self.given is None and self._directed:
            raise ValueError(
                f"runs of all lengths with readout={readout!r} need graphs that are undirected and, unless "
                f"matrix='adjacency', without negative weights, got {self.graph!r}; give a length"
            )
        basis = self._basis(complete=True)
        if basis.spectrum is not None and basis.spectrum.dim() != 2:
            raise ValueError(f"the basis is for directed graphs, which readout={readout!r} has only with a length")
        return basis

    # ------------------------------------------------------------------ step by step

    def _stepwise(self, transition: Tensor, initial: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        """μ ``[m or 1, R, k, k]``, α for each node ``[n, k]``, and the labels that μ goes by, if it does."""
        machine, dtype = self.machine, self.machine.dtype
        matrices = transition.reshape(machine.by_label, machine.by_edge, machine.states, machine.states).to(dtype)
        source = initial.T.to(dtype)
        source = source.expand(self.graph.num_nodes, -1) if self.labels is None else source[self.labels]
        return matrices.contiguous(), source, self.labels if machine.by_label > 1 else None

    def _fixed_point(self, transition: Tensor, initial: Tensor) -> Tensor:
        """``[n, k]``: runs of all lengths of a typed automaton, by :class:`gape.solvers.FixedPoint`."""
        graph, machine = self.graph, self.machine
        kind = None
        if machine.by_edge > 1:
            assert graph.edge_type is not None
            kind = graph.edge_type
            if machine.by_label > 1:
                assert graph.labels is not None
                kind = kind + machine.by_edge * graph.labels[graph.edge_index[0]]
        # One matrix for all is no typed problem, though it may be called by edge.
        flat = transition.reshape(-1, machine.states, machine.states)
        flat = flat if len(flat) > 1 else flat[0]
        problem = Equation(self._walk, initial.detach(), flat.detach(), self.labels, kind)
        source = initial.T[self.labels] if self.labels is not None else initial[:, 0].expand(graph.num_nodes, -1)
        return stein_solve(flat, source, None, EdgeSystem(problem))

    def _nothing(self) -> Tensor:
        # Of no nodes at all, and still a function of the parameters, so that backward() runs.
        weight = sum(parameter.sum() for parameter in self.machine.parameters())
        return weight * torch.zeros(
            0, self.length or 1, self.machine.states, device=self.graph.device, dtype=self.machine.dtype
        )
