"""Heat kernels: diagonals and pairs of exp(-tL) at several times."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import get_args

import torch
from torch import Tensor

from gape._internal.validation import check_at_least, check_one_of
from gape.encodings.base import DenseReadout
from gape.encodings.laplacian_matrix import LaplacianMatrix, LaplacianName
from gape.encodings.spectral import LaplacianSpectrum, SpectralEncoding


@dataclass(frozen=True)
class HeatKernel(SpectralEncoding):
    r"""Heat that flows from one node to another within given times: exp(-tL) (Kondor & Lafferty, 2002).

    The diagonal is the heat kernel signature (Sun et al., 2009), HKdiagSE of GraphGPS (Rampášek et al., 2022), whose
    code leaves out the eigenvectors of eigenvalue zero. On the normalized Laplacian of a graph without isolated nodes
    it is the closed readout of :meth:`gape.Automaton.shift` on D^(-1/2) A D^(-1/2), walks of k steps weighted by
    e⁻ᵗ tᵏ/k!. Undirected graphs only; weights are conductivities. Permutation-equivariant.

    Args:
        times: times t, one feature each.
        laplacian: "normalized", I - D^(-1/2) A D^(-1/2), or "combinatorial", D - A.
        symmetrize: replace A of a directed graph by (A + Aᵀ)/2 instead of raising an error.
        readout: "closed", the heat that is still or again at each node, or "pair", all pairs of nodes.
        memory: memory limit, in GiB, for the dense matrices of one graph and the pairs of all.

    Returns, when called on a graph: ``[num_nodes, times]``, or :class:`Pairs` of ``[n, n, times]``.

    Example:
        >>> from gape import Graph
        >>> edge = Graph.from_edges([(0, 1)], undirected=True)
        >>> HeatKernel(times=(0.0, 1.0, 1e9))(edge)[0]  # (1 + exp(-2t)) / 2
        tensor([1.0000, 0.5677, 0.5000])
    """

    times: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
    laplacian: LaplacianName = "normalized"
    symmetrize: bool = False
    readout: DenseReadout = field(default="closed", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(0, **{f"times[{i}]": time for i, time in enumerate(self.times)})
        check_one_of(get_args(LaplacianName), laplacian=self.laplacian)

    @property
    def channels(self) -> int:
        return len(self.times)

    @property
    def matrices(self) -> int:
        return 8 + 2 * self.channels if self.pairwise else 8

    @property
    def matrix(self) -> LaplacianMatrix:
        return LaplacianMatrix(self.laplacian, self.symmetrize, "HeatKernel")

    def from_spectrum(self, spectrum: LaplacianSpectrum) -> Tensor:
        times = torch.tensor(self.times, dtype=spectrum.values.dtype, device=spectrum.values.device)
        decay = torch.exp(-spectrum.values.unsqueeze(-1) * times)
        return spectrum.matrices(decay) if self.pairwise else spectrum.diagonals(decay)
