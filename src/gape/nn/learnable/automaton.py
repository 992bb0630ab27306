"""Learnable automata, rooted ones too, and transition matrices whose norm stays bounded whatever an optimiser does.

On a walk matrix A of spectral radius ρ(|A|) ≤ 1 all runs of length t from u to v together weigh at most ‖μ‖₂ᵗ
(|A|ᵗ)_uv, for one matrix μ as for one per label and edge type. So ‖μ‖₂ ≤ γ < 1 makes the sum over runs converge, and
both parametrisations here have that norm bound by construction. Matrices are computed in float64, where the bound holds
up to rounding.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from gape._internal.validation import positive, seed_number, whole_number
from gape.automaton import Automaton
from gape.encodings.rooted import RootedGAPE

TransitionForm = Literal["dense", "diagonal"]
TransitionBy = Literal["none", "node", "edge", "both"]


class LearnableAutomaton(nn.Module):
    """Weighted graph-walking automaton (Definition 2 of Soga & Chiang, 2023) whose weights are parameters.

    Args:
        states: number of states k.
        labels: number of node labels m.
        form: of μ: "dense", or "diagonal" for complex poles in conjugate pairs (then k is even).
        transition_by: one μ ("none"), one per label of the node left ("node"), per type of the edge taken ("edge"), or
            per combination ("both").
        edge_types: number of edge types R.
        damping: γ, the bound of ‖μ‖₂.
        final: learn final weights τ as well.
        seed: of the initial weights. A dense untyped automaton starts as :meth:`gape.Automaton.random`.

    Example:
        >>> machine = LearnableAutomaton(states=8, labels=28, transition_by="node", damping=0.9)
        >>> machine.automaton.transition.shape
        torch.Size([28, 8, 8])
    """

    def __init__(
        self,
        states: int,
        labels: int = 1,
        *,
        form: TransitionForm = "dense",
        transition_by: TransitionBy = "none",
        edge_types: int = 1,
        damping: float = 0.9,
        final: bool = False,
        seed: int = 0,
    ) -> None:
        super().__init__()
        if form not in ("dense", "diagonal"):
            raise ValueError(f"transition must be 'dense' or 'diagonal', got {form!r}")
        if transition_by not in ("none", "node", "edge", "both"):
            raise ValueError(f"transition_by must be 'none', 'node', 'edge' or 'both', got {transition_by!r}")
        for name, count in (("states", states), ("labels", labels), ("edge_types", edge_types)):
            positive(count, name)
        seed = seed_number(seed)
        if form == "diagonal" and states % 2:
            raise ValueError(f"a diagonal transition has conjugate pairs of poles: states must be even, got {states}")
        if transition_by in ("none", "node") and edge_types > 1:
            raise ValueError(f"edge_types={edge_types} needs transition_by='edge' or 'both', got {transition_by!r}")
        self.states, self.labels, self.transition_by = states, labels, transition_by
        #: Number of transition matrices per label, and per edge type.
        self.by_label = labels if transition_by in ("node", "both") else 1
        self.by_edge = edge_types if transition_by in ("edge", "both") else 1
        count = self.by_label * self.by_edge
        shape = () if transition_by == "none" else (self.by_label, self.by_edge)
        drawn = [Automaton.random(states, 1.0, labels=labels, seed=one) for one in _seeds(seed, count)]
        self.transition: DenseTransition | DiagonalTransition
        if form == "dense":
            start = torch.stack([one.transition for one in drawn]).reshape(*shape, states, states)
            self.transition = DenseTransition(start, damping)
        else:
            draw = torch.rand(2, count, states // 2, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
            phase, decay = draw.reshape(2, *shape, states // 2)
            # Phases uniform on the half circle, moduli between 0.5 and 0.95 times the damping.
            self.transition = DiagonalTransition(torch.pi * phase, 0.5 + 0.45 * decay, damping)
        dtype = torch.get_default_dtype()
        self.initial = nn.Parameter(drawn[0].initial.to(dtype))
        self.final = nn.Parameter(torch.ones(states, labels, dtype=dtype)) if final else None

    @property
    def typed(self) -> bool:
        """True if transitions depend on labels or edge types."""
        return self.transition_by != "none"

    @property
    def dtype(self) -> torch.dtype:
        """Type of the parameters, but at least float32."""
        return torch.promote_types(self.initial.dtype, torch.float32)

    def weights(self) -> tuple[Tensor, Tensor]:
        """Return μ, ``[k, k]`` or ``[m or 1, R or 1, k, k]``, and α, ``[k, m]``, in float64, differentiable."""
        return self.transition(), self.initial.to(torch.float64)

    @property
    def automaton(self) -> Automaton:
        """Current weights as a :class:`gape.Automaton`, for walk matrices of spectral radius 1."""
        with torch.no_grad():
            transition, initial = self.weights()
            if self.transition_by == "both":
                raise ValueError("gape.Automaton has no form for transition_by='both'; use 'node' or 'edge'")
            transition = transition if not self.typed else transition.flatten(0, 1)
            final = None if self.final is None else self.final.to(torch.float64)
            by: Literal["node", "edge"] = "edge" if self.transition_by == "edge" else "node"
            return Automaton(initial, transition, final, transition_by=by)


def _seeds(seed: int, count: int) -> list[int]:
    """Return ``seed`` and further seeds that no neighbouring seed shares."""
    # NumPy takes no negative entropy: the same 64 bits, read as unsigned.
    return [seed, *(int(np.random.SeedSequence([seed % 2**64, i]).generate_state(1)[0]) for i in range(1, count))]


class DenseTransition(nn.Module):
    r"""Dense μ = γ M / max(1, ‖M‖₂) for parameters M; starts as γ times orthogonal matrices, as fixed GAPE.

    Args:
        start: ``[…, k, k]``, initial M.
        damping: γ, bound of the norm.

    Example:
        >>> transition = DenseTransition(torch.eye(2), damping=0.5)
        >>> transition().detach()
        tensor([[0.5000, 0.0000],
                [0.0000, 0.5000]], dtype=torch.float64)
        >>> with torch.no_grad():
        ...     _ = transition.weight.mul_(1e6)
        >>> round(torch.linalg.matrix_norm(transition(), 2).item(), 12)
        0.5
    """

    def __init__(self, start: Tensor, damping: float) -> None:
        super().__init__()
        self.damping = damping
        self.weight = nn.Parameter(start.to(torch.get_default_dtype()))

    def forward(self) -> Tensor:
        """Return μ, ``[…, k, k]`` in float64."""
        weight = self.weight.to(torch.float64)
        norm = torch.linalg.matrix_norm(weight, 2, keepdim=True)
        bounded: Tensor = self.damping * weight / norm.clamp(min=1.0)
        return bounded


class DiagonalTransition(nn.Module):
    r"""Diagonal complex μ as a real matrix: k/2 conjugate pairs of poles λ = γ exp(-exp(ν)) e^{±iφ}.

    Since a linear layer follows the encoding, learning the eigenvalues of μ covers every diagonalisable μ: GAPE as a
    bank of graph resolvents p = a (I - λAᵀ)⁻¹ 1, the counterpart of diagonal state-space models (Gu et al., 2022). The
    pair λ, λ̄ is the 2 × 2 block |λ| [[cos φ, sin φ], [-sin φ, cos φ]]; its two states hold the real and the
    imaginary part of p.

    Args:
        phase: ``[…, k/2]``, initial φ.
        decay: ``[…, k/2]``, initial exp(-exp(ν)), between 0 and 1.
        damping: γ, bound of the moduli.

    Example:
        >>> transition = DiagonalTransition(torch.tensor([0.0]), torch.tensor([0.5]), damping=0.9)
        >>> transition().detach()
        tensor([[0.4500, 0.0000],
                [-0.0000, 0.4500]], dtype=torch.float64)
    """

    def __init__(self, phase: Tensor, decay: Tensor, damping: float) -> None:
        super().__init__()
        self.damping = damping
        dtype = torch.get_default_dtype()
        self.phase = nn.Parameter(phase.to(dtype))
        self.decay = nn.Parameter((-decay.log()).log().to(dtype))

    @property
    def poles(self) -> Tensor:
        """One λ of each pair, ``[…, k/2]``."""
        return torch.polar(self._moduli(), self.phase.to(torch.float64))

    def forward(self) -> Tensor:
        """Return μ, ``[…, k, k]`` in float64."""
        size, phase = self._moduli(), self.phase.to(torch.float64)
        along, across = size * phase.cos(), size * phase.sin()
        pairs = torch.stack([torch.stack([along, across], -1), torch.stack([-across, along], -1)], -2)
        # Block i of [… k/2, 2, 2] goes to rows and columns 2i, 2i + 1.
        count = pairs.shape[-3]
        blocks = torch.eye(count, dtype=pairs.dtype, device=pairs.device)[:, None, :, None] * pairs.unsqueeze(-2)
        return blocks.reshape(*pairs.shape[:-3], 2 * count, 2 * count)

    def _moduli(self) -> Tensor:
        # Beyond the clamp a pole is 0 in any precision, and exp(ν) times 0 would make the gradient NaN.
        return self.damping * torch.exp(-torch.exp(self.decay.to(torch.float64).clamp(max=6.0)))


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
