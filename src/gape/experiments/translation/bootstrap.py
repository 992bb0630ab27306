"""Is one translation better than another, or was it luck: paired bootstrap resampling (Koehn, 2004)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gape.experiments.translation.scoring import metric


@dataclass(frozen=True)
class Comparison:
    """A system beside the baseline, by lower-cased BLEU.

    Args:
        bleu: of the system.
        low: end of its 95 % confidence interval.
        high: other end.
        p_value: sacrebleu's, of no difference from the baseline; 1 where it says the same as the baseline, line by line
            (sacrebleu gives 0.001 there); None for the baseline itself.
    """

    bleu: float
    low: float
    high: float
    p_value: float | None


def compare(
    systems: Mapping[str, Sequence[str]], references: Sequence[str], *, baseline: str, samples: int = 1000
) -> dict[str, Comparison]:
    """sacrebleu's paired bootstrap of every system against the baseline; its random numbers are seeded, unless the
    environment variable ``SACREBLEU_SEED`` says "none".

    Example:
        >>> references = ["một hai ba bốn năm"] * 4
        >>> found = compare({"good": references, "bad": ["sáu"] * 4}, references, baseline="good", samples=50)
        >>> round(found["good"].bleu), round(found["bad"].bleu), found["good"].p_value
        (100, 0, None)
    """
    if baseline not in systems:
        raise ValueError(f"the baseline {baseline!r} is not among the systems {', '.join(systems)}")
    for name, lines in systems.items():
        if len(lines) != len(references):
            raise ValueError(f"{name} has {len(lines):,} translations for {len(references):,} references")
    from sacrebleu.significance import PairedTest

    names = [baseline, *(name for name in systems if name != baseline)]
    test = PairedTest(
        [(name, list(systems[name])) for name in names],
        {"BLEU": metric("lower-cased")},
        references=[list(references)],
        test_type="bs",
        n_samples=samples,
    )
    results: list[Any] = test()[1]["BLEU"]
    found = {}
    for name, result in zip(names, results, strict=True):
        same = name != baseline and list(systems[name]) == list(systems[baseline])
        p_value = 1.0 if same else result.p_value
        found[name] = Comparison(result.score, result.mean - result.ci, result.mean + result.ci, p_value)
    return found
