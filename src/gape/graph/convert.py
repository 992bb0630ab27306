"""Convert graphs of other libraries to :class:`Graph`, by duck typing: no graph library is imported here."""

from __future__ import annotations

import os
import reprlib
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gape._internal.validation import as_tensor, check_batch, whole_number
from gape._internal.warnings import warn_caller
from gape.graph.batching import members, offsets
from gape.graph.graph import Graph
from gape.graph.hetero import check_same_types, hetero_graph, is_hetero
from gape.graph.validate import as_integers, edge_weight_of, flat_weight, infer_num_nodes

# Attributes with one row per node in a PyG dataset.
NODE_ATTRIBUTES = ("x", "feat", "pos", "z", "batch", "n_id")


def as_graph(source: Any) -> Graph:
    """Convert anything that holds one graph or many to a :class:`Graph`.

    ============================================  =====================================================================
    source                                        result
    ============================================  =====================================================================
    :class:`Graph`                                itself
    PyG ``Data``, ``Batch``                       ``edge_index``, ``num_nodes``; ``edge_weight`` and ``ptr`` or
                                                  ``batch`` if any
    PyG in-memory dataset                         its collated storage, without a loop over graphs (unless it has a
                                                  ``transform``)
    NetworkX graph                                nodes in their own order; attribute ``weight``; both directions if
                                                  undirected
    SciPy sparse matrix                           entry ``[u, v]`` is the weight of u → v
    integer array or tensor ``[2, E]``            an edge list; the nodes are 0 … largest
    DGL graph                                     ``edges()``, ``num_nodes()``, ``edata['weight']``, batched or not
    PyG ``HeteroData``                            node types in order, as ``labels``; relations as ``edge_type``
    list, tuple or dataset of these               one batch, in order
    ============================================  =====================================================================

    Other node labels and edge types are not guessed: attach them with :meth:`Graph.with_labels` or build the
    :class:`Graph` yourself.

    Example:
        >>> as_graph(np.array([[0, 1], [1, 2]]))
        Graph(graphs=1, nodes=3, edges=2, directed)
    """
    if isinstance(source, Graph):
        return source
    if isinstance(source, Tensor | np.ndarray):
        return _from_edge_array(source)
    if is_hetero(source):
        return hetero_graph(source)
    if _has(source, "_data", "slices", "_indices") and source._data is not None:
        return _from_collated(source) if getattr(source, "transform", None) is None else _from_many(source)
    if _has(source, "edge_index", "num_nodes"):
        return _from_pyg(source)
    if _has(source, "tocoo", "shape"):
        return _from_scipy(source)
    if _has(source, "edges", "num_nodes") and callable(source.num_nodes):
        return _from_dgl(source)
    if _has(source, "adj", "is_directed", "nodes"):
        return _from_networkx(source)
    if isinstance(source, Sequence) and not isinstance(source, str | bytes):
        return _from_many(source)
    # Any other dataset, but not a mapping such as a dict of tensors or PyG's HeteroData.
    if _has(source, "__getitem__", "__len__") and not _has(source, "keys") and not isinstance(source, str | bytes):
        return _from_many(source)
    hint = "; for a file: gape.io.read_graphs(path).graph" if isinstance(source, str | os.PathLike) else ""
    raise ValueError(
        f"cannot read a graph from the {type(source).__name__} {reprlib.repr(source)}; expected a gape.Graph, "
        "PyG Data, Batch or dataset, a NetworkX graph, a SciPy sparse matrix, an edge array [2, edges], a DGL "
        f"graph, or a list of these{hint}"
    )


def _has(source: Any, *names: str) -> bool:
    return all(hasattr(source, name) for name in names)


def _from_many(source: Any) -> Graph:
    # A dataset that generates graph i on access may not raise IndexError at its end; rely on its length.
    items = list(source) if hasattr(source, "__iter__") else [source[i] for i in range(len(source))]
    if not items:
        raise ValueError(f"expected at least one graph, got an empty {type(source).__name__}")
    _refuse_numbers(items)
    check_same_types(items)
    joined = _from_pyg_list(items)
    if joined is not None:
        return joined
    graphs = []
    for i, item in enumerate(items):
        try:
            graphs.append(as_graph(item))
        except ValueError as error:
            raise ValueError(f"graph {i} of {len(items)}: {error}") from error
    return Graph.union(graphs)


