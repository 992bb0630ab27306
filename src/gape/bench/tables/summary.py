"""The runs of one cell over all seeds, in the units in which the paper prints them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

Rule = Literal["best_validation", "last_epoch"]

#: In words: when the weights were taken that were tested.
RULES: Mapping[Rule, str] = {"best_validation": "best validation", "last_epoch": "last epoch"}


@dataclass(frozen=True)
class Summary:
    """Test figures of a cell, one a seed.

    Args:
        values: in percent, or for a regression the mean absolute error; NaN where it was not finite.
        decimals: that are printed.
        by_time: whether a run was stopped by time.

    Example:
        >>> str(Summary((79.0, 81.0), 2)), str(Summary((0.25,), 3, by_time=True))
        ('80.00 ± 1.41 [2]', '0.250 [1]†')
    """

    values: tuple[float, ...]
    decimals: int
    by_time: bool = False

    @property
    def mean(self) -> float:
        return statistics.fmean(self.values)

    @property
    def deviation(self) -> float | None:
        """Standard deviation over the seeds (of the sample); None for one seed."""
        return statistics.stdev(self.values) if len(self.values) > 1 else None

    def __str__(self) -> str:
        if not math.isfinite(self.mean):
            return f"not finite [{len(self.values)}]"
        spread = "" if self.deviation is None else f" ± {self.deviation:.{self.decimals}f}"
        seeds = "" if len(self.values) == 4 else f" [{len(self.values)}]"
        return f"{self.mean:.{self.decimals}f}{spread}{seeds}{'†' if self.by_time else ''}"


def summarise(results: Iterable[Mapping[str, Any]], rule: Rule) -> Summary | None:
    """The figures of the runs of a cell by one rule; None if there are none.

    At the last epoch it is the published metric, which for mean absolute errors and for classes of nodes is a mean
    over batches; at best validation the metric over the whole test set.
    """
    values, decimals, by_time = [], 2, False
    for result in results:
        metric, figures = result["metric"], result[rule]
        published = f"{metric}_per_batch"
        value = figures[published if rule == "last_epoch" and published in figures else metric]
        decimals = 3 if metric == "mae" else 2
        value = math.nan if value is None else value
        values.append(value if metric == "mae" else 100 * value)
        by_time |= result["stopped"] == "time"
    return Summary(tuple(values), decimals, by_time) if values else None
