"""``gape.encode``: position encodings of anything that holds graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gape._internal.warnings import warn_caller
from gape.encodings.base import Encoding
from gape.encodings.gape import encode_relational
from gape.encodings.pairs import Pairs
from gape.encodings.registry import make
from gape.encodings.store import Store
from gape.graph.convert import as_graph
from gape.graph.graph import Graph
from gape.graph.hetero import check_same_types, is_hetero


def encode(
    graphs: Any, encoding: Encoding | str = "gape", *, store: Store | str | Path | None = None, **settings: Any
) -> Tensor | Pairs | list[Tensor] | dict[str, Tensor] | list[dict[str, Tensor]]:
    """Compute position encodings of a graph, a batch or a dataset.

    Args:
        graphs: anything :func:`gape.as_graph` takes.
        encoding: an encoding, or its name (``gape.encodings.names()``).
        store: cache on disk: ``gape.Store()``, or a folder. Cheap results are not cached.
        settings: of the encoding, if it is given by name.

    Returns:
        For one object that is a graph or a batch, one tensor ``[num_nodes, k]``, or one :class:`Pairs` for encodings of
        pairs. Such objects are a :class:`gape.Graph` (of any number of graphs), PyG ``Data`` or ``Batch``, a NetworkX
        or DGL graph, a sparse matrix and an edge array.

        For a collection, that is a list, a tuple or a PyG dataset, a list with one tensor per graph: ``[n, k]``, or
        ``[n, n, …]`` for encodings of pairs. A batch in a collection counts as its graphs. All graphs are encoded
        together, and the tensors are views of one.

        For a PyG ``HeteroData``, a dict with one tensor per node type, and a list of dicts for a list of them; see
        :class:`gape.encodings.RelationalGAPE`.

    Example:
        >>> path = Graph.from_edges([(0, 1), (1, 2)], undirected=True)
        >>> encode(path, "rw", length=2)
        tensor([[0.0000, 0.5000],
                [0.0000, 1.0000],
                [0.0000, 0.5000]])
        >>> [rows.shape for rows in encode([path, path], "gape", states=8)]
        [torch.Size([3, 8]), torch.Size([3, 8])]
    """
    if isinstance(encoding, str):
        encoding = make(encoding, **settings)
    elif not isinstance(encoding, Encoding):
        raise ValueError(f"encoding must be an encoding or its name, got {type(encoding).__name__}")
    elif settings:
        raise ValueError(
            f"settings {sorted(settings)} go with a name, but encoding is {encoding!r}; set them there, or pass a name"
        )
    several = isinstance(graphs, list | tuple) and len(graphs) > 0 and all(map(is_hetero, graphs))
    if several or is_hetero(graphs):
        if store is not None:
            raise ValueError("heterogeneous graphs are not cached; leave store out")
        if not several:
            return encode_relational(graphs, encoding)
        check_same_types(graphs)
        return [encode_relational(data, encoding) for data in graphs]
    batch = as_graph(graphs)
    result = encoding.compute(batch) if store is None else _open(store).find(batch, encoding)
    values = result.values if isinstance(result, Pairs) else result
    learned = batch.edge_weight is not None and batch.edge_weight.requires_grad and torch.is_grad_enabled()
    if learned and not values.requires_grad:
        warn_caller(f"the edge weights require gradients, but {encoding!r} is not differentiable in them")
    encoding.warn_if_uninformative(values, batch)
    if not _is_collection(graphs):
        return result
    if isinstance(result, Pairs):
        return result.matrices()
    return list(torch.split(result, batch.sizes.tolist()))


def _open(store: Any) -> Store:
    if isinstance(store, str | Path):
        return Store(store)
    if not isinstance(store, Store):
        raise ValueError(f"store must be a gape.Store or a folder, such as store=gape.Store(), got {store!r}")
    return store


def _is_collection(graphs: Any) -> bool:
    """Return True for a list, a tuple or a dataset, False for a single graph or batch."""
    if isinstance(graphs, list | tuple):
        return True
    if isinstance(graphs, Graph | Tensor | np.ndarray):
        return False
    if hasattr(graphs, "_data") and hasattr(graphs, "slices"):
        return graphs.slices is not None  # a PyG in-memory dataset
    # Otherwise, True for the types that as_graph() reads item by item.
    one = any(hasattr(graphs, name) for name in ("edge_index", "tocoo", "adj", "edges"))
    return not one and hasattr(graphs, "__getitem__") and hasattr(graphs, "__len__")
