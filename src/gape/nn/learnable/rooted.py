"""Learnable rooted automata: transition weights by distance from a root, bounded whatever an optimiser does."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from gape._internal.validation import positive, seed_number, whole_number
from gape.encodings.rooted import RootedGAPE


class RootedAutomata(nn.Module):
    r"""Weights T = γ tanh(W) of steps between layers, one symmetric matrix per machine (:mod:`gape.solvers.rooted`).

    |T| < γ < 1 by construction, so the sum over runs converges on every graph. The weights start as those of
    :class:`gape.encodings.RootedGAPE` with the same settings.

    Args:
        machines: number of automata K.
        layers: largest distance L that is told apart.
        damping: γ, bound of the weights.
        seed: of the initial weights.

    Example:
        >>> RootedAutomata(machines=2, layers=3, damping=0.9).transition().shape
        torch.Size([2, 4, 4])
    """

    # As an automaton that reads neither labels nor edge types; those of LearnableAutomaton have the same names.
    labels: ClassVar[int] = 1
    by_edge: ClassVar[int] = 1
    typed: ClassVar[bool] = False
    transition_by: ClassVar[str] = "none"
    final: ClassVar[None] = None

    def __init__(self, machines: int, layers: int = 3, *, damping: float = 0.9, seed: int = 0) -> None:
        super().__init__()
        positive(machines, "states")
        whole_number(layers, "layers", at_least=0)
        self.damping = damping
        start = RootedGAPE(machines, layers, damping=damping, damping_min=min(0.5, damping), seed=seed_number(seed))
        self.weight = nn.Parameter(torch.atanh(start.transition / damping).to(torch.get_default_dtype()))

    @property
    def states(self) -> int:
        """Number of machines: each has one state."""
        return len(self.weight)

    @property
    def layers(self) -> int:
        return self.weight.shape[-1] - 1

    @property
    def dtype(self) -> torch.dtype:
        """Type of the parameters, but at least float32."""
        return torch.promote_types(self.weight.dtype, torch.float32)

    def transition(self) -> Tensor:
        """Return T, ``[machines, layers + 1, layers + 1]`` in float64."""
        weight = self.weight.to(torch.float64)
        return self.damping * torch.tanh((weight + weight.mT) / 2)
