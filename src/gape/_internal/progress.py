"""Progress of long work on standard error: bars on a terminal, lines now and then elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, ProgressColumn, Task, TaskID

#: Seconds between two lines about a task where there is no terminal.
LINE_EVERY_SECONDS = 30.0
#: Terminals narrower than this get short bars and notes, so that long titles fit.
WIDE_COLUMNS = 120
Amount = Literal["count", "percent", "note"]


def progress_bars(
    *, amount: Amount = "count", show: bool = True, keep: bool = False, console: Console | None = None
) -> Progress:
    """Make progress bars on standard error: title, bar, amount, time left; a context manager.

    They vanish when the work is done, and show nothing where there is no terminal, unless they are to be kept.

    Args:
        amount: "count" shows how many of how many; "percent" the share and a ``note``, a field of every task; "note"
            only the note, which has the time left in it, since the work knows better.
        show: False for none.
        keep: leave the finished bar on the screen, and write it to a log where there is no terminal.
        console: another place to show them.

    Example:
        >>> with progress_bars(show=False) as bars:
        ...     task = bars.add_task("drawing graphs", total=10)
        ...     bars.advance(task)
    """
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
        from rich.table import Column
    except ImportError as error:
        raise ImportError("progress bars need rich: pip install 'gape[cli]'") from error
    console = console or Console(stderr=True)
    note = TextColumn("{task.fields[note]}")
    columns: dict[Amount, tuple[ProgressColumn, ...]] = {
        "count": (BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()),
        "percent": (BarColumn(), TextColumn("{task.percentage:>3.0f} %"), note, TimeRemainingColumn()),
        "note": (BarColumn(20 if is_wide(console) else 8), note),
    }
    return Progress(
        TextColumn("{task.description}", table_column=Column(overflow="fold")),
        *columns[amount],
        console=console,
        transient=not keep,
        disable=not (show and (keep or console.is_terminal)),
        redirect_stdout=sys.stdout.isatty(),  # otherwise what is printed meanwhile would not reach its file
    )


def is_wide(console: Console) -> bool:
    """Return whether long titles and long notes fit side by side; a log has no width."""
    return not console.is_terminal or console.width >= WIDE_COLUMNS


class ProgressDisplay:
    """Progress of named tasks: a bar each on a terminal, a line each now and then elsewhere; a context manager.

    Args:
        amount: what a bar shows, see :func:`progress_bars`.
        show: False for nothing at all.
        line_every_seconds: between two lines about a task; infinity for no lines.
        console: another place than standard error.

    Example:
        >>> with ProgressDisplay(show=False) as display:
        ...     display.update("sorting edges", 5, 10, note="3/s")
        ...     display.remove("sorting edges")
    """

    def __init__(
        self,
        *,
        amount: Amount = "percent",
        show: bool = True,
        line_every_seconds: float = LINE_EVERY_SECONDS,
        console: Console | None = None,
    ) -> None:
        self.bars = progress_bars(amount=amount, show=show, console=console)
        self.console, self.amount = self.bars.console, amount
        self.wide, self.lines = is_wide(self.console), show and self.bars.disable
        self.line_every_seconds = line_every_seconds
        self._tasks: dict[str, TaskID] = {}
        self._last_line: dict[str, float] = {}

    def __enter__(self) -> ProgressDisplay:
        self.bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bars.stop()

    def start(self, name: str, total: float | None = None, note: str = "") -> None:
        """Add a task."""
        self._tasks[name] = self.bars.add_task(name, total=total, note=note)
        self._last_line[name] = time.monotonic()

    def update(self, name: str, done: float, total: float | None = None, note: str = "") -> None:
        """Move the bar of a task and change its note; add the task if it is new."""
        if name not in self._tasks:
            self.start(name)
        self.bars.update(self._tasks[name], completed=done, total=total, note=note)
        if self.lines and time.monotonic() - self._last_line[name] > self.line_every_seconds:
            self._last_line[name] = time.monotonic()
            self.log(f"{name}: {self._line(self._task(name), note)}")

    def restart(self, name: str, done: float, total: float, note: str = "") -> None:
        """Move the bar of a task, and estimate the time left from later updates only."""
        self.bars.reset(self._tasks[name], completed=int(done), total=total, note=note)

    def remove(self, name: str) -> None:
        """Remove the bar of a task, if there is one."""
        if name in self._tasks:
            self.bars.remove_task(self._tasks.pop(name))

    def elapsed_seconds(self, name: str) -> float:
        """Return the time since a task was added or restarted."""
        return self._task(name).elapsed or 0.0

    def log(self, text: str) -> None:
        """Print a line above the bars."""
        self.console.print(f"gape: {text}", markup=False, highlight=False, soft_wrap=True)

    def _task(self, name: str) -> Task:
        (task,) = (task for task in self.bars.tasks if task.id == self._tasks[name])
        return task

    def _line(self, task: Task, note: str) -> str:
        if self.amount == "note":
            return note
        share = f"{task.completed:,.0f}" if task.total is None else f"{task.percentage:.0f} %"
        left = "" if task.time_remaining is None else f"about {duration(task.time_remaining / 60)} left"
        return ", ".join(filter(None, [share, note, left]))


def duration(minutes: float) -> str:
    """Format a duration for people.

    >>> duration(0.5), duration(12), duration(150)
    ('30 s', '12 min', '2.5 h')
    """
    if minutes < 1:
        return f"{60 * minutes:.0f} s"
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