def _from_pyg_list(items: list[Any]) -> Graph | None:
    """Join PyG ``Data`` all at once; ``None`` for anything else, and for graphs that have to be checked one by one."""
    kind = type(items[0])
    named = _has(items[0], "edge_index", "num_nodes", "edge_weight")
    if isinstance(items[0], Graph) or not named or getattr(items[0], "weight", None) is not None:
        return None
    indices, sizes, weights = [], [], []
    for item in items:
        if type(item) is not kind or getattr(item, "ptr", None) is not None or getattr(item, "batch", None) is not None:
            return None
        index, size, weight = item.edge_index, item.num_nodes, item.edge_weight
        if type(index) is not Tensor or index.dtype != torch.int64 or index.dim() != 2 or len(index) != 2:
            return None
        if type(size) is not int or size < 0 or index.device != items[0].edge_index.device:
            return None
        if weight is not None and (type(weight) is not Tensor or len(weight) != index.shape[1]):
            return None
        indices.append(index)
        sizes.append(size)
        weights.append(weight)
    weighted = [weight for weight in weights if weight is not None]
    if weighted and len({(weight.dtype, weight.shape[1:], weight.device) for weight in weighted}) > 1:
        return None
    if 0 < len(weighted) < len(weights):
        return None
    index = torch.cat(indices, 1)
    counts = torch.tensor([part.shape[1] for part in indices], device=index.device)
    nodes = torch.tensor(sizes, device=index.device)
    if bool(_beyond(index, nodes, counts).any()):
        return None
    return _joined(index, nodes, counts, flat_weight(torch.cat(weighted)) if weighted else None)


def _refuse_numbers(items: list[Any]) -> None:
    """Raise on plain lists of numbers: they could be pairs, or one row of sources and one of targets."""
    rows = all(isinstance(item, tuple | list) and item and all(map(_is_number, item)) for item in items)
    if not rows and not all(map(_is_number, items)):
        return
    kind = "pairs" if rows and all(len(item) == 2 for item in items) else "numbers"
    raise ValueError(
        f"got a list of {kind} that starts with {reprlib.repr(items[0])}; for pairs (source, target) use "
        "gape.Graph.from_edges(pairs), with edge_weight= if there are weights; for a row of sources and one of targets "
        "use gape.as_graph(numpy.array(rows))"
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, Real)


def _from_edge_array(edges: Tensor | np.ndarray[Any, Any]) -> Graph:
    index = as_tensor(edges, "an edge array")
    if index.layout != torch.strided or index.dim() != 2 or index.shape[0] != 2 or index.is_floating_point():
        raise ValueError(
            f"an edge array must be integers of shape [2, edges], got {index.dtype} {list(index.shape)}".replace(
                "torch.", ""
            )
            + "; wrap an adjacency matrix as scipy.sparse.csr_array(matrix)"
        )
    index = as_integers(index, "an edge array")
    if index.shape[1] == 2 and int(index[0, 1]) != int(index[1, 0]):
        warn_caller(
            f"a 2 × 2 edge array is read as sources {index[0].tolist()} and targets {index[1].tolist()}; for pairs "
            f"(source, target) transpose it, or use gape.Graph.from_edges"
        )
    return Graph(index, infer_num_nodes(index))


def _from_pyg(data: Any) -> Graph:
    if data.edge_index is None:
        if getattr(data, "adj_t", None) is not None:
            raise ValueError(f"{data!r} has adj_t and no edge_index; encode before ToSparseTensor takes its edges")
        raise ValueError(f"{data!r} has no edge_index; give it one of shape [2, 0] if it has no edges")
    num_nodes = data.num_nodes
    if num_nodes is None:
        raise ValueError(f"{data!r} does not say how many nodes it has; set num_nodes")
    ptr, batch = getattr(data, "ptr", None), getattr(data, "batch", None)
    if ptr is None and batch is not None:
        batch = as_tensor(batch, "batch")
        check_batch(batch)
        ptr = offsets(torch.bincount(batch))
    return Graph(
        data.edge_index,
        int(num_nodes),
        edge_weight=edge_weight_of(data),
        ptr=ptr,  # type: ignore[arg-type]  # None is one graph
    )


