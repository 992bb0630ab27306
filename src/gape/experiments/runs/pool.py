"""Runs in worker processes: several at a time, one process, one thread and low priority each; or by an executor."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol, TypeVar

from gape._internal.executors import completed
from gape._internal.threads import one_thread_per_process

Item = TypeVar("Item")
Item_contra = TypeVar("Item_contra", contravariant=True)
#: Sends a message from a worker to the process that started it.
Send = Callable[[Any], None]

# Niceness of a worker, unless the process has more: interactive work comes first.
NICE = 10


class Listener(Protocol[Item_contra]):
    """Receives what happens to the items, in the process that started the pool."""

    def on_start(self, item: Item_contra) -> None:
        """Handle the start of a worker on the item."""

    def on_message(self, item: Item_contra, message: Any) -> None:
        """Handle a message of the worker."""

    def on_done(self, item: Item_contra, result: Any) -> None:
        """Handle the result of the worker."""

    def on_failed(self, item: Item_contra, reason: str) -> None:
        """Handle an error of the worker, or the end of its process."""


def run_pool(
    items: Sequence[Item], work: Callable[[Item, Send], Any], *, workers: int, listener: Listener[Item]
) -> None:
    """Call ``work(item, send)`` for every item in processes of their own, ``workers`` at a time, in order.

    An item that fails does not stop the others. If the caller is interrupted, the workers are ended.

    Args:
        items: to work on; pickled.
        work: a function that can be pickled; ``send`` passes messages to the listener.
        workers: processes at a time.
        listener: receives starts, messages, results and failures.
    """
    waiting = list(items)
    running: dict[Connection, tuple[Item, Any]] = {}
    with one_thread_per_process():
        try:
            while waiting or running:
                while waiting and len(running) < workers:
                    item = waiting.pop(0)
                    pipe, process = _start(item, work)
                    running[pipe] = item, process
                    listener.on_start(item)
                for ready in wait(list(running)):
                    assert isinstance(ready, Connection)
                    item, process = running[ready]
                    kind, content = _receive(ready)
                    if kind == "message":
                        listener.on_message(item, content)
                        continue
                    del running[ready]
                    process.join()
                    if kind == "done":
                        listener.on_done(item, content)
                    else:
                        listener.on_failed(item, content)
        finally:
            for _, process in running.values():
                process.terminate()
                process.join()


def run_on_executor(
    items: Sequence[Item], work: Callable[[Item, Send], Any], *, executor: Executor, listener: Listener[Item]
) -> None:
    """Do what :func:`run_pool` does on the workers of an executor; the listener gets results and failures only.

    Args:
        items: to work on; pickled.
        work: a function that can be pickled, and resumes where it stopped when it is called again.
        executor: with the interface of ``concurrent.futures``.
        listener: receives results and failures.
    """
    for item, answer, error in completed(executor, partial(_answer, work), items):
        kind, content = answer or ("failed", f"{type(error).__name__}: {error}")
        if kind == "done":
            listener.on_done(item, content)
        else:
            listener.on_failed(item, content)


def _answer(work: Callable[[Any, Send], Any], item: Any, send: Send = lambda _: None) -> tuple[str, Any]:
    """Return ``"done"`` and the result, or ``"failed"`` and the reason; with one thread."""
    import torch

    torch.set_num_threads(1)
    try:
        return "done", work(item, send)
    except BrokenPipeError:
        raise  # the caller has ended
    except (ValueError, OSError, ArithmeticError, ImportError, RuntimeError) as error:
        if os.environ.get("GAPE_TRACEBACK"):
            raise
        return "failed", str(error) or type(error).__name__


def _start(item: Item, work: Callable[[Item, Send], Any]) -> tuple[Connection, Any]:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(item, work, there))
    process.start()
    there.close()
    return here, process


def _receive(pipe: Connection) -> tuple[str, Any]:
    try:
        message: tuple[str, Any] = pipe.recv()
    except EOFError:
        return "failed", "its process ended without a message; run the same command again to resume"
    return message


def _work(item: Any, work: Callable[[Any, Send], Any], pipe: Connection) -> None:
    """Run in the worker: send ``("message", …)`` on the way and ``("done" | "failed", …)`` at the end."""
    if hasattr(os, "nice"):  # not on Windows
        os.nice(max(0, NICE - os.nice(0)))
    for kind in (signal.SIGINT, signal.SIGTERM):
        signal.signal(kind, _interrupt)
    try:
        pipe.send(_answer(work, item, lambda message: pipe.send(("message", message))))
    except BrokenPipeError:
        return  # the caller has ended; the run resumes when it is asked for again
    except KeyboardInterrupt:
        with suppress(OSError):
            pipe.send(("failed", "interrupted"))
    finally:
        _ignore_signals()  # while the process ends


def _interrupt(*_: object) -> None:
    """Raise ``KeyboardInterrupt`` once; later signals do not disturb what is being saved."""
    _ignore_signals()
    raise KeyboardInterrupt


def _ignore_signals() -> None:
    for kind in (signal.SIGINT, signal.SIGTERM):
        # Not SIG_IGN: Python complains if such a signal has already come.
        signal.signal(kind, lambda *_: None)
