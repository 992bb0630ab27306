r"""Transition matrices that cannot leave the well-posed region, whatever an optimiser does to their parameters.

On a walk matrix A of spectral radius ρ(|A|) ≤ 1 all runs of length t from u to v together weigh at most ‖μ‖₂ᵗ
(|A|ᵗ)_uv, whether μ is one matrix or one for every label and edge type. So ‖μ‖₂ ≤ γ < 1 makes the runs sum up, and
every parametrisation here has that norm bound by construction. Matrices are computed in float64, where the bound
holds to rounding.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn


class DenseTransition(nn.Module):
    r"""γ M / max(1, ‖M‖₂) for any real matrices M: starts as γ times orthogonal matrices, as fixed GAPE is.

    Args:
        start: ``[…, k, k]``, the first M.
        damping: γ, the largest norm.

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
        """μ, ``[…, k, k]`` in float64."""
        weight = self.weight.to(torch.float64)
        norm = torch.linalg.matrix_norm(weight, 2, keepdim=True)
        bounded: Tensor = self.damping * weight / norm.clamp(min=1.0)
        return bounded


class DiagonalTransition(nn.Module):
    r"""k/2 conjugate pairs of poles λ = γ exp(-exp(ν)) e^{±iφ}: a diagonal complex μ, written as a real matrix.

    A linear layer follows the encoding, so learning the eigenvalues of μ is learning all of a diagonalisable μ: GAPE as
    a bank of graph resolvents p = a (I - λAᵀ)⁻¹ 1, the cousin on graphs of diagonal state-space models (Gu et al.,
    2022). The pair λ, λ̄ is the 2 × 2 block |λ| [[cos φ, sin φ], [-sin φ, cos φ]]; its two states hold the real and the
    imaginary part of p.

    Args:
        phase: ``[…, k/2]``, the first φ.
        decay: ``[…, k/2]``, the first exp(-exp(ν)), between 0 and 1.
        damping: γ, which no pole exceeds.

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
        """``[…, k/2]``: one λ of each pair."""
        return torch.polar(self._sizes(), self.phase.to(torch.float64))

    def forward(self) -> Tensor:
        """μ, ``[…, k, k]`` in float64."""
        size, phase = self._sizes(), self.phase.to(torch.float64)
        along, across = size * phase.cos(), size * phase.sin()
        pairs = torch.stack([torch.stack([along, across], -1), torch.stack([-across, along], -1)], -2)
        # Block i of [… k/2, 2, 2] goes to rows and columns 2i, 2i + 1.
        count = pairs.shape[-3]
        blocks = torch.eye(count, dtype=pairs.dtype, device=pairs.device)[:, None, :, None] * pairs.unsqueeze(-2)
        return blocks.reshape(*pairs.shape[:-3], 2 * count, 2 * count)

    def _sizes(self) -> Tensor:
        # Beyond the clamp a pole is 0 in any precision, and exp(ν) times 0 would be no number in the gradient.
        return self.damping * torch.exp(-torch.exp(self.decay.to(torch.float64).clamp(max=6.0)))
