"""Encodings of graphs on disk equal those in memory, however the work is cut and interrupted."""

import json
import sys
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pyarrow.parquet
import pytest
import torch

import gape
from gape import native
from gape.encodings import GAPE, RandomWalk, estimate_random_walk
from gape.graph.spectral_radius import unit_radius
from gape.scale import (
    RMAT,
    Katz,
    PersonalisedPageRank,
    ReturnEstimate,
    build,
    encode_large,
    radius,
    walk_sum,
    workspace,
)
from gape.scale.ranks import Ranks
from gape.scale.walk import MATRICES, RowProduct, SplitWalk
from gape.solvers import Series


def in_memory(graph):
    """The same graph as a :class:`gape.Graph`."""
    target = np.repeat(np.arange(graph.nodes), np.diff(graph.offsets))
    weight = None if graph.weights is None else torch.from_numpy(np.array(graph.weights))
    return gape.Graph(np.stack([np.array(graph.columns), target]), graph.nodes, edge_weight=weight)


def exact(encoding, graph):
    """The sum over runs by the library's own solver, in float64."""
    graph, matrix = encoding.labelled(graph), encoding.matrix
    if encoding.relative:
        graph, matrix = unit_radius(graph, matrix), "adjacency"
    return gape.solve(encoding.automaton, graph, matrix=matrix, solver=Series(1e-13)).weights.numpy()


def weighted(folder):
    path = folder / "weighted.csv"
    rows = [f"{u},{v},{1 + (u * v) % 5 / 4}" for u, v in nx.gnm_random_graph(60, 400, seed=2, directed=True).edges]
    path.write_text("\n".join(["source,target,weight", *rows]))
    return path


@pytest.fixture(params=["directed", "undirected", "weighted"])
def graph(request, tmp_path):
    if request.param == "weighted":
        return build(weighted(tmp_path), tmp_path / "g")
    return build(RMAT(9, 4000, seed=1), tmp_path / "g", undirected=request.param == "undirected")


@pytest.fixture(params=["compiled", "numpy"])
def backend(request):
    if request.param == "compiled":
        if native.library() is None:
            pytest.skip(native.description())
        yield
    else:
        with native.switched_off():
            yield


@pytest.mark.parametrize("columns", [1, 3, 11])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_products_are_those_of_the_matrix(graph, backend, columns, dtype):
    x = np.random.default_rng(0).normal(size=(graph.nodes, columns)).astype(dtype)
    expected = in_memory(graph).walk().push(torch.from_numpy(x.astype(np.float64))).numpy()
    first, last = 17, graph.nodes - 5
    for threads in (1, 3):
        found = RowProduct(graph, first, last, threads)(x, np.empty((last - first, columns), dtype=dtype))
        assert np.allclose(found, expected[first:last], rtol=1e-12 if dtype == "float64" else 1e-6, atol=1e-6)
        assert dtype == "float32" or np.allclose(found, expected[first:last], rtol=1e-13, atol=1e-12)


@pytest.mark.parametrize("matrix", MATRICES)
def test_steps_and_radii_are_those_in_memory(graph, backend, matrix, monkeypatch):
    walk, memory = SplitWalk(graph, matrix, Ranks()), in_memory(graph)
    x = np.random.default_rng(0).random((graph.nodes, 1))
    assert np.allclose(walk.step(x), memory.walk(matrix).push(torch.from_numpy(x)).numpy(), rtol=1e-12)
    expected = float(gape.encodings.spectral_radius(memory.walk(matrix))[0])
    for limit in (1 << 22, 10):  # in memory, then by Arnoldi on disk
        monkeypatch.setattr(radius, "MAX_MEMORY_EDGES", limit)
        assert radius.spectral_radius(walk, lambda *_: None) == pytest.approx(expected, rel=1e-10)


