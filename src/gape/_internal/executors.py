"""Executors with the interface of :mod:`concurrent.futures`: worker processes, and Dask; and a loop over results."""

from __future__ import annotations

import asyncio
import multiprocessing
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from gape._internal.threads import one_thread_per_process

Item = TypeVar("Item")

#: How often an item is tried whose worker ends without an answer: more often, and it ends all workers.
MAX_ATTEMPTS = 3
# Seconds to wait for a scheduler, and for its first worker, which may have to import PyTorch from a network disk.
CONNECT_SECONDS = 10.0
WORKER_SECONDS = 30.0


class WorkerDied(BrokenExecutor):
    """The process that worked on a call ended without an answer: killed, or out of memory."""


class ProcessPool(Executor):
    """Worker processes that compute with one thread each; one that dies takes only its own call with it.

    ``concurrent.futures.ProcessPoolExecutor`` ends all workers when one dies. As there, scripts that use it need
    ``if __name__ == "__main__":``. If a ``with`` block is left by an exception, the workers are killed.

    Args:
        workers: number of processes.

    Example:
        >>> with ProcessPool(1) as pool:
        ...     pool.submit(pow, 2, 5).result()
        32
    """

    def __init__(self, workers: int) -> None:
        if workers < 1:
            raise ValueError(f"workers must be at least 1, got {workers}")
        self._calls: SimpleQueue[tuple[Future[Any], Any] | None] = SimpleQueue()
        self._processes: dict[int, Any] = {}
        self._closed = self._killed = False
        self._starting = threading.Lock()
        self._threads = [threading.Thread(target=self._drive, args=(i,), daemon=True) for i in range(workers)]
        for thread in self._threads:
            thread.start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call ``fn(*args, **kwargs)`` in a worker."""
        if self._closed:
            raise RuntimeError("the pool is closed")
        future: Future[Any] = Future()
        self._calls.put((future, (fn, args, kwargs)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the workers when they have done what was submitted, or only what they are doing now."""
        self._closed = True
        if cancel_futures:
            with suppress(Empty):
                while call := self._calls.get_nowait():
                    call[0].cancel()
        for _ in self._threads:
            self._calls.put(None)
        if wait:
            for thread in self._threads:
                thread.join()

    def kill(self) -> None:
        """End the workers at once."""
        self.shutdown(wait=False, cancel_futures=True)
        with self._starting:
            self._killed = True
            for process in self._processes.values():
                process.kill()
        for thread in self._threads:
            thread.join()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.shutdown()
        else:
            self.kill()

    def _drive(self, place: int) -> None:
        """Pass calls to one worker process, and start another one when it has died."""
        pipe: Connection | None = None
        while task := self._calls.get():
            future, call = task
            if not future.set_running_or_notify_cancel():
                continue
            try:
                pipe = pipe or self._start(place)
                pipe.send(call)
                answered, value = pipe.recv()
            except (EOFError, OSError):
                pipe = None
                code = self._end(place)
                future.set_exception(WorkerDied(f"its worker process ended without an answer (exit code {code})"))
            except Exception as error:  # noqa: BLE001  what cannot be pickled, there or back
                future.set_exception(error)
            else:
                (future.set_result if answered else future.set_exception)(value)
        if pipe is not None:
            pipe.close()
            self._end(place)

    def _end(self, place: int) -> int | None:
        """Wait for a worker to end; return its exit code, ``None`` if it was never started."""
        process = self._processes.get(place)
        if process is None:
            return None
        process.join()
        return int(process.exitcode)

    def _start(self, place: int) -> Connection:
        context = multiprocessing.get_context("spawn")
        here, there = context.Pipe()
        with self._starting, one_thread_per_process():
            if self._killed:
                raise EOFError("the pool has been ended")
            process = context.Process(target=_serve, args=(there,), daemon=True)
            process.start()
            self._processes[place] = process
        there.close()
        return here


def _serve(pipe: Connection) -> None:
    """Run in the worker: answer calls until the other end is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started this one decides
    import torch

    torch.set_num_threads(1)
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            function, args, kwargs = pipe.recv()
            try:
                answer = True, function(*args, **kwargs)
            except Exception as error:  # noqa: BLE001  raised where the result is asked for
                answer = False, error
            pipe.send(answer)


async def _answers(address: str) -> None:
    """Raise unless a Dask scheduler answers within :data:`CONNECT_SECONDS`."""
    from distributed.comm import connect

    async with asyncio.timeout(CONNECT_SECONDS):
        comm = await connect(address, timeout=CONNECT_SECONDS)
        comm.abort()


@contextmanager
def dask_executor(address: str) -> Iterator[tuple[Executor, str]]:
    """Connect to a Dask scheduler; yield an executor of its workers and the address of its dashboard.

    Args:
        address: of the scheduler, such as ``tcp://10.0.0.1:8786``.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise ImportError("a scheduler needs Dask: pip install 'gape[scale]'") from error
    try:
        # A client that cannot connect would leave threads behind, and wait for them when Python ends.
        asyncio.run(_answers(address))
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ConnectionError(
            f"no Dask scheduler answers at {address!r}, expected an address such as tcp://127.0.0.1:8786; start one "
            "by `dask scheduler`"
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=WORKER_SECONDS)
        except TimeoutError as error:
            raise ConnectionError(
                f"the Dask scheduler at {address} has no workers; start some by `dask worker {address} --nthreads 1`"
            ) from error
        yield client.get_executor(pure=False), client.dashboard_link


def completed(
    executor: Executor | None,
    function: Callable[[Item], Any],
    items: Sequence[Item],
    on_retry: Callable[[Item, Exception], None] | None = None,
) -> Generator[tuple[Item, Any, Exception | None], None, None]:
    """Call a function on every item and yield item, result and error, in the order in which they finish.

    An item whose worker died is tried again, :data:`MAX_ATTEMPTS` times in all. What has not been started is cancelled
    when the generator is closed.

    Args:
        executor: where to; ``None`` for this process.
        function: can be pickled, and may be called again on the same item.
        items: can be pickled.
        on_retry: called with an item that is tried again, and why.

    Example:
        >>> list(completed(None, abs, [-1, 2]))
        [(-1, 1, None), (2, 2, None)]
    """
    if executor is None:
        for item in items:
            yield item, function(item), None
        return
    finished: SimpleQueue[Future[Any]] = SimpleQueue()
    running: dict[Future[Any], tuple[Item, int]] = {}

    def submit(item: Item, attempt: int) -> None:
        try:
            future = executor.submit(function, item)
        except BrokenExecutor as error:
            raise ConnectionError(f"the executor {executor!r} takes no more work: {error}") from error
        running[future] = item, attempt
        future.add_done_callback(finished.put)

    try:
        for item in items:
            submit(item, 1)
        while running:
            future = finished.get()
            item, attempt = running.pop(future)
            result: Any = None
            error: Exception | None = None
            try:
                result = future.result()
            except CancelledError as cancelled:
                raise ConnectionError(f"the executor {executor!r} has cancelled its work") from cancelled
            except BrokenExecutor as died:
                if attempt < MAX_ATTEMPTS:
                    if on_retry is not None:
                        on_retry(item, died)
                    submit(item, attempt + 1)
                    continue
                error = died
            except Exception as raised:  # noqa: BLE001  the caller reports it by the name of the item
                error = raised
            yield item, result, error
    finally:
        for future in running:
            future.cancel()
