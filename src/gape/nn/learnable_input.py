"""What a learnable automaton is given: settings that go together, and batches of graphs."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from gape.arrays import finite_number, positive
from gape.graph import Graph
from gape.walk import NAMES

Readout = Literal["node", "closed", "pair"]


def check_settings(
    readout: str,
    length: int | None,
    out_channels: int | None,
    transition_by: str,
    damping: float,
    final: bool,
    labelling: str,
) -> None:
    """Refuse readouts, lengths and transitions that do not go together."""
    if readout not in ("node", "closed", "pair"):
        raise ValueError(f"readout must be 'node', 'closed' or 'pair', got {readout!r}")
    if labelling not in ("given", "degree"):
        raise ValueError(f"labelling must be 'given' or 'degree', got {labelling!r}")
    if length is not None:
        positive(length, "length")
    if out_channels is not None:
        positive(out_channels, "out_channels")
    finite_number(damping, "damping")
    if not 0 < damping <= (1.0 if length else 1.0 - 1e-6):
        bound = "1" if length else "1 - 1e-6 (1 itself with a length)"
        raise ValueError(f"damping must lie above 0 and be at most {bound}, got {damping}")
    if readout == "pair" and (out_channels is None or transition_by != "none" or final):
        raise ValueError(
            f"a pair readout needs out_channels, the attention heads, one transition for all and no final weights; "
            f"got out_channels={out_channels}, transition_by={transition_by!r}, final={final}"
        )
    if readout == "closed" and transition_by != "none" and length is None:
        raise ValueError("closed runs of a typed automaton are followed step by step; give their length, such as 10")


def check_walk(matrix: str, memory: float) -> None:
    """Refuse a walk matrix that there is not, and memory that nobody has."""
    if matrix not in NAMES:
        raise ValueError(f"there is no walk matrix {matrix!r}; there are {', '.join(NAMES)}")
    if finite_number(memory, "memory") <= 0:
        raise ValueError(f"memory must be more than 0 GiB, got {memory}")


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
