"""Laplacian eigenvectors (LAPE), and with eigenvalues (SA); the lowest eigenpairs of Laplacians."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph
import torch
from torch import Tensor

from gape._internal.threads import map_threads, one_blas_thread
from gape._internal.validation import check_at_least, check_one_of
from gape.encodings.base import NodeEncoding
from gape.encodings.laplacian_matrix import LaplacianMatrix, LaplacianName
from gape.graph.batching import Block, blocks, isolate, scatter_rows
from gape.graph.convert import as_graph
from gape.graph.graph import Graph
from gape.graph.small_graphs import single_matrix
from gape.linalg.eigenpairs import canonical_basis, dense_eigenpairs, fix_signs, signs
from gape.linalg.lanczos import sparse_eigenpairs

NullVectors = Literal["omit", "components"]

# Largest graph for a dense decomposition: from about 500 nodes on Lanczos is faster, at 1,000 up to four times.
MAX_DENSE_NODES = 512
# If the second eigenvalue is below this fraction of the largest diagonal entry, components are counted.
MAX_NULL_EIGENVALUE_RATIO = 1e-8


@dataclass(frozen=True)
class Laplacian(NodeEncoding):
    r"""Eigenvectors of the graph Laplacian of the lowest nonzero eigenvalues (Dwivedi et al., 2020).

    Undirected graphs only. The trivial eigenvectors, one per connected component, are left out by default; columns
    beyond the number of nontrivial ones are zero. Signs follow :func:`gape.encodings.fix_signs`. For a multiple
    eigenvalue any basis of its eigenspace is valid, and the one returned depends on the order of the nodes, but on no
    other graph: up to 512 nodes it is that of :func:`gape.linalg.eigenpairs.canonical_basis`. Graphs of up to 512 nodes
    are decomposed densely, larger ones by Lanczos's method with fixed start vectors. Formally a solution of P = μPL
    with μ = Λ⁻¹ (§3.3.2 of Soga & Chiang, 2023).

    Args:
        vectors: number of eigenvectors k, and so of features.
        laplacian: "normalized", I - D^(-1/2) A D^(-1/2), as in the authors' code, or "combinatorial", D - A, as in
            their text.
        symmetrize: replace A of a directed graph by (A + Aᵀ)/2 instead of raising an error.
        null_vectors: "omit" leaves out all trivial eigenvectors. "components" leaves out that of the component of a
            graph's first node only, as the authors' code leaves out one: those of its other components come first,
            in the order of their first nodes, and mark components and degrees. On connected graphs both are the same.

    Returns, when called on a graph: ``[num_nodes, vectors]``.

    Example:
        >>> path = Graph.from_edges([(0, 1), (1, 2)], undirected=True)
        >>> Laplacian(vectors=3, laplacian="combinatorial")(path)[0]
        tensor([ 0.7071, -0.4082,  0.0000])
    """

    vectors: int = 8
    laplacian: LaplacianName = "normalized"
    symmetrize: bool = False
    null_vectors: NullVectors = "omit"

    version: ClassVar[int] = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(1, vectors=self.vectors)
        check_one_of(get_args(LaplacianName), laplacian=self.laplacian)
        check_one_of(get_args(NullVectors), null_vectors=self.null_vectors)

    def rows(self, graph: Graph) -> Tensor:
        return self._eigenpairs(graph).vectors

    def eigenpairs(self, graph: Any) -> Eigenpairs:
        """Compute the eigenvectors in float64 with their eigenvalues ``[graphs, vectors]``, NaN beyond the last."""
        parts = as_graph(graph).parts
        found = map_threads(self._eigenpairs, parts)
        return Eigenpairs(torch.cat([p.values for p in found]), torch.cat([p.vectors for p in found]))

    def _eigenpairs(self, graph: Graph) -> Eigenpairs:
        matrix = LaplacianMatrix(self.laplacian, self.symmetrize, "Laplacian")
        found = laplacian_eigenpairs(graph, self.vectors, matrix, trivial=False)
        return found if self.null_vectors == "omit" else _after_null_vectors(graph, found, matrix)


def random_flips(encoding: Tensor, *, generator: torch.Generator, batch: Tensor | None = None) -> Tensor:
    """Multiply each column by a random sign, for training with eigenvectors (Dwivedi et al., 2020).

    Args:
        encoding: ``[num_nodes, k]``, of a mini-batch.
        generator: source of the signs. Draw new signs for each mini-batch, and do not flip when evaluating.
        batch: ``[num_nodes]``, the graph of each node, to draw signs per graph. ``None`` uses the same signs for all
            graphs of the mini-batch, as the authors do.

    Example:
        >>> flipped = random_flips(torch.ones(3, 4), generator=torch.Generator().manual_seed(0))
        >>> bool((flipped == flipped[0]).all()), flipped.abs().sum().item()
        (True, 12.0)
    """
    graphs = 1 if batch is None else int(batch.max()) + 1 if len(batch) else 0
    drawn = torch.randint(0, 2, (graphs, encoding.shape[1]), generator=generator, device=generator.device)
    signs = (2 * drawn - 1).to(encoding.device, encoding.dtype)
    return encoding * (signs if batch is None else signs[batch])


# ---------------------------------------------------------------------- eigenpairs


@dataclass(frozen=True, eq=False)
class Eigenpairs:
    """Lowest eigenpairs of each graph, in ascending order.

    Args:
        values: ``[graphs, k]``, NaN beyond the last eigenvalue of a graph.
        vectors: ``[n, k]``, unit vectors with fixed signs, zero beyond the last eigenvector of a graph.
    """

    values: Tensor
    vectors: Tensor


def laplacian_eigenpairs(graph: Graph, k: int, laplacian: LaplacianMatrix, *, trivial: bool) -> Eigenpairs:
    """Compute the k lowest eigenpairs of each graph's Laplacian.

    Without ``trivial``, those of eigenvalue zero (one per component) are left out.
    """
    adjacency = single_matrix(graph)
    if adjacency is not None and (laplacian.symmetrize or bool((adjacency == adjacency.T).all())):
        return _of_single_graph(adjacency, k, laplacian, trivial)
    laplacian.check(graph)
    with one_blas_thread():
        return _of_graphs(graph, k, laplacian, trivial)


def _of_graphs(graph: Graph, k: int, laplacian: LaplacianMatrix, trivial: bool) -> Eigenpairs:
    """Compute the same for graphs of any number and size."""
    large = graph.sizes > MAX_DENSE_NODES
    if bool(large.any()):
        if graph.num_graphs == 1:
            return _of_large_graph(graph, k, laplacian, trivial)
        found = [_of_graphs(part, k, laplacian, trivial) for part in isolate(graph, large)]
        return Eigenpairs(torch.cat([f.values for f in found]), torch.cat([f.vectors for f in found]))
    values = torch.full((graph.num_graphs, k), torch.nan, dtype=torch.float64, device=graph.device)
    vectors = torch.zeros(graph.num_nodes, k, dtype=torch.float64, device=graph.device)
    for block in blocks(graph.walk("adjacency")):
        matrices = laplacian.dense(block.matrices)
        theta, basis = dense_eigenpairs(matrices, 0 if trivial else 1, k)
        _write(values, vectors, block, theta, basis)
        if not trivial:
            for i in _maybe_disconnected(matrices, theta):
                one = Block(block.graphs[i : i + 1], block.nodes[i : i + 1], block.matrices[:0])
                skip = _count_components(matrices[i].cpu().numpy())
                _write(values, vectors, one, *dense_eigenpairs(matrices[i : i + 1], skip, k))
    return Eigenpairs(values, vectors)


def _of_single_graph(adjacency: np.ndarray, k: int, laplacian: LaplacianMatrix, trivial: bool) -> Eigenpairs:
    """Compute the same for one small graph, with few calls."""
    matrix = laplacian.array(adjacency)
    n, scale = len(matrix), matrix.diagonal().max()
    theta, basis = np.linalg.eigh(matrix)
    skip = 0 if trivial else 1
    if not trivial and n > 1 and theta[1] <= MAX_NULL_EIGENVALUE_RATIO * scale:
        skip = _count_components(matrix)
    wanted, found = slice(skip, skip + k), max(min(k, n - skip), 0)
    values, vectors = np.full((1, k), np.nan), np.zeros((n, k))
    values[0, :found] = theta[wanted]
    basis = canonical_basis(theta[None], basis[None], scale[None], wanted)[0][:, wanted]
    vectors[:, :found] = basis * signs(basis)
    return Eigenpairs(torch.from_numpy(values), torch.from_numpy(vectors))


def _maybe_disconnected(matrices: Tensor, theta: Tensor) -> list[int]:
    """List the graphs of a block whose second eigenvalue is close to zero."""
    if theta.shape[1] == 0:
        return []
    scale = matrices.diagonal(dim1=-2, dim2=-1).amax(-1)
    found: list[int] = (theta[:, 0] <= MAX_NULL_EIGENVALUE_RATIO * scale).nonzero().flatten().tolist()
    return found


def _count_components(matrix: np.ndarray) -> int:
    """Count the connected components of one dense Laplacian."""
    pattern = scipy.sparse.csr_array(matrix != 0)
    return int(scipy.sparse.csgraph.connected_components(pattern, directed=False)[0])


def _write(values: Tensor, vectors: Tensor, block: Block, theta: Tensor, basis: Tensor) -> None:
    found, k = theta.shape[1], values.shape[1]
    values[block.graphs] = torch.nn.functional.pad(theta, (0, k - found), value=torch.nan)
    scatter_rows(vectors, block, torch.nn.functional.pad(fix_signs(basis), (0, k - found)))


def _after_null_vectors(graph: Graph, found: Eigenpairs, laplacian: LaplacianMatrix) -> Eigenpairs:
    """Put the null vectors of all components of a graph but its first one before its other eigenvectors."""
    matrix, degree = laplacian.sparse(graph)
    # Components are numbered in the order of their first nodes, and so graph by graph.
    component = scipy.sparse.csgraph.connected_components(matrix, directed=False)[1]
    null = torch.from_numpy(laplacian.trivial(component, degree)).to(graph.device)
    number = torch.from_numpy(component).long().to(graph.device)
    first = torch.full((graph.num_graphs,), len(number), device=graph.device)
    first = first.scatter_reduce(0, graph.batch, number, "amin")
    last = torch.full_like(first, -1).scatter_reduce(0, graph.batch, number, "amax")
    shift, k = (last - first).clamp(min=0), found.values.shape[1]
    column = torch.arange(k, device=graph.device) - shift.unsqueeze(1)
    values = found.values.gather(1, column.clamp(min=0)).where(column >= 0, 0.0)
    of_node = column[graph.batch]
    vectors = found.vectors.gather(1, of_node.clamp(min=0)).where(of_node >= 0, 0.0)
    place = number - first[graph.batch] - 1
    kept = ((place >= 0) & (place < k)).nonzero().flatten()
    vectors[kept, place[kept]] = null[kept]
    return Eigenpairs(values, vectors)


def _of_large_graph(graph: Graph, k: int, laplacian: LaplacianMatrix, trivial: bool) -> Eigenpairs:
    """Compute the eigenpairs of one large graph; trivial vectors are those of its components, in node order."""
    matrix, degree = laplacian.sparse(graph)
    count, component = scipy.sparse.csgraph.connected_components(matrix, directed=False)
    null = laplacian.trivial(component, degree)
    values, vectors = np.full(k, np.nan), np.zeros((graph.num_nodes, k))
    first = min(k, count) if trivial else 0
    values[:first] = 0.0
    for i in range(first):
        vectors[:, i] = np.where(component == i, null, 0.0)
    # An isolated node has only its trivial vector.
    joined = np.flatnonzero(np.bincount(component)[component] > 1)
    parts = np.unique(component[joined], return_inverse=True)[1]
    skip = int(parts.max(initial=-1)) + 1
    wanted = min(k - first, len(joined) - skip)
    if wanted > 0:
        matrix = matrix[joined][:, joined]
        if len(joined) <= MAX_DENSE_NODES or wanted > len(joined) // 3:
            dense = torch.from_numpy(matrix.toarray()).unsqueeze(0)
            theta, basis = (part[0].numpy() for part in dense_eigenpairs(dense, skip, wanted))
        else:
            theta, basis = sparse_eigenpairs(matrix, wanted, null[joined], parts)
        values[first : first + wanted] = theta
        vectors[joined, first : first + wanted] = fix_signs(torch.from_numpy(basis).unsqueeze(0))[0].numpy()
    device = graph.device
    return Eigenpairs(torch.from_numpy(values).unsqueeze(0).to(device), torch.from_numpy(vectors).to(device))


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
