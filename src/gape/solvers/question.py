"""What is asked on one part of a batch; a :class:`Problem` is made of it, for all of its graphs or for some."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from gape._internal.validation import as_tensor, check_finite
from gape.automaton import Automaton
from gape.graph.graph import Graph
from gape.solvers.problem import Problem


@dataclass(frozen=True, eq=False)
class Question:
    """An automaton on one part of a batch, with all that may require gradients.

    Args:
        automaton: the machine.
        graph: the part of the batch.
        matrix: the walk matrix by name.
        dtype: what the weights are rounded to.
        source: S, ``[n, k]``, where runs do not begin with αℓ.
    """

    automaton: Automaton
    graph: Graph
    matrix: str
    dtype: torch.dtype
    source: Tensor | None = None

    @property
    def parts(self) -> list[Question]:
        """The same on each part of the batch, see :attr:`Graph.parts`."""
        parts = self.graph.parts
        if self.source is None:
            return [replace(self, graph=part) for part in parts]
        rows = torch.split(self.source, [part.num_nodes for part in parts])
        return [replace(self, graph=part, source=source) for part, source in zip(parts, rows, strict=True)]

    def problem(self, out: Tensor | None = None, every_label: bool = False) -> Problem:
        """The equation, without gradients."""
        return Problem.of(self.automaton, self.graph, self.matrix, out, every_label, self.source)

    def select(self, graphs: Tensor) -> Question:
        """The same on some of the graphs, in the order they have here."""
        source = None if self.source is None else self.source[self.graph.nodes_of(graphs)]
        return replace(self, graph=self.graph.select(graphs), source=source)

    def alone(self, i: int) -> Question:
        """The same on graph i."""
        nodes = slice(int(self.graph.ptr[i]), int(self.graph.ptr[i + 1]))
        source = None if self.source is None else self.source[nodes]
        return replace(self, graph=self.graph.slice(i, i + 1), source=source)

    def begin(self, dtype: torch.dtype) -> Tensor:
        """S, ``[n, k]``, attached to what it is made of."""
        if self.source is not None:
            return self.source.to(dtype)
        initial = self.automaton.initial.to(self.graph.device, dtype)
        if self.automaton.labels > 1:
            return initial.T[self.graph.labels]
        return initial[:, 0].expand(self.graph.num_nodes, -1)

    @property
    def learns_edges(self) -> bool:
        """Whether the edge weights require gradients."""
        return self.graph.edge_weight is not None and self.graph.edge_weight.requires_grad

    @property
    def requires_grad(self) -> bool:
        tensors = (self.automaton.initial, self.automaton.transition, self.automaton.final, self.source)
        return self.learns_edges or any(tensor is not None and tensor.requires_grad for tensor in tensors)


def as_rhs(value: Any, automaton: Automaton, graph: Graph) -> Tensor:
    """Convert and validate the right-hand side: float64 on the graph's device."""
    rhs = as_tensor(value, "rhs")
    expected = [graph.num_nodes, automaton.states]
    if list(rhs.shape) != expected:
        raise ValueError(f"rhs must be [nodes, states] = {expected}, got shape {list(rhs.shape)}")
    if rhs.is_complex():
        raise ValueError(f"rhs must be real, got {rhs.dtype}; solve for its two parts and add".replace("torch.", ""))
    check_finite(rhs, "rhs")
    return rhs.to(graph.device, torch.float64)