def test_the_radius_of_a_graph_without_cycles_is_zero(tmp_path, backend):
    path = tmp_path / "dag.txt"
    path.write_text("".join(f"{u} {v}\n" for u in range(20) for v in range(u + 1, 20)))
    graph = build(path, tmp_path / "g")
    assert radius.spectral_radius(SplitWalk(graph, "adjacency", Ranks()), lambda *_: None) == 0.0
    # The sum is finite: relative damping is then the damping itself, as in memory.
    encoding = GAPE(states=3, damping=0.9, relative=True, dtype=torch.float64)
    result = encode_large(graph, encoding, tmp_path / "pe.npy")
    assert np.allclose(np.load(tmp_path / "pe.npy"), exact(encoding, in_memory(graph)), rtol=1e-12)
    assert result.residual == 0.0
    assert result.steps == 20


@pytest.mark.parametrize(
    "settings",
    [
        {"matrix": "random_walk"},
        {"matrix": "random_walk", "damping": 0.1, "relative": False},
        {"matrix": "random_walk_in", "damping": 0.8, "relative": False, "initial": "softmax_states"},
        {"damping": 0.7, "relative": True, "matrix": "symmetric", "labels": 3, "labelling": "degree"},
        {"damping": 0.001, "relative": False},
    ],
    ids=str,
)
def test_gape_is_that_in_memory(graph, settings, tmp_path, monkeypatch):
    encoding = GAPE(states=5, dtype=torch.float64, seed=2, **settings)
    expected = exact(encoding, in_memory(graph))
    # Few steps and rows per block, so that partial sums and blocks are used.
    for steps, rows in ((1000, 1 << 15), (41, 100)):
        monkeypatch.setattr(walk_sum, "BLOCK_STEPS", steps)
        monkeypatch.setattr(walk_sum, "BLOCK_ROWS", rows)
        result = encode_large(graph, encoding, tmp_path / "pe.npy")
        found = np.load(tmp_path / "pe.npy")
        assert np.abs(found - expected).max() <= 1e-10 * np.abs(expected).max()
        assert result.residual <= 1e-12
        assert result.spectral_radius < 1
    assert not list(graph.folder.glob("encode-*"))


def test_counts_that_exceed_the_range_are_rescaled(tmp_path, monkeypatch):
    graph = build(RMAT(8, 3000), tmp_path / "g")
    encoding = GAPE(states=4, damping=0.9, relative=True, dtype=torch.float64)
    expected = exact(encoding, in_memory(graph))
    monkeypatch.setitem(walk_sum.MAX_EXPONENT, "float64", 3)
    encode_large(graph, encoding, tmp_path / "pe.npy")
    assert np.allclose(np.load(tmp_path / "pe.npy"), expected, rtol=1e-9, atol=1e-10 * np.abs(expected).max())


def test_float32_vectors_give_six_digits(tmp_path):
    graph = build(RMAT(8, 3000), tmp_path / "g")
    encoding = GAPE(states=4, damping=0.5, relative=True)
    encode_large(graph, encoding, tmp_path / "pe.npy", vectors="float32")
    expected = exact(encoding, in_memory(graph))
    assert 0 < np.abs(np.load(tmp_path / "pe.npy") - expected).max() < 3e-6 * np.abs(expected).max()


def true_residual(encoding, graph, weights):
    """‖X - MᵀXμ - ℓα‖ / ‖ℓα‖ by dense matrices in float64."""
    graph, matrix = encoding.labelled(graph), encoding.matrix
    if encoding.relative:
        graph, matrix = unit_radius(graph, matrix), "adjacency"
    dense, automaton = graph.walk(matrix).dense()[0].numpy(), encoding.automaton
    labels = np.zeros(graph.num_nodes, dtype=int) if graph.labels is None else graph.labels.numpy()
    rhs = automaton.initial.numpy().T[labels]
    return np.linalg.norm(weights - dense.T @ weights @ automaton.transition.numpy() - rhs) / np.linalg.norm(rhs)


