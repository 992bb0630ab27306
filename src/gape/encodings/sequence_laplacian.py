"""Laplacian eigenvectors of paths and cycles as encodings of sequences: LAPE-P, LAPE-C, LAPE-C10K, SA on a cycle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, get_args

import torch
from torch import Tensor

from gape.encodings.base import at_least, one_of
from gape.encodings.laplacian import LaplacianName
from gape.encodings.sequence import SequenceEncoding, Shape, cycle_eigenpairs, path_eigenpairs
from gape.encodings.spectrum import stack_spectrum


@dataclass(frozen=True)
class SequenceLaplacian(SequenceEncoding):
    """Laplacian eigenvectors of a path or cycle, by the node's number, whatever the edges (LAPE-P, LAPE-C, LAPE-C10K).

    The variants of Soga & Chiang (2023, §4.1). Depends on the order of the nodes. Signs are those of the cosines and
    sines, the same for all lengths: a cosine begins with a positive entry, and :func:`fix_signs` is not applied, whose
    choice would change from one length to the next.

    Args:
        vectors: number of nontrivial eigenvectors k, and so of features; zero beyond those that exist.
        shape: "path", or "cycle", whose eigenvectors are the columns of the Fourier transform.
        length: number of nodes of the path or cycle; ``None`` for that of the sequence itself. LAPE-C10K has 10,000,
            so that a position does not depend on the length of its sequence.
        laplacian: "normalized", or "combinatorial"; on a cycle they have the same eigenvectors.

    Returns, when called on a graph: ``[num_nodes, vectors]``.

    Example:
        >>> from gape import Graph
        >>> SequenceLaplacian(vectors=2, shape="cycle")(Graph.from_edges([(0, 1), (1, 2)]))
        tensor([[ 0.8165,  0.0000],
                [-0.4082,  0.7071],
                [-0.4082, -0.7071]])
    """

    version: ClassVar[int] = 2  # 1 chose signs of a path length by length

    vectors: int = 20
    shape: Shape = "path"
    length: int | None = None
    laplacian: LaplacianName = "normalized"

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, vectors=self.vectors)
        one_of(get_args(Shape), shape=self.shape)
        one_of(get_args(LaplacianName), laplacian=self.laplacian)
        if self.length is not None:
            at_least(3, length=self.length)

    @property
    def depends_on_length(self) -> bool:
        return self.length is None

    def table(self, positions: int) -> Tensor:
        return lowest(self.shape, self.laplacian, self.length, positions, self.vectors + 1)[1][:, 1:]


@dataclass(frozen=True)
class CycleSpectrum(SequenceEncoding):
    """Eigenvector entries and eigenvalues of a cycle, by the node's number: spectral attention for sequences.

    As :class:`Spectrum`, on the cycle that Soga & Chiang (2023, §4.1) use. Depends on the order of the nodes.

    Args:
        pairs: number of eigenpairs k, the trivial one included.
        length: number of nodes of the cycle; ``None`` for that of the sequence itself.
        laplacian: "normalized", or "combinatorial".
        unit_rows: scale the entries of each node to norm 1.

    Returns, when called on a graph: ``[num_nodes, pairs, 2]``, NaN where a pair does not exist.

    Example:
        >>> from gape import Graph
        >>> CycleSpectrum(pairs=4)(Graph.from_edges([(0, 1), (1, 2)])).shape
        torch.Size([3, 4, 2])
    """

    pairs: int = 20
    length: int | None = None
    laplacian: LaplacianName = "normalized"
    unit_rows: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, pairs=self.pairs)
        one_of(get_args(LaplacianName), laplacian=self.laplacian)
        if self.length is not None:
            at_least(3, length=self.length)

    @property
    def depends_on_length(self) -> bool:
        return self.length is None

    def table(self, positions: int) -> Tensor:
        values, vectors = lowest("cycle", self.laplacian, self.length, positions, self.pairs)
        return stack_spectrum(vectors, values.expand(positions, -1), self.unit_rows)


def lowest(shape: Shape, kind: LaplacianName, length: int | None, positions: int, count: int) -> tuple[Tensor, Tensor]:
    """``[count]`` eigenvalues, NaN where there are no more, and ``[positions, count]`` entries, zero there."""
    nodes = positions if length is None else length
    if positions > nodes:
        raise ValueError(f"a sequence of {positions} does not fit on a {shape} of {nodes} nodes; raise length")
    values = torch.full((count,), torch.nan, dtype=torch.float64)
    vectors = torch.zeros(positions, count, dtype=torch.float64)
    found = min(count, nodes)
    if not found:
        return values, vectors
    # A cycle of one or two nodes is a path.
    if shape == "path" or nodes < 3:
        values[:found], whole = path_eigenpairs(nodes, kind, found)
        vectors[:, :found] = whole[:positions]
        return values, vectors
    values[:found], vectors[:, :found] = cycle_eigenpairs(nodes, kind, positions, found)
    return values, vectors