def _from_collated(dataset: Any) -> Graph:
    """Convert a PyG ``InMemoryDataset``, which concatenates edges and numbers nodes from 0 in every graph."""
    data, slices = dataset._data, dataset.slices
    if slices is None:
        return _from_pyg(data)
    if "edge_index" not in slices:
        raise ValueError(f"the dataset {dataset!r} has no edge_index")
    index, weight = as_tensor(data.edge_index, "edge_index"), edge_weight_of(data)
    edge_ptr = torch.as_tensor(slices["edge_index"]).to(index.device)
    sizes = _collated_sizes(data, slices, len(edge_ptr) - 1).to(index.device)
    if dataset._indices is not None:
        chosen = torch.as_tensor(list(dataset._indices), dtype=torch.int64, device=index.device)
        if not len(chosen):
            raise ValueError(f"expected at least one graph, got the empty dataset {dataset!r}")
        counts = edge_ptr.diff()[chosen]
        edges = members(edge_ptr, chosen)
        index, weight = index[:, edges], None if weight is None else weight[edges]
        edge_ptr, sizes = offsets(counts), sizes[chosen]
    beyond = _beyond(index, sizes, edge_ptr.diff())
    if bool(beyond.any()):
        edge = int(beyond.nonzero()[0])
        graph = int(torch.searchsorted(edge_ptr, edge, right=True)) - 1
        raise ValueError(
            f"graph {graph} of the dataset has {int(sizes[graph])} nodes, but an edge {index[:, edge].tolist()}"
        )
    return _joined(index, sizes, edge_ptr.diff(), weight)


def _beyond(index: Tensor, sizes: Tensor, counts: Tensor) -> Tensor:
    """``[E]``: True for edges of collated graphs that name a node which their graph does not have."""
    return ((index < 0) | (index >= torch.repeat_interleave(sizes, counts))).any(0)


def _joined(index: Tensor, sizes: Tensor, counts: Tensor, weight: Tensor | None) -> Graph:
    """Make one batch of collated graphs with ``sizes`` nodes and ``counts`` edges, each numbered from 0."""
    ptr = offsets(sizes)
    shift = torch.repeat_interleave(ptr[:-1], counts)
    return Graph(index + shift, int(ptr[-1]), edge_weight=weight, ptr=ptr)


def _collated_sizes(data: Any, slices: dict[str, Any], graphs: int) -> Tensor:
    stated = getattr(data, "_num_nodes", None)
    if stated is None and "num_nodes" in slices:
        stated = data.num_nodes
    if stated is not None:
        return torch.as_tensor(stated, dtype=torch.int64).flatten()
    # Infer it as PyG does, from an attribute with one row per node.
    names = [name for name in slices if name in NODE_ATTRIBUTES] or [name for name in slices if "node" in name]
    if names:
        return torch.as_tensor(slices[names[0]]).diff()
    raise ValueError(
        f"the dataset of {graphs} graphs does not say how many nodes each has: it has {sorted(slices)}, and none of "
        f"num_nodes, {', '.join(NODE_ATTRIBUTES)}; set num_nodes on its graphs"
    )


def _from_scipy(matrix: Any) -> Graph:
    shape = tuple(matrix.shape)
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(f"an adjacency matrix must be square, got shape {list(shape)}")
    entries = matrix.tocoo()
    if np.iscomplexobj(entries.data):
        raise ValueError(f"edge weights must be real, got a matrix of {entries.data.dtype}")
    index = torch.from_numpy(np.stack([entries.row, entries.col]).astype(np.int64))
    try:
        weight = entries.data.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"edge weights must be numbers, got a matrix of {entries.data.dtype}: {error}") from error
    return Graph(index, shape[0], edge_weight=None if (weight == 1).all() else torch.from_numpy(weight))


