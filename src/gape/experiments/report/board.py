"""What the user sees while cells run: a bar each on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column

from gape.experiments.graph_tasks.cell import Cell
from gape.experiments.graph_tasks.collect import both_figures
from gape.experiments.report.time_left import epochs_left, minutes_left

# On a narrower terminal than this the note of a bar is short, so that the name of the cell has room.
WIDE = 120
# Seconds between two lines about a cell where there is no terminal.
LINE_EVERY = 300.0


class Board:
    """Progress of all cells; a context manager."""

    def __init__(self, cells: int, console: Console | None = None) -> None:
        self.console = console or Console()
        self.cells, self.finished = cells, 0
        self._wide = not self.console.is_terminal or self.console.width >= WIDE
        columns = (
            TextColumn("{task.description}", table_column=Column(overflow="fold")),
            BarColumn(20 if self._wide else 8),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
        )
        self.progress = Progress(*columns, console=self.console, disable=not self.console.is_terminal)
        self._tasks: dict[str, TaskID] = {}
        self._last_line: dict[str, float] = {}

    def __enter__(self) -> Board:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def start(self, cell: Cell) -> None:
        self._tasks[cell.name] = self.progress.add_task(cell.name, total=None, note="under way")
        self._last_line[cell.name] = time.monotonic()
        if self.progress.disable:
            self._say(f"{cell.name}: started")

    def epoch(self, cell: Cell, fold: int, folds: int, line: Mapping[str, float]) -> None:
        settings = cell.settings
        left = minutes_left(settings, fold, folds, line, cell.max_minutes)
        metric = next(name for name in line if name.startswith("val_") and name != "val_loss")
        note = f"{f'fold {fold + 1}/{folds}, ' if folds > 1 else ''}epoch {line['epoch']:.0f}, "
        if self._wide:
            note += f"lr {line['lr']:.1e}, {metric.replace('_', ' ')} {line[metric]:.4f}, at least "
        note += f"{_duration(left)} left"
        done, rest = line["epoch"], epochs_left(settings, line)
        total = (done + rest) * folds
        self.progress.update(self._tasks[cell.name], total=total, completed=done + fold * (done + rest), note=note)
        if self.progress.disable and time.monotonic() - self._last_line[cell.name] > LINE_EVERY:
            self._last_line[cell.name] = time.monotonic()
            self._say(f"{cell.name}: {note}")

    def done(self, cell: Cell, result: Mapping[str, Any], skipped: bool = False) -> None:
        self.finished += 1
        how = "was finished before" if skipped else f"{sum(result['epochs'])} epochs, {result['minutes']:.1f} min"
        self._say(
            f"{cell.name}: test {result['metric'].replace('_', ' ')} {both_figures(result)} ({how}, stopped by "
            f"{result['stopped']}) [{self.finished}/{self.cells}]"
        )
        self._remove(cell)

    def failed(self, cell: Cell, message: str) -> None:
        self.finished += 1
        # All reasons come whole at the end; in a long queue the beginning of each is wanted at once.
        reason = f": {message.splitlines()[0]}" if self.cells > 1 else ""
        self._say(f"{cell.name}: failed{reason} [{self.finished}/{self.cells}]")
        self._remove(cell)

    def _remove(self, cell: Cell) -> None:
        task = self._tasks.pop(cell.name, None)
        if task is not None:
            self.progress.remove_task(task)

    def _say(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)


def _duration(minutes: float) -> str:
    """
    >>> _duration(0.5), _duration(12), _duration(150)
    ('30 s', '12 min', '2.5 h')
    """
    if minutes < 1:
        return f"{60 * minutes:.0f} s"
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
