"""Whether labels, types and basis are those that a learnable automaton needs on its graphs."""

from __future__ import annotations

import torch

from gape.graph.graph import Graph
from gape.graph.walk_matrix import NAMES
from gape.nn.learnable.automaton import LearnableAutomaton
from gape.nn.learnable.basis import GRAPH_FIELDS, WalkBasis
from gape.nn.learnable.compute_basis import graph_edges, graph_weight


def check_graph(graph: Graph, machine: LearnableAutomaton) -> None:
    """Refuse graphs without the labels and types that the automaton reads, or with others."""
    if graph.edge_weight is not None and graph.edge_weight.requires_grad:
        raise ValueError("edge_weight requires gradients; a learnable automaton takes weights as given: detach them")
    for name, what, place, count, values in (
        ("labels", "labels of nodes", "node", machine.labels, graph.labels),
        ("edge_type", "types of edges", "edge", machine.by_edge, graph.edge_type),
    ):
        if count == 1:
            continue
        if values is None:
            raise ValueError(f"the automaton knows {count} {what} and the graph has none; give {name}")
        if values.numel() and int(values.max()) >= count:
            at = int((values >= count).nonzero()[0])
            raise ValueError(f"{name} must lie below {count}, got {int(values[at])} at {place} {at}")


def check_basis(basis: WalkBasis, graph: Graph, matrix: str) -> None:
    """Refuse a basis of another matrix or, as far as that shows, of other graphs."""
    if not isinstance(basis, WalkBasis):
        raise ValueError(f"basis must be a WalkBasis, such as WalkBasis.of(data), got {type(basis).__name__}")
    if basis.matrix.numel() and bool((basis.matrix != NAMES.index(matrix)).any()):
        found = NAMES[int(basis.matrix[basis.matrix != NAMES.index(matrix)][0])]
        raise ValueError(f"the basis is for matrix={found!r}, the layer walks on {matrix!r}")
    rows = {name: len(value) for name, value in basis.tensors().items()}
    graphs = {number for name, number in rows.items() if name in GRAPH_FIELDS}
    nodes = {number for name, number in rows.items() if name not in GRAPH_FIELDS}
    if graphs != {graph.num_graphs} or nodes - {graph.num_nodes}:
        raise ValueError(f"the basis is for other graphs: its rows are {rows}, the graphs are {graph!r}")
    if basis.digest is not None and len(other := (basis.digest != graph_edges(graph)).nonzero()):
        raise ValueError(
            f"the basis is for other edges than those of graph {int(other[0])}, or for another order of its nodes; "
            "compute it from the edges as they are now, and give each batch its own"
        )
    if basis.weight is not None:
        _check_weight(basis.weight, graph)


def _check_weight(weight: torch.Tensor, graph: Graph) -> None:
    known, given = weight.to(torch.float64), graph_weight(graph)
    # Either side may have been rounded.
    kinds = [weight.dtype] if graph.edge_weight is None else [weight.dtype, graph.edge_weight.dtype]
    rounding = max(1e-6, *(4 * torch.finfo(kind).eps for kind in kinds if kind.is_floating_point))
    other = (~torch.isclose(given, known, rtol=rounding, atol=0.0)).nonzero()
    if len(other):
        at = int(other[0, 0])
        there, here = (" and ".join(f"{part:g}" for part in side[at].tolist() if part) or 0 for side in (known, given))
        hint = "edge_weight, too" if graph.edge_weight is None else "the same edge_weight"
        raise ValueError(
            f"the basis is for other weights: those of graph {at} add up to {there} there and to {here} here; give "
            f"{hint}, or compute the basis from the edges as they are now"
        )
