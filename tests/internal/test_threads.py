"""Threads of NumPy's and SciPy's linear algebra."""

import networkx as nx
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from gape import encodings
from gape._internal import threads
from gape._internal.threads import one_blas_thread
from gape.encodings import laplacian
from gape.linalg.lanczos import sparse_eigenpairs


def blas_threads() -> set[int]:
    return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads():
    with threadpool_limits(2, user_api="blas"):
        yield


def test_uses_one_thread_meanwhile_and_nests():
    with one_blas_thread():
        with one_blas_thread():
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == {2}


def test_gives_the_threads_back_after_an_error():
    with pytest.raises(RuntimeError), one_blas_thread():
        raise RuntimeError
    assert blas_threads() == {2}


def test_pieces_of_work_use_one_thread_each(monkeypatch):
    monkeypatch.setattr(threads, "num_threads", lambda: 2)
    assert threads.map_threads(lambda _: blas_threads(), range(4)) == [{1}] * 4
    assert blas_threads() == {2}


def test_large_laplacians_are_decomposed_with_one_thread(monkeypatch):
    seen = []

    def eigenpairs(*arguments):
        seen.append(blas_threads())
        return sparse_eigenpairs(*arguments)

    monkeypatch.setattr(laplacian, "sparse_eigenpairs", eigenpairs)
    encodings.Laplacian(4)(nx.gnm_random_graph(600, 3000, seed=0))
    assert seen == [{1}]
    assert blas_threads() == {2}