@pytest.mark.parametrize("vectors", ["float64", "float32"])
@pytest.mark.parametrize("limit", [40, 3], ids=["plain", "rescaled"])
@pytest.mark.parametrize(
    "settings",
    [
        {"matrix": "random_walk", "relative": False},
        {"matrix": "random_walk", "damping": 0.9, "relative": False},
        {"matrix": "random_walk_in", "damping": 0.5, "relative": False},
        {"damping": 0.7, "relative": True, "matrix": "symmetric", "labels": 3, "labelling": "degree"},
        {"damping": 0.9, "relative": True},
    ],
    ids=str,
)
def test_reported_residuals_are_no_smaller_than_the_true_ones(graph, settings, vectors, limit, tmp_path, monkeypatch):
    monkeypatch.setitem(walk_sum.MAX_EXPONENT, vectors, limit)
    encoding = GAPE(states=5, dtype=torch.float64, seed=2, **settings)
    result = encode_large(graph, encoding, tmp_path / "pe.npy", vectors=vectors)
    true = true_residual(encoding, in_memory(graph), np.load(tmp_path / "pe.npy"))
    if vectors == "float64":
        assert result.residual <= 1e-12
        assert true <= result.residual + 1e-14
    else:
        if encoding.matrix != "random_walk_in":  # where all counts are 1, and exact
            assert true > 1e-11  # rounding of the counts, far above the tolerance
        assert true <= result.residual <= 1e-5


def test_counts_below_the_range_of_float32_are_in_the_residual(tmp_path):
    (tmp_path / "e.csv").write_text("source,target,weight\n0,1,1e-46\n1,0,1e-46\n")
    graph = build(tmp_path / "e.csv", tmp_path / "g")
    encoding = GAPE(states=2, damping=0.9, relative=True, dtype=torch.float64)
    for vectors in ("float64", "float32"):
        result = encode_large(graph, encoding, tmp_path / "pe.npy", vectors=vectors)
        true = true_residual(encoding, in_memory(graph), np.load(tmp_path / "pe.npy"))
        assert true <= result.residual + 1e-14
        assert (true > 0.1) == (vectors == "float32")


def test_a_checkpoint_that_does_not_know_its_rounding_is_not_continued(tmp_path, monkeypatch):
    graph = build(RMAT(8, 3000), tmp_path / "g")
    encoding = GAPE(4, 0.6, relative=True)
    whole = encode_large(graph, encoding, tmp_path / "whole.npy", vectors="float32")
    monkeypatch.setattr(workspace, "CHECKPOINT_SECONDS", 0.0)

    def stop(stage, done, total):
        if stage == "walking" and done >= 9:
            raise KeyboardInterrupt

    for forget in (False, True):
        with pytest.raises(KeyboardInterrupt):
            encode_large(graph, encoding, tmp_path / "pe.npy", vectors="float32", progress=stop)
        (file,) = graph.folder.glob("encode-*/state.json")
        record = json.loads(file.read_text())
        assert len(record["state"]["shifts"]) == 8
        if forget:  # as written by an earlier version
            del record["state"]["rounding"]
            file.write_text(json.dumps(record))
        found = encode_large(graph, encoding, tmp_path / "pe.npy", vectors="float32")
        assert (found.residual, found.steps) == (whole.residual, whole.steps)
        assert (tmp_path / "pe.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()


def test_divergent_damping_is_refused_before_any_work(tmp_path):
    graph = build(RMAT(9, 9000), tmp_path / "g")
    stages = []
    for encoding in (GAPE(damping=0.5, relative=False), Katz(beta=0.5)):
        with pytest.raises(ValueError, match=r"diverges: ρ\(μ\) = 0.5 times ρ\(A\) = \d.*--relative.*random_walk"):
            encode_large(graph, encoding, tmp_path / "pe.npy", progress=lambda stage, *_: stages.append(stage))
    with pytest.raises(ValueError, match="a relative damping must be below 1, got 1"):
        encode_large(graph, GAPE(damping=1.0, relative=True), tmp_path / "pe.npy")
    assert not {"walking", "writing"} & {*stages}
    assert [path.name for path in tmp_path.iterdir()] == ["g"]


@pytest.mark.parametrize("damping", [0.02, 0.9])  # one block of steps, several
def test_free_space_is_asked_for_before_any_work(tmp_path, monkeypatch, damping):
    stream = RMAT(12, 60_000, seed=3)
    asked, used = [], [0]

    def note(folder, needed, what):
        asked.append(needed)

    def look(*_):
        used[-1] = max(used[-1], sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file()))

    monkeypatch.setattr(sys.modules["gape.scale.build"], "check_free_space", note)
    monkeypatch.setattr(sys.modules["gape.scale.encode"], "check_free_space", note)
    monkeypatch.setattr(sys.modules["gape.scale.build"], "RECORD_SECONDS", 0.0)
    disk = build(stream, tmp_path / "g", progress=look)
    used.append(0)
    before = sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file())
    encode_large(disk, GAPE(states=8, damping=damping), tmp_path / "pe.npy", progress=look)
    used[1] -= before
    assert len(asked) == 2
    for needed, peak in zip(asked, used, strict=True):
        assert 0.6 * needed < peak <= 1.05 * needed

    monkeypatch.undo()
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=1000))
    with pytest.raises(OSError, match=r"sorting the 60,000 edges .* needs about .* GiB of disk, and .* GiB free"):
        build(stream, tmp_path / "h")
    here = sorted(tmp_path.rglob("*"))
    with pytest.raises(OSError, match=r"encoding 4,096 nodes with 9 columns needs about .* GiB of disk"):
        encode_large(disk, GAPE(states=9), tmp_path / "other.npy")
    assert sorted(tmp_path.rglob("*")) == here


