"""Electrostatic potentials: pairs, and statistics per node."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from gape.encodings.laplacian_matrix import LaplacianMatrix
from gape.encodings.spectral import LaplacianSpectrum, SpectralEncoding

ElectrostaticReadout = Literal["node", "pair"]


@dataclass(frozen=True)
class Electrostatic(SpectralEncoding):
    r"""Statistics of the electrostatic potential between a node and the others of its component.

    A unit charge at u has at v the potential E_uv = L⁺_uv - L⁺_vv, with the pseudo-inverse of L = D - A (Kreuzer et
    al., 2021). The features are those of ElstaticSE in GraphGPS (Rampášek et al., 2022): minimum, maximum (always 0),
    mean and standard deviation of E_uv over u; the same of E_vu over u, where the code of GraphGPS repeats the first
    maximum by mistake; and the mean over the neighbours, Σ_u W_uv E_uv and Σ_u W_vu E_vu with W = D⁻¹A. Statistics are
    over the node's component, itself included; self-loops carry no current. Undirected graphs only; weights are
    conductances. Permutation-equivariant.

    Args:
        symmetrize: replace A of a directed graph by (A + Aᵀ)/2 instead of raising an error.
        readout: "node", the ten statistics, or "pair", E_uv of all pairs, 0 between components.
        memory: memory limit, in GiB, for the dense matrices of one graph and the pairs of all.

    Returns, when called on a graph: ``[num_nodes, 10]``, or :class:`Pairs` of ``[n, n, 1]``.

    Example:
        >>> from gape import Graph
        >>> edge = Graph.from_edges([(0, 1)], undirected=True)
        >>> Electrostatic()(edge)[0, :3]
        tensor([-0.5000,  0.0000, -0.2500])
    """

    symmetrize: bool = False
    readout: ElectrostaticReadout = field(default="node", kw_only=True)

    @property
    def channels(self) -> int:
        return 1 if self.pairwise else 10

    @property
    def matrices(self) -> int:
        return 20

    @property
    def matrix(self) -> LaplacianMatrix:
        return LaplacianMatrix("normalized", self.symmetrize, "Electrostatic")

    def from_spectrum(self, spectrum: LaplacianSpectrum) -> Tensor:
        potentials, together = spectrum.potentials, spectrum.together
        potentials = potentials - potentials.diagonal(dim1=-2, dim2=-1).unsqueeze(1)
        potentials = torch.where(together, potentials, 0.0)
        if self.pairwise:
            return potentials.unsqueeze(-1)
        weights = spectrum.weights.clone()
        weights.diagonal(dim1=-2, dim2=-1).zero_()
        degree = weights.sum(-1, keepdim=True)
        mean = weights / torch.where(degree > 0, degree, 1.0) * potentials
        columns = [*_statistics(potentials.mT, together), *_statistics(potentials, together), mean.sum(1), mean.sum(2)]
        return torch.stack(columns, -1)


def _statistics(rows: Tensor, together: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Minimum, maximum, mean and (unbiased) standard deviation of rows ``[B, n, n]`` over each node's component.

    Every row has a 0 for the node itself, so those outside of its component change no minimum or maximum.
    """
    count = together.sum(-1)
    mean = rows.sum(-1) / count
    squares = torch.where(together, rows - mean.unsqueeze(-1), 0.0).square().sum(-1)
    return rows.amin(-1), rows.amax(-1), mean, (squares / (count - 1).clamp(min=1)).sqrt()
