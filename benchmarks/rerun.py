"""Train some cells with committed results again, drawn at random, and print both figures.

python benchmarks/rerun.py [--cells 3] [--seed 0] [--jobs 2] [--data-dir DATA]

On the same machine with the same versions figures repeat exactly, unless a time limit ended the training; elsewhere
they differ within the noise of the seeds.
"""

import argparse
import random
import tempfile
from pathlib import Path
from typing import Any

from gape.experiments.graph_tasks.cell import Cell, describe_metric, read_results
from gape.experiments.graph_tasks.run import RunOptions, run_cells

ROOT = Path(__file__).resolve().parent.parent


def figures(result: dict[str, Any]) -> str:
    """Describe the test metric by both rules, and why training ended."""
    return f"{describe_metric(result)}, ended by {result['stopped']}"


def main() -> None:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--cells", type=int, default=3, help="how many")
    words.add_argument("--seed", type=int, default=0, help="of the draw")
    words.add_argument("--jobs", type=int, default=2, help="cells at a time")
    words.add_argument("--data-dir", type=Path, help="folder with real data; default: the variable GAPE_DATA")
    words.add_argument("--results", type=Path, default=ROOT / "results", help="folder of committed results")
    chosen = words.parse_args()
    committed = read_results(chosen.results)
    if not 1 <= chosen.cells <= len(committed):
        words.error(f"--cells must be 1 to {len(committed)}, the results in {chosen.results}, got {chosen.cells}")
    drawn = random.Random(chosen.seed).sample(committed, chosen.cells)
    cells = [Cell(*(old[key] for key in ("task", "encoding", "seed", "overrides", "max_minutes"))) for old in drawn]
    with tempfile.TemporaryDirectory() as runs:
        again, failures = run_cells(cells, RunOptions(Path(runs), chosen.data_dir), jobs=chosen.jobs)
    named = {(new["task"], new["encoding"], new["seed"], str(new["overrides"])): new for new in again}
    for cell, old in zip(cells, drawn, strict=True):
        new = named.get((cell.task, cell.encoding, cell.seed, str(dict(cell.overrides))))
        print(f"{cell.name}\n  committed: {figures(old)}\n  again:     {figures(new) if new else 'failed'}")
    if failures:
        raise SystemExit("\n".join(failures))


if __name__ == "__main__":
    main()
