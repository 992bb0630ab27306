"""One scale for every feature, so that long runs are not buried under short ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

from gape._internal.validation import check_finite

Scaling = Literal["batch", "fixed", "whitened", "none"]

#: What varies less, relative to the size of the features, is taken for errors of rounding (or of a solver, in float64)
#: and not blown up.
ROUNDING = {torch.float32: 1e-6, torch.float64: 1e-11}


#: Standard deviation, relative to the mean, below which a feature is not brought to variance 1 in batches.
ALIKE = 0.1


class FeatureScaling(nn.Module):
    """Features to mean 0 and variance 1.

    A run of t steps weighs γᵗ, so features of different lengths differ by orders of magnitude, and so would the
    gradients that reach them.

    Args:
        features: how many.
        kind: "batch" as ``BatchNorm1d`` does, with statistics of the batch in training and of training in evaluation,
            and a learnt factor and shift, but that what varies by less than a tenth of its mean stays small; "fixed"
            with statistics of the training set taken once, by :meth:`fit`; "whitened" like that, and turned into
            principal components, each of variance 1: what tells graphs apart may be a small difference of features that
            vary together. For features that stay as they are: those of an automaton that is learned soon have other
            components. "none" to leave features as they are.

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
            # Long runs of strong damping vary little: the usual 1e-5 would hide them. Only zeros are to stay zeros.
            self.norm = nn.BatchNorm1d(features, eps=1e-20)
        elif self.from_training_set:
            # In float64: a component may be the small difference of large features.
            shape = (features,) if kind == "fixed" else (features, features)
            self.register_buffer("mean", torch.zeros(features, dtype=torch.float64))
            self.register_buffer("factor", torch.ones(shape, dtype=torch.float64))
            self.register_buffer("fitted", torch.tensor(False))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> FeatureScaling:
        """What a module does when it is moved or cast; the statistics follow, but never to less precision."""
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
        """Whether :meth:`fit` has to be called."""
        return self.kind in ("fixed", "whitened")

    def fit(self, features: Tensor) -> FeatureScaling:
        """Take mean and scale of ``[rows, features]``; what never varies is only shifted, or left out if whitened."""
        if not self.from_training_set:
            raise ValueError(f"scaling={self.kind!r} has nothing to fit; ask for scaling='fixed' or 'whitened'")
        if not isinstance(features, Tensor) or features.dim() != 2:
            raise ValueError(f"fit takes the features of the training nodes, a tensor [nodes, k], got {_got(features)}")
        if features.shape[1] != len(self.mean):
            raise ValueError(f"fit takes {len(self.mean)} features a node, got {features.shape[1]}")
        if not len(features):
            raise ValueError("scales come from the nodes of the training set, got none")
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
        """``[rows, features]`` to the same, whole numbers to floating-point ones."""
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
        """As ``BatchNorm1d``, but that a feature which hardly varies is not blown up.

        All nodes of a regular graph are the same to runs into a node. While such a feature is learned, the mean over
        past batches lags behind; divided by next to no deviation, the lag would be all that evaluation sees.
        """
        # In the features' precision, also where the parameters have been rounded to half of it; but in no less than
        # float32, since the square of a small deviation is 0 in half precision.
        norm, given, dtype = self.norm, features.dtype, torch.promote_types(features.dtype, torch.float32)
        features = features.to(dtype)
        assert norm.running_mean is not None
        assert norm.running_var is not None
        assert norm.momentum is not None
        assert norm.num_batches_tracked is not None
        if self.training and len(features) > 1:  # one row has no variance: as in evaluation
            mean, variance = features.mean(0), features.var(0, correction=0)
            # A plain mean over the first batches: features may be a thousandth of the 1 that BatchNorm begins with.
            norm.num_batches_tracked.add_(1)
            kept = norm.running_mean.dtype
            rate = norm.num_batches_tracked.to(kept).reciprocal().clamp(min=norm.momentum)
            norm.running_mean.lerp_(mean.detach().to(kept), rate)
            norm.running_var.lerp_(variance.detach().to(kept), rate)
        else:
            mean, variance = norm.running_mean.to(dtype), norm.running_var.to(dtype)
        deviation = (variance + (ALIKE * mean).square() + norm.eps).sqrt()
        return ((features - mean) / deviation * norm.weight.to(dtype) + norm.bias.to(dtype)).to(given)


def _got(value: object) -> str:
    return f"shape {list(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
