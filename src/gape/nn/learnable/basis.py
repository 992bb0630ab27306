"""What a learnable automaton needs of the graphs: a basis of the walk matrix, or return weights."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

#: Before the names of the fields of a :class:`WalkBasis`, as attributes of PyG data.
PREFIX = "walk_"
#: Fields with one row per graph; the others have one per node.
GRAPH_FIELDS = ("matrix", "radius", "spectrum", "complete", "weight", "digest")


@dataclass(frozen=True, eq=False)
class WalkBasis:
    """Vectors V of unit length with Aᵀ V ≈ V H for the unit walk matrix A of each graph, node by node.

    Rows are nodes or graphs, so batches of graphs are made by joining rows, as PyG does.

    Args:
        matrix: ``[graphs]``, the number of the walk matrix in :data:`gape.graph.walk_matrix.NAMES`.
        radius: ``[graphs]``, what each graph's matrix was divided by.
        vectors: ``[n, J]``, zero in columns that a graph does not need.
        spectrum: ``[graphs, J]`` if H is diagonal, else ``[graphs, J, J]``, H itself.
        scale: ``[n]``, c when V is the basis of diag(1/c) Aᵀ diag(c), which is symmetric.
        complete: ``[graphs]``, whether V spans the whole space of the graph; if not, only all nodes alike.
        returns: ``[n, T]``, entries (Aᵗ)_vv for t = 1 … T.
        weight: ``[graphs, 2]``, the sums of each graph's positive and negative edges: other weights are noticed by it.
        digest: ``[graphs]``, one of each graph's edges: other edges are noticed by it.
    """

    matrix: Tensor
    radius: Tensor
    vectors: Tensor | None = None
    spectrum: Tensor | None = None
    scale: Tensor | None = None
    complete: Tensor | None = None
    returns: Tensor | None = None
    weight: Tensor | None = None
    digest: Tensor | None = None

    @classmethod
    def of(cls, data: Any) -> WalkBasis | None:
        """What :class:`gape.pyg.AddWalkBasis` attached to a PyG ``Data`` or ``Batch``, ``None`` if nothing."""
        if getattr(data, PREFIX + "matrix", None) is None:
            return None
        found: dict[str, Any] = {name: getattr(data, PREFIX + name, None) for name in cls.__dataclass_fields__}
        return cls(**found)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name}={list(value.shape)}" for name, value in self.tensors().items())
        return f"{type(self).__name__}({shapes})"

    def to(self, device: torch.device | str, non_blocking: bool = False) -> WalkBasis:
        """The same on another device."""
        moved = {name: value.to(device, non_blocking=non_blocking) for name, value in self.tensors().items()}
        return replace(self, **moved)

    def tensors(self) -> dict[str, Tensor]:
        """The fields that are there, by name."""
        return {name: value for name, value in vars(self).items() if value is not None}


def enough_vectors(damping: float, accuracy: float = 1e-7) -> int:
    """Krylov vectors that make any automaton of that relative damping accurate, whatever the undirected graph.

    (I - θμ)⁻¹ is analytic for |θ| < 1/γ. On the spectrum [-1, 1] of a symmetric A polynomials of degree J converge to
    it as r^J with r = (1 - √(1 - γ²))/γ (Bernstein's ellipse). Directed graphs have no such bound: the runs of a deep
    acyclic graph grow with their length before they end.

    Example:
        >>> enough_vectors(0.9), enough_vectors(0.5)
        (35, 13)
    """
    rate = (1.0 - math.sqrt(1.0 - damping**2)) / damping
    return max(1, math.ceil(math.log(accuracy) / math.log(rate)))
