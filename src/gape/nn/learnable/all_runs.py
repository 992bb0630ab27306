r"""Runs of every length, summed: node, closed and pair readouts in the coordinates of a basis.

With Aᵀ V = V H the row form X = AᵀXμ + S becomes Y = H Y μ + VᴴS, many small systems, which
:func:`gape.solvers.gradient.stein_solve` solves and differentiates; X = V Y. Runs back to v, or from u to v, need the
eigenvectors of a symmetric (or similar) A = V Θ Vᵀ:

    closed(v) = Σ_j V_vj² α(ℓ(v)) (I - θ_jμ)⁻¹,      pair(u, v) = c_v/c_u Σ_j V_uj V_vj α(ℓ(u)) (I - θ_jμ)⁻¹,

so each θ is solved for once per label (or once per state, if there are fewer states), never once per node.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gape.graph.adjacency import Adjacency
from gape.graph.batching import Padding
from gape.nn.learnable.basis import WalkBasis
from gape.nn.learnable.doubling import Doubling
from gape.solvers.basis import Basis
from gape.solvers.gradient import BasisSystem, stein_solve


@dataclass(frozen=True, eq=False)
class AllRuns:
    """One batch of graphs in the coordinates of its basis.

    Args:
        adjacency: which nodes belong to which graph; its edges are not looked at.
        basis: with vectors.
        labels: ``[n]``, ``None`` if there is only one.
        damping: bound of ‖μ‖₂.
    """

    adjacency: Adjacency
    basis: WalkBasis
    labels: Tensor | None
    damping: float

    def node(self, transition: Tensor, initial: Tensor) -> Tensor:
        """``[n, k]``: runs from anywhere into each node, for μ ``[k, k]`` and α ``[k, m]``, in float64."""
        basis = self._basis(channels=1, labels=initial.shape[1])
        y = stein_solve(transition, basis.project(initial), None, self._system(basis))
        return basis.expand(y)

    def closed(self, transition: Tensor, initial: Tensor) -> Tensor:
        """``[n, k]``: runs of each node back to itself."""
        padding, vectors = self._padded()
        table = padding.unpad(vectors.square() @ self._resolvents(transition, initial))
        return self._of_label(table, initial)

    def pair(self, transition: Tensor, initial: Tensor, mix: Tensor) -> Tensor:
        """``[graphs, heads, n, n]``: runs to the row's node from the column's, mixed by ``mix`` ``[heads, k]``."""
        padding, vectors = self._padded()
        graphs, n, _ = vectors.shape
        mixed = _split(self._resolvents(transition, initial), len(transition)) @ mix.T
        if self.labels is None:
            start = mixed.squeeze(2).unsqueeze(1)
        else:
            start = torch.einsum("gua,gjah->gujh", padding.pad(self._weights(initial)), mixed)
        # [graph, head, from u, j], then to every v: the states were mixed first, so nothing has n × n × k numbers.
        start = (vectors.unsqueeze(-1) * start).permute(0, 3, 1, 2)
        table = vectors.unsqueeze(1) @ start.mT
        if self.basis.scale is not None:
            c = padding.pad(self.basis.scale)
            c = torch.where(c > 0, c, 1.0)
            table = table * (c.unsqueeze(2) / c.unsqueeze(1)).unsqueeze(1)
        return table.reshape(graphs, len(mix), n, n)

    # ------------------------------------------------------------------ parts of the above

    def _system(self, basis: Basis) -> BasisSystem:
        # Ritz values of a directed graph may lie outside the unit disc: the general solver.
        return Doubling(basis, self.damping) if basis.form == "diagonal" else BasisSystem(basis)

    def _padded(self) -> tuple[Padding, Tensor]:
        padding = Padding(self.adjacency)
        assert self.basis.vectors is not None
        return padding, padding.pad(self.basis.vectors.to(torch.float64))

    def _resolvents(self, transition: Tensor, initial: Tensor) -> Tensor:
        """``[graphs, J, starts · k]``: (I - θ_jμ)⁻¹ applied to each label's α, or to each state if those are fewer."""
        starts = initial.T if initial.shape[1] <= len(initial) else torch.eye(len(initial), device=initial.device)
        basis = self._basis(channels=len(starts), labels=1)
        graphs, dimension = len(basis.h), basis.h.shape[-1]
        source = starts.to(torch.float64)[:, None].expand(graphs, -1, dimension, -1).flatten(0, 1)
        y = stein_solve(transition, source, None, self._system(basis))
        return y.reshape(graphs, len(starts), dimension, -1).transpose(1, 2).flatten(2)

    def _weights(self, initial: Tensor) -> Tensor:
        """``[n, starts]``: how each node starts in terms of what :meth:`_resolvents` solved for."""
        assert self.labels is not None
        if initial.shape[1] <= len(initial):
            return torch.nn.functional.one_hot(self.labels, initial.shape[1]).to(torch.float64)
        return initial.T[self.labels]

    def _of_label(self, table: Tensor, initial: Tensor) -> Tensor:
        if initial.shape[1] == 1:
            return table
        return (self._weights(initial).unsqueeze(1) @ _split(table, len(initial))).squeeze(1)

    def _basis(self, channels: int, labels: int) -> Basis:
        """The basis as the solvers have it: padded, with ``channels`` systems a graph that share their H."""
        own = self.basis
        assert own.vectors is not None
        assert own.spectrum is not None
        real = not own.vectors.is_complex()
        dtype = torch.float64 if real else torch.complex128
        padding = Padding(self.adjacency)
        vectors = padding.pad(own.vectors.to(dtype)).mT.unsqueeze(1)
        scale = None if own.scale is None else own.scale.to(torch.float64)
        ones = torch.ones(self.adjacency.num_nodes, 1, dtype=torch.float64, device=vectors.device)
        if labels > 1:
            assert self.labels is not None
            ones = torch.nn.functional.one_hot(self.labels, labels).to(torch.float64)
        indicator = padding.pad(ones if scale is None else ones / scale.unsqueeze(1)).unsqueeze(1)
        h = own.spectrum.to(dtype).unsqueeze(1)
        h = h.expand(len(h), channels, *h.shape[2:])
        zero = torch.zeros(len(h), channels, dtype=torch.float64, device=h.device)
        return Basis(
            solver="learnable",
            adjacency=self.adjacency,
            vectors=vectors,
            h=h,
            coordinates=vectors.conj() @ indicator.to(dtype),
            labels=torch.arange(labels, device=h.device),
            form="diagonal" if h.dim() == 3 else "dense",
            remainder=zero,
            last=None,
            scale=scale,
            radius=zero[:, 0] + 1.0,
            radius_exact=False,
            complete=False,
        )


def _split(x: Tensor, states: int) -> Tensor:
    """``[…, starts · k]`` as ``[…, starts, k]``."""
    return x.reshape(*x.shape[:-1], -1, states)
