"""Encodings of directed graphs: magnetic Laplacians, singular vectors, walk profiles."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, get_args

import scipy.sparse
import torch
from torch import Tensor

from gape._internal.threads import one_blas_thread
from gape._internal.validation import check_at_least, check_one_of
from gape.automaton import Automaton
from gape.encodings.base import NodeEncoding
from gape.encodings.dense import DenseEncoding, DenseReadout
from gape.encodings.laplacian import Eigenpairs, LaplacianMatrix, LaplacianName
from gape.encodings.pairs import Pairs
from gape.graph.batching import Block, blocks, check_memory, scatter_rows
from gape.graph.convert import as_graph
from gape.graph.graph import Graph
from gape.linalg.eigenpairs import dense_eigenpairs, fix_phases, fix_signs
from gape.linalg.lanczos import sparse_singular_vectors
from gape.solvers.solve import solve


@dataclass(frozen=True)
class MagneticLaplacian(NodeEncoding):
    r"""Eigenvectors of the magnetic Laplacian of the lowest eigenvalues, for directed graphs (Geisler et al., 2023).

    The Laplacian of (A + Aᵀ)/2 in which an edge without its reverse has the phase e^(2πiq) along it and e^(-2πiq)
    against it: Hermitian, with real eigenvalues. q = 0 is the Laplacian without directions; several potentials q
    together determine how many walks have how many steps forward and backward (Huang, Wang & Li, 2025), which
    :class:`WalkProfile` counts. Every eigenvector is turned by the phase that makes Σ v|v|² real and positive, whatever
    the order of the nodes (:func:`gape.linalg.eigenpairs.fix_phases`); for a multiple eigenvalue any basis is valid.
    Trivial vectors are kept, since they are not constant on directed graphs. All matrices are dense.

    Args:
        vectors: number of eigenvectors k per potential.
        potentials: q, between 0 and 0.5; 0.25 makes an edge i and its reverse -i.
        laplacian: "normalized", I - D^(-1/2) H D^(-1/2), or "combinatorial", D - H, with H = (A + Aᵀ)/2 with phases.
        memory: memory limit, in GiB, for the dense matrices of one graph.

    Returns, when called on a graph: ``[num_nodes, 2 · vectors · potentials]``: for each potential the real parts, then
    the imaginary parts; zero beyond the number of nodes.

    Example:
        >>> arrow = Graph.from_edges([(0, 1)])
        >>> MagneticLaplacian(vectors=1)(arrow)  # one quarter of a turn apart
        tensor([[ 0.5000,  0.5000],
                [ 0.5000, -0.5000]])
    """

    vectors: int = 8
    potentials: tuple[float, ...] = (0.25,)
    laplacian: LaplacianName = "normalized"
    memory: float = 4.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(1, vectors=self.vectors)
        check_one_of(get_args(LaplacianName), laplacian=self.laplacian)
        for potential in self.potentials:
            if not 0 <= potential <= 0.5:
                raise ValueError(
                    f"potentials must be between 0 and 0.5, since q and 1 - q differ by complex conjugation and 1 + q "
                    f"equals q, got {potential:g}"
                )

    def rows(self, graph: Graph) -> Tensor:
        found = self._eigenpairs(graph)
        return torch.cat([part for pairs in found for part in (pairs.vectors.real, pairs.vectors.imag)], 1)

    def eigenpairs(self, graph: Any) -> list[Eigenpairs]:
        """Compute for each potential the complex eigenvectors ``[n, k]`` and eigenvalues ``[graphs, k]``, as LAPE's."""
        return self._eigenpairs(as_graph(graph))

    def _eigenpairs(self, graph: Graph) -> list[Eigenpairs]:
        matrix = LaplacianMatrix(self.laplacian, True, "MagneticLaplacian")
        matrix.check(graph)
        largest = int(graph.sizes.max()) if graph.num_graphs else 0
        what = f"MagneticLaplacian on a graph of {largest} nodes"
        check_memory(self.memory, 9 * 16 * largest**2, what, "raise memory, or use 'walk-profile' on large graphs")
        shapes = [(graph.num_graphs, self.vectors), (graph.num_nodes, self.vectors)]
        found = [
            Eigenpairs(
                torch.full(shapes[0], torch.nan, dtype=torch.float64, device=graph.device),
                torch.zeros(shapes[1], dtype=torch.complex128, device=graph.device),
            )
            for _ in self.potentials
        ]
        for block in blocks(graph.walk("adjacency")):
            there, laplacian = block.matrices != 0, matrix.dense(block.matrices)
            direction = there.double() - there.mT.double()
            for potential, pairs in zip(self.potentials, found, strict=True):
                angle = 2 * math.pi * potential * direction
                turned = torch.complex(laplacian * angle.cos(), laplacian * angle.sin())
                theta, basis = dense_eigenpairs(turned, 0, self.vectors)
                k = theta.shape[1]
                pairs.values[block.graphs, :k] = theta.real
                padded = torch.nn.functional.pad(fix_phases(basis), (0, self.vectors - k))
                scatter_rows(pairs.vectors, block, padded)
        return found


