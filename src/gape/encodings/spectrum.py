"""Eigenvector entries and eigenvalues, the input of spectral attention (SA)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, get_args

import torch
from torch import Tensor

from gape._internal.validation import check_at_least, check_one_of
from gape.encodings.base import NodeEncoding
from gape.encodings.laplacian import LaplacianMatrix, LaplacianName, laplacian_eigenpairs
from gape.graph.graph import Graph


@dataclass(frozen=True)
class Spectrum(NodeEncoding):
    r"""Eigenvector entries and eigenvalues for spectral attention (Kreuzer et al., 2021).

    The ``pairs`` lowest eigenpairs of each graph, trivial ones included. As in the code of Soga & Chiang (2023), each
    node's entries are scaled to norm 1. Undirected graphs only. Entries beyond the number of nodes of a graph are NaN:
    the mask is ``result.isnan()``, and :func:`split_spectrum` separates entries, eigenvalues and mask.
    :class:`gape.nn.SpectralAttention` takes the result as it is.

    Args:
        pairs: number of eigenpairs k.
        laplacian: "normalized", I - D^(-1/2) A D^(-1/2), or "combinatorial", D - A.
        symmetrize: replace A of a directed graph by (A + Aᵀ)/2 instead of raising an error.
        unit_rows: scale the entries of each node to norm 1.

    Returns, when called on a graph: ``[num_nodes, pairs, 2]``, entry of the eigenvector and eigenvalue.

    Example:
        >>> edge = Graph.from_edges([(0, 1)], undirected=True)
        >>> Spectrum(pairs=3)(edge)[0]
        tensor([[0.7071, 0.0000],
                [0.7071, 2.0000],
                [   nan,    nan]])
    """

    pairs: int = 10
    laplacian: LaplacianName = "normalized"
    symmetrize: bool = False
    unit_rows: bool = True

    version: ClassVar[int] = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(1, pairs=self.pairs)
        check_one_of(get_args(LaplacianName), laplacian=self.laplacian)

    def rows(self, graph: Graph) -> Tensor:
        matrix = LaplacianMatrix(self.laplacian, self.symmetrize, "Spectrum")
        found = laplacian_eigenpairs(graph, self.pairs, matrix, trivial=True)
        # Rounding may put a zero eigenvalue just below zero.
        return stack_spectrum(found.vectors, found.values.abs()[graph.batch], self.unit_rows)


def stack_spectrum(vectors: Tensor, values: Tensor, unit_rows: bool) -> Tensor:
    """Stack entries ``[n, k]`` and eigenvalues ``[n, k]`` to ``[n, k, 2]``, NaN where the eigenvalue is NaN."""
    if unit_rows:
        norm = torch.linalg.vector_norm(vectors, dim=1, keepdim=True)
        vectors = vectors / torch.where(norm > 0, norm, 1.0)
    return torch.stack([torch.where(values.isnan(), torch.nan, vectors), values], -1)


def split_spectrum(spectrum: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Split ``[n, k, 2]`` into entries ``[n, k]`` and eigenvalues ``[n, k]``, both zero where missing, and the mask.

    The mask ``[n, k]`` is true where the eigenpair exists.

    Example:
        >>> entries, eigenvalues, mask = split_spectrum(torch.tensor([[[0.5, 1.0], [torch.nan, torch.nan]]]))
        >>> mask
        tensor([[ True, False]])
    """
    mask = ~spectrum[..., 0].isnan()
    entries, eigenvalues = spectrum.nan_to_num(0.0).unbind(-1)
    return entries, eigenvalues, mask