def test_what_a_graph_on_disk_cannot_have_is_refused(tmp_path):
    graph = build(RMAT(5, 50), tmp_path / "g")
    for settings, complaint in [
        ({"readout": "closed"}, "readout='closed' is not available for graphs on disk; there it is one of node"),
        ({"labels": 3, "labelling": "random"}, "labelling='random' is not available"),
        ({"matrix": "laplacian"}, "walked by one of adjacency, random_walk, random_walk_in, symmetric"),
    ]:
        with pytest.raises(ValueError, match=complaint):
            encode_large(graph, GAPE(**settings), tmp_path / "pe.npy")
    with pytest.raises(ValueError, match=r"written as .npy or .parquet"):
        encode_large(graph, "gape", tmp_path / "pe.csv")
    with pytest.raises(ValueError, match="'lape' is not available on disk; there are gape"):
        encode_large(graph, "lape", tmp_path / "pe.npy")
    with pytest.raises(ValueError, match="katz on disk has no setting 'gamma'; it has beta"):
        encode_large(graph, "katz", tmp_path / "pe.npy", gamma=1)
    with pytest.raises(ValueError, match="settings belong to an encoding given by name"):
        encode_large(graph, Katz(), tmp_path / "pe.npy", beta=1)


def test_katz_is_the_solution_of_its_equation(graph, tmp_path):
    encode_large(graph, "katz", tmp_path / "pe.npy", beta=0.8, relative=True, dtype="float64")
    matrix = in_memory(graph).walk().dense()[0].numpy()
    beta = 0.8 / np.abs(np.linalg.eigvals(matrix)).max()
    expected = np.linalg.solve(np.eye(len(matrix)) - beta * matrix.T, np.ones(len(matrix)))
    assert np.allclose(np.load(tmp_path / "pe.npy")[:, 0], expected, rtol=1e-9)


def test_pagerank_is_that_of_networkx(tmp_path):
    path = tmp_path / "web.txt"
    edges = [(3 * u, 3 * v) for u, v in nx.gnm_random_graph(40, 90, seed=5, directed=True).edges]
    path.write_text("".join(f"{u}\t{v}\n" for u, v in edges))
    graph, reference = build(path, tmp_path / "g"), nx.DiGraph(edges)
    assert min(dict(reference.out_degree).values()) == 0  # dangling nodes matter
    encode_large(graph, PersonalisedPageRank("9, 60", dtype=torch.float64), tmp_path / "pe.npy")
    found = np.load(tmp_path / "pe.npy")
    for column, node in enumerate((9, 60)):
        expected = nx.pagerank(reference, alpha=0.85, personalization={node: 1}, dangling={node: 1}, tol=1e-14)
        assert np.allclose(found[:, column], [expected[name] for name in graph.names.tolist()], atol=1e-12)
    assert (tmp_path / "pe.nodes.csv").read_text().split() == ["node", *map(str, graph.names.tolist())]
    with pytest.raises(ValueError, match="there is no node 10 in DiskGraph"):
        encode_large(graph, PersonalisedPageRank((10,)), tmp_path / "pe.npy")
    with pytest.raises(ValueError, match="needs the nodes where walks start"):
        PersonalisedPageRank()


