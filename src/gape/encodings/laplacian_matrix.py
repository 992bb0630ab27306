"""Laplacians of undirected graphs, their components, and the eigenvectors everybody knows: the trivial ones."""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph
import torch
from torch import Tensor

from gape.graph import Graph
from gape.walk import WalkMatrix

LaplacianName = Literal["normalized", "combinatorial"]


def laplacian(graph: Graph, kind: LaplacianName, symmetrize: bool, what: str) -> tuple[Graph, WalkMatrix]:
    """The graph, made undirected if asked, and its Laplacian; refuses directed graphs and negative weights."""
    if not graph.undirected:
        if not symmetrize:
            raise ValueError(
                f"{what} needs undirected graphs: the Laplacian of {graph!r} is not symmetric and its eigenvectors "
                "are complex; set symmetrize=True to walk edges both ways, (A + Aᵀ)/2, or use GAPE or RandomWalk, "
                "which follow directions"
            )
        graph = _both_ways(graph)
    weights = graph.adjacency.weights
    if graph.edge_weight is not None and bool((weights < 0).any()):
        where = int((weights < 0).nonzero()[0])
        raise ValueError(
            f"{what} needs weights of at least 0, got {weights[where].item():g} on edge {where} "
            f"{graph.edge_index[:, where].tolist()}"
        )
    return graph, graph.walk("laplacian" if kind == "combinatorial" else "normalized_laplacian")


def _both_ways(graph: Graph) -> Graph:
    half = graph.adjacency.weights / 2
    return Graph(
        torch.cat([graph.edge_index, graph.edge_index.flip(0)], 1),
        graph.num_nodes,
        edge_weight=torch.cat([half, half]),
        ptr=graph.ptr,
    )


def components(graph: Graph) -> tuple[Tensor, Tensor]:
    """``[n]``, the connected component of each node, and ``[graphs]``, how many components each graph has.

    Edges of weight zero do not connect. A node alone is a component.
    """
    source, target = graph.edge_index
    if graph.edge_weight is not None:
        connecting = graph.edge_weight.detach() != 0
        source, target = source[connecting], target[connecting]
    ends = source.cpu().numpy(), target.cpu().numpy()
    pattern = scipy.sparse.coo_array((np.ones(len(source), np.int8), ends), shape=(graph.num_nodes,) * 2)
    count, labels = scipy.sparse.csgraph.connected_components(pattern, directed=False)
    component = torch.from_numpy(labels.astype(np.int64)).to(graph.device)
    graph_of = torch.zeros(count, dtype=torch.int64, device=graph.device)
    graph_of[component] = graph.batch
    return component, torch.bincount(graph_of, minlength=graph.num_graphs)


def trivial_vectors(graph: Graph, component: Tensor, kind: LaplacianName) -> Tensor:
    """``[n]``: on each component the unit vector of eigenvalue zero, constant or in proportion to √degree."""
    weight = torch.ones(graph.num_nodes, dtype=torch.float64, device=graph.device)
    if kind == "normalized":
        degree = graph.adjacency.out_degree
        weight = torch.where(degree > 0, degree, 1.0)
    total = torch.zeros(int(component.max()) + 1 if len(component) else 0, dtype=torch.float64, device=graph.device)
    total.index_add_(0, component, weight)
    return (weight / total[component]).sqrt()
