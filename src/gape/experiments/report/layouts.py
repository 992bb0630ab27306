"""Rows and columns of the tables of graph tasks: the paper's tables, and ours on other questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from gape._internal.validation import did_you_mean
from gape.experiments.graph_tasks.protocol import TASKS
from gape.experiments.graph_tasks.registry import ROWS, find_row
from gape.experiments.report.numbers import paper_results

#: Tables of other things than graph tasks.
OTHER_TABLES = ("graph-runtime", "translation", "expressiveness")


@dataclass(frozen=True)
class TaskColumn:
    """A column: a task, with some settings changed."""

    title: str
    task: str
    overrides: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class EncodingRow:
    """A row: an encoding, with some settings changed.

    Args:
        title: in the table.
        encoding: its name.
        overrides: settings that differ from the protocol.
        in_paper: name of the row in the paper, if it is there.
        only: tasks, or titles of columns, that the row is for; all if empty.
    """

    title: str
    encoding: str
    overrides: Mapping[str, str] = field(default_factory=dict)
    in_paper: str | None = None
    only: tuple[str, ...] = ()

    def applies_to(self, column: TaskColumn) -> bool:
        """Return True if the row has figures in this column."""
        return not self.only or column.task in self.only or column.title in self.only


@dataclass(frozen=True)
class Layout:
    """The rows and columns of a table; ``in_paper`` if it is a table of the paper."""

    title: str
    rows: tuple[EncodingRow, ...]
    columns: tuple[TaskColumn, ...]
    in_paper: bool = False


def layout(name: str, tasks: Sequence[str] | None = None, encodings: Sequence[str] | None = None) -> Layout:
    """Return the rows and columns of a table, or some of them.

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
        tables = [*table_names(), *OTHER_TABLES]
        raise ValueError(f"there is no table {name!r}; there are {', '.join(tables)}{did_you_mean(name, tables)}")
    whole = _TABLES[name]
    columns = whole.columns
    if tasks is not None:
        known = _task_columns(*tasks) if whole.in_paper else whole.columns
        columns = tuple(column for column in known if column.task in tasks)
        if absent := set(tasks) - {column.task for column in columns}:
            own = dict.fromkeys(column.task for column in whole.columns)
            raise ValueError(f"table {name!r} has no task {', '.join(sorted(absent))}; it has {', '.join(own)}")
    rows = whole.rows if encodings is None else _select_rows(name, whole.rows, encodings)
    return Layout(whole.title, rows, columns, whole.in_paper)


def table_names() -> list[str]:
    """Return the names of the tables of graph tasks."""
    return list(_TABLES)


def _select_rows(name: str, rows: tuple[EncodingRow, ...], encodings: Sequence[str]) -> tuple[EncodingRow, ...]:
    own = dict.fromkeys(row.encoding for row in rows)
    others = [encoding for encoding in dict.fromkeys(encodings) if encoding not in own]
    if others and name != "graph-performance":
        raise ValueError(f"table {name!r} has no encoding {', '.join(others)}; it has {', '.join(own)}")
    return tuple(row for row in rows if row.encoding in encodings) + _encoding_rows(*others)


def _task_columns(*tasks: str) -> tuple[TaskColumn, ...]:
    return tuple(TaskColumn(TASKS[task].title, task) for task in tasks)


def _encoding_rows(*encodings: str) -> tuple[EncodingRow, ...]:
    return tuple(EncodingRow(find_row(name).title, name) for name in encodings)


def _paper_table(name: str, title: str, rows: tuple[EncodingRow, ...]) -> Layout:
    titles = {column for row in paper_results()[f"table:{name}"]["rows"].values() for column in row}
    tasks = [task for task, protocol in TASKS.items() if protocol.title in titles]
    return Layout(f"{title}: {_FIGURES}", rows, _task_columns(*tasks), in_paper=True)


_FIGURES = "test figures, mean ± standard deviation over seeds"
_RELATIVE = {"encoding.damping": "0.8", "encoding.relative": "true"}
_WHITENED = {"encoding.learn": "false", "encoding.scaling": "whitened"}
_WHITE_FLOAT64 = {"encoding.dtype": "float64", "scaling": "whitened"}
_SUMMED = {"encoding.length": "none", "encoding.states": "80", "encoding.damping": "0.9"}
_WITHOUT_TYPES = ("csl", "cycles", "cycles-v")
_SHORT_SCHEDULE = {"patience": "3", "min_lr": "2e-05"}
_CSL_RELEASED = TaskColumn("CSL, released equation", "csl", {"encoding.equation": "released"})

