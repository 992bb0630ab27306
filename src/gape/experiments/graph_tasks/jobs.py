"""Many cells, several side by side, each in a process of its own."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from typing import Any

from gape.experiments.graph_tasks.cell import Cell
from gape.experiments.graph_tasks.run import RunOptions, finished
from gape.experiments.graph_tasks.worker import work
from gape.experiments.report.board import Board


def run_cells(
    cells: Sequence[Cell], options: RunOptions, *, jobs: int = 1, board: Board | None = None
) -> tuple[list[dict[str, Any]], list[str]]:
    """Run cells in order, ``jobs`` at a time; skip finished ones.

    A cell that fails does not stop the others.

    Returns: the results in the order of ``cells``, without those that failed; and what failed, in words.
    """
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1, got {jobs}")
    if jobs > 1 and options.devices > 1:
        raise ValueError(f"jobs={jobs} and devices={options.devices}: share a cell among processes, or run several")
    results: dict[int, dict[str, Any]] = {}
    failures: list[str] = []
    waiting: list[tuple[int, Cell]] = []
    running: dict[Connection, tuple[int, Cell, Any]] = {}
    cells = _each_once(cells)
    with board or Board(len(cells)) as shown, _one_thread():
        for place, cell in enumerate(cells):
            try:
                known = finished(cell, options.runs)
            except ValueError as error:
                failures.append(f"{cell.name}: {error}")
                shown.failed(cell, str(error))
                continue
            if known is None:
                waiting.append((place, cell))
            else:
                results[place] = known
                shown.done(cell, known, skipped=True)
        try:
            while waiting or running:
                while waiting and len(running) < jobs:
                    place, cell = waiting.pop(0)
                    pipe, process = _start(cell, options)
                    running[pipe] = place, cell, process
                    shown.start(cell)
                for ready in wait(list(running)):
                    assert isinstance(ready, Connection)
                    pipe = ready
                    place, cell, process = running[pipe]
                    message = _receive(pipe)
                    if message[0] == "epoch":
                        shown.epoch(cell, *message[1:])
                        continue
                    del running[pipe]
                    process.join()
                    if message[0] == "done":
                        results[place] = message[1]
                        shown.done(cell, message[1])
                    else:
                        failures.append(f"{cell.name}: {message[1]}")
                        shown.failed(cell, message[1])
        finally:
            for _, _, process in running.values():
                process.terminate()
                process.join()
    return [results[place] for place in sorted(results)], failures


def _each_once(cells: Sequence[Cell]) -> list[Cell]:
    """The cells without repetitions; of several limits of time of one cell the longest counts.

    >>> cells = [Cell("csl", "rw", max_minutes=minutes) for minutes in (60.0, 30.0)]
    >>> [cell.max_minutes for cell in _each_once(cells)]
    [60.0]
    """
    kept: dict[str, Cell] = {}
    for cell in cells:
        known = kept.setdefault(cell.name, cell)
        if known.max_minutes is not None and (cell.max_minutes is None or cell.max_minutes > known.max_minutes):
            kept[cell.name] = cell
    return list(kept.values())


def _start(cell: Cell, options: RunOptions) -> tuple[Connection, Any]:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=work, args=(cell, options, there))
    process.start()
    there.close()
    return here, process


def _receive(pipe: Connection) -> tuple[Any, ...]:
    try:
        message: tuple[Any, ...] = pipe.recv()
    except EOFError:
        return "failed", "its process ended without a word; run the same command again to go on"
    return message


@contextmanager
def _one_thread() -> Iterator[None]:
    """Processes started here compute with one thread each."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
