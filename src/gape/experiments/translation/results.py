"""Results of translation runs: collected into one file, compared with the sinusoidal run, and shown as a table."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gape.experiments.report.numbers import Summary, printed
from gape.experiments.report.table import MISSING, PAPER, Entry, Table
from gape.experiments.runs.folder import read_lines, require_keys, results_lock, write_lines
from gape.experiments.translation.corpus import DATASETS
from gape.experiments.translation.folder import TranslationFolder
from gape.experiments.translation.rows import ROWS
from gape.experiments.translation.scoring import compare

Result = dict[str, Any]
#: Encoding that the others are compared with.
BASELINE = "sinusoidal"
# Keys that every result has.
_KEYS = ("encoding", "data", "steps", "seed", "bleu", "settings")

#: Rows of the paper's table by encoding.
PAPER_ROWS = {
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


def collect(runs: Path, results: Path) -> list[Result]:
    """Read the results of all runs, compare each with the sinusoidal run of the same settings, and write them.

    Runs whose settings differ only in the encoding form a group. Lines of ``results`` without a run folder stay.

    Args:
        runs: folder of run folders.
        results: file with one line per run.
    """
    groups: dict[str, dict[str, tuple[TranslationFolder, Result]]] = defaultdict(dict)
    for path in sorted(runs.glob("*/result.json")):
        folder = TranslationFolder(path.parent)
        result = folder.result()
        if result is not None:
            groups[_group(result)][result["encoding"]] = folder, result
    # Comparisons are slow, so they come before the lock.
    comparisons = {key: _compare(group) if BASELINE in group else {} for key, group in groups.items()}
    with results_lock(results.parent):
        records = {_identity(result): result for result in read_results(results)}
        for key, group in groups.items():
            for encoding, (_, result) in group.items():
                known = records.get(_identity(result), {})
                # Without the baseline's translations, an earlier comparison of the same result still holds.
                earlier = known.get("bootstrap", {}) if known.get("bleu") == result["bleu"] else {}
                records[_identity(result)] = {**result, "bootstrap": comparisons[key].get(encoding, earlier)}
        lines = [records[key] for key in sorted(records)]
        write_lines(results, lines)
    return lines


def read_results(path: Path) -> list[Result]:
    """Read a file of results; empty if there is no file."""
    return [require_keys(record, _KEYS, where) for where, record in read_lines(path)]


def _compare(group: Mapping[str, tuple[TranslationFolder, Result]]) -> dict[str, dict[str, Any]]:
    """Compare each encoding with the baseline, per test text."""
    comparisons: dict[str, dict[str, Any]] = {encoding: {} for encoding in group}
    folder, result = group[BASELINE]
    for name in result["bleu"]:
        references = folder.read_references(name)
        systems = {
            encoding: run.read_translations(name)
            for encoding, (run, other) in group.items()
            if name in other["bleu"] and run.read_references(name) == references
        }
        for encoding, comparison in compare(systems, references, baseline=BASELINE).items():
            comparisons[encoding][name] = asdict(comparison)
    return comparisons


def _group(result: Result) -> str:
    """Serialise all settings but the encoding."""
    settings = result["settings"]
    model = {key: value for key, value in settings["model"].items() if key != "positions"}
    return json.dumps([settings["data"], result.get("text"), model, settings["training"]], sort_keys=True)


def _identity(result: Result) -> tuple[int, str, str]:
    return result["steps"], result["encoding"], _group(result)


def translation_table(results: Iterable[Mapping[str, Any]]) -> Table:
    """Build the table of ``results/translation.jsonl``, with the paper's first column; rows without a run are missing.

    Args:
        results: from :func:`read_results`.

    Example:
        >>> translation_table([]).lines[0][2][0].text
        'missing'
    """
    results = list(results)
    others = sorted({result["encoding"] for result in results} - set(ROWS))
    # The paper's figures are for English-Vietnamese, so they are not shown beside other text alone.
    show_paper = not results or any(result["data"] in DATASETS for result in results)
    blank = tuple(Entry("") for _ in COLUMNS[1:])
    lines: list[tuple[str, str, tuple[Entry, ...]]] = []
    for encoding in (*ROWS, *others):
        name = {"none": "no encoding", "sinusoidal": "sinusoidal"}.get(encoding) or PAPER_ROWS.get(encoding, encoding)
        runs = [result for result in results if result["encoding"] == encoding]
        if not runs:
            lines.append((name, "ours", (Entry(MISSING), *blank)))
        lines += [(name, _run_label(run, results), _entries(run)) for run in sorted(runs, key=_order)]
        if encoding in PAPER_ROWS and show_paper:
            figure = Entry(f"{printed('graph-performance', PAPER_ROWS[encoding], 'MT')}")
            lines.append((name, PAPER, (figure, *blank)))
    return Table("translation", "Translation, BLEU", COLUMNS, tuple(lines), NOTES)


def _order(result: Mapping[str, Any]) -> tuple[str, int, int]:
    return result["data"], result["steps"], result["seed"]


def _run_label(result: Mapping[str, Any], results: Sequence[Mapping[str, Any]]) -> str:
    """Label a run by its text and steps, and by its seed and settings where runs on the same text differ."""
    words = ["ours", result["data"], f"{result['steps']:,} steps"]
    results = [other for other in results if other["data"] == result["data"]]
    if len({other["seed"] for other in results}) > 1:
        words.append(f"seed {result['seed']}")
    for part, shown in (("model", {"positions"}), ("training", {"steps", "seed"})):
        for key, value in result["settings"][part].items():
            if key not in shown and any(other["settings"][part].get(key) != value for other in results):
                words.append(f"{key}={value}")
    return ", ".join(words)


def _entries(result: Mapping[str, Any]) -> tuple[Entry, ...]:
    entries = []
    for corpus in ("tst2013", "test"):
        for kind in ("lower-cased", "cased"):
            bleu = result["bleu"].get(corpus, {}).get(kind)
            entries.append(Entry("") if bleu is None else Entry(f"{bleu:.2f}", summary=Summary((bleu,), 2)))
    comparison = result.get("bootstrap", {}).get("test")
    if comparison is None:
        return (*entries, Entry(""), Entry(""))
    p = comparison["p_value"]
    interval = Entry(f"{comparison['low']:.2f}–{comparison['high']:.2f}")
    return (*entries, interval, Entry("") if p is None else Entry(f"{p:.3f}", summary=Summary((p,), 3)))
