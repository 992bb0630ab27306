"""Effective resistances and commute times, per component."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from gape.encodings.laplacian_matrix import LaplacianMatrix
from gape.encodings.spectral import LaplacianSpectrum, SpectralEncoding

ResistanceReadout = Literal["pair", "node"]


@dataclass(frozen=True)
class EffectiveResistance(SpectralEncoding):
    r"""Effective resistance between nodes, if every edge is a conductor of its weight (Klein & Randić, 1993).

    R_uv = L⁺_uu + L⁺_vv - 2 L⁺_uv with the pseudo-inverse of L = D - A, a distance that falls with the number of paths;
    an attention bias in Graphormer-GD (Zhang et al., 2023). A random walk from u to v and back takes
    R_uv · Σ_w degree(w) steps on average, over the nodes of the component (Chandra et al., 1989). Undirected graphs
    only. Permutation-equivariant.

    Args:
        commute: the commute time instead of the resistance.
        unreachable: value of pairs without a path, whose resistance is infinite; "inf" is allowed.
        symmetrize: replace A of a directed graph by (A + Aᵀ)/2 instead of raising an error.
        readout: "pair", all pairs of nodes, or "node", the mean over the other nodes of the same component, 0 for
            a node alone; NetworkX's ``information_centrality`` is its inverse, divided by n - 1.
        memory: memory limit, in GiB, for the dense matrices of one graph and the pairs of all.

    Returns, when called on a graph: :class:`Pairs` of ``[n, n, 1]``, or ``[num_nodes, 1]``.

    Example:
        >>> from gape import Graph
        >>> triangle = Graph.from_edges([(0, 1), (1, 2), (2, 0)], undirected=True)
        >>> EffectiveResistance()(triangle).matrices()[0].squeeze(-1)[0]
        tensor([0.0000, 0.6667, 0.6667])
    """

    commute: bool = False
    unreachable: float = -1.0
    symmetrize: bool = False
    readout: ResistanceReadout = field(default="pair", kw_only=True)

    @property
    def channels(self) -> int:
        return 1

    @property
    def matrices(self) -> int:
        return 16

    @property
    def matrix(self) -> LaplacianMatrix:
        return LaplacianMatrix("normalized", self.symmetrize, "EffectiveResistance")

    def from_spectrum(self, spectrum: LaplacianSpectrum) -> Tensor:
        potentials, together = spectrum.potentials, spectrum.together
        own = potentials.diagonal(dim1=-2, dim2=-1)
        found = (own.unsqueeze(2) + own.unsqueeze(1) - 2 * potentials).clamp(min=0.0)
        if self.commute:
            found = found * (together.to(found.dtype) @ spectrum.weights.sum(-1, keepdim=True))
        if self.pairwise:
            return torch.where(together, found, self.unreachable).unsqueeze(-1)
        others = (together.sum(-1, keepdim=True) - 1).clamp(min=1)
        return torch.where(together, found, 0.0).sum(-1, keepdim=True) / others