# Largest graph for a dense decomposition, and the largest share of the singular vectors for a sparse one.
MAX_DENSE_NODES = 512
MAX_SPARSE_SHARE = 3


@dataclass(frozen=True)
class SingularVectors(NodeEncoding):
    r"""Singular vectors of the adjacency matrix of the largest singular values (Hussain, Zaki & Subramanian, 2022).

    A ≈ UΣVᵀ, and a node's row is [U√Σ, V√Σ]: how it appears as a source and as a target of edges, so the products of
    both give back A. The encoding of the edge-augmented graph transformer (EGT), for directed graphs too. Signs follow
    :func:`gape.encodings.fix_signs` on U. For a multiple singular value, as bipartite undirected graphs have, any basis
    of its space is valid, and the one returned depends on the order of the nodes. Graphs of up to 512 nodes are
    decomposed densely, larger ones by Lanczos's method with fixed start vectors.

    Args:
        rank: number of singular values r; columns beyond the rank of A are zero.
        memory: memory limit, in GiB, for the dense matrices of one graph.

    Returns, when called on a graph: ``[num_nodes, 2 · rank]``.

    Example:
        >>> arrow = Graph.from_edges([(0, 1)])
        >>> SingularVectors(rank=1)(arrow)  # source, target
        tensor([[1., 0.],
                [0., 1.]])
    """

    rank: int = 8
    memory: float = 4.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(1, rank=self.rank)

    def parts(self, graph: Graph) -> list[Graph]:
        # Each large graph by itself.
        return [part for batch in graph.parts for part in _split(batch, self._is_large(batch.sizes))]

    def _is_large(self, sizes: Tensor) -> Tensor:
        return (sizes > MAX_DENSE_NODES) & (MAX_SPARSE_SHARE * self.rank <= sizes)

    def rows(self, graph: Graph) -> Tensor:
        out = torch.zeros(graph.num_nodes, 2 * self.rank, dtype=torch.float64, device=graph.device)
        if graph.num_graphs == 1 and bool(self._is_large(graph.sizes).all()):
            source, target = graph.edge_index.cpu().numpy()
            weights, n = graph.adjacency.weights.detach().cpu().numpy(), graph.num_nodes
            matrix = scipy.sparse.csr_array((weights, (source, target)), (n, n))
            with one_blas_thread():
                found = sparse_singular_vectors(matrix, self.rank)
            return self._scaled(*(torch.from_numpy(each).unsqueeze(0) for each in found))[0].to(graph.device)
        largest = int(graph.sizes.max()) if graph.num_graphs else 0
        what = f"SingularVectors on a graph of {largest} nodes"
        check_memory(self.memory, 10 * 8 * largest**2, what, "lower rank to a third of the nodes, or raise memory")
        for block in blocks(graph.walk("adjacency")):
            left, values, right = torch.linalg.svd(block.matrices)
            scatter_rows(out, block, self._scaled(left, values, right.mT))
        return out

    def _scaled(self, left: Tensor, values: Tensor, right: Tensor) -> Tensor:
        """Scale ``[B, n, j]``, ``[B, j]`` and ``[B, n, j]`` to rows ``[B, n, 2 · rank]`` with fixed signs."""
        left, values, right = left[..., : self.rank], values[:, : self.rank], right[..., : self.rank]
        rounding = torch.finfo(values.dtype).eps * left.shape[1] * values.amax(1, keepdim=True)
        root = torch.where(values > rounding, values, 0.0).sqrt().unsqueeze(1)
        fixed = fix_signs(left)
        sign = torch.where((fixed * left).sum(1, keepdim=True) < 0, -1.0, 1.0)
        missing = (0, self.rank - values.shape[1])
        return torch.cat([torch.nn.functional.pad(each * root, missing) for each in (fixed, right * sign)], -1)


def _split(graph: Graph, alone: Tensor) -> list[Graph]:
    """Cut a batch so that the graphs marked ``[graphs]`` are by themselves."""
    marked = alone.nonzero().flatten().tolist()
    bounds = sorted({0, graph.num_graphs, *marked, *(i + 1 for i in marked)})
    return [graph] if len(bounds) <= 2 else [graph.slice(first, last) for first, last in pairwise(bounds)]


ProfileReadout = Literal["node", DenseReadout]
ProfileMatrix = Literal["random_walk", "adjacency"]


