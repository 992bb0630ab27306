"""Validate the tensors that a :class:`Graph` is built from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from gape._internal.threads import map_threads
from gape._internal.validation import as_tensor
from gape._internal.warnings import warn_caller

if TYPE_CHECKING:
    from gape.graph.graph import Graph

# Edges checked together: few enough to stay in cache.
EDGES_PER_CHECK = 1 << 20
# Without num_nodes, ids must stay below MAX_INFERRED_NODES + MAX_NODES_PER_EDGE × edges. Larger ids are names rather
# than numbers from 0: nearly all nodes would be isolated, and memory would be wasted on them.
MAX_INFERRED_NODES = 1 << 24
MAX_NODES_PER_EDGE = 100


def as_integers(value: Any, name: str) -> Tensor:
    """Convert to an int64 tensor, or raise if the values are not integers."""
    tensor = as_tensor(value, name)
    if tensor.numel() == 0 and not isinstance(value, Tensor):
        tensor = tensor.to(torch.int64)
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        raise ValueError(f"{name} must be integers, got {tensor.dtype}".replace("torch.", ""))
    whole = tensor.to(torch.int64)
    if tensor.dtype == torch.uint64 and bool((whole < 0).any()):
        raise ValueError(f"{name} must be below 2^63, got {int(whole[whole < 0][0]) + 2**64}")
    return whole


def infer_num_nodes(edge_index: Tensor) -> int:
    """Infer the number of nodes of an edge list ``[2, E]``: the largest id plus one, within reason.

    Example:
        >>> infer_num_nodes(torch.tensor([[0, 1], [1, 2]]))
        3
    """
    edges = edge_index.shape[1]
    largest = int(edge_index.max()) if edges else -1
    if largest >= MAX_INFERRED_NODES + MAX_NODES_PER_EDGE * edges:
        raise ValueError(
            f"node ids run to {largest} with {edges} edge{'s' if edges > 1 else ''}; number the nodes from 0, as "
            "numpy.unique(edges, return_inverse=True) does, or, if so many nodes are there without edges, give "
            f"gape.Graph num_nodes={largest + 1}"
        )
    return max(largest + 1, 0)


def as_weights(value: Any) -> Tensor:
    """Convert edge weights to a real floating-point tensor."""
    tensor = as_tensor(value, "edge_weight")
    if tensor.is_complex():
        raise ValueError(f"edge_weight must be real, got {tensor.dtype}".replace("torch.", ""))
    return tensor if tensor.is_floating_point() else tensor.to(torch.float64)


def check_graph(graph: Graph) -> None:
    """Validate a graph; raise a ``ValueError`` that quotes the first invalid value."""
    index, n = graph.edge_index, graph.num_nodes
    if index.dim() != 2 or index.shape[0] != 2:
        raise ValueError(f"edge_index must have shape [2, edges], got {list(index.shape)}")
    _check_ptr(graph.ptr, n)
    # A single graph is checked faster without a scan, which its direct paths do not need.
    if graph.num_graphs == 1 or graph.scan is None:
        map_threads(lambda first: _check_edges(graph, first), range(0, graph.num_edges, EDGES_PER_CHECK))
    for name in ("edge_weight", "edge_type", "labels"):
        check_attribute(graph, name)


def check_attribute(graph: Graph, name: str) -> None:
    """Validate ``edge_weight``, ``edge_type`` or ``labels`` of a graph, if it has them."""
    value, of, length = getattr(graph, name), "edge", graph.num_edges
    if name == "labels":
        of, length = "node", graph.num_nodes
    if value is None:
        return
    if value.dim() != 1 or len(value) != length:
        raise ValueError(f"{name} must have one entry per {of}, shape [{length}], got {list(value.shape)}")
    if name == "edge_weight":
        finite = torch.isfinite(value.detach())
        if not bool(finite.all()):
            where = int((~finite).nonzero()[0])
            edge = graph.edge_index[:, where].tolist()
            raise ValueError(f"edge_weight must be finite, got {value[where].item()} on edge {where} {edge}")
    elif value.numel() and int(value.min()) < 0:
        where = int((value < 0).nonzero()[0])
        raise ValueError(f"{name} must not be negative, got {int(value[where])} on {of} {where}")


def _check_ptr(ptr: Tensor, num_nodes: int) -> None:
    if len(ptr) == 2 and ptr.tolist() == [0, num_nodes]:
        return
    if ptr.dim() != 1 or len(ptr) < 2 or int(ptr[0]) != 0 or int(ptr[-1]) != num_nodes:
        raise ValueError(
            f"ptr must run from 0 to num_nodes={num_nodes} with one entry more than there are graphs, got {_shown(ptr)}"
        )
    if bool((ptr.diff() < 0).any()):
        raise ValueError(f"ptr must not decrease, got {_shown(ptr)}")


def _check_edges(graph: Graph, first: int) -> None:
    """Check that ``EDGES_PER_CHECK`` edges from ``first`` on stay within their graphs."""
    index, n = graph.edge_index[:, first : first + EDGES_PER_CHECK], graph.num_nodes
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
    """Raise if an edge weight is negative; ``asked_by`` names the encoding in the error."""
    weights = graph.edge_weight
    if weights is not None and bool((weights < 0).any()):
        where = int((weights < 0).nonzero()[0])
        edge = graph.edge_index[:, where].tolist()
        raise ValueError(
            f"{asked_by} needs weights of at least 0, got {weights[where].item():g} on edge {where} {edge}"
        )


def sorted_unique(graphs: Any, num_graphs: int) -> Tensor:
    """Return graph numbers sorted; raise if one is out of range or repeated."""
    graphs = as_integers(graphs, "graphs").flatten()
    ordered: Tensor = graphs.sort().values
    known = len(ordered) == 0 or 0 <= int(ordered[0]) <= int(ordered[-1]) < num_graphs
    if not known or bool((ordered.diff() == 0).any()):
        raise ValueError(f"graphs must be different numbers from 0 to {num_graphs - 1}, got {_shown(graphs)}")
    return ordered


def _shown(values: Tensor) -> str:
    listed = values.flatten().tolist()
    return str(listed) if len(listed) <= 8 else f"{listed[:4]} … {listed[-2:]} ({len(listed)} entries)"


def edge_weight_of(data: Any) -> Tensor | None:
    """Return PyG's ``edge_weight`` as a row, ``None`` if there is none; warn about ``weight``, which is not read."""
    weight = getattr(data, "edge_weight", None)
    if weight is None and getattr(data, "weight", None) is not None:
        warn_caller(
            "the PyG data has 'weight', which is not read: all edges count 1; set data.edge_weight = data.weight to "
            "use it"
        )
    return flat_weight(weight)


def flat_weight(weight: Any) -> Tensor | None:
    """Convert edge weights ``[E]`` or ``[E, 1]`` to a row; ``None`` stays."""
    if weight is None:
        return None
    found = as_tensor(weight, "edge_weight")
    return found.squeeze(-1) if found.ndim == 2 and found.shape[1] == 1 else found
