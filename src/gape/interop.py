"""``as_graph``: what people have, as a :class:`Graph`. Recognised by shape, so no graph library is imported here."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gape.graph import Graph


def as_graph(source: Any) -> Graph:
    """Anything that holds a graph, or many, as one :class:`Graph`.

    ============================================  =====================================================================
    source                                        what becomes of it
    ============================================  =====================================================================
    :class:`Graph`                                itself
    PyG ``Data``, ``Batch``                       ``edge_index``, ``num_nodes``, and ``edge_weight``, ``ptr`` if any
    PyG in-memory data set                        the collated storage at once, without a loop over its graphs
    NetworkX graph                                nodes in their own order; attribute ``weight``; both directions if
                                                  undirected
    SciPy sparse matrix                           entry ``[u, v]`` is the weight of u → v
    integer array or tensor ``[2, E]``            an edge list; the nodes are 0 … largest
    DGL graph                                     ``edges()``, ``num_nodes()``, ``edata['weight']``, batched or not
    list, tuple or data set of these              one batch, in order
    ============================================  =====================================================================

    Example:
        >>> as_graph(np.array([[0, 1], [1, 2]]))
        Graph(graphs=1, nodes=3, edges=2, directed)
    """
    if isinstance(source, Graph):
        return source
    if isinstance(source, Tensor | np.ndarray):
        return _from_edge_array(source)
    if _has(source, "_data", "slices", "_indices") and source._data is not None:
        return _from_collated(source)
    if _has(source, "edge_index", "num_nodes"):
        return _from_pyg(source)
    if _has(source, "tocoo", "shape"):
        return _from_scipy(source)
    if _has(source, "adj", "is_directed", "nodes"):
        return _from_networkx(source)
    if _has(source, "edges", "num_nodes") and callable(source.num_nodes):
        return _from_dgl(source)
    if isinstance(source, Sequence) or (_has(source, "__getitem__", "__len__") and not isinstance(source, dict)):
        return _from_many(source)
    raise ValueError(
        f"cannot read a graph from {type(source).__name__}; expected a gape.Graph, PyG Data, Batch or data set, a "
        "NetworkX graph, a SciPy sparse matrix, an edge array [2, edges], a DGL graph, or a list of these"
    )


def _has(source: Any, *names: str) -> bool:
    return all(hasattr(source, name) for name in names)


def _from_many(source: Iterable[Any]) -> Graph:
    items = list(source)
    if not items:
        raise ValueError("expected at least one graph, got an empty list")
    if all(isinstance(item, tuple | list) and len(item) == 2 and isinstance(item[0], int) for item in items):
        raise ValueError(
            f"got a list of pairs that starts with {items[0]!r}; for edges use gape.Graph.from_edges(pairs)"
        )
    graphs = []
    for i, item in enumerate(items):
        try:
            graphs.append(as_graph(item))
        except ValueError as error:
            raise ValueError(f"graph {i} of {len(items)}: {error}") from error
    return Graph.union(graphs)


def _from_edge_array(edges: Tensor | np.ndarray[Any, Any]) -> Graph:
    index = torch.as_tensor(edges)
    if index.dim() != 2 or index.shape[0] != 2 or index.is_floating_point():
        raise ValueError(
            f"an edge array must be integers of shape [2, edges], got {index.dtype} {list(index.shape)}".replace(
                "torch.", ""
            )
            + "; wrap an adjacency matrix as scipy.sparse.csr_array(matrix)"
        )
    nodes = int(index.max()) + 1 if index.numel() else 0
    return Graph(index, nodes)


def _from_pyg(data: Any) -> Graph:
    if data.edge_index is None:
        raise ValueError(f"{data!r} has no edge_index; give it one of shape [2, 0] if it has no edges")
    if data.num_nodes is None:
        raise ValueError(f"{data!r} does not say how many nodes it has; set num_nodes")
    return Graph(
        data.edge_index,
        int(data.num_nodes),
        edge_weight=_flat(getattr(data, "edge_weight", None)),
        ptr=getattr(data, "ptr", None),  # type: ignore[arg-type]
    )


def _from_collated(dataset: Any) -> Graph:
    """A PyG ``InMemoryDataset``: edges of all graphs lie behind each other, numbered from 0 in every graph."""
    data, slices = dataset._data, dataset.slices
    if slices is None:
        return _from_pyg(data)
    if "edge_index" not in slices:
        raise ValueError(f"the data set {dataset!r} has no edge_index")
    edge_ptr = torch.as_tensor(slices["edge_index"])
    sizes = _collated_sizes(data, slices, len(edge_ptr) - 1)
    index, weight = data.edge_index, _flat(getattr(data, "edge_weight", None))
    if dataset._indices is not None:
        chosen = torch.as_tensor(list(dataset._indices), dtype=torch.int64)
        counts = edge_ptr.diff()[chosen]
        starts = torch.repeat_interleave(edge_ptr[chosen] - _starts(counts)[:-1], counts)
        edges = starts + torch.arange(len(starts))
        index, weight = index[:, edges], None if weight is None else weight[edges]
        edge_ptr, sizes = _starts(counts), sizes[chosen]
    ptr = _starts(sizes)
    shift = torch.repeat_interleave(ptr[:-1], edge_ptr.diff())
    return Graph(index + shift, int(ptr[-1]), edge_weight=weight, ptr=ptr)


def _collated_sizes(data: Any, slices: dict[str, Any], graphs: int) -> Tensor:
    stated = getattr(data, "_num_nodes", None)
    if stated is None and "num_nodes" in slices:
        stated = data.num_nodes
    if stated is not None:
        return torch.as_tensor(stated, dtype=torch.int64).flatten()
    for name in ("x", "pos", "z", "batch", "node_species"):
        if name in slices:
            return torch.as_tensor(slices[name]).diff()
    raise ValueError(
        f"the data set of {graphs} graphs does not say how many nodes each has: it has {sorted(slices)}, and none of "
        "num_nodes, x, pos or z; set num_nodes on its graphs"
    )


def _starts(counts: Tensor) -> Tensor:
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def _flat(weight: Tensor | None) -> Tensor | None:
    return weight.squeeze(-1) if weight is not None and weight.dim() == 2 and weight.shape[1] == 1 else weight


def _from_scipy(matrix: Any) -> Graph:
    rows, columns = matrix.shape
    if rows != columns:
        raise ValueError(f"an adjacency matrix must be square, got shape {[rows, columns]}")
    entries = matrix.tocoo()
    if np.iscomplexobj(entries.data):
        raise ValueError(f"edge weights must be real, got a matrix of {entries.data.dtype}")
    index = torch.from_numpy(np.stack([entries.row, entries.col]).astype(np.int64))
    weight = entries.data.astype(np.float64)
    return Graph(index, rows, edge_weight=None if (weight == 1).all() else torch.from_numpy(weight))


def _from_networkx(graph: Any) -> Graph:
    number = {node: i for i, node in enumerate(graph.nodes)}
    pairs, weights = [], []
    for u, v, weight in graph.edges(data="weight", default=None):
        try:
            weights.append(1.0 if weight is None else float(weight))
        except (TypeError, ValueError) as error:
            raise ValueError(f"edge {u!r} – {v!r} has weight {weight!r}, which is not a number") from error
        pairs.append((number[u], number[v]))
    weighted = any(weight != 1.0 for weight in weights)
    return Graph.from_edges(
        pairs,
        num_nodes=len(number),
        undirected=not graph.is_directed(),
        edge_weight=torch.tensor(weights, dtype=torch.float64) if weighted else None,
    )


def _from_dgl(graph: Any) -> Graph:
    source, target = graph.edges()
    sizes = graph.batch_num_nodes() if hasattr(graph, "batch_num_nodes") else None
    weight = graph.edata.get("weight") if hasattr(graph, "edata") else None
    return Graph(
        torch.stack([torch.as_tensor(source), torch.as_tensor(target)]),
        int(graph.num_nodes()),
        edge_weight=_flat(weight),
        ptr=None if sizes is None else _starts(torch.as_tensor(sizes).to(torch.int64)),  # type: ignore[arg-type]
    )
