"""Progress of runs: one bar each on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column

from gape._internal.progress import progress_bars

# Terminals narrower than this get short notes, so that the name of the run fits.
WIDE_COLUMNS = 120
# Seconds between two lines about a run where there is no terminal.
LINE_EVERY_SECONDS = 300.0


class ProgressDisplay:
    """Progress of several runs; a context manager.

    Args:
        total: number of runs.
        console: where to show it; standard output if None.
    """

    def __init__(self, total: int, console: Console | None = None) -> None:
        self.console = console or Console()
        self.total, self.finished = total, 0
        self.wide = not self.console.is_terminal or self.console.width >= WIDE_COLUMNS
        columns = (
            TextColumn("{task.description}", table_column=Column(overflow="fold")),
            BarColumn(20 if self.wide else 8),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
        )
        self.bars = Progress(*columns, console=self.console, disable=not self.console.is_terminal)
        self._tasks: dict[str, TaskID] = {}
        self._last_line: dict[str, float] = {}
        self._count: TaskID | None = None

    def __enter__(self) -> ProgressDisplay:
        self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bars.stop()

    def start(self, name: str) -> None:
        """Add a run."""
        self._tasks[name] = self.bars.add_task(name, total=None, note="running")
        self._last_line[name] = time.monotonic()
        if self.bars.disable:
            self._print(f"{name}: started")

    def start_count(self, runs: int) -> None:
        """Add a bar of runs that finish, of which nothing else is known."""
        self._count = self.bars.add_task("runs", total=runs, note=f"0 of {runs}")

    def update(self, name: str, completed: float, total: float, note: str) -> None:
        """Move the bar of a run and show a note beside it."""
        self.bars.update(self._tasks[name], total=total, completed=completed, note=note)
        if self.bars.disable and time.monotonic() - self._last_line[name] > LINE_EVERY_SECONDS:
            self._last_line[name] = time.monotonic()
            self._print(f"{name}: {note}")

    def finish(self, name: str, text: str) -> None:
        """Remove the bar of a run and print how it ended."""
        self.finished += 1
        self._print(f"{name}: {text} [{self.finished}/{self.total}]")
        task = self._tasks.pop(name, None)
        if task is not None:
            self.bars.remove_task(task)
        if self._count is not None:
            self._advance_count(self._count)

    def _advance_count(self, task: TaskID) -> None:
        self.bars.advance(task)
        (bar,) = (bar for bar in self.bars.tasks if bar.id == task)
        done, total = int(bar.completed), int(bar.total or 0)
        left = (bar.elapsed or 0.0) / 60 * (total - done) / done
        self.bars.update(task, note=f"{done} of {total}, about {duration(left)} left", visible=done < total)

    def fail(self, name: str, reason: str) -> None:
        """Remove the bar of a run and print that it failed."""
        # The caller prints all reasons in full at the end; in a long queue the first line helps at once.
        self.finish(name, f"failed: {reason.splitlines()[0]}" if self.total > 1 else "failed")

    def _print(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def counting_bar(console: Console, verb: str) -> Iterator[Callable[[str, int, int], None]]:
    """Show a bar per named thing; call the result with its name, how many are done, and how many there are.

    Args:
        console: where to show it; nothing is shown if it is no terminal.
        verb: before the name, such as "translating".
    """
    with progress_bars(console=console) as bar:
        tasks: dict[str, TaskID] = {}

        def show(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(f"{verb} {name}", total=total)
            bar.update(tasks[name], completed=done)

        yield show


def duration(minutes: float) -> str:
    """Format a duration for people.

    >>> duration(0.5), duration(12), duration(150)
    ('30 s', '12 min', '2.5 h')
    """
    if minutes < 1:
        return f"{60 * minutes:.0f} s"
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
