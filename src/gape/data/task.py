"""What is asked of a data set: at which level, with which features, measured how."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["graph", "node"]
Measure = Literal["mae", "accuracy", "macro-recall"]


@dataclass(frozen=True)
class Task:
    """The question that a data set asks.

    Args:
        name: the data set's name in the registry.
        level: ``"graph"`` (one target a graph) or ``"node"`` (one target a node).
        metric: ``"mae"``, ``"accuracy"`` or ``"macro-recall"``.
        num_classes: number of classes; 0 for a regression.
        node_categories: number of categories of every column of ``x``, when ``x`` holds categories (then a
            model embeds it). Empty when ``x`` is real-valued (then a model applies a linear map), as in the
            sets whose only feature is the constant 1.

    Example:
        >>> zinc = Task("zinc", level="graph", metric="mae", num_classes=0, node_categories=(28,))
        >>> zinc.regression, zinc.num_outputs
        (True, 1)
    """

    name: str
    level: Level
    metric: Measure
    num_classes: int
    node_categories: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.level not in ("graph", "node"):
            raise ValueError(f"level must be 'graph' or 'node', got {self.level!r}")
        if self.metric not in ("mae", "accuracy", "macro-recall"):
            raise ValueError(f"metric must be 'mae', 'accuracy' or 'macro-recall', got {self.metric!r}")
        if self.num_classes < 0 or self.num_classes == 1:
            raise ValueError(f"num_classes must be 0 (a regression) or at least 2 (classes), got {self.num_classes}")
        if (self.metric == "mae") != (self.num_classes == 0):
            raise ValueError(
                f"metric {self.metric!r} does not fit {self.num_classes} classes: "
                "use 'mae' for a regression (num_classes=0) and the others for classes"
            )
        if any(size < 1 for size in self.node_categories):
            raise ValueError(f"node_categories must all be at least 1, got {self.node_categories}")

    @property
    def key(self) -> str:
        """The metric as a name in records.

        >>> Task("pattern", level="node", metric="macro-recall", num_classes=2).key
        'macro_recall'
        """
        return self.metric.replace("-", "_")

    @property
    def regression(self) -> bool:
        """Whether targets are real numbers."""
        return self.num_classes == 0

    @property
    def num_outputs(self) -> int:
        """How many numbers a model has to give for one target: the classes, or 1 for a regression."""
        return self.num_classes or 1
