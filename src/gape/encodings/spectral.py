"""Base of encodings that are functions of all eigenpairs of a Laplacian, and one decomposition for several of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph
import torch
from torch import Tensor

from gape.encodings.base import DenseEncoding, Encoding, compute_blocks
from gape.encodings.laplacian import Laplacian
from gape.encodings.laplacian_matrix import LaplacianMatrix
from gape.encodings.pairs import Pairs
from gape.graph.batching import Block, blocks
from gape.graph.graph import Graph
from gape.linalg.eigenpairs import canonical_basis, fix_signs


@dataclass(frozen=True, eq=False)
class LaplacianSpectrum:
    """All eigenpairs of the Laplacians of a block of graphs.

    Args:
        block: the graphs; its matrices are adjacency matrices.
        component: ``[B, n]``, the number of each node's connected component.
        trivial: ``[B]``, the number of zero eigenvalues of each graph: its components.
        scale: ``[B]``, the largest diagonal entry of each Laplacian.
        values: ``[B, n]``, eigenvalues, ascending; the trivial ones exactly 0.
        vectors: ``[B, n, n]``, orthonormal eigenvectors, one per column.
    """

    block: Block
    component: Tensor
    trivial: Tensor
    scale: Tensor
    values: Tensor
    vectors: Tensor

    def diagonals(self, f: Tensor) -> Tensor:
        """Compute the diagonals of f(L), ``[B, n, c]``, from ``f`` ``[B, n, c]`` of the eigenvalues."""
        return self.vectors.square() @ f

    def matrices(self, f: Tensor) -> Tensor:
        """Compute f(L), ``[B, n, n, c]``, from ``f`` ``[B, n, c]`` of the eigenvalues."""
        columns = [(self.vectors * f[..., i].unsqueeze(1)) @ self.vectors.mT for i in range(f.shape[-1])]
        return torch.stack(columns, -1)

    @cached_property
    def together(self) -> Tensor:
        """``[B, n, n]``: True if two nodes are in the same component."""
        return self.component.unsqueeze(2) == self.component.unsqueeze(1)

    @cached_property
    def weights(self) -> Tensor:
        """``[B, n, n]``: (A + Aᵀ)/2."""
        return (self.block.matrices + self.block.matrices.mT) / 2

    @cached_property
    def potentials(self) -> Tensor:
        """Pseudo-inverses ``[B, n, n]`` of the combinatorial Laplacians D - A, from the normalized ones.

        D^(-1/2) N⁺ D^(-1/2) is a generalised inverse of D - A, with N the normalized Laplacian; projected along the
        vectors that are constant on components, from both sides, it is the Moore-Penrose inverse.
        """
        nontrivial = torch.arange(self.values.shape[1], device=self.values.device) >= self.trivial.unsqueeze(1)
        inverse = torch.where(nontrivial, 1.0 / torch.where(nontrivial, self.values, 1.0), 0.0)
        degree = self.weights.sum(-1)
        root = torch.where(degree > 0, degree, torch.inf).rsqrt().unsqueeze(2)
        scaled = root * self.vectors
        mean = self.together.to(scaled.dtype) / self.together.sum(-1, keepdim=True)
        scaled -= mean @ scaled
        return torch.where(self.together, (scaled * inverse.unsqueeze(1)) @ scaled.mT, 0.0)


def laplacian_spectra(part: Graph, laplacian: LaplacianMatrix) -> Iterator[LaplacianSpectrum]:
    """Decompose the dense Laplacians of a part of a batch, block by block."""
    component, trivial = _components(part)
    for block in blocks(part.walk("adjacency")):
        matrices = laplacian.dense(block.matrices)
        values, vectors = torch.linalg.eigh(matrices)
        zeros = trivial[block.graphs]
        first = torch.arange(values.shape[1], device=values.device) < zeros.unsqueeze(1)
        values = torch.where(first, 0.0, values.clamp(min=0.0))
        scale = matrices.diagonal(dim1=1, dim2=2).amax(1)
        yield LaplacianSpectrum(block, component[block.nodes], zeros, scale, values, vectors)


def _components(graph: Graph) -> tuple[Tensor, Tensor]:
    """Return the connected component of each node ``[n]`` and the number of components of each graph."""
    joined = graph.adjacency.weights.detach().cpu().numpy() != 0
    source, target = graph.edge_index.cpu().numpy()[:, joined]
    shape = (graph.num_nodes, graph.num_nodes)
    pattern = scipy.sparse.coo_array((np.ones(len(source), dtype=np.int8), (source, target)), shape=shape)
    _, component = scipy.sparse.csgraph.connected_components(pattern, directed=False)
    first = torch.from_numpy(np.unique(component, return_index=True)[1]).to(graph.device)
    count = torch.bincount(graph.batch[first], minlength=graph.num_graphs)
    return torch.from_numpy(component).to(graph.device, torch.int64), count


@dataclass(frozen=True)
class SpectralEncoding(DenseEncoding):
    """Encoding that is a function of all eigenpairs of a Laplacian of undirected graphs."""

    @property
    @abstractmethod
    def matrix(self) -> LaplacianMatrix:
        """The Laplacian."""

    @abstractmethod
    def from_spectrum(self, spectrum: LaplacianSpectrum) -> Tensor:
        """Compute the features of a block, ``[B, n, channels]`` or ``[B, n, n, channels]``."""

    def features(self, part: Graph) -> Iterator[tuple[Block, Tensor]]:
        for spectrum in laplacian_spectra(part, self.matrix):
            yield spectrum.block, self.from_spectrum(spectrum)

    def compute(self, graph: Graph) -> Tensor | Pairs:
        self.matrix.check(graph)
        return super().compute(graph)


@dataclass(frozen=True)
class _Eigenvectors(SpectralEncoding):
    """The columns of :class:`Laplacian`, from the decomposition that other encodings need anyway."""

    encoding: Laplacian = field(default_factory=Laplacian)
    readout: Literal["node"] = "node"

    @property
    def channels(self) -> int:
        return self.encoding.vectors

    @property
    def matrices(self) -> int:
        return 8

    @property
    def matrix(self) -> LaplacianMatrix:
        return LaplacianMatrix(self.encoding.laplacian, self.encoding.symmetrize, "Laplacian")

    def from_spectrum(self, spectrum: LaplacianSpectrum) -> Tensor:
        size, k = spectrum.values.shape[1], self.encoding.vectors
        numbers = spectrum.trivial.unsqueeze(1) + torch.arange(k, device=spectrum.trivial.device)
        theta, basis, scale = (each.cpu().numpy() for each in (spectrum.values, spectrum.vectors, spectrum.scale))
        basis = canonical_basis(theta, basis, scale, slice(0, int(numbers.max()) + 1))
        vectors = torch.from_numpy(basis).to(spectrum.vectors.device)
        index = numbers.clamp(max=size - 1).unsqueeze(1).expand(-1, size, -1)
        return torch.where((numbers < size).unsqueeze(1), fix_signs(vectors.gather(2, index)), 0.0)


def as_spectral(encoding: Encoding) -> SpectralEncoding | None:
    """Return the encoding in the form that :func:`compute_spectral` takes, ``None`` if it needs no decomposition."""
    if isinstance(encoding, SpectralEncoding):
        return encoding
    if type(encoding) is Laplacian and encoding.null_vectors == "omit":
        return _Eigenvectors(encoding=encoding, dtype=encoding.dtype)
    return None


def compute_spectral(encodings: Sequence[SpectralEncoding], graph: Graph) -> list[Tensor | Pairs]:
    """Compute several encodings from one decomposition of the same Laplacian."""
    for encoding in encodings:
        encoding.matrix.check(graph)
    return compute_blocks(
        encodings,
        graph,
        lambda part: (
            (spectrum.block, [encoding.from_spectrum(spectrum) for encoding in encodings])
            for spectrum in laplacian_spectra(part, encodings[0].matrix)
        ),
    )
