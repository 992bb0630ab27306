"""BLEU three ways, with sacrebleu's signatures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gape.experiments.translation.detokenise import detokenise


@dataclass(frozen=True)
class Score:
    """One BLEU score and how it was computed.

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


def metric(name: str) -> Any:
    """sacrebleu's metric of that name.

    Tokenised scores take the tokens as they stand and do not smooth, as the script behind the paper's figures does:
    a system without any 4-gram match scores 0.
    """
    try:
        from sacrebleu.metrics.bleu import BLEU
    except ImportError as error:
        raise ImportError("BLEU needs sacrebleu: pip install 'gape[mt]'") from error
    if name in ("lower-cased", "cased"):
        return BLEU(tokenize="none", lowercase=name == "lower-cased", smooth_method="none", force=True)
    if name == "detokenised":
        return BLEU(tokenize="13a")
    raise ValueError(f"there is no score {name!r}; there are lower-cased, cased and detokenised")


def lower_cased(hypotheses: Sequence[str], references: Sequence[str]) -> Score:
    """The paper's figure: case-insensitive BLEU of tokenised text.

    Example:
        >>> print(lower_cased(["Chào bạn của tôi ."], ["chào bạn của tôi ."]))  # doctest: +ELLIPSIS
        BLEU 100.00 lower-cased (nrefs:1|case:lc|eff:no|tok:none|smooth:none|version:...)
    """
    return _score("lower-cased", hypotheses, references)


def score(
    hypotheses: Sequence[str], references: Sequence[str], *, raw_references: Sequence[str] | None = None
) -> list[Score]:
    """All three scores of tokenised translations.

    Args:
        hypotheses: tokenised translations.
        references: tokenised, as many.
        raw_references: never tokenised ones for the detokenised score; if None, ``references`` are detokenised too.
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
            f"{len(hypotheses):,} translations cannot be scored against {len(references):,} references; "
            f"there must be one each"
        )
    if not hypotheses:
        raise ValueError("there are no translations to score")
    bleu = metric(name)
    value = float(bleu.corpus_score(list(hypotheses), [list(references)]).score)
    return Score(name, value, str(bleu.get_signature()))
