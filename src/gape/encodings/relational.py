"""GAPE on heterogeneous graphs: α by node type, one μ per relation."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from gape._internal.validation import check_at_least
from gape.automaton import Automaton
from gape.encodings.base import Encoding
from gape.encodings.gape import GAPE
from gape.encodings.pairs import Pairs
from gape.graph.graph import Graph
from gape.graph.hetero import hetero_graph, node_counts, relation_types

# Distance between the seeds of the relations, larger than seeds that users count up.
_SEED_STEP = 1_000_003


@dataclass(frozen=True)
class RelationalGAPE(GAPE):
    r"""GAPE whose automaton has one transition matrix per relation: the type of the edge taken.

    A run that takes the relations r₁, r₂, … is weighted by α μ_{r₁} μ_{r₂} …, so that nodes are told apart by the
    kinds of paths that lead to them. ‖μ_r‖ ≤ γ for all of them, so with ``relative=True`` and a damping below 1 the
    sum over runs converges on every graph.

    Args:
        relations: number of edge types; the first has the transition matrix of :class:`GAPE` with the same seed.

    Returns, when called on a graph with edge types: ``[num_nodes, states]``.

    Example:
        >>> graph = Graph.from_edges([(0, 1), (2, 1)], edge_type=torch.tensor([0, 1]))
        >>> rows = RelationalGAPE(states=4, relations=2)(graph)
        >>> rows.shape, bool(torch.allclose(rows[0], rows[2]))
        (torch.Size([3, 4]), True)
    """

    relations: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(1, relations=self.relations)
        if self.readout != "node" or self.initial == "softmax_nodes":
            raise ValueError(
                f"relations are for readout='node' and initial other than 'softmax_nodes', got {self.readout!r} and "
                f"{self.initial!r}; for closed runs by relation use gape.nn.GAPE(transition_by='edge', length=...)"
            )

    @property
    def automaton(self) -> Automaton:
        """The automaton, typed by edges if there are several relations."""
        settings = {item.name: getattr(self, item.name) for item in fields(GAPE)}
        drawn = [GAPE(**settings | {"seed": self.seed + _SEED_STEP * r}).automaton for r in range(self.relations)]
        if self.relations == 1:
            return drawn[0]
        return Automaton(drawn[0].initial, torch.stack([one.transition for one in drawn]), transition_by="edge")

    def _single(self, graph: Graph) -> None:
        """There is no direct path for single graphs with relations."""


def encode_relational(data: Any, encoding: Encoding, *, reverse: bool = False) -> dict[str, Tensor]:
    """Encode a PyG ``HeteroData``, and return the rows of each node type.

    :class:`GAPE` becomes :class:`RelationalGAPE`: node types are its labels, relations its edge types. Other encodings
    of nodes see one graph without types.

    Args:
        data: the graph.
        encoding: of nodes.
        reverse: walk every relation in both directions; the reverse is a relation of its own.
    """
    graph = hetero_graph(data, reverse=reverse)
    if type(encoding) is GAPE:
        encoding = relational(encoding, node_types=len(data.node_types), relations=len(relation_types(data, reverse)))
    found = encoding.compute(graph)
    if isinstance(found, Pairs):
        raise ValueError(f"{encoding!r} encodes pairs of nodes; heterogeneous graphs get encodings of nodes")
    sizes = node_counts(data)
    return dict(zip(sizes, torch.split(found, list(sizes.values())), strict=True))


def relational(encoding: GAPE, node_types: int, relations: int) -> RelationalGAPE:
    """Return the encoding with α by node type and one μ per relation, all else equal."""
    if encoding.labelling not in ("one", "given"):
        raise ValueError(
            f"on heterogeneous graphs labels are the node types, got labelling={encoding.labelling!r}; leave it out"
        )
    settings: dict[str, Any] = {item.name: getattr(encoding, item.name) for item in fields(GAPE)}
    settings |= {"labels": node_types, "labelling": "given" if node_types > 1 else "one", "relations": relations}
    return RelationalGAPE(**settings)
