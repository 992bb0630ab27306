"""The paper's runtime table: seconds to encode a data set with k = 20, ours measured on this machine."""

from __future__ import annotations

import json
import platform
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from gape.atomic import replacing
from gape.bench.paper import printed
from gape.bench.protocol import TASKS
from gape.bench.rows import find
from gape.bench.summary import Summary
from gape.bench.tables import MISSING, PAPER, Entry, Table

K = 20
REPEATS = 4
_ROWS = ("lape", "rw", "gape")
_TASKS = ("zinc", "cycles", "pattern")
# The paper's sets: 11.2 thousand graphs of CYCLES, 12 thousand of PATTERN (here all 14 thousand).
FILE = "graph-runtime.jsonl"


def measure_runtimes(
    results: Path, data_dir: Path | None = None, tasks: tuple[str, ...] = _TASKS
) -> list[dict[str, Any]]:
    """Time LAPE, RW and GAPE on whole data sets, from collated index tensors to a float32 tensor, four times each.

    Sets whose data is not there are left out and stay missing.
    """
    from rich.console import Console

    from gape import data, encodings

    console, lines = Console(stderr=True), []
    for task in tasks:
        try:
            dataset = data.load(task, data_dir)
        except FileNotFoundError as error:
            console.print(f"{task}: left out, {error}", markup=False, highlight=False)
            continue
        batch = dataset.batch()
        for row in _ROWS:
            encoding = encodings.make(row, **{str(find(row).width): K})
            seconds = []
            with console.status(f"{task}: timing {row}"):
                for _ in range(REPEATS):
                    started = time.perf_counter()
                    encoding(batch)
                    seconds.append(round(time.perf_counter() - started, 4))
            lines.append(
                {
                    "runtime": task,
                    "encoding": row,
                    "k": K,
                    "seconds": seconds,
                    "graphs": len(dataset),
                    "nodes": int(dataset.node_counts.sum()),
                    "data": dataset.provenance,
                    "threads": torch.get_num_threads(),
                    "machine": platform.machine(),
                    "torch": torch.__version__,
                    "finished": datetime.now(UTC).isoformat(timespec="seconds"),
                }
            )
    results.mkdir(parents=True, exist_ok=True)
    kept = [old for old in _read(results) if old["runtime"] not in {line["runtime"] for line in lines}]
    with replacing(results / FILE) as temporary:
        temporary.write_text("".join(json.dumps(line) + "\n" for line in [*kept, *lines]), encoding="utf-8")
    return lines


def runtime_table(results: Path) -> Table:
    """The table from what was measured."""
    found = {(line["encoding"], line["runtime"]): line for line in _read(results)}
    lines, notes = [], []
    for row in _ROWS:
        title, measured = find(row).title, [found.get((row, task)) for task in _TASKS]
        entries = (Entry(MISSING) if line is None else _entry(line["seconds"]) for line in measured)
        lines.append((title, "ours", tuple(entries)))
        paper = (printed("graph-runtime", title, TASKS[task].title) for task in _TASKS)
        lines.append((title, PAPER, tuple(Entry(f"{value:.2f}") for value in paper)))
    notes.append(
        "Mean ± standard deviation of four runs. Paper: 8-core Ryzen 7 3700X; another machine, so compare rows."
    )
    for task in _TASKS:
        if (line := found.get((_ROWS[0], task))) is not None:
            notes.append(f"{TASKS[task].title}: {line['graphs']:,} graphs, {line['data']}, {line['threads']} threads.")
    columns = tuple(f"{TASKS[task].title} ↓" for task in _TASKS)
    return Table("graph-runtime", f"Seconds to encode a data set, k = {K}", columns, tuple(lines), tuple(notes))


def _entry(seconds: list[float]) -> Entry:
    summary = Summary(tuple(seconds), 3)
    return Entry(str(summary), summary=summary)


def _read(results: Path) -> list[dict[str, Any]]:
    path = results / FILE
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