_TABLES: Mapping[str, Layout] = {
    "graph-performance": _paper_table(
        "graph-performance", "Graph tasks", tuple(EncodingRow(row.title, row.name, in_paper=row.title) for row in ROWS)
    ),
    "rw-ppr-graph": _paper_table(
        "rw-ppr-graph",
        "RW and PPRP",
        (EncodingRow("RW", "rw", in_paper="RW"), EncodingRow("PPRP", "pprp", in_paper="PPRP")),
    ),
    "k-study": _paper_table(
        "k-study",
        "GAPE with k states",
        tuple(
            EncodingRow(f"k = {k}", "gape", {"encoding.states": k}, in_paper=k)
            for k in paper_results()["table:k-study"]["rows"]
        ),
    ),
    "learned": Layout(
        f"Learned automata beside fixed ones: {_FIGURES}",
        (
            *_encoding_rows("none", "rw", "gape"),
            *_encoding_rows("gape-learned-node", "gape-learned-closed", "gape-learned-closed-node"),
            EncodingRow("learned, typed closed + RW", "gape-learned-typed", only=("zinc",)),
            EncodingRow(
                "learned, typed closed + whitened RW", "gape-learned-typed", {"scaling": "whitened"}, only=("zinc",)
            ),
            EncodingRow("closed, whitened, not learned", "gape-learned-closed", _WHITENED, only=_WITHOUT_TYPES),
        ),
        _task_columns("zinc", "csl", "cycles", "cycles-v"),
    ),
    "ablation": Layout(
        f"What helps closed runs: {_FIGURES}",
        (
            EncodingRow("learned, closed, lengths apart, scaled", "gape-learned-closed"),
            EncodingRow("not learned", "gape-learned-closed", {"encoding.learn": "false"}),
            EncodingRow("not learned, whitened", "gape-learned-closed", _WHITENED),
            EncodingRow("not scaled", "gape-learned-closed", {"encoding.scaling": "none"}),
            EncodingRow("lengths summed (k = 80, γ = 0.9/ρ(A))", "gape-learned-closed", _SUMMED),
            EncodingRow("not closed: runs into a node", "gape-learned-closed", {"encoding.readout": "node"}),
            EncodingRow("RW of 20 steps", "rw", {"encoding.length": "20"}),
        ),
        _task_columns("cycles-v"),
    ),
    "ablation-typed": Layout(
        f"What helps typed runs: {_FIGURES}",
        (
            EncodingRow("learned, typed, closed, beside whitened RW", "gape-learned-typed", {"scaling": "whitened"}),
            EncodingRow("not learned", "gape-learned-typed", {"scaling": "whitened", "encoding.learn": "false"}),
            EncodingRow(
                "one μ for all", "gape-learned-typed", {"scaling": "whitened", "encoding.transition_by": "none"}
            ),
            EncodingRow("RW not whitened", "gape-learned-typed"),
            EncodingRow("without RW", "gape-learned-typed-alone"),
            EncodingRow("RW alone", "rw"),
            EncodingRow("whitened RW alone", "rw", {"scaling": "whitened"}),
            EncodingRow("scaled RW alone", "rw", {"scaling": "fixed"}),
            EncodingRow("learned, typed, closed, beside scaled RW", "gape-learned-typed", {"scaling": "fixed"}),
        ),
        (TaskColumn("ZINC, short schedule", "zinc", _SHORT_SCHEDULE),),
    ),
    "scaling": Layout(
        f"What scaling the features by the training set adds: {_FIGURES}",
        (
            *_encoding_rows("rw"),
            EncodingRow("RW, 20 steps", "rw", {"encoding.length": "20"}),
            EncodingRow("RW, 20 steps, scaled", "rw", {"encoding.length": "20", "scaling": "fixed"}),
            EncodingRow("RW, 20 steps, whitened", "rw", {"encoding.length": "20", "scaling": "whitened"}),
            *_encoding_rows("gape"),
            EncodingRow("GAPE in float64, whitened", "gape", _WHITE_FLOAT64),
            EncodingRow("closed, whitened, not learned", "gape-learned-closed", _WHITENED),
        ),
        _task_columns("zinc", "csl", "cycles", "cycles-v"),
    ),
    "damping": Layout(
        f"GAPE by damping γ: {_FIGURES}",
        (
            EncodingRow("γ = 0.02", "gape"),
            *(EncodingRow(f"γ = {damping}", "gape", {"encoding.damping": damping}) for damping in ("0.1", "0.25")),
            EncodingRow("γ = 1", "gape", {"encoding.damping": "1.0"}, only=("cycles-v",)),
            EncodingRow("γ = 0.8/ρ(A)", "gape", _RELATIVE),
        ),
        _task_columns("zinc", "cycles-v"),
    ),
    "directed": Layout(
        f"Is there a directed 4-cycle? {_FIGURES}",
        (
            *_encoding_rows("none", "spd", "rw", "gape"),
            EncodingRow("GAPE, γ = 0.8/ρ(A)", "gape", _RELATIVE),
        ),
        (
            TaskColumn("directed", "directed-cycles"),
            TaskColumn("symmetrised", "directed-cycles", {"data.symmetrized": "true"}),
        ),
    ),
    "rooted": Layout(
        f"Rooted automata beside random walks, whitened: {_FIGURES}",
        (
            EncodingRow("RW", "rw", {"scaling": "whitened"}),
            EncodingRow("RW, each feature scaled", "rw", {"scaling": "fixed"}),
            EncodingRow("RW copied to 68 features", "rw", {"scaling": "whitened", "width": "68"}),
            EncodingRow("PPRP", "pprp", {"scaling": "whitened"}),
            EncodingRow("closed, learned", "gape-learned-closed"),
            EncodingRow("closed, not learned", "gape-learned-closed", _WHITENED),
            EncodingRow("pair bias + RW", "gape-learned-pair-rw", {"scaling": "whitened"}),
            EncodingRow("rooted", "gape-rooted", _WHITE_FLOAT64),
            EncodingRow("RW + rooted", "rw+gape-rooted", _WHITE_FLOAT64),
        ),
        (TaskColumn("ZINC, short schedule", "zinc", _SHORT_SCHEDULE), *_task_columns("zinc")),
    ),
    "pairs": Layout(
        f"Pair runs as attention bias between neighbours: {_FIGURES}",
        (
            *_encoding_rows("none", "gape-learned-pair"),
            EncodingRow("RW, 20 steps", "rw", {"encoding.length": "20"}),
            *_encoding_rows("gape-learned-pair-rw"),
        ),
        _task_columns("csl", "cycles-v"),
    ),
    "typed": Layout(
        f"Does a closed walk spell a word of edge types? {_FIGURES}",
        (
            *_encoding_rows("none", "rw", "lape", "gape"),
            EncodingRow("runs into a node, typed", "gape-learned-edge-typed", {"encoding.readout": "node"}),
            EncodingRow("closed runs, not typed", "gape-learned-closed"),
            EncodingRow("closed runs, typed, one state", "gape-learned-edge-typed", {"encoding.states": "1"}),
            EncodingRow("closed runs, typed", "gape-learned-edge-typed"),
            EncodingRow("closed runs, typed, not learned", "gape-learned-edge-typed", {"encoding.learn": "false"}),
        ),
        (TaskColumn("TYPED-WALKS", "typed-walks", _SHORT_SCHEDULE),),
    ),
    "diamonds": Layout(
        f"Are there two directed paths of two steps between the same nodes? {_FIGURES}",
        (
            *_encoding_rows("none", "spd", "rw", "gape"),
            EncodingRow("closed runs, not typed", "gape-learned-closed"),
            EncodingRow("closed runs, typed by direction", "gape-learned-edge-typed", only=("both directions",)),
        ),
        (
            TaskColumn("directed", "diamonds", _SHORT_SCHEDULE),
            TaskColumn("both directions", "diamonds", {**_SHORT_SCHEDULE, "data.edges": "both"}),
        ),
    ),
    "sizes": Layout(
        f"CYCLES-V by variant: {_FIGURES}",
        (
            *_encoding_rows("none"),
            EncodingRow("Baseline, LayerNorm", "none", {"norm": "layer"}),
            *_encoding_rows("lape", "rw", "spd", "pprp", "gape"),
            EncodingRow("GAPE, γ = 1", "gape", {"encoding.damping": "1.0"}),
            *_encoding_rows("gape-star", "gape-star-20", "gape-2star", "gape-2star-20", "gape-2star-max"),
        ),
        (
            *_task_columns("cycles-v"),
            *(
                TaskColumn(f"CYCLES-V {variant}", "cycles-v", {"data.variant": variant})
                for variant in ("released", "matched", "matched-released")
            ),
        ),
    ),
    "splits": Layout(
        f"PLANAR with disjoint parts, and with parts that overlap as in the authors' loader: {_FIGURES}",
        _encoding_rows("none", "rw", "gape"),
        (*_task_columns("planar"), TaskColumn("PLANAR reshuffled", "planar", {"data.splits": "reshuffled"})),
    ),
    "node-order": Layout(
        f"CSL by order of the nodes and by equation: {_FIGURES}",
        (
            EncodingRow("GAPE", "gape", only=("CSL", _CSL_RELEASED.title)),
            *_encoding_rows("gape-star-20", "gape-2star-20", "gape-2star-max"),
        ),
        (
            *_task_columns("csl"),
            TaskColumn("CSL in the published order", "csl", {"data.order": "published"}),
            _CSL_RELEASED,
        ),
    ),
}
