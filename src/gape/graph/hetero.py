"""Heterogeneous graphs of PyG: node types become labels, relations edge types. PyG is not imported here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gape.graph.batching import offsets
from gape.graph.graph import Graph
from gape.graph.validate import as_integers, edge_weight_of


def is_hetero(source: Any) -> bool:
    """Return whether an object is a heterogeneous graph of PyG, single or batched."""
    return all(hasattr(source, name) for name in ("node_types", "edge_types", "metadata"))


def hetero_graph(data: Any, *, reverse: bool = False) -> Graph:
    """Convert a PyG ``HeteroData`` to one graph: the nodes of one type after another.

    Labels are the numbers of the node types in ``data.node_types``, edge types those of the relations in
    ``data.edge_types``.

    Args:
        data: the graph.
        reverse: add the reverse of every relation, as a relation of its own; see :func:`relation_types`.

    Example:
        >>> from torch_geometric.data import HeteroData
        >>> shop = HeteroData()
        >>> shop["customer"].num_nodes, shop["product"].num_nodes = 2, 3
        >>> shop["customer", "buys", "product"].edge_index = torch.tensor([[0, 1], [2, 2]])
        >>> hetero_graph(shop, reverse=True)
        Graph(graphs=1, nodes=5, edges=4, undirected, labels=2, edge_types=2)
    """
    if hasattr(data, "num_graphs") and hasattr(data, "to_data_list"):
        raise ValueError(
            f"a batch of {data.num_graphs} heterogeneous graphs is stored by node type, not graph by graph; pass "
            "batch.to_data_list(), or encode the graphs before they are batched"
        )
    sizes = node_counts(data)
    start = dict(zip(sizes, offsets(torch.tensor(list(sizes.values()))).tolist(), strict=False))
    labels = [torch.full((size,), number) for number, size in enumerate(sizes.values())]
    edges, types, weights = [], [], []
    for number, relation in enumerate(data.edge_types):
        store = data[relation]
        if getattr(store, "edge_index", None) is None:
            raise ValueError(f"the relation {relation!r} has no edge_index; give it one of shape [2, 0] if it is empty")
        index = as_integers(store.edge_index, f"edge_index of {relation!r}")
        _check_ends(relation, index, sizes)
        weight = edge_weight_of(store)
        index = index + torch.tensor([[start[relation[0]]], [start[relation[-1]]]], device=index.device)
        for turned in (False, True)[: 1 + reverse]:
            edges.append(index.flip(0) if turned else index)
            types.append(torch.full_like(index[0], number + turned * len(data.edge_types)))
            weights.append(weight)
    given = [weight for weight in weights if weight is not None]
    if given:
        weights = [
            torch.ones(len(kind)).to(given[0]) if w is None else w for w, kind in zip(weights, types, strict=True)
        ]
    return Graph(
        torch.cat(edges, 1) if edges else torch.empty(2, 0, dtype=torch.int64),
        sum(sizes.values()),
        edge_weight=torch.cat(weights) if given else None,  # type: ignore[arg-type]
        labels=torch.cat(labels),
        edge_type=torch.cat(types) if types else torch.empty(0, dtype=torch.int64),
    )


def relation_types(data: Any, reverse: bool = False) -> list[tuple[str, str, str]]:
    """List the relations in the order of edge types; with ``reverse``, those the other way round after all others."""
    forward = list(data.edge_types)
    return forward + [(target, f"rev_{name}", source) for source, name, target in forward] if reverse else forward


def node_counts(data: Any) -> dict[str, int]:
    """Number of nodes of each type of a ``HeteroData``."""
    if not data.node_types:
        raise ValueError("the HeteroData has no node types")
    sizes = {name: data[name].num_nodes for name in data.node_types}
    for name, size in sizes.items():
        if size is None:
            raise ValueError(f"{name!r} of the HeteroData does not say how many nodes it has; set num_nodes")
    return {name: int(size) for name, size in sizes.items()}


def _check_ends(relation: tuple[str, str, str], index: Tensor, sizes: dict[str, int]) -> None:
    if index.dim() != 2 or index.shape[0] != 2:
        raise ValueError(f"edge_index of {relation!r} must have shape [2, edges], got {list(index.shape)}")
    for name, row in zip((relation[0], relation[-1]), index, strict=True):
        size = sizes[name]
        if row.numel() and not 0 <= int(row.min()) <= int(row.max()) < size:
            worst = int(row.max()) if int(row.max()) >= size else int(row.min())
            raise ValueError(f"the relation {relation!r} has node {worst} of {name!r}, which has {size} nodes")


def check_same_types(items: Sequence[Any]) -> None:
    """Raise if heterogeneous graphs differ in their types, whose numbers would then mean different things."""
    hetero = [(i, item.metadata()) for i, item in enumerate(items) if is_hetero(item)]
    for i, types in hetero[1:]:
        if types != hetero[0][1]:
            raise ValueError(
                f"graph {i} has the node types and relations {types}, graph {hetero[0][0]} has {hetero[0][1]}; "
                "give all graphs the same, in the same order, empty where there are none"
            )
