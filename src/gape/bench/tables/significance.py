"""Which figures of a column are the best ones, as far as the seeds can tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
from scipy import stats

Key = TypeVar("Key")

#: Two figures differ if a t-test finds so at this level.
LEVEL = 0.05
#: Of fewer seeds a t-test finds next to nothing, however far figures are apart.
SEEDS = 3


def best(figures: Mapping[Key, Sequence[float]], *, larger: bool) -> set[Key]:
    """The keys whose values are the best on average, or not significantly worse (two-sided t-test, p = 0.05).

    Values that never vary differ if they are not equal. One or two values are not tested: they are among the best only
    if no mean is better.

    Args:
        figures: the values of each key, one a seed.
        larger: whether larger is better.

    Example:
        >>> sorted(best({"a": [1.0, 2.0, 3.0], "b": [2.0, 3.0, 4.0], "c": [-9.0, -9.1, -9.2]}, larger=True))
        ['a', 'b']
    """
    means = {key: float(np.mean(values)) for key, values in figures.items() if len(values)}
    if not means:
        return set()
    top = max(means.values()) if larger else min(means.values())
    leader = next(key for key, mean in means.items() if mean == top)
    tested = {key for key in means if min(len(figures[key]), len(figures[leader])) >= SEEDS}
    return {key for key in means if means[key] == top or (key in tested and not differ(figures[key], figures[leader]))}


def differ(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether a t-test tells two samples apart; where it cannot be done, whether their means are unequal."""
    if len(one) < 2 or len(other) < 2 or np.ptp(one) + np.ptp(other) == 0:
        return bool(np.mean(one) != np.mean(other))
    # From means and deviations: a sample that never varies is nothing to warn of.
    moments = [(np.mean(values), np.std(values, ddof=1), len(values)) for values in (one, other)]
    return bool(stats.ttest_ind_from_stats(*moments[0], *moments[1]).pvalue < LEVEL)
