"""Progress bars of long work: one look for commands, generated data and translation."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


def progress_bars(
    *, percent: bool = False, show: bool = True, keep: bool = False, console: Console | None = None
) -> Progress:
    """Make progress bars on standard error: title, bar, amount, time left; a context manager.

    They vanish when the work is done, and show nothing where there is no terminal, unless they are to be kept.

    Args:
        percent: show the share that is done and a ``note``, a field of every task, instead of the count.
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
    except ImportError as error:
        raise ImportError("progress bars need rich: pip install 'gape[cli]'") from error
    amount = [TextColumn("{task.percentage:>3.0f} %"), TextColumn("{task.fields[note]}")]
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        *(amount if percent else [MofNCompleteColumn()]),
        TimeRemainingColumn(),
    )
    console = console or Console(stderr=True)
    return Progress(*columns, console=console, transient=not keep, disable=not (show and (keep or console.is_terminal)))
