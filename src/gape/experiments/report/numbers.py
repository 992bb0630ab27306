"""Numbers of a table: the paper's and those of the authors' logs; ours over seeds, with t-tests between them."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal, TypeVar

import numpy as np
from scipy import stats

Key = TypeVar("Key")

#: Significance level of the t-test.
SIGNIFICANCE_LEVEL = 0.05
#: With fewer seeds a t-test has almost no power.
MIN_SEEDS = 3


@cache
def paper_results() -> dict[str, Any]:
    """Read all figures by table, and those at best validation from the authors' logs, as far as they exist."""
    found: dict[str, Any] = json.loads(
        files("gape.experiments.report").joinpath("paper_results.json").read_text(encoding="utf-8")
    )
    return found


def printed(table: str, row: str, column: str) -> float | str | None:
    """Return what the paper prints in a cell: a number, a word, or nothing.

    For PPRP in the main table, its own table is read.

    >>> printed("graph-performance", "GAPE", "CYCLES"), printed("graph-performance", "SPD+C", "PCQM4Mv2")
    (79.03, 'OOM')
    >>> printed("graph-performance", "PPRP", "CYCLES"), printed("graph-performance", "PPRP", "CSL")
    (100.0, None)
    """
    if (table, row) == ("graph-performance", "PPRP"):
        table = "rw-ppr-graph"
    found: float | str | None = paper_results()[f"table:{table}"]["rows"].get(row, {}).get(column)
    return found


def in_column_unit(row: str, column: str, value: float) -> float:
    """Convert a printed figure to the unit of its column: CSL without encoding is a fraction, all else percent.

    >>> in_column_unit("Baseline", "CSL", 0.10), in_column_unit("GAPE", "CSL", 10.0)
    (10.0, 10.0)
    """
    return 100 * value if (row, column) == ("Baseline", "CSL") else value


def logged(row: str, column: str) -> float | None:
    """Return the mean at best validation in the authors' logs, which the paper says it prints.

    >>> logged("RW", "ZINC")
    0.203
    """
    found: float | None = paper_results()["authors_logs_best_val"].get(column, {}).get(row)
    return found


def best(figures: Mapping[Key, Sequence[float]], *, larger: bool) -> set[Key]:
    """Return the keys whose values are best on average, or not significantly worse (two-sided t-test, p = 0.05).

    Samples without variance differ if their values do. One or two values decide nothing: such keys are never among the
    best, and if one of them has the best mean, no key is.

    Args:
        figures: the values of each key, one per seed.
        larger: True if larger is better.

    Example:
        >>> sorted(best({"a": [1.0, 2.0, 3.0], "b": [2.0, 3.0, 4.0], "c": [-9.0, -9.1, -9.2]}, larger=True))
        ['a', 'b']
        >>> best({"a": [1.0, 2.0, 3.0], "d": [9.0]}, larger=True)
        set()
    """
    means = {key: float(np.mean(values)) for key, values in figures.items() if len(values)}
    if not means:
        return set()
    top = max(means.values()) if larger else min(means.values())
    leaders = [key for key, mean in means.items() if mean == top]
    if any(len(figures[key]) < MIN_SEEDS for key in leaders):
        return set()
    tested = {key for key in means if len(figures[key]) >= MIN_SEEDS}
    return {key for key in tested if not differ(figures[key], figures[leaders[0]])}


def differ(one: Sequence[float], other: Sequence[float]) -> bool:
    """Return True if a t-test finds a difference of two samples; if it cannot be done, if their means differ."""
    if len(one) < 2 or len(other) < 2 or np.ptp(one) + np.ptp(other) == 0:
        return bool(np.mean(one) != np.mean(other))
    # From means and deviations, which does not warn of a sample without variance.
    moments = [(np.mean(values), np.std(values, ddof=1), len(values)) for values in (one, other)]
    return bool(stats.ttest_ind_from_stats(*moments[0], *moments[1]).pvalue < SIGNIFICANCE_LEVEL)


Rule = Literal["best_validation", "last_epoch"]

#: The weights that were tested, in words.
RULES: Mapping[Rule, str] = {"best_validation": "best validation", "last_epoch": "last epoch"}


@dataclass(frozen=True)
class Summary:
    """Test figures of a row and column, one per seed.

    Args:
        values: in percent, or for a regression the mean absolute error; NaN where it was not finite.
        decimals: to print.
        by_time: True if a time limit ended a training.

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
    """Summarise results by one rule; None if there are none.

    At the last epoch the figure is the published metric, which for mean absolute errors and node classes is a mean over
    batches; at best validation it is the metric over the whole test set.
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
