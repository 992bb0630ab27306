r"""Runs of all lengths, summed: node, closed and pair readouts in the coordinates of a basis.

With Aᵀ V = V H the row form X = AᵀXμ + S becomes Y = H Y μ + VᴴS, many small systems, which
:func:`gape.solvers.gradient.stein_solve` solves and differentiates; X = V Y. Closed and pair runs need the eigenvectors
of a symmetric A = V Θ Vᵀ, or of one that is similar to a symmetric matrix:

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

import torch
from torch import Tensor

from gape.solvers.gradient import BasisSystem, stein_solve
from gape.solvers.projection import Projection


@dataclass(frozen=True, eq=False)
class ResolventRuns:
    """Sum runs of all lengths on a batch of graphs, in the coordinates of its basis.

    Args:
        basis: of walk matrices of unit radius.
        labels: ``[n]``, ``None`` if there is only one.
        damping: bound of ‖μ‖₂.
    """

    basis: Projection
    labels: Tensor | None
    damping: float

    def node(self, transition: Tensor, initial: Tensor) -> Tensor:
        """Return ``[n, k]``: runs from anywhere into each node, for μ ``[k, k]`` and α ``[k, m]``, in float64."""
        basis = self.basis if self.labels is None else self.basis.with_labels(self.labels, initial.shape[1])
        y = stein_solve(transition, basis.project(initial), None, self._system(basis))
        return basis.expand(y)

    def closed(self, transition: Tensor, initial: Tensor) -> Tensor:
        """Return ``[n, k]``: runs from each node back to itself."""
        table = self.basis.padding.unpad(self._vectors.square() @ self._resolvents(transition, initial))
        if self.labels is None:
            return table
        return (self._start_weights(initial).unsqueeze(1) @ _split(table, len(initial))).squeeze(1)

    def pair(self, transition: Tensor, initial: Tensor, mix: Tensor) -> Tensor:
        """Return ``[graphs, heads, n, n]`` for ``mix`` ``[heads, k]``: row v, column u holds the runs u → v."""
        padding = self.basis.padding
        # Eigenvectors of eigenvalue 0 may have entries in padding, which elsewhere are never read.
        real = padding.pad(torch.ones(self.basis.adjacency.num_nodes, 1, dtype=torch.float64, device=mix.device))
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
        if self.basis.scale is not None:
            c = padding.pad(self.basis.scale)
            c = torch.where(c > 0, c, 1.0)
            table = table * (c.unsqueeze(2) / c.unsqueeze(1)).unsqueeze(1)
        return table.reshape(graphs, len(mix), n, n)

    @property
    def _vectors(self) -> Tensor:
        """``[graphs, n_max, J]``."""
        return self.basis.vectors[:, 0].mT

    def _system(self, basis: Projection) -> BasisSystem:
        # Ritz values of a directed graph may lie outside the unit disc, so these use the general solver.
        return SmithSystem(basis, self.damping) if basis.form == "diagonal" else BasisSystem(basis)

    def _resolvents(self, transition: Tensor, initial: Tensor) -> Tensor:
        """Apply (I - θ_jμ)⁻¹ to each label's α, or to each state if those are fewer: ``[graphs, J, starts · k]``."""
        starts = initial.T if initial.shape[1] <= len(initial) else torch.eye(len(initial), device=initial.device)
        graphs, dimension = len(self.basis.h), self.basis.dimension
        # One system per graph and start, which share Θ.
        basis = replace(self.basis, h=self.basis.h.expand(-1, len(starts), -1))
        rhs = starts.to(torch.float64)[:, None].expand(graphs, -1, dimension, -1).flatten(0, 1)
        y = stein_solve(transition, rhs, None, self._system(basis))
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


@dataclass(frozen=True, eq=False)
class SmithSystem(BasisSystem):
    """Squared Smith iteration in the coordinates of a basis whose H is diagonal with entries of at most 1.

    Args:
        damping: bound of ‖μ‖₂, below 1.
    """

    damping: float

    def solve(self, transition: Tensor, source: Tensor, adjoint: bool) -> Tensor:
        y, power, mu = source, self.basis.h.flatten(0, 1).unsqueeze(-1), transition
        steps = smith_steps(self.damping)
        for step in range(steps):
            y = y.addcmul(power, y @ mu)
            if step + 1 < steps:
                power, mu = power.square(), mu @ mu
        return y
