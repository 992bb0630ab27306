"""The comparison of all encodings: measured, kept as JSON lines, shown as a table."""

from __future__ import annotations

import json
import platform
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from gape._internal.files import replacing
from gape.encodings.registry import names
from gape.experiments.compare.cost import WORKLOADS, measure, others, save_workload
from gape.experiments.compare.promises import observe
from gape.native import description

#: Encodings that read no edges: sequences are not compared on graphs.
_SEQUENCES = ("sinusoidal", "lape-p", "lape-c", "lape-c10k", "sa-c", "rw-p")
#: The paper's variants of GAPE cost what GAPE costs.
_VARIANTS = ("gape-star", "gape-star-20", "gape-2star", "gape-2star-20", "gape-2star-max")

#: One line of advice per encoding.
ADVICE = {
    "gape": "one huge or directed graph; beside features that tell nodes apart",
    "gape-paper": "to repeat the paper",
    "gape-closed": "molecules, with a scale of its own",
    "gape-rooted": "small graphs that are hard to tell apart; beside rw",
    "rw": "molecules: the first to try, whitened",
    "rrwp": "attention over pairs of small graphs",
    "lape": "communities and long distances; mind the signs",
    "sa": "the input of spectral attention",
    "spd": "attention over pairs: distances",
    "degree": "cheap; beside any other",
    "ppr": "attention over pairs of directed graphs",
    "pprp": "molecules; needs no scaling",
    "heat": "a smooth rw with few columns",
    "resistance": "attention over pairs: many paths count as near",
    "electrostatic": "centrality at all ranges in ten columns",
    "communicability": "closed walks without a length to choose",
    "svd": "directed graphs: roles as source and target",
    "magnetic": "directed graphs: positions along flows",
    "walk-profile": "directed graphs: motifs, nothing to choose",
}


@dataclass(frozen=True)
class Row:
    """All that is known of one encoding; the fields are those of ``results/comparison.jsonl``."""

    encoding: str
    costs: dict[str, dict[str, Any]]
    promises: dict[str, Any]
    told_apart: int | None
    conditions: dict[str, Any] = field(default_factory=dict)


def compared_names() -> list[str]:
    """The encodings of graphs, one of each kind."""
    return [name for name in names() if name not in (*_SEQUENCES, *_VARIANTS)]


def compare(
    encodings: Sequence[str],
    workloads: Sequence[str] = WORKLOADS,
    *,
    data_dir: Path | None = None,
    limit_seconds: float = 60.0,
    limit_gigabytes: float = 4.0,
    share: float = 1.0,
    report: Callable[[str], None] = lambda line: None,
) -> list[Row]:
    """Measure encodings on workloads; ``share`` takes a part of the graphs, to see that it works.

    Args:
        encodings: names.
        workloads: of :data:`WORKLOADS`.
        data_dir: folder with real data; without it molecules and large graphs are generated.
        limit_seconds, limit_gigabytes: of one encoding of one workload.
        share: of the graphs of each workload.
        report: called with a line before each measurement.
    """
    for name in workloads:
        if name not in WORKLOADS:
            raise ValueError(f"there is no workload {name!r}; there are {', '.join(WORKLOADS)}")
    conditions = {
        "machine": platform.machine(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "kernels": description(),
        "limits": [limit_seconds, limit_gigabytes],
    }
    rows = []
    with TemporaryDirectory() as folder:
        saved = {name: save_workload(name, Path(folder), data_dir, share) for name in workloads}
        origins = {name: origin for name, (_, origin) in saved.items()}
        for name in encodings:
            costs = {}
            for work, (path, _) in saved.items():
                report(f"{name} on {work}")
                limits = {"limit_seconds": limit_seconds, "limit_gigabytes": limit_gigabytes}
                costs[work] = {**asdict(measure(name, path, **limits)), "others": others(name, work, path)}
            report(f"{name}: promises")
            when = {"finished": datetime.now(UTC).isoformat(timespec="seconds"), "data": origins}
            told = _told_apart(name, data_dir)
            rows.append(Row(name, costs, asdict(observe(name)), told, {**conditions, **when}))
    return rows


def _told_apart(name: str, data_dir: Path | None) -> int | None:
    """Number of BREC's 400 pairs that differ in float64 features; ``None`` without data, or if order matters."""
    from gape.data.raw_files import data_folder
    from gape.encodings import make, settings_of
    from gape.experiments.expressiveness.comparison import PairSet, separate_by_features

    folder = data_folder(data_dir)
    if folder is None or not (folder / "brec").is_dir():
        return None
    choices = next(setting.choices for setting in settings_of(name) if setting.name == "dtype")
    encoding = make(name, **({"dtype": "float64"} if "float64" in choices else {}))
    try:
        return int(separate_by_features(name, encoding, PairSet.brec(data_dir)).told_apart.sum())
    except ValueError:  # the features depend on the order of the nodes, or on the choice of eigenvectors
        return None


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write one line per encoding; those of other encodings stay."""
    kept = [row for row in read_rows(path) if row.encoding not in {new.encoding for new in rows}]
    order = {name: i for i, name in enumerate(names())}
    every = sorted([*kept, *rows], key=lambda row: order.get(row.encoding, len(order)))
    with replacing(path) as temporary:
        temporary.write_text("".join(json.dumps(asdict(row)) + "\n" for row in every), encoding="utf-8")


def read_rows(path: Path) -> list[Row]:
    """Read what :func:`write_rows` wrote; nothing if there is no file."""
    if not path.exists():
        return []
    return [Row(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def render(rows: Sequence[Row], workloads: Sequence[str] = WORKLOADS) -> str:
    """Format the rows as a Markdown table.

    >>> row = Row("rw", {"ZINC": {"seconds": 0.21, "gigabytes": 0.1, "refused": ""}}, {}, 215)
    >>> print(render([row], ["ZINC"]).splitlines()[2])
    | `rw` | 0.21 s, 0.1 GiB | ? | ? | ? | 215 | ? | molecules: the first to try, whitened |
    """
    heads = ["encoding", *workloads, "same bytes", "alone = batch", "renumbered", "BREC", "takes", "advice"]
    lines = [f"| {' | '.join(heads)} |", "|" + "---|" * len(heads)]
    for row in rows:
        cells = [f"`{row.encoding}`", *(_cost(row.costs.get(work)) for work in workloads), *_promises(row.promises)]
        cells.insert(-1, "order matters" if row.told_apart is None and row.promises else _number(row.told_apart))
        lines.append(f"| {' | '.join([*cells, ADVICE.get(row.encoding, '')])} |")
    return "\n".join(lines) + "\n"


def _cost(cost: dict[str, Any] | None) -> str:
    if cost is None:
        return "?"
    if cost["seconds"] is None:
        return f"– ({cost['refused']})"
    other = cost.get("others")
    beside = "" if other is None else f" ({other['way']} {other['seconds']:.2g} s)"
    return f"{cost['seconds']:.2g} s{beside}, {max(cost['gigabytes'], 0):.1f} GiB"


def _promises(found: dict[str, Any]) -> list[str]:
    if not found:
        return ["?"] * 4
    takes = [word if found[word] == "yes" else f"{word}: {found[word]}" for word in ("directed", "weighted")]
    takes.append("disconnected" if found["disconnected"] == "yes" else "connected only")
    errors = ["exact" if found[name] == 0 else f"{found[name]:.0e}" for name in ("batch_error", "order_error")]
    return ["yes" if found["repeatable"] else "no", *errors, ", ".join(takes)]


def _number(count: int | None) -> str:
    return "?" if count is None else str(count)