def test_estimated_returns_are_those_in_memory_on_undirected_graphs(tmp_path):
    graph = build(RMAT(6, 300), tmp_path / "g", undirected=True)
    result = encode_large(graph, ReturnEstimate(5, 36, seed=3, dtype=torch.float64), tmp_path / "pe.npy")
    expected = estimate_random_walk(in_memory(graph), 5, samples=36, seed=3)
    assert np.allclose(np.load(tmp_path / "pe.npy"), expected.values, atol=1e-13)
    assert np.allclose(np.load(result.errors), expected.standard_error, atol=1e-13)
    assert result.largest_error == pytest.approx(float(expected.standard_error.max()))


def test_estimated_returns_are_close_to_the_exact_ones_on_directed_graphs(tmp_path):
    graph = build(RMAT(6, 300), tmp_path / "g")
    encode_large(graph, ReturnEstimate(4, 1000, dtype=torch.float64), tmp_path / "pe.parquet")
    table = pyarrow.parquet.read_table(tmp_path / "pe.parquet")
    found, error = (
        np.stack([table.column(f"{name}_{i}").to_numpy() for i in range(4)], 1) for name in ("rw", "rw_error")
    )
    expected = RandomWalk(4, dtype=torch.float64)(in_memory(graph)).numpy()
    within = np.abs(found - expected) <= 2 * error + 1e-12
    assert within.mean() > 0.93
    assert (np.abs(found - expected) <= 6 * error + 1e-12).all()
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["pe.parquet"]


def test_parquet_holds_the_rows_under_their_names(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text("source,target\n10,4\n4,7\n7,10\n")
    graph = build(path, tmp_path / "g")
    encode_large(graph, "gape", tmp_path / "pe.parquet", states=2, matrix="random_walk")
    encode_large(graph, "gape", tmp_path / "pe.npy", states=2, matrix="random_walk")
    table = pyarrow.parquet.read_table(tmp_path / "pe.parquet")
    assert table.column("node").to_pylist() == [4, 7, 10]
    assert np.array_equal(
        np.stack([table.column(f"gape_{i}").to_numpy() for i in range(2)], 1), np.load(tmp_path / "pe.npy")
    )
    assert b"matrix='random_walk'" in table.schema.metadata[b"gape.encoding"]


@pytest.mark.parametrize("encoding", [GAPE(4, 0.6, relative=True), ReturnEstimate(4, 40)], ids=["gape", "rw"])
def test_an_interrupted_encoding_goes_on_and_gives_the_same_bytes(tmp_path, monkeypatch, encoding):
    monkeypatch.setattr(walk_sum, "BLOCK_STEPS", 10)
    graph = build(RMAT(8, 3000), tmp_path / "g")
    encode_large(graph, encoding, tmp_path / "whole.npy")
    monkeypatch.setattr(workspace, "CHECKPOINT_SECONDS", 0.0)

    def stop_at(limit):
        calls = []

        def progress(stage, done, total):
            calls.append((stage, done))
            if stage == "walking" and done >= limit:
                raise KeyboardInterrupt

        return progress, calls

    for limit in (6, 17, 27):
        progress, _ = stop_at(limit)
        with pytest.raises(KeyboardInterrupt):
            encode_large(graph, encoding, tmp_path / "pe.npy", progress=progress)
        assert not (tmp_path / "pe.npy").exists()
    progress, calls = stop_at(np.inf)
    encode_large(graph, encoding, tmp_path / "pe.npy", progress=progress)
    assert min(done for stage, done in calls if stage == "walking") > 17
    assert (tmp_path / "pe.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()
    assert not list(tmp_path.glob(".pe*"))


@pytest.mark.slow(reason="four million edges, in memory and on disk")
@pytest.mark.parametrize("settings", [{}, {"matrix": "random_walk"}])
def test_four_million_edges_are_encoded_as_in_memory(tmp_path, settings):
    graph = build(RMAT(17, 4_000_000, seed=3), tmp_path / "g")
    encoding = GAPE(dtype=torch.float64, **settings)
    encode_large(graph, encoding, tmp_path / "pe.npy")
    expected = exact(encoding, in_memory(graph))
    assert np.abs(np.load(tmp_path / "pe.npy") - expected).max() <= 1e-10 * np.abs(expected).max()
