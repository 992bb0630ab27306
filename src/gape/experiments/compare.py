"""Every encoding on the same graphs: cost, promises and what it tells apart, as JSON lines and as a table."""

from __future__ import annotations

import json
import platform
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gape._internal.files import replacing
from gape.encodings import Encoding, Pairs
from gape.encodings.registry import ADVICE, make, names, settings_of
from gape.experiments.runtime.cost import WORKLOADS, measure, others, save_workload
from gape.graph.graph import Graph
from gape.native import description


@dataclass(frozen=True)
class Promises:
    """Observed on random graphs, not proven.

    Args:
        repeatable: the same bytes in two runs and with one and two threads.
        batch_error: the largest difference between a graph alone and in a batch, relative to the largest value.
        order_error: the largest difference when the nodes are numbered otherwise, likewise.
        directed, weighted, disconnected: "yes", or the setting that helps, or "no".
    """

    repeatable: bool
    batch_error: float
    order_error: float
    directed: str
    weighted: str
    disconnected: str


def observe(name: str, graphs: int = 20, seed: int = 0) -> Promises:
    """Try an encoding with its default settings on random graphs.

    Example:
        >>> observe("degree", graphs=3)
        Promises(repeatable=True, batch_error=0.0, order_error=0.0, directed='yes', weighted='yes', disconnected='yes')
    """
    draw = np.random.default_rng(seed)
    singles = [random_graph(draw) for _ in range(graphs)]
    encoding = make(name, **_most_exact(name))
    with warnings.catch_warnings(action="ignore"):
        alone = [_values(encoding, graph) for graph in singles]
        together = _split(encoding, singles)
        order_error = max(_order_error(encoding, graph, rows, draw) for graph, rows in zip(singles, alone, strict=True))
        return Promises(
            repeatable=_repeatable(encoding, singles),
            batch_error=max(_difference(a, b) for a, b in zip(alone, together, strict=True)),
            order_error=order_error,
            directed=_works(name, Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])),
            weighted=_works(name, Graph.from_edges([(0, 1), (1, 2)], undirected=True, edge_weight=[0.5, 2.0])),
            disconnected=_works(name, Graph.from_edges([(0, 1), (2, 3)], num_nodes=5, undirected=True)),
        )


def random_graph(draw: np.random.Generator) -> Graph:
    """Draw a connected undirected graph of 8 to 24 nodes whose eigenvalues are hardly ever multiple."""
    n = int(draw.integers(8, 25))
    edges = {(int(draw.integers(v)), v) for v in range(1, n)}
    edges |= {tuple(sorted(map(int, pair))) for pair in draw.integers(n, size=(n, 2)) if pair[0] != pair[1]}  # type: ignore[misc]
    return Graph.from_edges(sorted(edges), num_nodes=n, undirected=True)


def _most_exact(name: str) -> dict[str, Any]:
    choices = next(setting.choices for setting in settings_of(name) if setting.name == "dtype")
    return {"dtype": "float64"} if "float64" in choices else {}


def _values(encoding: Encoding, graph: Graph) -> Tensor:
    found = encoding(graph)
    return (found.values if isinstance(found, Pairs) else found).to(torch.float64)


def _split(encoding: Encoding, graphs: list[Graph]) -> list[Tensor]:
    found = encoding(Graph.union(graphs))
    rows = [graph.num_nodes ** (2 if isinstance(found, Pairs) else 1) for graph in graphs]
    return list(torch.split((found.values if isinstance(found, Pairs) else found).to(torch.float64), rows))


def _repeatable(encoding: Encoding, graphs: list[Graph]) -> bool:
    threads = torch.get_num_threads()
    try:
        found = []
        for number in (1, 1, 2):
            torch.set_num_threads(number)
            found.append(torch.cat([part.flatten() for part in _split(encoding, graphs)]))
    finally:
        torch.set_num_threads(threads)
    return all(torch.equal(found[0].nan_to_num(), other.nan_to_num()) for other in found[1:])


def _order_error(encoding: Encoding, graph: Graph, rows: Tensor, draw: np.random.Generator) -> float:
    """Renumber the nodes, encode, and put the rows back in their order."""
    order = torch.from_numpy(draw.permutation(graph.num_nodes))
    place = torch.argsort(order)
    turned = _values(encoding, Graph(place[graph.edge_index], graph.num_nodes))
    n = graph.num_nodes
    if len(rows) == n:
        return _difference(rows, turned[place])
    back = turned.reshape(n, n, -1)[place][:, place].reshape(rows.shape)
    return _difference(rows, back)


def _difference(first: Tensor, second: Tensor) -> float:
    first, second = first.nan_to_num(), second.nan_to_num()
    size = float(first.abs().max()) if first.numel() else 0.0
    return float((first - second).abs().max()) / size if size > 0 else 0.0


def _works(name: str, graph: Graph) -> str:
    known = {setting.name for setting in settings_of(name)}
    tries: list[tuple[str, dict[str, Any]]] = [("yes", {})]
    if "symmetrize" in known:
        tries.append(("symmetrize", {"symmetrize": True}))
    for word, settings in tries:
        if _succeeds(lambda settings=settings: make(name, **settings)(graph)):  # type: ignore[misc]
            return word
    return "no"


def _succeeds(work: Callable[[], Any]) -> bool:
    try:
        work()
    except (ValueError, ArithmeticError):
        return False
    return True


#: Encodings that read no edges: sequences are not compared on graphs.
_SEQUENCES = ("sinusoidal", "lape-p", "lape-c", "lape-c10k", "sa-c", "rw-p")
#: The paper's variants of GAPE cost what GAPE costs.
_VARIANTS = ("gape-star", "gape-star-20", "gape-2star", "gape-2star-20", "gape-2star-max")


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
    from gape.experiments.expressiveness import PairSet, separate_by_features

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
