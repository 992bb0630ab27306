"""Encodings of sequences (§4.1 of Soga & Chiang, 2023): node number i gets row i of a table; the edges are not used.

Sinusoids, and encodings of the path or cycle on which a sequence lies. Eigenvectors of paths and cycles are cosines and
sines, so nothing is decomposed.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import torch
from torch import Tensor

from gape._internal.validation import check_at_least, check_one_of
from gape.encodings.base import NodeEncoding
from gape.encodings.laplacian import stack_spectrum
from gape.encodings.laplacian_matrix import LaplacianName
from gape.graph.graph import Graph

Shape = Literal["path", "cycle"]


@dataclass(frozen=True)
class SequenceEncoding(NodeEncoding):
    """Encoding of a node by its number in its graph: row ``i`` of :meth:`table` for node ``i``."""

    @abstractmethod
    def table(self, positions: int) -> Tensor:
        """Encode a sequence of that length: ``[positions, …]`` in float64."""

    @property
    def depends_on_length(self) -> bool:
        """True if the encoding of a position changes with the length of its sequence: ``length`` is None."""
        return getattr(self, "length", 0) is None

    def rows(self, graph: Graph) -> Tensor:
        if not self.depends_on_length:
            return self.table(int(graph.sizes.max())).to(graph.device)[graph.adjacency.local]
        sizes = graph.sizes.tolist()
        tables = {n: self.table(n).to(graph.device) for n in set(sizes)}
        return torch.cat([tables[n] for n in sizes])


@dataclass(frozen=True)
class Sinusoidal(SequenceEncoding):
    """Sines and cosines of the node's number in its graph (Vaswani et al., 2017), for sequences.

    Equal to :meth:`gape.Automaton.sinusoidal` walking a directed path (Proposition 1 of Soga & Chiang, 2023).
    Depends only on the order of the nodes.

    Args:
        width: number of features k, even: sines in columns 0, 2, …, cosines in columns 1, 3, ….

    Returns, when called on a graph: ``[num_nodes, width]``.

    Example:
        >>> Sinusoidal(width=2)(Graph.from_edges([(0, 1)]))
        tensor([[0.0000, 1.0000],
                [0.8415, 0.5403]])
    """

    width: int = 512

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.width < 2 or self.width % 2:
            raise ValueError(f"sinusoids come in pairs, so width must be even and at least 2, got {self.width}")

    def table(self, positions: int) -> Tensor:
        frequency = 10000.0 ** (-torch.arange(0, self.width, 2, dtype=torch.float64) / self.width)
        angle = torch.arange(positions, dtype=torch.float64).unsqueeze(1) * frequency
        return torch.stack([angle.sin(), angle.cos()], -1).flatten(1)


@dataclass(frozen=True)
class SequenceLaplacian(SequenceEncoding):
    """Laplacian eigenvectors of a path or cycle, by the node's number, whatever the edges (LAPE-P, LAPE-C, LAPE-C10K).

    The variants of Soga & Chiang (2023, §4.1). Depends only on the order of the nodes. Signs are those of the cosines
    and sines, which do not change with the length: every cosine starts with a positive entry. :func:`fix_signs` is not
    applied, because its choice changes from one length to the next.

    Args:
        vectors: number of nontrivial eigenvectors k, and so of features; columns beyond the last one are zero.
        shape: "path", or "cycle", whose eigenvectors are the columns of the Fourier transform.
        length: number of nodes of the path or cycle; ``None`` for the length of the sequence. LAPE-C10K has 10,000, so
            that the encoding of a position does not depend on the length of its sequence.
        laplacian: "normalized" or "combinatorial"; on a cycle they have the same eigenvectors.

    Returns, when called on a graph: ``[num_nodes, vectors]``.

    Example:
        >>> SequenceLaplacian(vectors=2, shape="cycle")(Graph.from_edges([(0, 1), (1, 2)]))
        tensor([[ 0.8165,  0.0000],
                [-0.4082,  0.7071],
                [-0.4082, -0.7071]])
    """

    version: ClassVar[int] = 2  # version 1 chose the signs of a path separately for each length

    vectors: int = 20
    shape: Shape = "path"
    length: int | None = None
    laplacian: LaplacianName = "normalized"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(1, vectors=self.vectors)
        check_one_of(get_args(Shape), shape=self.shape)
        _check_laplacian(self.laplacian, self.length)

    def table(self, positions: int) -> Tensor:
        return _eigenpairs(self.shape, self.laplacian, self.length, positions, self.vectors + 1)[1][:, 1:]


@dataclass(frozen=True)
class CycleSpectrum(SequenceEncoding):
    """Eigenvector entries and eigenvalues of a cycle, by the node's number: spectral attention for sequences.

    As :class:`Spectrum`, on the cycle that Soga & Chiang (2023, §4.1) use. Depends only on the order of the nodes.

    Args:
        pairs: number of eigenpairs k, the trivial one included.
        length: number of nodes of the cycle; ``None`` for the length of the sequence.
        laplacian: "normalized" or "combinatorial".
        unit_rows: scale the entries of each node to norm 1.

    Returns, when called on a graph: ``[num_nodes, pairs, 2]``, NaN where a pair does not exist.

    Example:
        >>> CycleSpectrum(pairs=4)(Graph.from_edges([(0, 1), (1, 2)])).shape
        torch.Size([3, 4, 2])
    """

    pairs: int = 20
    length: int | None = None
    laplacian: LaplacianName = "normalized"
    unit_rows: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(1, pairs=self.pairs)
        _check_laplacian(self.laplacian, self.length)

    def table(self, positions: int) -> Tensor:
        values, vectors = _eigenpairs("cycle", self.laplacian, self.length, positions, self.pairs)
        return stack_spectrum(vectors, values.expand(positions, -1), self.unit_rows)


@dataclass(frozen=True)
class PathRandomWalk(SequenceEncoding):
    """Return probabilities of a random walk on a path, by the node's number, whatever the edges.

    The RW row of the translation experiment of Soga & Chiang (2023, §4.1). Only positions within half of ``steps`` of
    an end differ from those in the middle. Depends only on the order of the nodes.

    Args:
        steps: number of steps, and so of features.
        length: number of nodes of the path; ``None`` for the length of the sequence.

    Returns, when called on a graph: ``[num_nodes, steps]``.

    Example:
        >>> PathRandomWalk(steps=2, length=None)(Graph.from_edges([(0, 1), (1, 2)]))
        tensor([[0.0000, 0.5000],
                [0.0000, 1.0000],
                [0.0000, 0.5000]])
    """

    steps: int = 20
    length: int | None = 1024

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(1, steps=self.steps)
        if self.length is not None:
            check_at_least(1, length=self.length)

    def table(self, positions: int) -> Tensor:
        nodes = _nodes("path", self.length, positions)
        if nodes < 2:
            return torch.zeros(positions, self.steps, dtype=torch.float64)
        # A walk that returns within ``steps`` reaches at most the nearer end: a short path has all the distinct rows.
        short = min(nodes, 2 * self.steps + 1)
        place = torch.arange(positions)
        row = torch.minimum(place, nodes - 1 - place).clamp(max=(short - 1) // 2)
        # D⁻¹A has the diagonal powers of D^(-1/2) A D^(-1/2), whose eigenvalues on a path are cos(πj/(n-1)).
        _, vectors = _path_eigenpairs(short, "normalized", short)
        cosines = (math.pi * torch.arange(short, dtype=torch.float64) / (short - 1)).cos().unsqueeze(1)
        table = vectors.square() @ cosines ** torch.arange(1, self.steps + 1)
        # An odd number of steps never returns on a path; rounding would leave about 1e-17.
        table[:, ::2] = 0.0
        return table.clamp(min=0.0)[row]


def sequence_graph(shape: Shape, nodes: int, *, directed: bool = False) -> Graph:
    """Build the path or cycle on which a sequence lies, for encodings that need a graph.

    Example:
        >>> sequence_graph("path", 3, directed=True).edge_index
        tensor([[0, 1],
                [1, 2]])
    """
    last = nodes if shape == "cycle" and nodes > 2 else max(0, nodes - 1)
    edges = [(i, (i + 1) % nodes) for i in range(last)]
    return Graph.from_edges(edges, num_nodes=nodes, undirected=not directed)


# ---------------------------------------------------------------------- eigenpairs in closed form


def _check_laplacian(laplacian: LaplacianName, length: int | None) -> None:
    check_one_of(get_args(LaplacianName), laplacian=laplacian)
    if length is not None:
        check_at_least(3, length=length)


def _nodes(shape: Shape, length: int | None, positions: int) -> int:
    """Return the number of nodes of the path or cycle for a sequence of ``positions``; raises if it does not fit."""
    nodes = positions if length is None else length
    if positions > nodes:
        raise ValueError(f"a sequence of {positions} does not fit on a {shape} of {nodes} nodes; raise length")
    return nodes


def _eigenpairs(
    shape: Shape, kind: LaplacianName, length: int | None, positions: int, count: int
) -> tuple[Tensor, Tensor]:
    """Lowest eigenvalues ``[count]`` and the first entries ``[positions, count]`` of their eigenvectors.

    Beyond the last eigenpair, eigenvalues are NaN and entries zero.
    """
    nodes = _nodes(shape, length, positions)
    values = torch.full((count,), torch.nan, dtype=torch.float64)
    vectors = torch.zeros(positions, count, dtype=torch.float64)
    found = min(count, nodes)
    if not found:
        return values, vectors
    # A cycle of one or two nodes is a path.
    if shape == "path" or nodes < 3:
        values[:found], whole = _path_eigenpairs(nodes, kind, found)
        vectors[:, :found] = whole[:positions]
        return values, vectors
    values[:found], vectors[:, :found] = _cycle_eigenpairs(nodes, kind, positions, found)
    return values, vectors


def _path_eigenpairs(nodes: int, kind: LaplacianName, count: int) -> tuple[Tensor, Tensor]:
    """Lowest eigenvalues ``[count]`` and unit eigenvectors ``[n, count]`` of a path's Laplacian, ascending.

    Combinatorial: 2 - 2cos(πj/n) and cos(πj(i + ½)/n). Normalised: 1 - cos(πj/(n-1)) and √degree · cos(πji/(n-1)).
    """
    i = torch.arange(nodes, dtype=torch.float64).unsqueeze(1)
    j = torch.arange(count, dtype=torch.float64)
    if kind == "combinatorial" or nodes == 1:
        angle = math.pi * j / max(1, nodes)
        values, vectors = 2.0 - 2.0 * angle.cos(), (angle * (i + 0.5)).cos()
    else:
        angle = math.pi * j / (nodes - 1)
        degree = torch.full((nodes, 1), 2.0, dtype=torch.float64)
        degree[0] = degree[-1] = 1.0
        values, vectors = 1.0 - angle.cos(), degree.sqrt() * (angle * i).cos()
    return values, vectors / torch.linalg.vector_norm(vectors, dim=0)


def _cycle_eigenpairs(nodes: int, kind: LaplacianName, positions: int, count: int) -> tuple[Tensor, Tensor]:
    """Lowest eigenvalues ``[count]`` of a cycle and the first ``positions`` entries of their eigenvectors.

    Eigenvalue 2 - 2cos(2πj/n) (half of it, normalised) belongs to cos(2πji/n) and sin(2πji/n), in this order; these
    are the columns of the discrete Fourier transform.
    """
    column = torch.arange(count)
    j = ((column + 1) // 2).to(torch.float64)
    angle = 2.0 * math.pi * j / nodes
    turns = torch.arange(positions, dtype=torch.float64).unsqueeze(1) * angle
    vectors = torch.where(column % 2 == 1, turns.cos(), turns.sin())
    vectors[:, 0] = 1.0
    single = (column == 0) | ((2 * j == nodes) & (column % 2 == 1))
    vectors = vectors * torch.where(single, 1.0, j.new_tensor(2.0)).sqrt() / math.sqrt(nodes)
    values = (2.0 - 2.0 * angle.cos()) / (2.0 if kind == "normalized" else 1.0)
    return values, vectors
