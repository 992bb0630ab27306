"""Tables of graph tasks with our figures and the paper's; cells that were not run are missing."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gape.data import task_of
from gape.experiments.graph_tasks.cell import Cell, describe_data
from gape.experiments.graph_tasks.protocol import TASKS
from gape.experiments.graph_tasks.settings import current_names
from gape.experiments.report.layouts import EncodingRow, Layout, TaskColumn, layout
from gape.experiments.report.numbers import RULES, Summary, best, in_column_unit, logged, printed, summarise
from gape.experiments.runs.settings import override_key

MISSING = "missing"
#: Description of runs without overrides.
NO_OVERRIDES = "as published"
PAPER, LOGS = "paper", "authors' logs, best validation"


@dataclass(frozen=True)
class Entry:
    """One figure of a table.

    Args:
        text: as printed.
        bold: among the best of its column.
        summary: over seeds, of our figures.
        value: of the figures of others.
    """

    text: str
    bold: bool = False
    summary: Summary | None = None
    value: float | None = None

    @property
    def number(self) -> float | None:
        """The number to draw: mean or value; None if it is missing or not finite.

        >>> Entry("99.95", value=99.95).number, Entry("80.00 ± 1.41 [2]", summary=Summary((79.0, 81.0), 2)).number
        (99.95, 80.0)
        """
        found = self.value if self.summary is None else self.summary.mean
        return found if found is not None and math.isfinite(found) else None


@dataclass(frozen=True)
class Table:
    """A table: the entries of the columns for each row and kind of figure.

    Args:
        name: the paper's label.
        title: of the table.
        columns: names of the columns, with an arrow that points to better figures.
        lines: row, kind of figure ("best validation", "last epoch", "paper"), entries.
        notes: below the table.
        brief: one line per row, in Markdown, for the brief format; if None, best validation and the paper.
        remarks: below the name of each column in a plot.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    lines: tuple[tuple[str, str, tuple[Entry, ...]], ...]
    notes: tuple[str, ...]
    brief: tuple[tuple[str, tuple[str, ...]], ...] | None = None
    remarks: tuple[str, ...] = ()


def comparison(
    name: str,
    results: Iterable[Mapping[str, Any]],
    overrides: Mapping[str, Mapping[str, str]] | None = None,
    tasks: Sequence[str] | None = None,
    encodings: Sequence[str] | None = None,
) -> Table:
    """Build a table of graph tasks from results.

    Args:
        name: one of :func:`gape.experiments.report.layouts.table_names`.
        results: see :func:`gape.experiments.graph_tasks.cell.read_results`.
        overrides: by task; results with exactly these are shown instead of those of the protocol.
        tasks: the columns; all if None.
        encodings: the rows; all if None.
    """
    what, chosen = layout(name, tasks, encodings), overrides or {}
    by_cell: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for result in results:
        key = (result["task"], result["encoding"], override_key(current_names(result["overrides"])))
        by_cell.setdefault(key, []).append(result)

    figures: _Figures = {}
    shown: dict[str, _Shown] = {}
    for column in what.columns:
        runs = {}
        for row in (row for row in what.rows if row.applies_to(column)):
            pairs = {**column.overrides, **chosen.get(column.task, {}), **row.overrides}
            variant = Cell(column.task, row.encoding, overrides=pairs).variant
            runs[row.title] = by_cell.get((column.task, row.encoding, variant), [])
        shown[column.title] = _select_dataset(runs)
        for title, found in shown[column.title].runs.items():
            for rule, words in RULES.items():
                figures[title, words, column.title] = summarise(found, rule)

    lines: list[tuple[str, str, tuple[Entry, ...]]] = []
    best_rows = {
        (words, column.title): _best_rows(figures, words, column) for words in RULES.values() for column in what.columns
    }
    for row in what.rows:
        for words in RULES.values():
            entries = (
                _entry(figures[row.title, words, column.title], row.title in best_rows[words, column.title])
                if row.applies_to(column)
                else Entry("–")
                for column in what.columns
            )
            lines.append((row.title, words, tuple(entries)))
        if row.in_paper is not None:
            lines += _paper_lines(name, row, what.columns)
    headings = tuple(f"{column.title} {'↓' if _lower_is_better(column.task) else '↑'}" for column in what.columns)
    remarks = tuple(shown[column.title].size for column in what.columns)
    return Table(name, what.title, headings, tuple(lines), _notes(figures, what, chosen, shown), remarks=remarks)


def other_settings(
    what: Layout, results: Iterable[Mapping[str, Any]], overrides: Mapping[str, Mapping[str, str]]
) -> dict[str, int]:
    """Count the results of a table's rows and tasks with other settings than ``overrides``, by task and settings.

    >>> plain = {"task": "csl", "encoding": "rw", "overrides": {}}
    >>> other_settings(layout("graph-performance"), [plain, {**plain, "overrides": {"norm": "layer"}}], {})
    {'csl:norm=layer': 1}
    """
    rows, tasks = {row.encoding for row in what.rows}, {column.task for column in what.columns}
    found = Counter(
        f"{result['task']}:{override_key(current_names(result['overrides'])) or NO_OVERRIDES}"
        for result in results
        if result["task"] in tasks
        and result["encoding"] in rows
        and current_names(result["overrides"]) != _spelled(result, overrides)
    )
    return dict(found)


