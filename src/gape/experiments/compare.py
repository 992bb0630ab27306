"""Compare encodings on the same graphs: cost, observed properties and pairs told apart, as JSON lines and tables."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gape.encodings import Encoding, Pairs
from gape.encodings.registry import ADVICE, make, names, settings_of
from gape.experiments.runs.folder import Record, processor_name, read_lines, require_keys, update_lines
from gape.experiments.runtime.cost import WORKLOADS, measure, measure_baseline, save_workload
from gape.graph.graph import Graph
from gape.native import description

#: Encodings that read no edges: sequences are not compared on graphs.
_SEQUENCES = ("sinusoidal", "lape-p", "lape-c", "lape-c10k", "sa-c", "rw-p")
#: The paper's variants of GAPE cost what GAPE costs.
_VARIANTS = ("gape-star", "gape-star-20", "gape-2star", "gape-2star-20", "gape-2star-max")


@dataclass(frozen=True)
class ObservedProperties:
    """Properties measured on random graphs.

    Args:
        repeatable: the same bytes in two runs and with one and two threads.
        batch_error: the largest difference between a graph alone and in a batch, relative to the largest value.
        order_error: the largest difference when the nodes are numbered otherwise, likewise.
        symmetric_error: the same on graphs with symmetries, where signs and bases of eigenvectors are not determined.
        directed, weighted, disconnected: "yes", or the setting that helps, or "no".
    """

    repeatable: bool
    batch_error: float
    order_error: float
    symmetric_error: float
    directed: str
    weighted: str
    disconnected: str


def observe(name: str, graphs: int = 20, seed: int = 0) -> ObservedProperties:
    """Try an encoding with its default settings on random graphs.

    Example:
        >>> found = observe("degree", graphs=3)
        >>> found.repeatable, found.batch_error, found.order_error, found.symmetric_error, found.directed
        (True, 0.0, 0.0, 0.0, 'yes')
    """
    draw = np.random.default_rng(seed)
    singles = [random_graph(draw) for _ in range(graphs)]
    encoding = make(name, **_most_exact(name))
    with warnings.catch_warnings(action="ignore"):
        alone = [_values(encoding, graph) for graph in singles]
        together = _split(encoding, singles)
        return ObservedProperties(
            repeatable=_repeatable(encoding, singles),
            batch_error=max(_difference(a, b) for a, b in zip(alone, together, strict=True)),
            order_error=max(_order_error(encoding, graph, draw) for graph in singles),
            symmetric_error=max(_order_error(encoding, _with_twins(graph), draw) for graph in singles),
            directed=_works(name, Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)])),
            weighted=_works(name, Graph.from_edges([(0, 1), (1, 2)], undirected=True, edge_weight=[0.5, 2.0])),
            disconnected=_works(name, Graph.from_edges([(0, 1), (2, 3)], num_nodes=5, undirected=True)),
        )


def random_graph(draw: np.random.Generator) -> Graph:
    """Draw a connected undirected graph of 8 to 24 nodes without symmetries."""
    while True:
        n = int(draw.integers(8, 25))
        edges = {(int(draw.integers(v)), v) for v in range(1, n)}
        edges |= {tuple(sorted(map(int, pair))) for pair in draw.integers(n, size=(n, 2)) if pair[0] != pair[1]}  # type: ignore[misc]
        graph = Graph.from_edges(sorted(edges), num_nodes=n, undirected=True)
        if len(set(map(tuple, _walk_counts(graph).tolist()))) == n:
            return graph


def _walk_counts(graph: Graph) -> Tensor:
    """Numbers of walks of up to n steps from each node, ``[n, n]``: nodes that a symmetry exchanges have equal rows."""
    counts = [torch.ones(graph.num_nodes, dtype=torch.int64)]
    source, target = graph.edge_index
    for _ in range(graph.num_nodes - 1):
        counts.append(torch.zeros_like(counts[-1]).index_add_(0, source, counts[-1][target]))
    return torch.stack(counts, 1)


def _with_twins(graph: Graph) -> Graph:
    """Hang two leaves on each of the first two nodes."""
    n = graph.num_nodes
    leaves = torch.tensor([[0, 0, 1, 1], [n, n + 1, n + 2, n + 3]])
    return Graph(torch.cat([graph.edge_index, leaves, leaves.flip(0)], 1), n + 4)


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


def _order_error(encoding: Encoding, graph: Graph, draw: np.random.Generator) -> float:
    """Renumber the nodes, encode, and put the rows back in their order."""
    rows = _values(encoding, graph)
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


@dataclass(frozen=True)
class Row:
    """Measurements of one encoding; the fields are those of ``results/comparison.jsonl``.

    Args:
        encoding: its name.
        costs: by workload: seconds, GiB or the reason why not, and what others take.
        promises: the fields of :class:`ObservedProperties`; empty if they were not measured.
        told_apart: pairs of BREC; ``None`` if the order of nodes matters, or without data.
        conditions: machine, versions, limits, data and time of measurement.
    """

    encoding: str
    costs: dict[str, dict[str, Any]] = field(default_factory=dict)
    promises: dict[str, Any] = field(default_factory=dict)
    told_apart: int | None = None
    conditions: dict[str, Any] = field(default_factory=dict)


def compared_names() -> list[str]:
    """List the encodings of graphs, one of each kind."""
    return [name for name in names() if name not in (*_SEQUENCES, *_VARIANTS)]


def compare(
    encodings: Sequence[str],
    workloads: Sequence[str] = WORKLOADS,
    *,
    data_dir: Path | None = None,
    limit_seconds: float = 60.0,
    limit_gigabytes: float = 4.0,
    share: float = 1.0,
    known: Sequence[Row] = (),
    again: bool = False,
    report: Callable[[str], None] = lambda line: None,
) -> Iterator[Row]:
    """Measure encodings on workloads; yield the row of an encoding whenever something was added to it.

    What needs no clock comes first, for all encodings, then the costs.

    Args:
        encodings: names.
        workloads: of :data:`WORKLOADS`.
        data_dir: folder with real data; without it molecules and large graphs are generated.
        limit_seconds, limit_gigabytes: of one encoding of one workload.
        share: of the graphs of each workload, to see that it works.
        known: rows of an earlier call; what they have is not measured again.
        again: measure the times of ``known`` again; what was refused stays.
        report: called with a line before each measurement.
    """
    for name in workloads:
        if name not in WORKLOADS:
            raise ValueError(f"there is no workload {name!r}; there are {', '.join(WORKLOADS)}")
    rows = {name: Row(name) for name in encodings} | {row.encoding: row for row in known}
    for name in encodings:
        if not rows[name].promises:
            report(f"{name}: promises")
            found = asdict(observe(name))
            rows[name] = replace(rows[name], promises=found, told_apart=_told_apart(name, data_dir))
            yield rows[name]
    conditions = {
        "processor": processor_name(),
        "torch": torch.__version__,
        "kernels": description(),
        "limits": [limit_seconds, limit_gigabytes],
    }
    limits = {"limit_seconds": limit_seconds, "limit_gigabytes": limit_gigabytes}
    with TemporaryDirectory() as folder:
        for work in workloads:
            missing = [name for name in encodings if _is_missing(rows[name].costs.get(work), again)]
            if not missing:
                continue
            path, origin = save_workload(work, Path(folder), data_dir, share)
            for name in missing:
                report(f"{name} on {work}")
                cost = {**asdict(measure(name, path, **limits)), "others": measure_baseline(name, work, path, **limits)}
                row = rows[name]
                data = {**row.conditions.get("data", {}), work: origin}
                when = {"finished": datetime.now(UTC).isoformat(timespec="seconds"), "data": data}
                rows[name] = replace(row, costs={**row.costs, work: cost}, conditions={**conditions, **when})
                yield rows[name]


def _is_missing(cost: dict[str, Any] | None, again: bool) -> bool:
    return cost is None or (again and cost["seconds"] is not None)


def _told_apart(name: str, data_dir: Path | None) -> int | None:
    """Number of BREC's 400 pairs that differ in float64 features; ``None`` without data, or if order matters."""
    from gape.data.raw_files import data_folder
    from gape.experiments.expressiveness import NotInvariantError, PairSet, separate_by_features

    folder = data_folder(data_dir)
    if folder is None or not (folder / "brec").is_dir():
        return None
    encoding = make(name, **_most_exact(name))
    try:
        return int(separate_by_features(name, encoding, PairSet.brec(data_dir)).told_apart.sum())
    except NotInvariantError:
        return None


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write one line per encoding; those of other encodings stay. Several processes may write to one file."""
    order = {name: i for i, name in enumerate(names())}

    def merged(records: list[Record]) -> list[Record]:
        kept = {require_keys(record, ("encoding",), path)["encoding"]: record for record in records}
        lines = kept | {row.encoding: asdict(row) for row in rows}
        return sorted(lines.values(), key=lambda line: order.get(line["encoding"], len(order)))

    update_lines(path, merged)


def read_rows(path: Path) -> list[Row]:
    """Read what :func:`write_rows` wrote; nothing if there is no file."""
    return [Row(**require_keys(record, ("encoding",), where)) for where, record in read_lines(path)]


def render(rows: Sequence[Row], part: str) -> str:
    """Format one part of the comparison, of :data:`PARTS`, as a Markdown table.

    >>> row = Row("rw", {"ZINC": {"seconds": 0.21, "gigabytes": 0.1, "refused": "", "others": None}})
    >>> print(render([row], "cost").splitlines()[2])
    | `rw` | 0.21 s, 0.1 GiB | ? | ? | ? | ? |
    """
    heads, cells = PARTS[part]
    lines = [f"| {' | '.join(['encoding', *heads])} |", "|" + "---|" * (1 + len(heads))]
    lines += [f"| {' | '.join([f'`{row.encoding}`', *cells(row)])} |" for row in rows]
    return "\n".join(lines) + "\n"


def describe_conditions(rows: Sequence[Row]) -> str:
    """Describe the graphs and the machine of the costs, in a sentence each.

    >>> describe_conditions([Row("rw", conditions={"data": {"ZINC": "real"}, "processor": "Z80", "torch": "2",
    ...     "kernels": "avx2", "limits": [60, 4]})])
    'ZINC: real. Z80, torch 2, avx2; limits 60 s and 4 GiB.'
    """
    found = [row.conditions for row in rows if row.conditions]
    if not found:
        return ""
    data = {work: origin for one in found for work, origin in one["data"].items()}
    graphs = " ".join(f"{work}: {origin}." for work, origin in data.items())
    machines = {
        f"{one['processor']}, torch {one['torch']}, {one['kernels']}; "
        f"limits {one['limits'][0]:g} s and {one['limits'][1]:g} GiB."
        for one in found
    }
    return " ".join([graphs, *sorted(machines)])


def _costs(row: Row) -> list[str]:
    return [_cost(row.costs.get(work)) for work in WORKLOADS]


def _cost(cost: dict[str, Any] | None) -> str:
    if cost is None:
        return "?"
    ours = f"– ({cost['refused']})"
    if cost["seconds"] is not None:
        ours = f"{_seconds(cost['seconds'])}, {max(cost['gigabytes'], 0):.1f} GiB"
    other = cost["others"]
    if other is None:
        return ours
    theirs = other["refused"] if other["seconds"] is None else _seconds(other["seconds"])
    return f"{ours}; {other['way']}: {theirs}"


def _seconds(time: float) -> str:
    """Format seconds with two significant digits.

    >>> _seconds(0.01234), _seconds(1.25), _seconds(123.4)
    ('0.012 s', '1.2 s', '123 s')
    """
    return f"{time:.0f} s" if time >= 10 else f"{time:.2g} s"


def _promises(row: Row) -> list[str]:
    found = row.promises
    if not found:
        return ["?"] * 8
    names = ("batch_error", "order_error", "symmetric_error")
    errors = ["same bytes" if found[name] == 0 else f"{found[name]:.0e}" for name in names]
    takes = [found[word] for word in ("directed", "weighted", "disconnected")]
    apart = "–" if row.told_apart is None else str(row.told_apart)
    return ["same bytes" if found["repeatable"] else "differ", *errors, apart, *takes]


def _choice(row: Row) -> list[str]:
    """Format the columns of the "choice" table: times on small graphs and a large one, pairs told apart, directed."""
    times = []
    for work in ("ZINC", "web"):
        cost = row.costs.get(work)
        times.append("?" if cost is None else _seconds(cost["seconds"]) if cost["seconds"] is not None else "–")
    promises = _promises(row)
    return [*times, promises[4], promises[5], ADVICE.get(row.encoding, "")]


#: Columns of the tables, and their cells; "choice" is an extract of the two others.
PARTS: dict[str, tuple[Sequence[str], Callable[[Row], list[str]]]] = {
    "cost": (WORKLOADS, _costs),
    "promises": (
        (
            *("runs, threads", "batches", "renumbered", "with symmetries"),
            *("BREC", "directed", "weighted", "disconnected", "take it for"),
        ),
        lambda row: [*_promises(row), ADVICE.get(row.encoding, "")],
    ),
    "choice": (("molecules", "large graph", "BREC", "directed", "take it for"), _choice),
}
