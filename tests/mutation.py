"""Change the code in small ways and count how many changes the tests notice. Run by ``make test-mutation``.

    python tests/mutation.py [--folder solvers,encodings,io,learnable] [--sample 40] [--seed 0] [--output mutants.jsonl]

Cosmic Ray lists all mutants of a folder: another operator, comparison, number or boolean, a loop without iterations, a
missing decorator. A seeded sample is tried, one at a time, in a copy of the checkout: a mutant is killed if the tests
of its folder fail or exceed their time. The score is killed / tried, printed with its 95 % interval (Wilson). The
output has one line per mutant with the test that failed; started again with the same output, it goes on behind them.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import re
import shlex
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray.commands.init import _all_work_items
from cosmic_ray.mutating import mutate_and_test
from cosmic_ray.testing import run_tests
from cosmic_ray.work_item import MutationSpec, TestOutcome, WorkerOutcome

ROOT = Path(__file__).resolve().parent.parent
# Annotations such as `Tensor | None` are no code here: every module postpones their evaluation.
ANNOTATION_OPERATOR = "BinaryOperator_BitOr"


@dataclass(frozen=True)
class Folder:
    """Code below ``src/gape`` and the tests that are about it, the fast ones first; ``without``: tests left out."""

    code: str
    tests: tuple[str, ...]
    without: str = ""


FOLDERS = {
    "solvers": Folder(
        "solvers",
        (
            "src/gape/solvers",
            "tests/solvers/test_exactness.py",
            "tests/solvers/test_special_cases.py",
            "tests/solvers",
            "tests/encodings/test_rooted.py",
        ),
    ),
    "encodings": Folder("encodings", ("src/gape/encodings", "tests/encodings"), "processes or another_process"),
    "io": Folder("io", ("src/gape/io", "tests/io", "tests/cli/test_encode.py")),
    "learnable": Folder("nn/learnable", ("src/gape/nn/learnable", "tests/nn"), "attention or graph_transformer"),
}


def mutants(folder: Folder, root: Path) -> list[MutationSpec]:
    """All mutants of a folder, in a fixed order."""
    files = sorted((root / "src/gape" / folder.code).rglob("*.py"))
    found = [item.mutations[0] for item in _all_work_items(files, {})]
    return [m for m in found if ANNOTATION_OPERATOR not in m.operator_name]


def interval(killed: int, tried: int) -> tuple[float, float]:
    """The 95 % interval of a share (Wilson, 1927)."""
    z, share = 1.96, killed / tried
    middle, width = share + z * z / (2 * tried), z * math.sqrt(share * (1 - share) / tried + z * z / (4 * tried**2))
    return (middle - width) / (1 + z * z / tried), (middle + width) / (1 + z * z / tried)


def try_folder(
    name: str, root: Path, sample: int, seed: int, timeout: float, output: Path | None
) -> tuple[int, int, int]:
    """Mutants killed and tried, and all there are."""
    folder = FOLDERS[name]
    every = mutants(folder, root)
    chosen = random.Random(seed).sample(every, min(sample, len(every)))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *folder.tests]
    command += ["-k", f"not ({folder.without})"] if folder.without else []
    outcome, report = run_tests(shlex.join(command), timeout)
    if outcome is not TestOutcome.SURVIVED:
        sys.exit(f"the tests of {name} fail or take more than {timeout:g} s without any change: {failed_test(report)}")
    recorded = [json.loads(line) for line in output.read_text().splitlines()] if output and output.exists() else []
    known = {record["mutant"]: record["killed_by"] for record in recorded}
    results = {}
    for number, mutant in enumerate(chosen, 1):
        where = f"{mutant.module_path.relative_to(root)}:{mutant.start_pos[0]}"
        key = f"{where}:{mutant.start_pos[1]} {mutant.operator_name} {mutant.occurrence}"
        if key in known:
            results[key] = known[key]
        else:
            result = mutate_and_test([mutant], shlex.join(command), timeout)
            if result.worker_outcome is not WorkerOutcome.NORMAL:
                sys.exit(f"the mutant {key} was not tried: {result.output or result.worker_outcome}")
            results[key] = None if result.test_outcome is TestOutcome.SURVIVED else failed_test(result.output)
            if output:
                with output.open("a") as file:
                    file.write(json.dumps({"mutant": key, "killed_by": results[key], "diff": result.diff}) + "\n")
        killed_by = results[key]
        print(
            f"{name} {number}/{len(chosen)} {f'killed by {killed_by}' if killed_by else 'SURVIVED'} {where}", flush=True
        )
    return sum(killed_by is not None for killed_by in results.values()), len(results), len(every)


def failed_test(output: str) -> str:
    """The first test that failed, or why none ran."""
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE)
    return found[1] if found else output.strip().splitlines()[-1] if output.strip() else "no output"


def left_out(folder: str, names: list[str]) -> set[str]:
    """What tests do not need of a folder; the trainings, in ``runs``, are only there at the root."""
    at_root = {".git", ".venv", "runs", "dist"} if Path(folder) == ROOT else set()
    return {name for name in names if name in at_root or name == "__pycache__" or name.endswith("_cache")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", default=",".join(FOLDERS))
    parser.add_argument("--sample", type=int, default=40, help="mutants per folder")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--timeout", type=float, default=900, help="seconds per mutant; more count as killed")
    parser.add_argument("--output", type=Path, help="one line per mutant, as JSON; what it has is not tried again")
    args = parser.parse_args()
    unknown = sorted(set(args.folder.split(",")) - set(FOLDERS))
    if unknown:
        parser.error(f"there is no folder {unknown[0]!r}; choose from {', '.join(FOLDERS)}")
    if args.output:
        args.output = args.output.resolve()
    lines = []
    with tempfile.TemporaryDirectory(prefix="gape-mutation-") as work:
        root = Path(work).resolve() / "gape"
        shutil.copytree(ROOT, root, ignore=left_out)
        os.chdir(root)
        os.environ |= {"PYTHONPATH": str(root / "src"), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
        for name in args.folder.split(","):
            killed, tried, every = try_folder(name, root, args.sample, args.seed, args.timeout, args.output)
            low, high = interval(killed, tried)
            lines.append(
                f"{name}: {killed} of {tried} killed, {killed / tried:.0%} ({low:.0%} to {high:.0%}); {every:,} in all"
            )
    print("\n".join(lines))


if __name__ == "__main__":
    main()
