"""Laplacian eigenvectors as position encodings (LAPE)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, get_args

import torch
from torch import Tensor

from gape._internal.threads import map_threads
from gape.encodings.base import NodeEncoding, at_least, one_of
from gape.encodings.eigenpairs import Eigenpairs, eigenpairs
from gape.encodings.laplacian_matrix import LaplacianKind, LaplacianName
from gape.graph.convert import as_graph
from gape.graph.graph import Graph


@dataclass(frozen=True)
class Laplacian(NodeEncoding):
    r"""Eigenvectors of the graph Laplacian of the lowest nonzero eigenvalues (Dwivedi et al., 2020).

    Undirected graphs only. One trivial eigenvector for each connected component is left out; columns beyond the
    number of nontrivial ones are zero. Signs follow :func:`gape.encodings.signs.fix_signs`; where an eigenvalue is
    multiple, any basis of its eigenspace is right and the one returned depends on the order of the nodes. Dense up
    to 512 nodes, then Lanczos's method with fixed starts. Formally a solution of P = μPL with μ = Λ⁻¹ (§3.3.2 of
    Soga & Chiang, 2023).

    Args:
        vectors: number of eigenvectors k, and so of features.
        laplacian: "normalized", I - D^(-1/2) A D^(-1/2), as in the authors' code, or "combinatorial", D - A, as in
            their text.
        symmetrize: take directed graphs as (A + Aᵀ)/2 instead of refusing them.

    Returns, when called on a graph: ``[num_nodes, vectors]``.

    Example:
        >>> path = Graph.from_edges([(0, 1), (1, 2)], undirected=True)
        >>> Laplacian(vectors=3, laplacian="combinatorial")(path)[0]
        tensor([ 0.7071, -0.4082,  0.0000])
    """

    vectors: int = 8
    laplacian: LaplacianName = "normalized"
    symmetrize: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, vectors=self.vectors)
        one_of(get_args(LaplacianName), laplacian=self.laplacian)

    def rows(self, graph: Graph) -> Tensor:
        return eigenpairs(graph, self.vectors, self._kind, trivial=False).vectors

    def eigenpairs(self, graph: Any) -> Eigenpairs:
        """The eigenvectors in float64 with their eigenvalues ``[graphs, vectors]``, NaN where there are no more."""
        parts = as_graph(graph).parts
        found = map_threads(lambda part: eigenpairs(part, self.vectors, self._kind, trivial=False), parts)
        return Eigenpairs(torch.cat([p.values for p in found]), torch.cat([p.vectors for p in found]))

    @property
    def _kind(self) -> LaplacianKind:
        return LaplacianKind(self.laplacian, self.symmetrize, "Laplacian")
