"""Threads: a pool for independent pieces of tensor work, and how many others use."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, TypeVar

import torch

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

T = TypeVar("T")
R = TypeVar("R")

_reserved = threading.local()


def num_threads() -> int:
    """Number of threads to use: PyTorch's, also where :func:`one_torch_thread` has reserved them for us."""
    return getattr(_reserved, "threads", None) or torch.get_num_threads()


@contextmanager
def one_torch_thread() -> Iterator[None]:
    """Let PyTorch use one thread for its operations meanwhile, and keep the others for :func:`map_threads`.

    PyTorch's own threads gain nothing on small tensors, and for a while after each operation they wait for the next one
    without giving way to others.
    """
    before, outer = torch.get_num_threads(), getattr(_reserved, "threads", None)
    _reserved.threads = num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        _reserved.threads = outer
        torch.set_num_threads(before)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let NumPy's and SciPy's linear algebra use one thread meanwhile, in the threads started meanwhile, too.

    OpenBLAS shares even products of a short matrix with all cores, and its threads wait for the next product without
    giving way to others: Lanczos's method on 20,000 nodes takes up to twenty times as long beside other work.
    """
    with _blas_libraries().limit(limits=1):
        yield


@cache
def _blas_libraries() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401 - loads SciPy's library, which is found only then
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


@contextmanager
def one_thread_per_process() -> Iterator[None]:
    """Let processes started meanwhile compute with one thread each."""
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


def map_threads(function: Callable[[T], R], items: Sequence[T]) -> list[R]:
    """``[function(item) for item in items]`` with as many threads as PyTorch uses, one PyTorch thread in each.

    Small tensor operations gain nothing from threads inside each of them, but PyTorch releases the GIL while it
    computes, and so do compiled kernels, so pieces of work run side by side. Gradients are not recorded in the threads.
    The pieces are independent, so the number of threads changes no result.

    Example:
        >>> map_threads(lambda x: x + 1, [1, 2, 3])
        [2, 3, 4]
    """
    if len(items) < 2 or num_threads() == 1:
        with torch.no_grad():
            return list(map(function, items))
    threads, before, inference = num_threads(), torch.get_num_threads(), torch.is_inference_mode_enabled()

    def alone(item: T) -> R:
        torch.set_num_threads(1)
        # Tensors made in inference mode may be written to only in it, and a thread does not inherit it.
        with torch.inference_mode(inference), torch.no_grad():
            return function(item)

    try:
        with one_blas_thread(), ThreadPoolExecutor(min(threads, len(items))) as pool:
            return list(pool.map(alone, items))
    finally:
        # The setting is per thread, but the last one set is the default of threads started later.
        torch.set_num_threads(before)


def share_kernel(kernel: Callable[[T], int], items: Sequence[T]) -> list[int]:
    """``[kernel(item) for item in items]``, for functions that release the GIL and call nothing of PyTorch.

    The calling thread takes its share, and every thread takes the next item when it is done with one.

    Example:
        >>> share_kernel(abs, [1, -2, 3])
        [1, 2, 3]
    """
    found, failed, left = [0] * len(items), list[BaseException](), iter(range(len(items)))

    def work() -> None:
        try:
            while not failed and (i := next(left, None)) is not None:  # the GIL makes this step safe
                found[i] = kernel(items[i])
        except BaseException as error:  # noqa: BLE001 - raised below, in the calling thread
            failed.append(error)

    def wait(thread: threading.Thread) -> None:
        """Wait for the end: kernels must not outlive the tensors to which they have pointers, not even after Ctrl-C."""
        while thread.is_alive():
            try:
                thread.join()
            except BaseException as error:  # noqa: BLE001 - raised below
                failed.append(error)

    others = [threading.Thread(target=work) for _ in range(min(num_threads(), len(items)) - 1)]
    for thread in others:
        thread.start()
    work()
    for thread in others:
        wait(thread)
    if failed:
        raise failed[0]
    return found
