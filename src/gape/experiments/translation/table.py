"""The translation table: the paper's first column, ours beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gape.experiments.report.paper import printed
from gape.experiments.report.summary import Summary
from gape.experiments.report.table import MISSING, PAPER, Entry, Table
from gape.experiments.translation.corpus import DATASETS
from gape.experiments.translation.rows import ROWS

#: Encoding: row of the paper's table.
NAMES = {
    "sinusoidal": "Baseline",
    "gape": "GAPE",
    "rw": "RW",
    "lape-p": "LAPE-P",
    "lape-c": "LAPE-C",
    "lape-c10k": "LAPE-C10K",
    "sa": "SA",
    "spd+c": "SPD+C",
}
COLUMNS = ("tst2013 ↑", "tst2013, cased ↑", "held-out ↑", "held-out, cased ↑", "95 % interval", "p")
NOTES = (
    "BLEU of tokenised text, lower-cased as in the paper unless marked. The paper trained on 133,317 pairs of TED "
    "talks for 100 epochs; evbnews are 40,000 pairs of news, for a smaller model: compare rows, not figures.",
    "Held-out: articles of EVBNews that were not trained on, or the test text of a folder of your own.",
    "Interval and p: held-out, lower-cased; sacrebleu's paired bootstrap, 1,000 samples, against the sinusoidal run.",
    "The paper's LAPE rows were translated with random signs, its SPD+C row without the attention bias: see "
    "docs/translation.md.",
)


def translation_table(results: Iterable[Mapping[str, Any]]) -> Table:
    """A table from the lines of ``results/translation.jsonl``; what was not run is missing.

    Args:
        results: as of :func:`gape.experiments.translation.collect.read_results`.

    Example:
        >>> translation_table([]).lines[0][2][0].text
        'missing'
    """
    found = list(results)
    others = sorted({result["encoding"] for result in found} - set(ROWS))
    # The paper's figures are for English-Vietnamese; they mean nothing beside other text alone.
    published = not found or any(result["data"] in DATASETS for result in found)
    lines: list[tuple[str, str, tuple[Entry, ...]]] = []
    for encoding in (*ROWS, *others):
        name = {"none": "no encoding", "sinusoidal": "sinusoidal"}.get(encoding) or NAMES.get(encoding, encoding)
        runs = [result for result in found if result["encoding"] == encoding]
        if not runs:
            lines.append((name, "ours", (Entry(MISSING), *(Entry("") for _ in COLUMNS[1:]))))
        lines += [(name, _kind(run, found), _entries(run)) for run in sorted(runs, key=_order)]
        if encoding in NAMES and published:
            figure = Entry(f"{printed('graph-performance', NAMES[encoding], 'MT')}")
            lines.append((name, PAPER, (figure, *(Entry("") for _ in COLUMNS[1:]))))
    return Table("translation", "Translation, BLEU", COLUMNS, tuple(lines), NOTES)


def _order(result: Mapping[str, Any]) -> tuple[str, int, int]:
    return result["data"], result["steps"], result["seed"]


def _kind(result: Mapping[str, Any], all_results: Sequence[Mapping[str, Any]]) -> str:
    """Which of our runs: its text and steps, its seed where these differ, and settings that differ."""
    words = ["ours", result["data"], f"{result['steps']:,} steps"]
    all_results = [other for other in all_results if other["data"] == result["data"]]
    if len({other["seed"] for other in all_results}) > 1:
        words.append(f"seed {result['seed']}")
    for part, own in (("model", {"positions"}), ("training", {"steps", "seed"})):
        for key, value in result["settings"][part].items():
            if key not in own and any(other["settings"][part].get(key) != value for other in all_results):
                words.append(f"{key}={value}")
    return ", ".join(words)


def _entries(result: Mapping[str, Any]) -> tuple[Entry, ...]:
    entries = []
    for corpus in ("tst2013", "test"):
        for kind in ("lower-cased", "cased"):
            bleu = result["bleu"].get(corpus, {}).get(kind)
            entries.append(Entry("") if bleu is None else Entry(f"{bleu:.2f}", summary=Summary((bleu,), 2)))
    against = result.get("bootstrap", {}).get("test")
    if against is None:
        return (*entries, Entry(""), Entry(""))
    p = against["p_value"]
    interval = Entry(f"{against['low']:.2f}–{against['high']:.2f}")
    return (*entries, interval, Entry("") if p is None else Entry(f"{p:.3f}", summary=Summary((p,), 3)))