def _from_networkx(graph: Any) -> Graph:
    number = {node: i for i, node in enumerate(graph.nodes)}
    pairs, weights = [], []
    for u, v, weight in graph.edges(data="weight", default=None):
        try:
            weights.append(1.0 if weight is None else float(weight))
        except (TypeError, ValueError, OverflowError) as error:
            raise ValueError(
                f"edge {u!r} – {v!r} has weight {reprlib.repr(weight)}, which is not a number that a float can hold"
            ) from error
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
        edge_weight=flat_weight(weight),
        ptr=None if sizes is None else offsets(torch.as_tensor(sizes).to(torch.int64)),  # type: ignore[arg-type]
    )


def batched_graph(
    edge_index: Tensor,
    batch: Tensor | None = None,
    num_nodes: int | None = None,
    edge_weight: Tensor | None = None,
    labels: Tensor | None = None,
    edge_type: Tensor | None = None,
    num_graphs: int = 0,
) -> Graph:
    """Build a :class:`Graph` from the tensors of a PyG batch, and check that they agree.

    Args:
        edge_index: ``[2, E]``.
        batch: ``[n]``, the graph of each node, ascending; one graph if ``None``.
        num_nodes: n; needed if neither ``batch`` nor ``labels`` is given, because the last nodes may have no edges.
        edge_weight: ``[E]``.
        labels: ``[n]``.
        edge_type: ``[E]``.
        num_graphs: minimum number of graphs, where the last ones may have no nodes.

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
    labels = None if labels is None else _integer_row(labels, "labels", "x[:, 0]")
    edge_type = None if edge_type is None else _integer_row(edge_type, "edge_type", "edge_attr[:, 0]")
    if batch is not None:
        check_batch(batch)
    num_nodes = _number_of_nodes(edge_index, num_nodes, batch, labels)
    ptr = None
    if batch is not None:
        sizes = torch.bincount(batch, minlength=max(num_graphs, 1))
        ptr = offsets(sizes)
    return Graph(edge_index, num_nodes, edge_weight, labels, edge_type, ptr)  # type: ignore[arg-type]


def _integer_row(values: Any, name: str, column: str) -> Tensor:
    found = as_tensor(values, name)
    if found.dim() != 1:
        if found.dim() != 2 or found.shape[1] != 1:
            raise ValueError(
                f"{name} must be a row of integers, got shape {list(found.shape)}; for one-hot rows take argmax(1)"
            )
        raise ValueError(f"{name} must be a row of {len(found)} integers, got shape {list(found.shape)}: take {column}")
    return found


def _number_of_nodes(edge_index: Tensor, num_nodes: int | None, batch: Tensor | None, labels: Tensor | None) -> int:
    """Return the number of nodes, checked against ``batch``, ``labels`` and the edges."""
    stated = None if num_nodes is None else whole_number(_plain(num_nodes), "num_nodes", at_least=0)
    shown = {"num_nodes": stated, "len(batch)": _length(batch), "len(labels)": _length(labels)}
    known = {name: number for name, number in shown.items() if number is not None}
    if len(set(known.values())) > 1:
        got = ", ".join(f"{name}={number}" for name, number in known.items())
        raise ValueError(f"the number of nodes is ambiguous, got {got}; batch and labels have one entry per node")
    last = int(edge_index.max()) if edge_index.numel() else -1
    if not known:
        raise ValueError(
            f"the number of nodes is not known: edge_index names nodes up to {last}, but the last nodes may have no "
            "edges; give num_nodes=data.num_nodes, or batch=data.batch"
        )
    name, number = next(iter(known.items()))
    if last >= number:
        raise ValueError(f"edge_index has node {last}, but {name}={number}; batch and labels have one entry per node")
    return number


def _plain(number: Any) -> Any:
    return number.item() if isinstance(number, Tensor) and number.numel() == 1 else number


def _length(rows: Tensor | None) -> int | None:
    return None if rows is None else len(rows)
