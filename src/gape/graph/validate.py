"""What a graph may be made of, and errors that quote what it may not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gape._internal.threads import map_threads
from gape._internal.validation import as_tensor

if TYPE_CHECKING:
    from gape.graph.graph import Graph

# Edges looked at together: few enough to stay in cache.
CHECKED_AT_ONCE = 1 << 20
# Where nobody says how many nodes there are, ids stay below this, and so many more for each edge. Beyond, nearly all
# nodes would be without edges: such ids are names, not numbers from 0, and memory would go to nodes nobody meant.
FREE_NODES = 1 << 24
NODES_PER_EDGE = 100


def integers(value: Any, name: str) -> Tensor:
    """``value`` in int64, if it holds integers."""
    tensor = as_tensor(value, name)
    if tensor.numel() == 0 and not isinstance(value, Tensor):
        tensor = tensor.to(torch.int64)
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        raise ValueError(f"{name} must be integers, got {tensor.dtype}".replace("torch.", ""))
    whole = tensor.to(torch.int64)
    if tensor.dtype == torch.uint64 and bool((whole < 0).any()):
        raise ValueError(f"{name} must be below 2^63, got {int(whole[whole < 0][0]) + 2**64}")
    return whole


def nodes_named(edge_index: Tensor) -> int:
    """How many nodes an edge list ``[2, E]`` has that does not say: up to the largest id, within reason.

    Example:
        >>> nodes_named(torch.tensor([[0, 1], [1, 2]]))
        3
    """
    edges = edge_index.shape[1]
    largest = int(edge_index.max()) if edges else -1
    if largest >= FREE_NODES + NODES_PER_EDGE * edges:
        raise ValueError(
            f"node ids run to {largest} with {edges} edge{'s' if edges > 1 else ''}; number the nodes from 0, as "
            "numpy.unique(edges, return_inverse=True) does, or, if so many nodes are there without edges, give "
            f"gape.Graph num_nodes={largest + 1}"
        )
    return max(largest + 1, 0)


def floats(value: Any) -> Tensor:
    """Edge weights as real floating-point numbers."""
    tensor = as_tensor(value, "edge_weight")
    if tensor.is_complex():
        raise ValueError(f"edge_weight must be real, got {tensor.dtype}".replace("torch.", ""))
    return tensor if tensor.is_floating_point() else tensor.to(torch.float64)


def check_graph(graph: Graph) -> None:
    """Raise a ``ValueError`` that quotes the first thing that does not fit."""
    index, n = graph.edge_index, graph.num_nodes
    if index.dim() != 2 or index.shape[0] != 2:
        raise ValueError(f"edge_index must have shape [2, edges], got {list(index.shape)}")
    _check_ptr(graph.ptr, n)
    map_threads(lambda first: _check_edges(graph, first), range(0, graph.num_edges, CHECKED_AT_ONCE))
    for name, length, of in (
        ("edge_weight", graph.num_edges, "edge"),
        ("edge_type", graph.num_edges, "edge"),
        ("labels", n, "node"),
    ):
        value = getattr(graph, name)
        if value is None:
            continue
        if value.dim() != 1 or len(value) != length:
            raise ValueError(f"{name} must have one entry per {of}, shape [{length}], got {list(value.shape)}")
        if name == "edge_weight":
            finite = torch.isfinite(value.detach())
            if not bool(finite.all()):
                where = int((~finite).nonzero()[0])
                raise ValueError(
                    f"edge_weight must be finite, got {value[where].item()} on edge {where} {index[:, where].tolist()}"
                )
        elif value.numel() and int(value.min()) < 0:
            where = int((value < 0).nonzero()[0])
            raise ValueError(f"{name} must not be negative, got {int(value[where])} on {of} {where}")


def _check_ptr(ptr: Tensor, num_nodes: int) -> None:
    if ptr.dim() != 1 or len(ptr) < 2 or int(ptr[0]) != 0 or int(ptr[-1]) != num_nodes:
        raise ValueError(
            f"ptr must run from 0 to num_nodes={num_nodes} with one entry more than there are graphs, got {_shown(ptr)}"
        )
    if bool((ptr.diff() < 0).any()):
        raise ValueError(f"ptr must not decrease, got {_shown(ptr)}")


def _check_edges(graph: Graph, first: int) -> None:
    """Whether the edges from number ``first`` on, as many as are checked at once, stay within their graphs."""
    index, n = graph.edge_index[:, first : first + CHECKED_AT_ONCE], graph.num_nodes
    low, high = (int(bound) for bound in index.aminmax())
    if low < 0 or high >= n:
        wrong = int(((index < 0) | (index >= n)).any(0).nonzero()[0])
        raise ValueError(
            f"edge_index must name nodes from 0 to below num_nodes={n}, but edge {first + wrong} is "
            f"{index[:, wrong].tolist()}"
        )
    if graph.num_graphs == 1:
        return
    batch = graph.adjacency.batch
    crossing = batch.index_select(0, index[0]) != batch.index_select(0, index[1])
    if bool(crossing.any()):
        edge = int(crossing.nonzero()[0])
        pair = index[:, edge].tolist()
        raise ValueError(
            f"edge {first + edge}, {pair}, joins graph {int(batch[pair[0]])} to graph {int(batch[pair[1]])}; "
            "by ptr they are different graphs"
        )


def check_nonnegative(graph: Graph, asked_by: str) -> None:
    """Refuse negative edge weights, where ``asked_by`` has no meaning for them."""
    weights = graph.edge_weight
    if weights is not None and bool((weights < 0).any()):
        where = int((weights < 0).nonzero()[0])
        edge = graph.edge_index[:, where].tolist()
        raise ValueError(
            f"{asked_by} needs weights of at least 0, got {weights[where].item():g} on edge {where} {edge}"
        )


def sorted_once(graphs: Any, num_graphs: int) -> Tensor:
    """Numbers of graphs in order, each there once."""
    graphs = integers(graphs, "graphs").flatten()
    ordered: Tensor = graphs.sort().values
    known = len(ordered) == 0 or 0 <= int(ordered[0]) <= int(ordered[-1]) < num_graphs
    if not known or bool((ordered.diff() == 0).any()):
        raise ValueError(f"graphs must be different numbers from 0 to {num_graphs - 1}, got {_shown(graphs)}")
    return ordered


def _shown(values: Tensor) -> str:
    listed = values.flatten().tolist()
    return str(listed) if len(listed) <= 8 else f"{listed[:4]} … {listed[-2:]} ({len(listed)} entries)"
