"""Eigenpairs of large sparse Laplacians: the same whichever way they are found, and interruptible."""

import os
import signal
import threading
import time

import networkx as nx
import numpy as np
import pytest
import scipy.sparse

from gape.linalg import lanczos


def laplacian(graph: nx.Graph) -> tuple[scipy.sparse.csr_array, np.ndarray, np.ndarray]:
    """The normalised Laplacian, its unit null vectors and components."""
    matrix = scipy.sparse.csr_array(nx.normalized_laplacian_matrix(graph))
    component = np.zeros(len(graph), dtype=np.int64)
    for number, nodes in enumerate(nx.connected_components(graph)):
        component[list(nodes)] = number
    degree = np.array([d for _, d in graph.degree()], dtype=float)
    return matrix, np.sqrt(degree / np.bincount(component, degree)[component]), component


GRAPHS = {
    "random": nx.gnm_random_graph(300, 1500, seed=0),
    "grid": nx.convert_node_labels_to_integers(nx.grid_2d_graph(15, 20)),
    "pieces": nx.disjoint_union(nx.random_regular_graph(4, 150, seed=1), nx.random_regular_graph(4, 150, seed=2)),
}


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("gap", [0.0, 1.0], ids=["Lanczos", "shift and invert"])
@pytest.mark.parametrize("core", [0, 10**9], ids=["own process", "here"])
def test_every_way_gives_the_lowest_eigenvalues_of_the_dense_matrix(graph, gap, core, monkeypatch):
    monkeypatch.setattr(lanczos, "MIN_PROBED_GAP", gap)
    monkeypatch.setattr(lanczos, "MAX_CORE_NODES", core)
    monkeypatch.setattr(lanczos, "MAX_CORE_DEGREE", 0.0)
    matrix, null, component = laplacian(GRAPHS[graph])
    values, vectors = lanczos.sparse_eigenpairs(matrix, 6, null, component)
    pieces = component.max() + 1
    np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix.toarray())[pieces : pieces + 6], atol=1e-9)
    assert np.linalg.norm(matrix @ vectors - values * vectors, axis=0).max() < 1e-8
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(6), atol=1e-8)


def test_a_graph_with_a_gap_is_not_factorised(monkeypatch):
    monkeypatch.setattr(lanczos, "_factorise", None)
    lanczos.sparse_eigenpairs(laplacian(GRAPHS["random"])[0], 4, *laplacian(GRAPHS["random"])[1:])


def test_only_graphs_with_a_large_dense_core_fill_in():
    assert not lanczos._fills_in(laplacian(GRAPHS["grid"])[0])
    assert not lanczos._fills_in(laplacian(nx.balanced_tree(3, 8))[0])
    assert not lanczos._fills_in(laplacian(GRAPHS["random"])[0])  # small
    assert lanczos._fills_in(laplacian(nx.gnm_random_graph(lanczos.MAX_CORE_NODES + 500, 60_000, seed=0))[0])


def script(tmp_path, text: str):
    path = tmp_path / "script.py"
    path.write_text(text)
    return str(path)


def test_an_interrupt_ends_a_factorisation(tmp_path, monkeypatch):
    marker = tmp_path / "survived"
    monkeypatch.setattr(
        lanczos, "__file__", script(tmp_path, f"import time; time.sleep(20); open({str(marker)!r}, 'w').close()")
    )
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        lanczos._in_own_process(*laplacian(GRAPHS["grid"])[:1], 4, *laplacian(GRAPHS["grid"])[1:])
    assert time.monotonic() - started < 15
    assert not marker.exists()


def test_a_factorisation_that_fails_says_why(tmp_path, monkeypatch):
    monkeypatch.setattr(lanczos, "__file__", script(tmp_path, "raise MemoryError('no room')"))
    with pytest.raises(
        MemoryError, match=r"Laplacian of 300 nodes failed: MemoryError: no room; its factors need too much"
    ):
        lanczos._in_own_process(*laplacian(GRAPHS["grid"])[:1], 4, *laplacian(GRAPHS["grid"])[1:])
