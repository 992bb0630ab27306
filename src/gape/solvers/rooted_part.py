r"""Closed runs of rooted automata on graphs of similar size.

The matrix M_{κ,u} of machine κ and root u (:mod:`gape.solvers.rooted`) has the pattern of the graph. So a graph is
eliminated symbolically once, and roots times machines are the lanes of one selected inversion
(:mod:`gape.linalg.selected_inverse`). Graphs with many edges take dense inverses instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gape.linalg.elimination import Schedule
from gape.linalg.powers import PowerDiagonals
from gape.linalg.selected_inverse import SparseMatrices, inverse_diagonal


@dataclass(frozen=True, eq=False)
class RootedPart:
    """Graphs, or balls cut out of graphs, each with the same number R of roots.

    Args:
        sizes: ``[B]``, numbers of nodes; the nodes of all lie behind each other, N together.
        source, target: ``[E]``, edges, no two of them the same, sorted by source and target.
        weight: ``[E]``, A / ρ.
        labels: ``[N, R]``, label of each node for each root of its graph, ``layers`` for nodes left out.
        roots: ``[B, R]``, the row of the result that belongs to each root, -1 for none.
        graphs: ``[B]``, the graph of the batch to which each belongs.
        layers: number of labels that count, L + 1.
        symmetric: whether all matrices are symmetric.
        schedule: of a sparse elimination; ``None`` for dense matrices.
    """

    sizes: Tensor
    source: Tensor
    target: Tensor
    weight: Tensor
    labels: Tensor
    roots: Tensor
    graphs: Tensor
    layers: int
    symmetric: bool
    schedule: Schedule | None

    @property
    def width(self) -> int:
        """Nodes of the largest graph."""
        return int(self.sizes.max())

    @property
    def place(self) -> Tensor:
        """``[N]``: where each node is when all graphs are padded to :attr:`width`."""
        batch = torch.repeat_interleave(torch.arange(len(self.sizes), device=self.sizes.device), self.sizes)
        starts = self.sizes.cumsum(0) - self.sizes
        return torch.arange(len(batch), device=batch.device) + (self.width * batch - starts[batch])


def table_of(transition: Tensor) -> Tensor:
    """``[K, L + 1, L + 1]`` to a table with a row for each pair of labels, those with a node left out being zero."""
    return torch.nn.functional.pad(transition, (0, 1, 0, 1)).flatten(1).T.contiguous()


def closed_by_layer(part: RootedPart, table: Tensor) -> tuple[Tensor, Tensor]:
    """``[B, R, K, L + 1]``: weight of the closed runs in each layer, and ``[B]``, a relative residual.

    The residual is the largest entry of |diag(Z(I - M)) - 1| over nodes, roots and machines, where Z is the computed
    inverse.

    Args:
        part: graphs with their roots.
        table: :func:`table_of` the transition weights.
    """
    if part.schedule is None:
        return _dense(part, table)
    return _sparse(part, part.schedule, table)


def lengths_by_layer(part: RootedPart, table: Tensor, length: int) -> Tensor:
    """``[B, R, K, L + 1, length]``: weight of the closed runs of 1 … ``length`` steps in each layer."""
    (b, r), k, n = part.roots.shape, table.shape[1], part.width
    diagonals = PowerDiagonals(length, torch.float64)
    counts = diagonals(_dense_matrices(part, table).reshape(-1, n, n), symmetric=part.symmetric)
    inside = _layers(part).unsqueeze(2)  # [B, R, 1, layers, n]
    return inside @ counts.reshape(b, r, k, n, length)


def _sparse(part: RootedPart, schedule: Schedule, table: Tensor) -> tuple[Tensor, Tensor]:
    (b, r), k, n = part.roots.shape, table.shape[1], part.width
    labels = part.labels[schedule.nodes]
    lower = _entries(part, schedule.target, schedule.pivot, schedule, labels, table)
    upper = None if part.symmetric else _entries(part, schedule.pivot, schedule.target, schedule, labels, table)
    rows = torch.arange(schedule.num_nodes, device=labels.device)
    loops = bool((part.source == part.target).any())
    diagonal = torch.ones(schedule.num_nodes, r * k, dtype=torch.float64, device=labels.device)
    if loops:
        diagonal = diagonal + _entries(part, rows, rows, schedule, labels, table)
    found, gap = inverse_diagonal(schedule, SparseMatrices(diagonal, lower, upper))
    place = part.place[schedule.nodes]
    residual = torch.zeros(b, dtype=torch.float64, device=labels.device).scatter_reduce_(0, place // n, gap, "amax")
    padded = torch.zeros(b * n, r * k, dtype=torch.float64, device=labels.device)
    padded = padded.index_copy(0, place, found)
    by_root = padded.view(b, n, r, k).transpose(1, 2)
    return (_layers(part) @ by_root).mT, residual


def _entries(
    part: RootedPart, row: Tensor, column: Tensor, schedule: Schedule, labels: Tensor, table: Tensor
) -> Tensor:
    """``[entries, R * K]``: entries of -M at rows and columns of the schedule, zero where there is no edge."""
    n = schedule.num_nodes
    keys = part.source * n + part.target
    wanted = schedule.nodes[row] * n + schedule.nodes[column]
    weight = torch.zeros(len(wanted), dtype=torch.float64, device=labels.device)
    if len(keys):
        edge = torch.searchsorted(keys, wanted).clamp_(max=len(keys) - 1)
        weight = torch.where(keys[edge] == wanted, -part.weight[edge], weight)
    code = labels.index_select(0, row) * (part.layers + 1) + labels.index_select(0, column)
    values = table.index_select(0, code.flatten()).view(len(code), labels.shape[1] * table.shape[1])
    return values * weight.unsqueeze(1)


def _dense(part: RootedPart, table: Tensor) -> tuple[Tensor, Tensor]:
    n = part.width
    system = torch.eye(n, dtype=torch.float64, device=table.device) - _dense_matrices(part, table)
    inverse = torch.cholesky_inverse(torch.linalg.cholesky(system)) if part.symmetric else torch.linalg.inv(system)
    gap = ((inverse.detach() * system.detach().mT).sum(-1) - 1.0).abs().amax((1, 2, 3))
    found = inverse.diagonal(dim1=-2, dim2=-1)  # [B, R, K, n]
    return found @ _layers(part).mT, gap


def _dense_matrices(part: RootedPart, table: Tensor) -> Tensor:
    """``[B, R, K, n, n]``: M, zero where a graph has fewer nodes."""
    (b, r), k, n, layers = part.roots.shape, table.shape[1], part.width, part.layers
    matrices = torch.zeros(b * n * n, dtype=torch.float64, device=table.device)
    place = part.place
    matrices[place[part.source] * n + place[part.target] % n] = part.weight
    labels = _padded_labels(part)
    code = labels.unsqueeze(-1) * (layers + 1) + labels.unsqueeze(-2)  # [B, R, n, n]
    values = table.T[:, code.flatten()].view(k, b, r, n, n).movedim(0, 2)
    return values * matrices.view(b, 1, 1, n, n)


def _padded_labels(part: RootedPart) -> Tensor:
    """``[B, R, n]``; nodes that a graph does not have are left out."""
    (b, r), n = part.roots.shape, part.width
    labels = torch.full((b * n, r), part.layers, dtype=part.labels.dtype, device=part.labels.device)
    labels[part.place] = part.labels
    return labels.view(b, n, r).transpose(1, 2)


def _layers(part: RootedPart) -> Tensor:
    """``[B, R, L + 1, n]``: whether a node is in a layer, as numbers."""
    layers = torch.arange(part.layers, device=part.labels.device)
    return (_padded_labels(part).unsqueeze(2) == layers.unsqueeze(1)).to(torch.float64)
