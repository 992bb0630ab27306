"""The paper's runtime table: seconds to encode a data set with k = 20, ours measured on this machine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gape.atomic import replacing
from gape.bench.rows import find
from gape.bench.runtime.measurement import measure
from gape.bench.runtime.workloads import SIZES
from gape.bench.tables.paper import printed
from gape.bench.tables.summary import Summary
from gape.bench.tables.table import MISSING, PAPER, Entry, Table

K = 20
_ROWS = ("lape", "rw", "gape")
FILE = "graph-runtime.jsonl"


def measure_runtimes(
    results: Path, data_dir: Path | None = None, *, quick: bool = False, workloads: Sequence[str] = tuple(SIZES)
) -> list[dict[str, Any]]:
    """What ``gape runtime`` measures, kept: a line for each workload and encoding."""
    lines: list[dict[str, Any]] = []
    for timing, circumstances in measure(data_dir, quick, workloads=workloads):
        line = {("runtime" if name == "workload" else name): value for name, value in vars(timing).items()}
        lines.append({**line, "seconds": [round(run, 4) for run in timing.seconds], **circumstances})
    results.mkdir(parents=True, exist_ok=True)
    kept = [old for old in _read(results) if old["runtime"] not in workloads]
    with replacing(results / FILE) as temporary:
        temporary.write_text("".join(json.dumps(line) + "\n" for line in [*kept, *lines]), encoding="utf-8")
    return lines


def runtime_table(results: Path) -> Table:
    """The table from what was measured."""
    found = {(line["encoding"], line["runtime"]): line for line in _read(results) if line["k"] == K}
    lines: list[tuple[str, str, tuple[Entry, ...]]] = []
    for row in _ROWS:
        title, measured = find(row).title, [found.get((row, name)) for name in SIZES]
        lines.append((title, "ours", tuple(_entry(line) for line in measured)))
        paper = (printed("graph-runtime", title, name) for name in SIZES)
        lines.append((title, PAPER, tuple(Entry(f"{value:.2f}") for value in paper)))
    notes = [
        "Mean ± standard deviation of the runs, [n]: how many where not four. Paper: 8-core Ryzen 7 3700X; another "
        "machine, so compare rows."
    ]
    for name in SIZES:
        if (line := found.get((_ROWS[0], name))) is not None:
            notes.append(f"{name}: {line['graphs']:,} graphs, {line['data']}, {line['threads']} threads.")
    columns = tuple(f"{name} ↓" for name in SIZES)
    return Table("graph-runtime", f"Seconds to encode a data set, k = {K}", columns, tuple(lines), tuple(notes))


def _entry(line: dict[str, Any] | None) -> Entry:
    if line is None:
        return Entry(MISSING)
    summary = Summary(tuple(line["seconds"]), 3)
    return Entry(str(summary), summary=summary)


def _read(results: Path) -> list[dict[str, Any]]:
    path = results / FILE
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
