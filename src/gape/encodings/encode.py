"""``encode``: the one verb of the library."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from gape._internal.warnings import warn_caller
from gape.encodings.base import Encoding
from gape.encodings.pairs import Pairs
from gape.encodings.registry import make
from gape.graph.convert import as_graph
from gape.graph.graph import Graph

if TYPE_CHECKING:
    from gape.encodings.store import Store


def encode(
    graphs: Any, encoding: Encoding | str = "gape", *, store: Store | str | Path | None = None, **settings: Any
) -> Tensor | Pairs | list[Tensor]:
    """Position encodings of a graph, a batch or a data set.

    Args:
        graphs: anything :func:`gape.as_graph` takes.
        encoding: an encoding, or its name (``gape.encodings.names()``).
        store: where what is slow to compute is kept and found again: ``gape.Store()``, or a folder.
        settings: of the encoding, if it is given by name.

    Returns:
        One tensor ``[num_nodes, k]`` for one object that is a graph or a batch: a :class:`gape.Graph` (of any number
        of graphs), PyG ``Data`` or ``Batch``, a NetworkX or DGL graph, a sparse matrix, an edge array. Encodings of
        pairs give one :class:`Pairs`.

        A list for a collection: a list, a tuple, a PyG data set. It has one tensor for each graph, ``[n, k]``, or
        ``[n, n, …]`` for encodings of pairs; a member that is itself a batch counts as its graphs. All graphs are
        encoded together, and the tensors are views of one.

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
        raise ValueError(f"settings {sorted(settings)} go with a name; {encoding!r} has its own")
    batch = as_graph(graphs)
    result = encoding(batch) if store is None else _opened(store).find(batch, encoding)
    values = result.values if isinstance(result, Pairs) else result
    learns = batch.edge_weight is not None and batch.edge_weight.requires_grad and torch.is_grad_enabled()
    if learns and not values.requires_grad:
        warn_caller(f"the edge weights require gradients, and {encoding!r} passes none on")
    if not _is_collection(graphs):
        return result
    if isinstance(result, Pairs):
        return result.matrices()
    return list(torch.split(result, batch.sizes.tolist()))


def _opened(store: Any) -> Store:
    from gape.encodings.store import Store

    if isinstance(store, str | Path):
        return Store(store)
    if not isinstance(store, Store):
        raise ValueError(f"store must be a gape.Store or a folder, such as store=gape.Store(), got {store!r}")
    return store


def _is_collection(graphs: Any) -> bool:
    """Whether :func:`encode` gives a list for these: a list, a tuple or a data set, as opposed to a graph or batch."""
    if isinstance(graphs, list | tuple):
        return True
    if isinstance(graphs, Graph | Tensor | np.ndarray):
        return False
    if hasattr(graphs, "_data") and hasattr(graphs, "slices"):
        return graphs.slices is not None  # a PyG in-memory data set
    # Otherwise what as_graph() reads member by member.
    one = any(hasattr(graphs, name) for name in ("edge_index", "tocoo", "adj", "edges"))
    return not one and hasattr(graphs, "__getitem__") and hasattr(graphs, "__len__")