def only_with_other_settings(table: Table, others: Mapping[str, int]) -> dict[str, list[str]]:
    """Return, for each column without a figure of ours, the options that would show some of :func:`other_settings`.

    >>> empty = Table("t", "", ("PATTERN ↑", "CSL ↑"), (("RW", "best validation", (Entry("missing"),) * 2),), ())
    >>> only_with_other_settings(empty, {"pattern:train_fraction=0.1": 3, "csl:as published": 1})
    {'PATTERN': ['--set pattern:train_fraction=0.1'], 'CSL': ['no --set']}
    """
    found: dict[str, list[str]] = {}
    for place, heading in enumerate(table.columns):
        title = heading.rstrip(" ↑↓")
        if any(entries[place].summary is not None for *_, entries in table.lines):
            continue
        for words in others:
            task, _, pairs = words.partition(":")
            if TASKS[task].title == title:
                options = [f"--set {task}:{pair}" for pair in pairs.split(",")]
                found.setdefault(title, []).append("no --set" if pairs == NO_OVERRIDES else " ".join(options))
    return found


def _spelled(result: Mapping[str, Any], overrides: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
    task = result["task"]
    return Cell(task, result["encoding"], overrides=overrides.get(task, {})).overrides


@dataclass(frozen=True)
class _Shown:
    """The results that a column shows by row, their dataset, and how many results of other data were left out."""

    runs: Mapping[str, Sequence[Mapping[str, Any]]]
    data: str
    left_out: int

    @property
    def size(self) -> str:
        """Describe the number of training graphs."""
        sizes = (run["graphs"][0] for found in self.runs.values() for run in found if "graphs" in run)
        return next((f"ours: {size:,} training graphs" for size in sizes), "ours: missing")

    @property
    def counting(self) -> float | None:
        """Score of counting nodes and edges on the data."""
        scores = (run.get("edge_count_baseline") for found in self.runs.values() for run in found)
        return next((score for score in scores if score is not None), None)


def _select_dataset(runs: Mapping[str, Sequence[Mapping[str, Any]]]) -> _Shown:
    """Choose the dataset that most results of a column have; its figures are all of one dataset."""
    known = Counter(describe_data(run) for found in runs.values() for run in found)
    data = max(known, key=lambda data: (known[data], data), default="")
    kept = {row: [run for run in found if describe_data(run) == data] for row, found in runs.items()}
    return _Shown(kept, data, known.total() - known[data])


#: Summaries by row, rule and column.
_Figures = dict[tuple[str, str, str], Summary | None]


def _paper_lines(
    name: str, row: EncodingRow, columns: Sequence[TaskColumn]
) -> list[tuple[str, str, tuple[Entry, ...]]]:
    """Return the lines of the paper's figures, and of the authors' logs if they have any."""
    in_paper = str(row.in_paper)
    lines = [(row.title, PAPER, tuple(_printed(name, in_paper, column.task) for column in columns))]
    if name == "graph-performance" and any(
        logged(in_paper, TASKS[column.task].title) is not None for column in columns
    ):
        lines.append((row.title, LOGS, tuple(_logged(in_paper, column.task) for column in columns)))
    return lines


def _lower_is_better(task: str) -> bool:
    """Return True if smaller figures are better."""
    return task_of(task).regression


def _best_rows(figures: _Figures, words: str, column: TaskColumn) -> set[str]:
    rivals = {
        row: found.values
        for (row, rule, title), found in figures.items()
        if (rule, title) == (words, column.title) and found is not None and math.isfinite(found.mean)
    }
    return best(rivals, larger=not _lower_is_better(column.task)) if len(rivals) > 1 else set()


def _entry(summary: Summary | None, bold: bool) -> Entry:
    return Entry(MISSING) if summary is None else Entry(str(summary), bold, summary)


def _printed(name: str, row: str, task: str) -> Entry:
    title = TASKS[task].title
    value = printed(name, row, title)
    if value is None or isinstance(value, str):
        return Entry(value or "–")
    return Entry(_rounded(value, task), value=in_column_unit(row, title, value))


def _logged(row: str, task: str) -> Entry:
    value = logged(row, TASKS[task].title)
    return Entry("–") if value is None else Entry(_rounded(value, task), value=value)


def _rounded(value: float, task: str) -> str:
    return f"{value:.{3 if _lower_is_better(task) else 2}f}"


def _notes(
    figures: _Figures, what: Layout, chosen: Mapping[str, Mapping[str, str]], shown: Mapping[str, _Shown]
) -> tuple[str, ...]:
    tasks = {column.task for column in what.columns}
    notes = [
        "Bold: the best of its column and what a t-test (p = 0.05) does not tell from it, for each rule, if it has "
        "three seeds or more. One or two seeds say nothing about small differences.",
        "[n]: number of seeds where it is not four. Best validation: metric over the whole test set; last epoch: as "
        "published, which for ↓ and for classes of nodes is a mean over batches; so are the authors' logs.",
    ]
    if any(found is not None and found.by_time for found in figures.values()):
        notes.append("†: a run was stopped by time, not by the schedule.")
    if {"cycles", "cycles-v"} & tasks:
        notes.append(
            "CYCLES and CYCLES-V are reconstructions. The variant `matched` was calibrated on the published order of "
            "scores: that it comes near the paper's says little."
        )
    if "csl" in tasks:
        notes.append("CSL: five folds; the paper prints 0.10 for 10 %.")
    if counting := {title: column.counting for title, column in shown.items() if column.counting is not None}:
        scores = ", ".join(f"{100 * score:.2f} on {title}" for title, score in counting.items())
        notes.append(f"Counting nodes and edges alone, by a rule found on the training graphs, scores {scores}.")
    for title, column in shown.items():
        if column.data:
            others = f" ({column.left_out} results of other data are not shown)" if column.left_out else ""
            notes.append(f"{title}: {column.data}{others}.")
    for task, pairs in chosen.items():
        if pairs and task in tasks:
            notes.append(f"{TASKS[task].title}: {', '.join(f'{key}={text}' for key, text in pairs.items())}")
    return tuple(notes)
