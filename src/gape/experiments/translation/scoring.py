"""BLEU scores with sacrebleu's signatures, and their paired bootstrap comparison (Koehn, 2004)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gape.experiments.translation.corpus import detokenise


@dataclass(frozen=True)
class Score:
    """A BLEU score and how it was computed.

    Args:
        name: ``"lower-cased"``, ``"cased"`` or ``"detokenised"``.
        bleu: in percent.
        signature: sacrebleu's.
    """

    name: str
    bleu: float
    signature: str

    def __str__(self) -> str:
        return f"BLEU {self.bleu:.2f} {self.name} ({self.signature})"


def lower_cased(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """Compute case-insensitive BLEU of tokenised text, the paper's metric.

    Example:
        >>> print(lower_cased(["Chào bạn của tôi ."], ["chào bạn của tôi ."]))  # doctest: +ELLIPSIS
        BLEU 100.00 lower-cased (nrefs:1|case:lc|eff:no|tok:none|smooth:none|version:...)
    """
    return _score("lower-cased", hypotheses, references)


def score(
    hypotheses: Sequence[str], references: Sequence[str], *, raw_references: Sequence[str] | None = None
) -> list[Score]:
    """Compute all three scores of tokenised translations.

    Args:
        hypotheses: tokenised translations.
        references: tokenised, one per translation.
        raw_references: untokenised references for the detokenised score; detokenised ``references`` if None.
    """
    raw = raw_references if raw_references is not None else list(map(detokenise, references))
    return [
        lower_cased(hypotheses, references),
        _score("cased", hypotheses, references),
        _score("detokenised", list(map(detokenise, hypotheses)), raw),
    ]


def _score(name: str, hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    if len(hypotheses) != len(references):
        raise ValueError(
            f"got {len(hypotheses):,} translations and {len(references):,} references; expected one reference per "
            f"translation"
        )
    if not hypotheses:
        raise ValueError("there are no translations to score")
    bleu = _metric(name)
    value = float(bleu.corpus_score(list(hypotheses), [list(references)]).score)
    return Score(name, value, str(bleu.get_signature()))


def _metric(name: str) -> Any:
    """Return sacrebleu's metric for the score of that name.

    Tokenised scores use the given tokens without smoothing, like the script behind the paper's figures: a system
    without any 4-gram match scores 0.
    """
    try:
        from sacrebleu.metrics.bleu import BLEU
    except ImportError as error:
        raise ImportError("BLEU needs sacrebleu: pip install 'gape[mt]'") from error
    if name == "detokenised":
        return BLEU(tokenize="13a")
    return BLEU(tokenize="none", lowercase=name == "lower-cased", smooth_method="none", force=True)


@dataclass(frozen=True)
class Comparison:
    """A system compared with the baseline, by lower-cased BLEU.

    Args:
        bleu: of the system.
        low: lower end of its 95 % confidence interval.
        high: upper end.
        p_value: sacrebleu's, of no difference from the baseline; None for the baseline itself. It is 1 for a system
            with the baseline's translations, where sacrebleu gives 0.001.
    """

    bleu: float
    low: float
    high: float
    p_value: float | None


def compare(
    systems: Mapping[str, Sequence[str]], references: Sequence[str], *, baseline: str, samples: int = 1000
) -> dict[str, Comparison]:
    """Compare every system with the baseline by sacrebleu's paired bootstrap resampling.

    Its random numbers are seeded, unless the environment variable ``SACREBLEU_SEED`` is "none".

    Example:
        >>> references = ["một hai ba bốn năm"] * 4
        >>> found = compare({"good": references, "bad": ["sáu"] * 4}, references, baseline="good", samples=50)
        >>> round(found["good"].bleu), round(found["bad"].bleu), found["good"].p_value
        (100, 0, None)
    """
    if baseline not in systems:
        raise ValueError(f"baseline must be one of the systems {', '.join(systems)}, got {baseline!r}")
    for name, lines in systems.items():
        if len(lines) != len(references):
            raise ValueError(
                f"{name} has {len(lines):,} translations and there are {len(references):,} references; expected one "
                f"reference per translation"
            )
    from sacrebleu.significance import PairedTest

    names = [baseline, *(name for name in systems if name != baseline)]
    test = PairedTest(
        [(name, list(systems[name])) for name in names],
        {"BLEU": _metric("lower-cased")},
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
