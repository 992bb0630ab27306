"""Do independent pieces of work in several processes, in order, with a progress bar."""

import multiprocessing
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, TypeVar

Piece = TypeVar("Piece")
Done = TypeVar("Done")


@contextmanager
def progress(title: str, total: int, show: bool = True) -> Iterator[Callable[[int], None]]:
    """A progress bar with time left on stderr; gives the function that moves it on.

    >>> with progress("counting", total=3, show=False) as advance:
    ...     advance(1)
    """
    if not show:
        yield lambda amount: None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError as error:
        raise ImportError("progress bars need rich: pip install 'gape[bench]'") from error
    columns: list[Any] = [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn()]
    with Progress(*columns, TimeRemainingColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=total)
        yield lambda amount: bar.advance(task, amount)


def map_pieces(
    work: Callable[[Piece], Done],
    pieces: Sequence[Piece],
    *,
    title: str,
    weights: Sequence[int] | None = None,
    processes: int = 2,
    show: bool = True,
) -> list[Done]:
    """``[work(piece) for piece in pieces]``, in ``processes`` processes, with time left on stderr.

    The result does not depend on the number of processes, as long as ``work`` depends on its piece only.

    Args:
        work: a function at the top level of a module.
        pieces: what it is called with.
        title: stands before the progress bar.
        weights: how much of the bar each piece is worth (default 1 each).
        processes: 1 works in this process.
        show: False for silence.

    Example:
        >>> map_pieces(abs, [-1, 2, -3], title="absolute", processes=1, show=False)
        [1, 2, 3]
    """
    if processes < 1:
        raise ValueError(f"processes must be at least 1, got {processes}")
    amounts = list(weights) if weights is not None else [1] * len(pieces)
    done: list[Done] = []
    with progress(title, sum(amounts), show) as advance:
        if processes == 1 or len(pieces) < 2:
            results: Iterator[Done] = map(work, pieces)
            for amount, result in zip(amounts, results, strict=True):
                done.append(result)
                advance(amount)
            return done
        # spawn, not fork: the parent may hold PyTorch threads, which a fork would leave in an unknown state.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(min(processes, len(pieces)), context) as pool:
            try:
                for amount, result in zip(amounts, pool.map(work, pieces), strict=True):
                    done.append(result)
                    advance(amount)
            except BrokenProcessPool as error:
                raise RuntimeError(
                    f"{title}: a process ended early. If that is because it ran this script again, put the call under "
                    "`if __name__ == '__main__':`, or pass processes=1"
                ) from error
    return done
