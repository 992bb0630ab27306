"""Communicability: walks of all lengths between nodes, by the exponential or the resolvent of the adjacency."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, get_args

import torch
from torch import Tensor

from gape._internal.validation import check_at_least, check_one_of
from gape.encodings.base import DenseEncoding, DenseReadout
from gape.encodings.pairs import Pairs
from gape.graph.batching import Block, blocks
from gape.graph.graph import Graph
from gape.graph.spectral_radius import spectral_radii
from gape.linalg.lu import inverses
from gape.solvers.certificate import below_one

Series = Literal["exponential", "resolvent"]


@dataclass(frozen=True)
class Communicability(DenseEncoding):
    r"""Weighted sum over walks of all lengths, in which long walks count less (Estrada & Hatano, 2008).

    Walks of t steps count βᵗ/t! in the exponential exp(βA), whose diagonal is the subgraph centrality (Estrada &
    Rodríguez-Velázquez, 2005), and βᵗ in the resolvent (I - βA)⁻¹ of Katz (1953), the pair readout of
    :meth:`gape.Automaton.katz`. On directed graphs walks follow the edges, row to column. Permutation-equivariant.

    Args:
        betas: factors β per step, one feature each.
        series: "exponential" or "resolvent".
        relative: take β relative to 1/ρ(A) of each graph (to 1 on graphs without cycles), so that the resolvent
            converges for β < 1 and features of dense graphs stay small. NetworkX's ``communicability_exp`` has
            ``betas=(1,), relative=False``.
        readout: "closed", walks from each node back to itself, or "pair", between all pairs of nodes.
        memory: memory limit, in GiB, for the dense matrices of one graph and the pairs of all.

    Returns, when called on a graph: ``[num_nodes, betas]``, or :class:`Pairs` of ``[n, n, betas]``.

    Example:
        >>> edge = Graph.from_edges([(0, 1)], undirected=True)
        >>> Communicability(betas=(1.0,))(edge)[0]  # cosh 1
        tensor([1.5431])
    """

    betas: tuple[float, ...] = (0.5, 0.9)
    series: Series = "exponential"
    relative: bool = True
    readout: DenseReadout = field(default="closed", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of(get_args(Series), series=self.series)
        check_at_least(0, **{f"betas[{i}]": beta for i, beta in enumerate(self.betas)})
        if self.series == "resolvent" and self.relative and max(self.betas) >= 1:
            raise ValueError(
                f"the resolvent sums walks for betas below 1, relative to 1/ρ(A), got {max(self.betas):g}; lower it, "
                "or set series='exponential', which converges for every beta"
            )

    @property
    def channels(self) -> int:
        return len(self.betas)

    @property
    def matrices(self) -> int:
        return 18 + 2 * self.channels

    def compute(self, graph: Graph) -> Tensor | Pairs:
        if not self.relative:
            self._check_radius(spectral_radii(graph, "adjacency"))
        return super().compute(graph)

    def _check_radius(self, radius: Tensor) -> None:
        """Raise before any work if the resolvent would not converge, or the exponential overflow."""
        beta = max(self.betas)
        largest = math.log(torch.finfo(self.dtype).max) if self.series == "exponential" else 1.0
        # As for automata: below 1 by more than the rounding of ρ.
        bad = (~below_one(beta * radius / largest)).nonzero().flatten()
        if len(bad):
            graph = int(bad[0])
            what = "overflows" if self.series == "exponential" else "diverges"
            raise ValueError(
                f"the {self.series} {what} for beta={beta:g}: graph {graph} has ρ(A) = {radius[graph].item():g}, so "
                f"take betas below {largest / radius[graph].item():.3g}, or set relative=True"
            )

    def features(self, part: Graph) -> Iterator[tuple[Block, Tensor]]:
        walk = part.walk("adjacency")
        radius = spectral_radii(part, "adjacency") if self.relative else torch.zeros_like(part.sizes).double()
        scale = torch.where(radius > 0, radius, 1.0)
        for block in blocks(walk):
            matrices = block.matrices / scale[block.graphs].view(-1, 1, 1)
            yield block, self._symmetric(matrices) if walk.symmetric else self._directed(matrices)

    def _symmetric(self, matrices: Tensor) -> Tensor:
        theta, vectors = torch.linalg.eigh((matrices + matrices.mT) / 2)
        weighted = theta.unsqueeze(-1) * torch.tensor(self.betas, dtype=theta.dtype, device=theta.device)
        found = weighted.exp() if self.series == "exponential" else 1.0 / (1.0 - weighted)
        if not self.pairwise:
            diagonals: Tensor = vectors.square() @ found
            return diagonals
        return torch.stack([(vectors * column.unsqueeze(1)) @ vectors.mT for column in found.unbind(-1)], -1)

    def _directed(self, matrices: Tensor) -> Tensor:
        eye = torch.eye(matrices.shape[1], dtype=matrices.dtype, device=matrices.device)
        found = torch.stack(
            [
                torch.linalg.matrix_exp(beta * matrices)
                if self.series == "exponential"
                else inverses(eye - beta * matrices)
                for beta in self.betas
            ],
            -1,
        )
        return found if self.pairwise else found.diagonal(dim1=1, dim2=2).mT
