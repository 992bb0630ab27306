"""Which rows and columns a table of figures has: the paper's tables, and ours on questions that it leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gape.experiments.graph_tasks.protocol import TASKS
from gape.experiments.graph_tasks.registry import ROWS, find_row
from gape.experiments.report.paper import paper_results


@dataclass(frozen=True)
class ColumnOf:
    """Runs on a task, with some settings changed."""

    title: str
    task: str
    overrides: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RowOf:
    """Runs with an encoding and some of its settings changed.

    ``in_paper`` is the row's name there; ``only`` are the tasks that it is for, all if there are none.
    """

    title: str
    encoding: str
    overrides: Mapping[str, str] = field(default_factory=dict)
    in_paper: str | None = None
    only: tuple[str, ...] = ()

    def stands_in(self, column: ColumnOf) -> bool:
        """Whether there is anything to run for this row and that column."""
        return not self.only or column.task in self.only


@dataclass(frozen=True)
class Layout:
    """The rows and columns of a table; ``of_paper`` if the paper has it, too."""

    title: str
    rows: tuple[RowOf, ...]
    columns: tuple[ColumnOf, ...]
    of_paper: bool = False


def layout(name: str, tasks: Sequence[str] | None = None, encodings: Sequence[str] | None = None) -> Layout:
    """The rows and columns of a table, or some of them.

    Args:
        name: of the table.
        tasks: the columns; for a table of the paper any tasks, for ours some of its own.
        encodings: the rows; for the main table any encodings, for others some of its own.

    Example:
        >>> [column.title for column in layout("rw-ppr-graph").columns]
        ['ZINC', 'CYCLES']
        >>> [row.title for row in layout("directed", encodings=["none", "rw"]).rows]
        ['Baseline', 'RW']
        >>> layout("speed")
        Traceback (most recent call last):
        ValueError: there is no table 'speed'; there are graph-performance, rw-ppr-graph, k-study, learned, ...
    """
    if name not in _TABLES:
        raise ValueError(
            f"there is no table {name!r}; there are {', '.join([*names(), 'graph-runtime', 'translation'])}"
        )
    whole = _TABLES[name]
    columns = whole.columns
    if tasks is not None:
        known = _plain(*tasks) if whole.of_paper else whole.columns
        columns = tuple(column for column in known if column.task in tasks)
        if absent := set(tasks) - {column.task for column in columns}:
            own = dict.fromkeys(column.task for column in whole.columns)
            raise ValueError(f"table {name!r} has no task {', '.join(sorted(absent))}; it has {', '.join(own)}")
    rows = whole.rows if encodings is None else _chosen(name, whole.rows, encodings)
    return Layout(whole.title, rows, columns, whole.of_paper)


def names() -> list[str]:
    """The tables of figures there are."""
    return list(_TABLES)


def _chosen(name: str, rows: tuple[RowOf, ...], encodings: Sequence[str]) -> tuple[RowOf, ...]:
    own = dict.fromkeys(row.encoding for row in rows)
    others = [encoding for encoding in dict.fromkeys(encodings) if encoding not in own]
    if others and name != "graph-performance":
        raise ValueError(f"table {name!r} has no encoding {', '.join(others)}; it has {', '.join(own)}")
    return tuple(row for row in rows if row.encoding in encodings) + _as_in_comparison(*others)


def _plain(*tasks: str) -> tuple[ColumnOf, ...]:
    return tuple(ColumnOf(TASKS[task].title, task) for task in tasks)


def _as_in_comparison(*encodings: str) -> tuple[RowOf, ...]:
    return tuple(RowOf(find_row(name).title, name) for name in encodings)


def _of_paper(name: str, title: str, rows: tuple[RowOf, ...]) -> Layout:
    titles = {column for row in paper_results()[f"table:{name}"]["rows"].values() for column in row}
    tasks = [task for task, protocol in TASKS.items() if protocol.title in titles]
    return Layout(f"{title}: {_WHAT}", rows, _plain(*tasks), of_paper=True)


_WHAT = "test figures, mean ± standard deviation over seeds"
_RELATIVE = {"encoding.damping": "0.8", "encoding.relative": "true"}
_WHITENED = {"encoding.learn": "false", "encoding.scaling": "whitened"}
_SUMMED = {"encoding.length": "none", "encoding.states": "80", "encoding.damping": "0.9"}
_WITHOUT_TYPES = ("csl", "cycles", "cycles-v")
_QUICK = {"patience": "3", "min_lr": "2e-05"}

_TABLES: Mapping[str, Layout] = {
    "graph-performance": _of_paper(
        "graph-performance", "Graph tasks", tuple(RowOf(row.title, row.name, in_paper=row.title) for row in ROWS)
    ),
    "rw-ppr-graph": _of_paper(
        "rw-ppr-graph", "RW and PPRP", (RowOf("RW", "rw", in_paper="RW"), RowOf("PPRP", "pprp", in_paper="PPRP"))
    ),
    "k-study": _of_paper(
        "k-study",
        "GAPE with k states",
        tuple(
            RowOf(f"k = {k}", "gape", {"encoding.states": k}, in_paper=k)
            for k in paper_results()["table:k-study"]["rows"]
        ),
    ),
    "learned": Layout(
        f"Learned automata beside fixed ones: {_WHAT}",
        (
            *_as_in_comparison("none", "rw", "gape"),
            *_as_in_comparison("gape-learned-node", "gape-learned-closed", "gape-learned-closed-node"),
            RowOf("learned, typed closed + RW", "gape-learned-typed", only=("zinc",)),
            RowOf("learned, typed closed + whitened RW", "gape-learned-typed", {"scaling": "whitened"}, only=("zinc",)),
            RowOf("closed, whitened, not learned", "gape-learned-closed", _WHITENED, only=_WITHOUT_TYPES),
        ),
        _plain("zinc", "csl", "cycles", "cycles-v"),
    ),
    "ablation": Layout(
        f"What helps closed runs: {_WHAT}",
        (
            RowOf("learned, closed, lengths apart, scaled", "gape-learned-closed"),
            RowOf("not learned", "gape-learned-closed", {"encoding.learn": "false"}),
            RowOf("not learned, whitened", "gape-learned-closed", _WHITENED),
            RowOf("not scaled", "gape-learned-closed", {"encoding.scaling": "none"}),
            RowOf("lengths summed (k = 80, γ = 0.9/ρ(A))", "gape-learned-closed", _SUMMED),
            RowOf("not closed: runs into a node", "gape-learned-closed", {"encoding.readout": "node"}),
            RowOf("RW of 20 steps", "rw", {"encoding.length": "20"}),
        ),
        _plain("cycles-v"),
    ),
    "ablation-typed": Layout(
        f"What helps typed runs: {_WHAT}",
        (
            RowOf("learned, typed, closed, beside whitened RW", "gape-learned-typed", {"scaling": "whitened"}),
            RowOf("not learned", "gape-learned-typed", {"scaling": "whitened", "encoding.learn": "false"}),
            RowOf("one μ for all", "gape-learned-typed", {"scaling": "whitened", "encoding.transition_by": "none"}),
            RowOf("RW not whitened", "gape-learned-typed"),
            RowOf("without RW", "gape-learned-typed-alone"),
            RowOf("RW alone", "rw"),
            RowOf("whitened RW alone", "rw", {"scaling": "whitened"}),
            RowOf("scaled RW alone", "rw", {"scaling": "fixed"}),
            RowOf("learned, typed, closed, beside scaled RW", "gape-learned-typed", {"scaling": "fixed"}),
        ),
        (ColumnOf("ZINC, short schedule", "zinc", _QUICK),),
    ),
    "scaling": Layout(
        f"What scaling the features by the training set adds: {_WHAT}",
        (
            *_as_in_comparison("rw"),
            RowOf("RW, 20 steps", "rw", {"encoding.length": "20"}),
            RowOf("RW, 20 steps, scaled", "rw", {"encoding.length": "20", "scaling": "fixed"}),
            RowOf("RW, 20 steps, whitened", "rw", {"encoding.length": "20", "scaling": "whitened"}),
            *_as_in_comparison("gape"),
            RowOf("GAPE in float64, whitened", "gape", {"encoding.dtype": "float64", "scaling": "whitened"}),
        ),
        _plain("zinc", "csl", "cycles", "cycles-v"),
    ),
    "damping": Layout(
        f"GAPE by damping γ: {_WHAT}",
        (
            RowOf("γ = 0.02", "gape"),
            *(RowOf(f"γ = {damping}", "gape", {"encoding.damping": damping}) for damping in ("0.1", "0.25")),
            RowOf("γ = 1", "gape", {"encoding.damping": "1.0"}, only=("cycles-v",)),
            RowOf("γ = 0.8/ρ(A)", "gape", _RELATIVE),
        ),
        _plain("zinc", "cycles-v"),
    ),
    "directed": Layout(
        f"Is there a directed 4-cycle? {_WHAT}",
        (
            *_as_in_comparison("none", "spd", "rw", "gape"),
            RowOf("GAPE, γ = 0.8/ρ(A)", "gape", _RELATIVE),
        ),
        (
            ColumnOf("directed", "directed-cycles"),
            ColumnOf("symmetrised", "directed-cycles", {"data.symmetrized": "true"}),
        ),
    ),
    "sizes": Layout(
        f"CYCLES-V, clean and as released: {_WHAT}",
        (
            *_as_in_comparison("none"),
            RowOf("Baseline, LayerNorm", "none", {"norm": "layer"}),
            *_as_in_comparison("rw", "gape"),
            RowOf("GAPE, γ = 1", "gape", {"encoding.damping": "1.0"}),
        ),
        (*_plain("cycles-v"), ColumnOf("CYCLES-V as released", "cycles-v", {"data.variant": "as-released"})),
    ),
    "node-order": Layout(
        f"What the order of the nodes gives away: {_WHAT}",
        _as_in_comparison("gape-star-20", "gape-2star-20", "gape-2star-max"),
        (*_plain("csl"), ColumnOf("CSL in the published order", "csl", {"data.order": "published"})),
    ),
}
