"""Feature scaling: batch statistics, statistics of the training set, or whitening."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from gape._internal.validation import check_finite

Scaling = Literal["batch", "fixed", "whitened", "none"]

#: Relative deviation below which the variation of a feature is rounding error (or, in float64, solver error) and is not
#: scaled up.
ROUNDING = {torch.float32: 1e-6, torch.float64: 1e-11}

#: Standard deviation relative to the mean below which batch scaling leaves a feature small.
MIN_RELATIVE_DEVIATION = 0.1


class FeatureScaling(nn.Module):
    """Scale features to mean 0 and variance 1.

    A run of t steps has weight about γᵗ, so features of different lengths differ by orders of magnitude, and without
    scaling so do their gradients.

    Args:
        features: number of features.
        kind: "batch": as ``BatchNorm1d``, with statistics of the batch in training and running statistics in
            evaluation, a learned factor and a learned shift, except that a feature whose deviation is below a tenth of
            its mean stays small. "fixed": statistics of the training set, computed once by :meth:`fit`. "whitened":
            as "fixed", and projected onto principal components of variance 1, since graphs may differ in a small
            difference of correlated features; for fixed features only, because the components of an automaton that is
            learned change. "none": no scaling.

    Example:
        >>> scaling = FeatureScaling(1, "fixed").fit(torch.tensor([[1.0], [3.0]]))
        >>> scaling(torch.tensor([[1.0], [2.0]])).flatten()
        tensor([-1.,  0.])
    """

    mean: Tensor
    factor: Tensor
    fitted: Tensor

    def __init__(self, features: int, kind: Scaling = "batch") -> None:
        super().__init__()
        if kind not in ("batch", "fixed", "whitened", "none"):
            raise ValueError(f"scaling must be 'batch', 'fixed', 'whitened' or 'none', got {kind!r}")
        self.kind = kind
        if kind == "batch":
            # Features of long runs vary little, and the usual eps of 1e-5 would hide them. Only zeros must stay zeros.
            self.norm = nn.BatchNorm1d(features, eps=1e-20)
        elif self.from_training_set:
            # In float64, because a component may be a small difference of large features.
            shape = (features,) if kind == "fixed" else (features, features)
            self.register_buffer("mean", torch.zeros(features, dtype=torch.float64))
            self.register_buffer("factor", torch.ones(shape, dtype=torch.float64))
            self.register_buffer("fitted", torch.tensor(False))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> FeatureScaling:
        """Move or cast the module; the statistics keep at least their precision."""
        exact = [(part, name, buffer) for part in self.modules() for name, buffer in part.named_buffers(recurse=False)]
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for part, name, buffer in exact:
            now = getattr(part, name)
            if buffer.is_meta or now.is_meta:
                continue
            setattr(part, name, buffer.to(now.device, torch.promote_types(buffer.dtype, now.dtype)))
        return self

    @property
    def from_training_set(self) -> bool:
        """True if :meth:`fit` must be called before use."""
        return self.kind in ("fixed", "whitened")

    def fit(self, features: Tensor) -> FeatureScaling:
        """Fit mean and scale to ``[rows, features]``; constant features are only shifted, or dropped if whitened."""
        if not self.from_training_set:
            raise ValueError(f"scaling={self.kind!r} has nothing to fit; use scaling='fixed' or 'whitened'")
        if not isinstance(features, Tensor) or features.dim() != 2:
            raise ValueError(f"fit takes the features of the training nodes, a tensor [nodes, k], got {_got(features)}")
        if features.shape[1] != len(self.mean):
            raise ValueError(f"fit takes {len(self.mean)} features per node, got {features.shape[1]}")
        if not len(features):
            raise ValueError("fit needs the features of at least one training node, got none")
        check_finite(features, "the features of the training nodes")
        rows, error = features.detach().double(), ROUNDING[torch.promote_types(features.dtype, torch.float32)]
        mean = rows.mean(0)
        self.mean.copy_(mean)
        if self.kind == "fixed":
            deviation = rows.std(0, correction=0)
            self.factor.copy_(torch.where(deviation > error * mean.abs(), 1.0 / deviation, 1.0))
        else:
            _, deviation, turn = torch.linalg.svd((rows - mean) / len(rows) ** 0.5, full_matrices=False)
            factor = torch.where(deviation > error * rows.abs().amax(), 1.0 / deviation, 0.0)
            self.factor.zero_()
            self.factor[:, : len(turn)] = (turn * factor.unsqueeze(1)).T
        self.fitted.fill_(True)
        return self

    def forward(self, features: Tensor) -> Tensor:
        """Scale ``[rows, features]``; integers are converted to the default floating-point type."""
        if not features.is_floating_point():
            features = features.to(torch.get_default_dtype())
        if self.from_training_set:
            if not bool(self.fitted):
                raise ValueError(
                    f"scaling={self.kind!r} needs the training set: call fit_scaling before use (fit of FeatureScaling)"
                )
            shifted = features.to(self.mean.dtype) - self.mean
            with torch.autocast(features.device.type, enabled=False):
                scaled = shifted * self.factor if self.kind == "fixed" else shifted @ self.factor
            return scaled.to(features.dtype)
        if self.kind == "none":
            return features
        return self._batch_normalised(features)

    def _batch_normalised(self, features: Tensor) -> Tensor:
        """Apply batch normalisation that does not scale up features with hardly any variation.

        On regular graphs the node readout is the same for all nodes. While such a feature is learned, the running mean
        lags behind; divided by a deviation near 0, that lag would dominate in evaluation.
        """
        # In the precision of the features, at least float32: in half precision the square of a small deviation is 0.
        norm, input_dtype, dtype = self.norm, features.dtype, torch.promote_types(features.dtype, torch.float32)
        features = features.to(dtype)
        assert norm.running_mean is not None
        assert norm.running_var is not None
        assert norm.momentum is not None
        assert norm.num_batches_tracked is not None
        if self.training and len(features) > 1:  # a single row has no variance: use running statistics
            mean, variance = features.mean(0), features.var(0, correction=0)
            # Plain mean over the first batches: features may be a thousandth of the 1 that BatchNorm starts from.
            norm.num_batches_tracked.add_(1)
            stored = norm.running_mean.dtype
            rate = norm.num_batches_tracked.to(stored).reciprocal().clamp(min=norm.momentum)
            norm.running_mean.lerp_(mean.detach().to(stored), rate)
            norm.running_var.lerp_(variance.detach().to(stored), rate)
        else:
            mean, variance = norm.running_mean.to(dtype), norm.running_var.to(dtype)
        deviation = (variance + (MIN_RELATIVE_DEVIATION * mean).square() + norm.eps).sqrt()
        return ((features - mean) / deviation * norm.weight.to(dtype) + norm.bias.to(dtype)).to(input_dtype)


def _got(value: object) -> str:
    return f"shape {list(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
