"""What a learnable automaton is given: settings that go together, and batches of graphs."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from gape.graph import Graph

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
    if length is not None and length < 1:
        raise ValueError(f"length must be at least 1 step, or None for runs of all lengths; got {length}")
    if not 0 < damping <= (1.0 if length else 1.0 - 1e-6):
        raise ValueError(f"damping must lie between 0 and 1 (1 itself only with a length), got {damping}")
    if readout == "pair" and (out_channels is None or transition_by != "none" or final):
        raise ValueError(
            f"a pair readout needs out_channels, the attention heads, one transition for all and no final weights; "
            f"got out_channels={out_channels}, transition_by={transition_by!r}, final={final}"
        )
    if readout == "closed" and transition_by != "none" and length is None:
        raise ValueError("closed runs of a typed automaton are followed step by step; give their length, such as 10")


def batched_graph(
    edge_index: Tensor,
    batch: Tensor | None,
    num_nodes: int | None,
    edge_weight: Tensor | None,
    labels: Tensor | None,
    edge_type: Tensor | None,
) -> Graph:
    """The graphs of a PyG batch; ``num_nodes`` from ``batch``, ``labels`` or the edges if ``None``.

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
    ptr = None
    if batch is not None:
        if len(batch) > 1 and bool((batch.diff() < 0).any()):
            raise ValueError("batch must be ascending, so that the nodes of a graph lie together; sort the nodes")
        sizes = torch.bincount(batch) if len(batch) else batch.new_zeros(1)
        ptr = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
    return Graph(edge_index, num_nodes, edge_weight, labels, edge_type, ptr)  # type: ignore[arg-type]
