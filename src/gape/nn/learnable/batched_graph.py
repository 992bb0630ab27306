"""The graphs of a PyG batch, checked."""

from __future__ import annotations

import torch
from torch import Tensor

from gape.graph import Graph


def batched_graph(
    edge_index: Tensor,
    batch: Tensor | None,
    num_nodes: int | None,
    edge_weight: Tensor | None,
    labels: Tensor | None,
    edge_type: Tensor | None,
    num_graphs: int = 0,
) -> Graph:
    """The graphs of a PyG batch, ``num_graphs`` at least; ``num_nodes`` from ``batch``, ``labels`` or the edges.

    Example:
        >>> batched_graph(torch.tensor([[0, 2], [1, 3]]), torch.tensor([0, 0, 1, 1]), None, None, None, None)
        Graph(graphs=2, nodes=4, edges=2, directed)
    """
    if not isinstance(edge_index, Tensor):
        raise ValueError(
            f"expected edge_index, a tensor [2, E], got {type(edge_index).__name__}; for PyG data call "
            "layer(data.edge_index, data.batch, num_nodes=data.num_nodes)"
        )
    if num_nodes is None:
        known = next((len(rows) for rows in (batch, labels) if rows is not None), None)
        num_nodes = known if known is not None else int(edge_index.max()) + 1 if edge_index.numel() else 0
    if labels is not None and labels.dim() == 2 and labels.shape[1] == 1:
        raise ValueError(
            f"labels must be a row of {len(labels)} integers, got shape {list(labels.shape)}: take x[:, 0]"
        )
    ptr = None
    if batch is not None:
        _check_batch(batch)
        sizes = torch.bincount(batch, minlength=max(num_graphs, 1))
        ptr = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
    return Graph(edge_index, num_nodes, edge_weight, labels, edge_type, ptr)  # type: ignore[arg-type]


def _check_batch(batch: Tensor) -> None:
    if not isinstance(batch, Tensor) or batch.dim() != 1 or batch.dtype not in (torch.int64, torch.int32):
        got = f"{batch.dtype} of shape {list(batch.shape)}" if isinstance(batch, Tensor) else type(batch).__name__
        raise ValueError(f"batch must be a tensor [n] of whole numbers, the graph of every node, got {got}")
    if batch.numel() and int(batch[0]) < 0:
        raise ValueError(f"batch must hold numbers of graphs from 0, got {int(batch[0])}")
    falls = (batch.diff() < 0).nonzero()
    if len(falls):
        at = int(falls[0]) + 1
        raise ValueError(
            f"batch must be ascending, so that the nodes of a graph lie together; node {at} is of graph "
            f"{int(batch[at])} and the node before it of {int(batch[at - 1])}: sort the nodes"
        )