@dataclass(frozen=True)
class WalkProfile(DenseEncoding):
    r"""Walks by their numbers of steps forward and backward, for directed graphs (Huang, Wang & Li, 2025).

    Feature (i, j) is the weight of the walks with i steps along edges and j steps against them, in any order. The node
    readout is that of an automaton typed by the direction of the edge (:attr:`automaton`): state (i, j) goes to
    (i + 1, j) on the letter forward and to (i, j + 1) on backward; sparse, so graphs may be large. Features are ordered
    by i + j, then by i: (0, 0), (0, 1), (1, 0), (0, 2), … Permutation-equivariant.

    Args:
        length: largest number of steps i + j.
        matrix: "random_walk", each step chooses among all edges of a node in either direction with probability
            proportional to their weights, or "adjacency", the number of walks (with weights: the sum of products).
        readout: "node", walks from anywhere that end in the node; "closed", walks back to where they began; "pair",
            walks between all pairs of nodes, row to column. The last two use dense matrices.
        memory: memory limit, in GiB, for the dense matrices of one graph and the pairs of all.

    Returns, when called on a graph: ``[num_nodes, (length + 1)(length + 2)/2]``, or :class:`Pairs`.

    Example:
        >>> path = Graph.from_edges([(0, 1), (1, 2)])
        >>> WalkProfile(length=2, matrix="adjacency")(path)[2]  # 0 → 1 → 2, 1 → 2, and 2 ← 1 → 2
        tensor([1., 0., 1., 0., 1., 1.])
    """

    length: int = 4
    matrix: ProfileMatrix = "random_walk"
    readout: ProfileReadout = field(default="node", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(1, length=self.length)
        check_one_of(get_args(ProfileMatrix), matrix=self.matrix)

    @property
    def steps(self) -> list[tuple[int, int]]:
        """Steps forward and backward of each feature."""
        return [(i, total - i) for total in range(self.length + 1) for i in range(total + 1)]

    @property
    def channels(self) -> int:
        return len(self.steps)

    @property
    def matrices(self) -> int:
        return 2 * self.length + 12 + (2 * self.channels if self.pairwise else 0)

    @property
    def automaton(self) -> Automaton:
        """The automaton with one state per feature and the letters forward (edge type 0) and backward (1)."""
        place = {pair: state for state, pair in enumerate(self.steps)}
        initial = torch.zeros(len(place), 1, dtype=torch.float64)
        transition = torch.zeros(2, len(place), len(place), dtype=torch.float64)
        initial[0] = 1.0
        for (i, j), state in place.items():
            for letter, after in enumerate([(i + 1, j), (i, j + 1)]):
                if after in place:
                    transition[letter, state, place[after]] = 1.0
        return Automaton(initial, transition, transition_by="edge")

    def compute(self, graph: Graph) -> Tensor | Pairs:
        if self.readout != "node":
            return super().compute(graph)
        machine = self.automaton.to(graph.device)
        return solve(machine, both_ways(graph), matrix=self.matrix, dtype=self.dtype).weights

    def features(self, part: Graph) -> Iterator[tuple[Block, Tensor]]:
        degree = both_ways(part).walk(self.matrix).left
        for block in blocks(part.walk("adjacency")):
            scale = 1.0 if degree is None else degree[block.nodes].unsqueeze(2)
            yield block, self._profiles(scale * block.matrices, scale * block.matrices.mT)

    def _profiles(self, forward: Tensor, backward: Tensor) -> Tensor:
        """Compute ``[B, n, n, channels]``, or the diagonals, from the weights ``[B, n, n]`` of one step."""
        eye = torch.eye(forward.shape[1], dtype=forward.dtype, device=forward.device)
        last, found = [eye.expand_as(forward)], []
        for total in range(self.length + 1):
            if total:
                longer = [walks @ backward for walks in last] + [torch.zeros_like(forward)]
                for i, walks in enumerate(last):
                    longer[i + 1] = longer[i + 1] + walks @ forward
                last = longer
            found += last if self.pairwise else [walks.diagonal(dim1=-2, dim2=-1).clone() for walks in last]
        return torch.stack(found, -1)


def both_ways(graph: Graph) -> Graph:
    """Return the graph with every edge in its own direction, type 0, and once more in the other, type 1."""
    edges = graph.num_edges
    weight = graph.edge_weight
    return Graph(
        torch.cat([graph.edge_index, graph.edge_index.flip(0)], 1),
        graph.num_nodes,
        edge_weight=None if weight is None else torch.cat([weight, weight]),
        edge_type=torch.arange(2, device=graph.device).repeat_interleave(edges),
        ptr=graph.ptr,
    )
