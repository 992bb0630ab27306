"""Functions of the Laplacian's spectrum: heat kernels, effective resistances, electrostatic potentials."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph
import torch
from torch import Tensor

from gape._internal.validation import check_at_least, check_one_of
from gape.encodings.base import Encoding
from gape.encodings.dense import DenseEncoding, DenseReadout, compute_blocks
from gape.encodings.laplacian import Laplacian, LaplacianMatrix, LaplacianName
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
        """``[B, n, n]``: whether two nodes are in the same component."""
        return self.component.unsqueeze(2) == self.component.unsqueeze(1)

    @cached_property
    def weights(self) -> Tensor:
        """``[B, n, n]``: (A + Aᵀ)/2."""
        return (self.block.matrices + self.block.matrices.mT) / 2

    @cached_property
    def potentials(self) -> Tensor:
        """Pseudo-inverses ``[B, n, n]`` of the combinatorial Laplacians D - A, from the normalized ones.

        D^(-1/2) N⁺ D^(-1/2) is a generalised inverse of D - A, with N the normalized Laplacian; projected along the
        vectors that are constant on components it is the Moore-Penrose inverse.
        """
        nontrivial = torch.arange(self.values.shape[1], device=self.values.device) >= self.trivial.unsqueeze(1)
        inverse = torch.where(nontrivial, 1.0 / torch.where(nontrivial, self.values, 1.0), 0.0)
        degree = self.weights.sum(-1)
        root = torch.where(degree > 0, degree, torch.inf).rsqrt().unsqueeze(2)
        scaled = root * self.vectors
        found = (scaled * inverse.unsqueeze(1)) @ scaled.mT
        mean = self.together.to(found.dtype) / self.together.sum(-1, keepdim=True)
        found = found - mean @ found
        return torch.where(self.together, found - found @ mean, 0.0)


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
    """Minimum, maximum, mean and (unbiased) standard deviation of rows ``[B, n, n]`` over each node's component."""
    low, high = (torch.where(together, rows, sign * torch.inf) for sign in (1, -1))
    count = together.sum(-1)
    mean = rows.sum(-1) / count
    squares = torch.where(together, rows - mean.unsqueeze(-1), 0.0).square().sum(-1)
    return low.amin(-1), high.amax(-1), mean, (squares / (count - 1).clamp(min=1)).sqrt()
