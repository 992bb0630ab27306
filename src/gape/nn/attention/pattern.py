"""Attention pattern: the pairs of nodes that attend, computed once per batch and shared by all layers."""

from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from gape._internal.validation import check_batch
from gape.nn.attention.dense import DenseLayout
from gape.nn.attention.edge import EdgeLayout

Kernel = Literal["auto", "edge", "dense"]

# Share of attending pairs from which the dense kernel is used. On one CPU core both kernels take the same time, forward
# and backward, at a density of about 0.15 for graphs of 120 nodes, 0.22 for 41 and 0.33 for 23. One threshold in
# between costs little, and the datasets of the paper are far from it (molecules, cycles and planar graphs at or below
# 0.1, block models at or above 0.3).
DENSE_FROM_DENSITY = 0.2


class AttentionPattern:
    r"""The pairs of nodes that attend in a batch of graphs, with the index tables of the attention kernels.

    An edge u→v of the graph lets v attend to u, so a node sees its in-neighbours, and itself only if it has
    a self-loop. With ``full=True`` every node attends to every node of its own graph, itself included.

    The tables depend on the graphs only, so all layers of a model share them. A training loop that sees the same
    batches again can keep the pattern.

    Args:
        edge_index: ``[2, num_edges]``, row 0 sources, row 1 targets. Parallel edges count with their multiplicity.
        batch: ``[num_nodes]``, the graph of each node, ascending; one graph if None.
        num_nodes: number of nodes; needed only if ``batch`` is None.
        num_graphs: number of graphs; the largest entry of ``batch`` plus one if None.
        heads: number of attention heads.
        full: all pairs of nodes in the same graph instead of the edges.
        kernel: "edge" to compute pair by pair, "dense" to compute on padded blocks, "auto" to take the dense
            kernel when at least a fifth of the pairs within graphs attend. Both give the same numbers.

    Example:
        >>> path = torch.tensor([[0, 1], [1, 2]])  # 0→1→2
        >>> pattern = AttentionPattern(path, num_nodes=3, heads=8)
        >>> pattern.num_pairs, round(pattern.density, 3)
        (2, 0.222)
        >>> AttentionPattern(path, num_nodes=3, heads=8, full=True).kernel
        'dense'
    """

    def __init__(
        self,
        edge_index: Tensor,
        batch: Tensor | None = None,
        *,
        num_nodes: int | None = None,
        num_graphs: int | None = None,
        heads: int,
        full: bool = False,
        kernel: Kernel = "auto",
    ) -> None:
        if kernel not in ("auto", "edge", "dense"):
            raise ValueError(f"kernel must be 'auto', 'edge' or 'dense', got {kernel!r}")
        if edge_index.dim() != 2 or edge_index.shape[0] != 2 or edge_index.is_floating_point():
            raise ValueError(
                f"edge_index must be integers of shape [2, num_edges], "
                f"got {edge_index.dtype} of shape {list(edge_index.shape)}"
            )
        if batch is None:
            if num_nodes is None:
                raise ValueError("give batch, or num_nodes for a single graph: edge_index does not show isolated nodes")
            batch = torch.zeros(num_nodes, dtype=torch.long, device=edge_index.device)
        check_batch(batch)
        if num_nodes is not None and num_nodes != len(batch):
            raise ValueError(f"num_nodes is {num_nodes} but batch has {len(batch)} entries; leave out one of them")
        self.num_nodes = len(batch)
        if edge_index.numel() and not 0 <= int(edge_index.min()) <= int(edge_index.max()) < self.num_nodes:
            raise ValueError(
                f"edge_index has nodes {int(edge_index.min())} to {int(edge_index.max())}, "
                f"but there are {self.num_nodes} nodes, numbered from 0"
            )
        largest = int(batch[-1]) + 1 if self.num_nodes else 0
        if num_graphs is not None and num_graphs < largest:
            raise ValueError(f"num_graphs is {num_graphs} but batch has {largest} graphs")
        across = batch.index_select(0, edge_index[0]) != batch.index_select(0, edge_index[1])
        if bool(across.any()):
            edge = int(across.nonzero()[0])
            pair = edge_index[:, edge]
            raise ValueError(
                f"edge {edge}, {pair.tolist()}, joins nodes of different graphs, {batch[pair].tolist()}; check that "
                "batch belongs to edge_index"
            )
        self.edge_index, self.batch, self.heads, self.full = edge_index, batch, heads, full
        self.num_graphs = largest if num_graphs is None else num_graphs
        self._kernel = kernel

    @cached_property
    def kernel(self) -> Literal["edge", "dense"]:
        """The requested kernel; for "auto" the faster one at this density."""
        if self._kernel == "auto":
            return "dense" if self.density >= DENSE_FROM_DENSITY else "edge"
        return self._kernel

    @cached_property
    def sizes(self) -> Tensor:
        """``[num_graphs]``, number of nodes per graph."""
        return torch.bincount(self.batch, minlength=self.num_graphs)

    @cached_property
    def local(self) -> Tensor:
        """``[num_nodes]``, index of each node within its graph."""
        first = self.sizes.cumsum(0) - self.sizes
        return torch.arange(self.num_nodes, device=self.batch.device) - first[self.batch]

    @cached_property
    def num_cells(self) -> int:
        """Pairs of nodes of the same graph, Σ n²: the cost of the dense kernel."""
        return int((self.sizes * self.sizes).sum())

    @property
    def num_pairs(self) -> int:
        """Pairs that attend: the cost of the edge-wise kernel."""
        return self.num_cells if self.full else self.edge_index.shape[1]

    @property
    def density(self) -> float:
        """``num_pairs`` / ``num_cells``, 0 for a batch without nodes."""
        return self.num_pairs / max(self.num_cells, 1)

    @cached_property
    def pairs(self) -> Tensor:
        """``[2, num_pairs]``, source and target of each attending pair: the edges, or all pairs if ``full``."""
        if not self.full:
            return self.edge_index
        # Target v has sizes[batch[v]] sources, the nodes of its graph in order.
        per_target = self.sizes[self.batch]
        target = torch.repeat_interleave(per_target)
        first_pair = per_target.cumsum(0) - per_target
        first_node = torch.arange(self.num_nodes, device=self.batch.device) - self.local
        rank = torch.arange(len(target), device=target.device) - first_pair[target]
        return torch.stack([first_node[target] + rank, target])

    @cached_property
    def edges(self) -> EdgeLayout:
        """Index tables of the edge-wise kernel."""
        return EdgeLayout(self.pairs[0], self.pairs[1], self.num_nodes, self.heads)

    @cached_property
    def dense(self) -> DenseLayout:
        """Index tables of the dense kernel."""
        pairs = None if self.full else self.edge_index
        return DenseLayout(pairs, self.batch, self.local, self.sizes, self.heads)
