"""Rooted GAPE: closed runs of automata that see how far they are from a root."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from gape._internal.validation import check_at_least
from gape.automaton import RootedAutomaton
from gape.encodings.base import Encoding
from gape.graph.graph import Graph
from gape.solvers.solution import Solution
from gape.solvers.solve import solve

#: Transition weights are drawn uniformly from this interval, before damping.
WEIGHT_RANGE = (0.2, 1.0)


@dataclass(frozen=True)
class RootedGAPE(Encoding):
    r"""Closed runs in each layer around a node, of random automata whose weights depend on the layers of both ends.

    With the node as root, layer l holds the nodes l edges away, the last layer those ``layers`` or more edges away.
    Machine κ multiplies a step from layer a to b by γ_κ R_κ[a, b] / ρ(A); the encoding has for each machine and layer
    the total weight of the runs that start in a node of the layer and come back to it, Σ_v (I - M)⁻¹_vv
    (:mod:`gape.solvers.rooted`). It tells apart graphs that 3-WL does not. Permutation-equivariant.

    GAPE (Soga & Chiang, 2023) with distances from a root, as distance encoding (Li et al., 2020) has for GNNs.

    Directed graphs: distances and runs follow the edges. Nodes without a path from the root are in no layer. Edge
    weights scale the runs and are not lengths; with negative ones ρ is that of the absolute values.

    Args:
        machines: number of automata K.
        layers: largest distance L that is told apart; the encoding has L + 1 layers.
        radius: runs stay within so many steps of the root, as if the rest of the graph did not exist: bounded cost on
            large graphs; ``none`` for the whole graph.
        damping: γ of the last machine, relative to 1/ρ(A), below 1.
        damping_min: γ of the first machine; the others are spaced evenly between.
        length: give closed runs of 1, 2, … ``length`` steps each on its own; ``none`` for their sum over all lengths.
        seed: of the weights R, drawn from [0.2, 1], symmetric.
        memory: largest memory, in GiB, for the matrices of one root, and for distances between all nodes of a graph.

    Returns, when called on a graph: ``[num_nodes, machines · (layers + 1)]``, times ``length`` if given.
    :meth:`solve` gives the same weights with a certificate for every graph.

    Example:
        >>> ring = Graph.from_edges([(0, 1), (1, 2), (2, 0)], undirected=True)
        >>> RootedGAPE(machines=2, layers=1)(ring).shape
        torch.Size([3, 4])
        >>> RootedGAPE().solve(ring).spectral_radius < 0.97
        tensor([True])
    """

    alternatives: ClassVar[str] = "'lape'"

    machines: int = 12
    layers: int = 3
    radius: int | None = None
    damping: float = 0.97
    damping_min: float = 0.5
    length: int | None = None
    seed: int = 0
    memory: float = 4.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_at_least(1, machines=self.machines)
        check_at_least(0, layers=self.layers)
        if self.radius is not None:
            check_at_least(0, radius=self.radius)
        if self.length is not None:
            check_at_least(1, length=self.length)
        if not 0 <= self.damping_min <= self.damping < 1:
            raise ValueError(
                "damping must be at least damping_min and below 1, and damping_min not negative; "
                f"got damping={self.damping!r} and damping_min={self.damping_min!r}"
            )

    @property
    def transition(self) -> Tensor:
        """``[machines, layers + 1, layers + 1]``: weights γ_κ R_κ[a, b] of steps from a to b, relative to 1/ρ(A)."""
        generator = torch.Generator().manual_seed(self.seed)
        size = self.layers + 1
        drawn = torch.rand(self.machines, size, size, generator=generator, dtype=torch.float64)
        low, high = WEIGHT_RANGE
        # The upper triangle, mirrored.
        weights = low + (high - low) * (drawn.triu() + drawn.triu(1).mT)
        damping = torch.linspace(self.damping_min, self.damping, self.machines, dtype=torch.float64)
        return (damping if self.machines > 1 else damping.fill_(self.damping)).view(-1, 1, 1) * weights

    def solve(self, graph: Any) -> Solution:
        """Compute the weights with certificates: residuals, and the bound max γR < 1 on the spectral radius."""
        automaton = RootedAutomaton(self.transition, self.radius, self.length)
        return solve(automaton, graph, readout="rooted", dtype=self.dtype, memory=self.memory)

    def compute(self, graph: Graph) -> Tensor:
        return self.solve(graph).weights
