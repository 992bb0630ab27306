"""Everything that decides what a run computes, in one frozen object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args, get_origin, get_type_hints


@dataclass(frozen=True)
class Settings:
    """Settings of one training run, resolved: nothing else decides its numbers.

    Args:
        task: name of a data set, see :func:`gape.data.names`.
        encoding: name of a row of the comparison, see :func:`gape.experiments.graph_tasks.rows.names`.
        seed: of weights, order of the graphs, dropout, sign flips, and of encodings that draw random numbers.
        layers, hidden, heads: shape of the graph transformer.
        readout: "sum", "mean", or "node" for a target a node.
        attention: "neighbours", or "full" for all pairs of nodes of a graph.
        norm: "batch" or "layer".
        dropout: in the layers.
        scaling: of a fixed encoding that enters by a linear layer, alone or beside learned ones: "none" as in the
            paper, or by the training set, "fixed" or "whitened", see :class:`gape.nn.FeatureScaling`.
        batch_size: graphs in a batch, in training and in evaluation.
        lr: learning rate of Adam at the start.
        patience: epochs without a better validation loss before the learning rate is lowered.
        factor: by which it is lowered.
        min_lr: training ends when the learning rate falls below.
        max_epochs: training ends after so many epochs at the latest.
        train_fraction: share of the training graphs that is used, drawn at random but the same in all runs.
        data: options of the data set that differ from its defaults.
        encoding_options: settings of the encoding that differ from its defaults.

    Example:
        >>> Settings("cycles", "none", seed=41, batch_size=0)
        Traceback (most recent call last):
        ValueError: batch_size must be at least 1, got 0
    """

    task: str
    encoding: str
    seed: int = 41
    layers: int = 10
    hidden: int = 80
    heads: int = 8
    readout: Literal["sum", "mean", "node"] = "sum"
    attention: Literal["neighbours", "full"] = "neighbours"
    norm: Literal["batch", "layer"] = "batch"
    dropout: float = 0.0
    scaling: Literal["none", "fixed", "whitened"] = "none"
    batch_size: int = 25
    lr: float = 5e-4
    patience: int = 10
    factor: float = 0.5
    min_lr: float = 1e-6
    max_epochs: int = 1000
    train_fraction: float = 1.0
    data: Mapping[str, Any] = field(default_factory=dict)
    encoding_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("layers", "hidden", "heads", "batch_size", "max_epochs"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        for name in ("seed", "patience"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must not be negative, got {getattr(self, name)}")
        for name in ("lr", "min_lr"):
            if not 0 < getattr(self, name) < 1:
                raise ValueError(f"{name} must lie between 0 and 1, got {getattr(self, name)}")
        if not 0 < self.factor < 1:
            raise ValueError(f"factor must lie between 0 and 1, got {self.factor}")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must be at least 0 and below 1, got {self.dropout}")
        if not 0 < self.train_fraction <= 1:
            raise ValueError(f"train_fraction must be above 0 and at most 1, got {self.train_fraction}")
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise ValueError(f"{name} must be one of {', '.join(choices)}, got {getattr(self, name)!r}")

    def as_dict(self) -> dict[str, Any]:
        """As plain values for JSON."""
        return asdict(self)


_CHOICES = {name: get_args(hint) for name, hint in get_type_hints(Settings).items() if get_origin(hint) is Literal}
