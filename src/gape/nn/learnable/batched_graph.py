"""The graphs of a PyG batch, checked."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from gape._internal.validation import as_tensor, check_batch, whole_number
from gape.graph.batching import offsets
from gape.graph.graph import Graph
from gape.graph.validate import as_integers


def batched_graph(
    edge_index: Tensor,
    batch: Tensor | None = None,
    num_nodes: int | None = None,
    edge_weight: Tensor | None = None,
    labels: Tensor | None = None,
    edge_type: Tensor | None = None,
    num_graphs: int = 0,
) -> Graph:
    """The graphs of a PyG batch, ``num_graphs`` at least; ``num_nodes`` from ``batch``, ``labels`` or the edges.

    Example:
        >>> batched_graph(torch.tensor([[0, 2], [1, 3]]), torch.tensor([0, 0, 1, 1]))
        Graph(graphs=2, nodes=4, edges=2, directed)
    """
    if not isinstance(edge_index, Tensor) or edge_index.layout != torch.strided:
        got = type(edge_index).__name__ if not isinstance(edge_index, Tensor) else f"layout {edge_index.layout}"
        raise ValueError(
            f"expected edge_index, a plain tensor [2, E], got {got}; for PyG data call "
            "layer(data.edge_index, data.batch, num_nodes=data.num_nodes)"
        )
    edge_index = as_integers(edge_index, "edge_index")
    labels = None if labels is None else _row(labels, "labels", "x[:, 0]")
    edge_type = None if edge_type is None else _row(edge_type, "edge_type", "edge_attr[:, 0]")
    if batch is not None:
        check_batch(batch)
    num_nodes = _nodes(edge_index, num_nodes, batch, labels)
    ptr = None
    if batch is not None:
        sizes = torch.bincount(batch, minlength=max(num_graphs, 1))
        ptr = offsets(sizes)
    return Graph(edge_index, num_nodes, edge_weight, labels, edge_type, ptr)  # type: ignore[arg-type]


def _row(values: Any, name: str, column: str) -> Tensor:
    found = as_tensor(values, name)
    if found.dim() != 1:
        if found.dim() != 2 or found.shape[1] != 1:
            raise ValueError(
                f"{name} must be a row of integers, got shape {list(found.shape)}; of one-hot rows take argmax(1)"
            )
        raise ValueError(f"{name} must be a row of {len(found)} integers, got shape {list(found.shape)}: take {column}")
    return found


def _nodes(edge_index: Tensor, num_nodes: int | None, batch: Tensor | None, labels: Tensor | None) -> int:
    """The number of nodes, on which all that show it have to agree."""
    stated = None if num_nodes is None else whole_number(_plain(num_nodes), "num_nodes", at_least=0)
    shown = {"num_nodes": stated, "len(batch)": _length(batch), "len(labels)": _length(labels)}
    known = {name: number for name, number in shown.items() if number is not None}
    if len(set(known.values())) > 1:
        got = ", ".join(f"{name}={number}" for name, number in known.items())
        raise ValueError(f"there is one number of nodes, got {got}; batch and labels have a row for every node")
    last = int(edge_index.max()) if edge_index.numel() else -1
    if not known:
        return last + 1
    name, number = next(iter(known.items()))
    if last >= number:
        raise ValueError(
            f"edge_index names node {last}, but {name}={number}; batch and labels have a row for every node"
        )
    return number


def _plain(number: Any) -> Any:
    return number.item() if isinstance(number, Tensor) and number.numel() == 1 else number


def _length(rows: Tensor | None) -> int | None:
    return None if rows is None else len(rows)
