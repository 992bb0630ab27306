"""Many cells: finished ones are skipped, the others run in worker processes, with progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from rich.console import Console

from gape.experiments.graph_tasks.cell import Cell
from gape.experiments.graph_tasks.results import describe_metric, finished_result
from gape.experiments.graph_tasks.run import RunOptions, run_cell
from gape.experiments.graph_tasks.settings import epochs_left, minutes_left
from gape.experiments.runs.folder import Record
from gape.experiments.runs.pool import Send, run_on_executor, run_pool
from gape.experiments.runs.progress import ProgressDisplay, duration


def run_cells(
    cells: Sequence[Cell],
    options: RunOptions,
    *,
    jobs: int = 1,
    executor: Executor | None = None,
    display: ProgressDisplay | None = None,
) -> tuple[list[Record], list[str]]:
    """Run cells in order, ``jobs`` at a time, or on the workers of an executor; skip finished ones.

    A cell that fails does not stop the others. One whose worker dies resumes on another.

    Returns:
        The results in the order of ``cells``, without those that failed, and the failures as text.
    """
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1, got {jobs}")
    if jobs > 1 and options.devices > 1:
        raise ValueError(
            f"jobs={jobs} and devices={options.devices}: split one cell among processes, or run several cells; not both"
        )
    if executor is not None and (jobs > 1 or options.devices > 1):
        raise ValueError(f"jobs={jobs}, devices={options.devices}: a scheduler runs one cell per worker")
    if options.rank is not None and (jobs > 1 or executor is not None):
        raise ValueError("torchrun's processes train one cell together; leave out --jobs and --scheduler")
    cells = _unique(cells)
    with display or ProgressDisplay(len(cells), Console(quiet=not options.writes)) as shown:
        listener = CellListener(shown)
        waiting = []
        for cell in cells:
            try:
                known = finished_result(cell, options.runs)
            except ValueError as error:
                listener.on_failed(cell, str(error))
                continue
            if known is None:
                waiting.append(cell)
            else:
                listener.on_done(cell, known, skipped=True)
        if options.rank is not None:
            for cell in waiting:  # an error ends all processes: the others would wait for this one
                listener.on_start(cell)
                listener.on_done(cell, _run(options, cell, partial(listener.on_message, cell)))
        elif executor is None:
            run_pool(waiting, partial(_run, options), workers=jobs, listener=listener)
        elif waiting:
            shown.start_count(len(waiting))  # workers elsewhere do not report their epochs
            run_on_executor(waiting, partial(_run, options.absolute()), executor=executor, listener=listener)
    return [listener.results[cell.name] for cell in cells if cell.name in listener.results], listener.failures


def _run(options: RunOptions, cell: Cell, send: Send) -> Record:
    return run_cell(cell, options, lambda fold, folds, line: send((fold, folds, line)))


def _unique(cells: Sequence[Cell]) -> list[Cell]:
    """Remove repeated cells, and keep the longest time limit of each.

    >>> cells = [Cell("csl", "rw", max_minutes=minutes) for minutes in (60.0, 30.0)]
    >>> [cell.max_minutes for cell in _unique(cells)]
    [60.0]
    """
    kept: dict[str, Cell] = {}
    for cell in cells:
        known = kept.setdefault(cell.name, cell)
        if known.max_minutes is not None and (cell.max_minutes is None or cell.max_minutes > known.max_minutes):
            kept[cell.name] = cell
    return list(kept.values())


@dataclass
class CellListener:
    """Shows the progress of cells and gathers their results by name: the listener of :func:`run_pool`."""

    display: ProgressDisplay
    results: dict[str, Record] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)

    def on_start(self, cell: Cell) -> None:
        self.display.start(cell.name)

    def on_message(self, cell: Cell, message: tuple[int, int, Mapping[str, float]]) -> None:
        """Show an epoch: fold, number of folds, line of ``metrics.csv``."""
        fold, folds, line = message
        left = minutes_left(cell.settings, fold, folds, line, cell.max_minutes)
        metric = next(name for name in line if name.startswith("val_") and name != "val_loss")
        note = f"{f'fold {fold + 1}/{folds}, ' if folds > 1 else ''}epoch {line['epoch']:.0f}, "
        if self.display.wide:
            note += f"lr {line['lr']:.1e}, {metric.replace('_', ' ')} {line[metric]:.4f}, at least "
        note += f"{duration(left)} left"
        done = line["epoch"]
        per_fold = done + epochs_left(cell.settings, line)
        self.display.update(cell.name, done + fold * per_fold, per_fold * folds, note)

    def on_done(self, cell: Cell, result: Any, skipped: bool = False) -> None:
        self.results[cell.name] = result
        how = "was finished before" if skipped else f"{sum(result['epochs'])} epochs, {result['minutes']:.1f} min"
        self.display.finish(
            cell.name,
            f"test {result['metric'].replace('_', ' ')} {describe_metric(result)} ({how}, stopped by "
            f"{result['stopped']})",
        )

    def on_failed(self, cell: Cell, reason: str) -> None:
        self.failures.append(f"{cell.name}: {reason}")
        self.display.fail(cell.name, reason)
