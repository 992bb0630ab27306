"""One scale for every feature, so that long runs are not buried under short ones."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

Scaling = Literal["batch", "fixed", "none"]

#: What varies less, relative to its mean, is taken for rounding errors of float32 and not blown up.
ROUNDING = 1e-6


class FeatureScaling(nn.Module):
    """Features to mean 0 and variance 1.

    A run of t steps weighs γᵗ, so features of different lengths differ by orders of magnitude, and so would the
    gradients that reach them.

    Args:
        features: how many.
        kind: "batch" as ``BatchNorm1d`` does, with statistics of the batch in training and of training in evaluation,
            and a learnt factor and shift; "fixed" with statistics of the training set taken once, by :meth:`fit`;
            "none" to leave features as they are.

    Example:
        >>> scaling = FeatureScaling(1, "fixed").fit(torch.tensor([[1.0], [3.0]]))
        >>> scaling(torch.tensor([[1.0], [2.0]])).flatten()
        tensor([-1.,  0.])
    """

    mean: Tensor
    deviation: Tensor
    fitted: Tensor

    def __init__(self, features: int, kind: Scaling = "batch") -> None:
        super().__init__()
        if kind not in ("batch", "fixed", "none"):
            raise ValueError(f"scaling must be 'batch', 'fixed' or 'none', got {kind!r}")
        self.kind = kind
        if kind == "batch":
            # Long runs of strong damping vary little: the usual 1e-5 would hide them.
            self.norm = nn.BatchNorm1d(features, eps=1e-8)
        elif kind == "fixed":
            self.register_buffer("mean", torch.zeros(features))
            self.register_buffer("deviation", torch.ones(features))
            self.register_buffer("fitted", torch.tensor(False))

    def fit(self, features: Tensor) -> FeatureScaling:
        """Take mean and deviation of ``[rows, features]``; a feature that never varies is only shifted."""
        if self.kind != "fixed":
            raise ValueError(f"scaling={self.kind!r} has nothing to fit; ask for scaling='fixed'")
        deviation, mean = torch.std_mean(features.detach().double(), 0, correction=0)
        self.mean.copy_(mean)
        self.deviation.copy_(torch.where(deviation > ROUNDING * mean.abs(), deviation, 1.0))
        self.fitted.fill_(True)
        return self

    def forward(self, features: Tensor) -> Tensor:
        """``[rows, features]`` to the same."""
        if self.kind == "fixed":
            if not bool(self.fitted):
                raise ValueError("scaling='fixed' needs the training set once: call fit_scaling(batches) before use")
            return (features - self.mean.to(features.dtype)) / self.deviation.to(features.dtype)
        if self.kind == "none":
            return features
        # In the features' precision, also where the parameters have been rounded to half of it.
        norm, dtype = self.norm, features.dtype
        assert norm.running_mean is not None
        assert norm.running_var is not None
        assert norm.momentum is not None
        mean, variance = norm.running_mean.to(dtype), norm.running_var.to(dtype)
        # One row has no variance: as in evaluation.
        training = self.training and len(features) > 1
        scaled = nn.functional.batch_norm(
            features, mean, variance, norm.weight.to(dtype), norm.bias.to(dtype), training, norm.momentum, norm.eps
        )
        if training and dtype != norm.weight.dtype:
            norm.running_mean.copy_(mean)
            norm.running_var.copy_(variance)
        return scaled
