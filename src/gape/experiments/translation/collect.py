"""Results of translation runs, compared and gathered into one small file that is kept with the code."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gape._internal.files import file_lock, replacing
from gape.experiments.translation.run_folder import RunFolder
from gape.experiments.translation.scoring import compare

Result = dict[str, Any]
BASELINE = "sinusoidal"
_NEEDED = ("encoding", "data", "steps", "seed", "bleu", "settings")


def collect(runs: Path, results: Path) -> list[Result]:
    """Read the results of all runs, compare each with the sinusoidal run of the same settings, and write them.

    Runs with the same settings but for the encoding make a group. Lines already in ``results`` whose runs are not
    there any more stay as they are.

    Args:
        runs: folder with a run in each of its folders.
        results: file of one line a run.
    """
    groups: dict[str, dict[str, tuple[RunFolder, Result]]] = defaultdict(dict)
    for path in sorted(runs.glob("*/result.json")):
        folder = RunFolder(path.parent)
        result = folder.result()
        if result is not None:
            groups[_group(result)][result["encoding"]] = folder, result
    # Slow, so before anyone else has to wait.
    comparisons = {key: _compare(group) if BASELINE in group else {} for key, group in groups.items()}
    results.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(results.with_name(".lock")):
        found = {_identity(result): result for result in read_results(results)}
        for key, group in groups.items():
            for encoding, (_, result) in group.items():
                known = found.get(_identity(result), {})
                # Where the baseline's translations are not at hand, what was found with them still holds.
                kept = known.get("bootstrap", {}) if known.get("bleu") == result["bleu"] else {}
                found[_identity(result)] = {**result, "bootstrap": comparisons[key].get(encoding, kept)}
        lines = [found[key] for key in sorted(found)]
        with replacing(results) as temporary:
            text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
            temporary.write_text(text, encoding="utf-8")
    return lines


def read_results(path: Path) -> list[Result]:
    """The lines of a results file; none if there is no file."""
    if not path.is_file():
        return []
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            result = json.loads(line)
            if missing := [key for key in _NEEDED if key not in result]:
                raise ValueError(f"it has no {', '.join(missing)}")
        except (ValueError, TypeError) as error:
            raise ValueError(f"{path}, line {number}: not a result: {error}; remove the line") from error
        found.append(result)
    return found


def _compare(group: dict[str, tuple[RunFolder, Result]]) -> dict[str, dict[str, Any]]:
    """For each encoding and test text, its interval and the p-value of no difference from the baseline."""
    out: dict[str, dict[str, Any]] = {encoding: {} for encoding in group}
    folder, result = group[BASELINE]
    for name in result["bleu"]:
        references = folder.read_references(name)
        systems = {
            encoding: run.read_translations(name)
            for encoding, (run, other) in group.items()
            if name in other["bleu"] and run.read_references(name) == references
        }
        for encoding, found in compare(systems, references, baseline=BASELINE).items():
            out[encoding][name] = asdict(found)
    return out


def _group(result: Result) -> str:
    """Everything but the encoding."""
    settings = result["settings"]
    model = {key: value for key, value in settings["model"].items() if key != "positions"}
    return json.dumps([settings["data"], result.get("text"), model, settings["training"]], sort_keys=True)


def _identity(result: Result) -> tuple[int, str, str]:
    return result["steps"], result["encoding"], _group(result)
