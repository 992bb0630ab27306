"""Graphs on disk: the edges of the stream, whole or not at all, whatever interrupts the sort."""

import gzip
import sys
from contextlib import nullcontext

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from gape import native
from gape.io.edge_chunks import EdgeChunk, EdgeFile
from gape.scale import RMAT, DiskGraph, build
from gape.scale.radius import components
from gape.scale.walk import RowProduct

sorting = sys.modules["gape.scale.build"]


class Edges:
    """A stream of given edges in chunks of ``size``; stops with an error before chunk ``fail``."""

    name, fingerprint = "edges", "edges of a test"

    def __init__(self, source, target, weight=None, nodes=None, size=7, fail=None):
        self.source, self.target, self.weight = source, target, weight
        self.nodes, self.size, self.fail = nodes, size, fail

    def chunks(self, skip=0):
        for number, first in enumerate(range(0, len(self.source), self.size)):
            if number >= skip:
                if number == self.fail:
                    raise KeyboardInterrupt
                part = slice(first, first + self.size)
                weight = None if self.weight is None else self.weight[part]
                yield EdgeChunk(self.source[part], self.target[part], weight)


def matrix(graph):
    """The adjacency matrix of a graph on disk, by SciPy."""
    values = np.ones(graph.edges) if graph.weights is None else np.array(graph.weights)
    shape = (graph.nodes, graph.nodes)
    return scipy.sparse.csr_array((values, np.array(graph.columns), np.array(graph.offsets)), shape=shape).toarray().T


def dense(source, target, weight, n):
    out = np.zeros((n, n))
    np.add.at(out, (source, target), 1.0 if weight is None else weight)
    return out


@pytest.fixture
def small_buckets(monkeypatch):
    """Buckets of 8 ids and 5 edges, so that small graphs have many, and some are split."""
    monkeypatch.setattr(sorting, "BUCKET_BITS", 3)
    monkeypatch.setattr(sorting, "MAX_BUCKET_EDGES", 5)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("undirected", "duplicates"), [(False, "keep"), (False, "remove"), (True, None)])
def test_the_matrix_is_that_of_the_edges(tmp_path, small_buckets, weighted, undirected, duplicates):
    random = np.random.default_rng(0)
    source, target = random.integers(0, 40, (2, 300))
    # One weight per pair of nodes, so that repeated edges agree.
    weight = 1.0 + (np.minimum(source, target) * 40 + np.maximum(source, target)) % 7 if weighted else None
    graph = build(Edges(source, target, weight, 40), tmp_path / "g", undirected=undirected, duplicates=duplicates)
    expected = dense(source, target, weight, 40)
    if undirected or duplicates == "remove":
        once = np.zeros((40, 40))
        once[source, target] = 1.0 if weight is None else weight
        expected = np.maximum(once, once.T) if undirected else once
    assert np.array_equal(matrix(graph), expected)
    assert np.array_equal(graph.out_degree, expected.sum(1))
    assert graph.repeated == (1 + undirected) * 300 - graph.edges if duplicates != "keep" else graph.repeated == 0
    assert all((np.diff(graph.columns[a:b]) >= 0).all() for a, b in zip(graph.offsets, graph.offsets[1:], strict=False))
    assert not (tmp_path / "g" / "building").exists()


def test_nodes_are_the_ids_that_occur_in_ascending_order(tmp_path, small_buckets):
    source, target = np.array([900, 5, 70_000]), np.array([5, 70_000, 900])
    graph = build(Edges(source, target), tmp_path)
    assert graph.names.tolist() == [5, 900, 70_000]
    assert np.array_equal(matrix(graph), dense([1, 0, 2], [0, 2, 1], None, 3))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=60), st.booleans())
@settings(max_examples=12)
def test_any_edges_are_kept(tmp_path_factory, edges, named):
    source, target = np.array(edges).T
    folder = tmp_path_factory.mktemp("graph")
    graph = build(Edges(source, target, nodes=None if named else 31), folder)
    ids = np.arange(31) if graph.names is None else graph.names
    rows, columns = matrix(graph).nonzero()
    if named:
        assert set(ids[: graph.nodes].tolist()) == {*source.tolist(), *target.tolist()}
    assert {*zip(ids[rows].tolist(), ids[columns].tolist(), strict=True)} == {*edges}
    assert graph.edges == len(edges)


@pytest.mark.parametrize("stage", ["spread", "merge"])
def test_an_interrupted_sort_goes_on_and_gives_the_same_bytes(tmp_path, small_buckets, monkeypatch, stage):
    source, target = np.random.default_rng(1).integers(0, 40, (2, 200))
    whole = build(Edges(source, target, nodes=40), tmp_path / "whole")
    if stage == "spread":
        with pytest.raises(KeyboardInterrupt):
            build(Edges(source, target, nodes=40, fail=11), tmp_path / "g")
        # What was written after the last record, as by a process that was killed.
        for file in (tmp_path / "g" / "building").glob("*.keys"):
            file.write_bytes(file.read_bytes() + b"12345678")
        seen = []
        stream = Edges(source, target, nodes=40)
        chunks = stream.chunks
        stream.chunks = lambda skip=0: (seen.append(skip), chunks(skip))[1]
        build(stream, tmp_path / "g")
        assert seen == [11]
    else:
        append, calls = sorting._append_to, []

        def fail_late(file, values):
            calls.append(file)
            if len(calls) == 12:
                raise OSError("disk full")
            append(file, values)

        with monkeypatch.context() as patch:
            patch.setattr(sorting, "_append_to", fail_late)
            with pytest.raises(OSError, match="disk full"):
                build(Edges(source, target, nodes=40), tmp_path / "g")
        assert not DiskGraph.holds(tmp_path / "g")
        stream = Edges(source, target, nodes=40, fail=0)  # the edges are not read again
        build(stream, tmp_path / "g")
    for name in ("offsets.bin", "columns.bin", "out_degree.bin"):
        assert (tmp_path / "g" / name).read_bytes() == (whole.folder / name).read_bytes()


def test_a_graph_is_built_once_and_not_mistaken_for_another(tmp_path):
    first = build(RMAT(5, 40), tmp_path)
    assert build(RMAT(5, 40), tmp_path) == first
    with pytest.raises(ValueError, match=r"holds the graph of RMAT\(scale=5, edges=40, .* Name another folder"):
        build(RMAT(5, 41), tmp_path)


def test_a_damaged_graph_is_refused(tmp_path):
    build(RMAT(5, 40), tmp_path)
    (tmp_path / "columns.bin").write_bytes(b"1234")
    with pytest.raises(ValueError, match=r"columns.bin has 4 bytes, expected 160; delete the folder"):
        DiskGraph.open(tmp_path)
    (tmp_path / "graph.json").write_text("{")
    with pytest.raises(ValueError, match=r"graph.json is damaged"):
        DiskGraph.open(tmp_path)
    with pytest.raises(FileNotFoundError, match="holds no graph"):
        DiskGraph.open(tmp_path / "nowhere")


@pytest.mark.parametrize("value", [2**31 - 1, -1, 32])
@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "numpy"])
def test_columns_beyond_the_nodes_are_found_before_they_are_read(tmp_path, value, compiled):
    graph = build(RMAT(5, 40), tmp_path)
    columns = np.memmap(tmp_path / "columns.bin", np.int32, "r+")
    columns[7] = value
    columns.flush()
    product = RowProduct(DiskGraph.open(tmp_path), 0, graph.nodes)
    for m in (1, 3):
        with (
            nullcontext() if compiled else native.switched_off(),
            pytest.raises(ValueError, match="is damaged: it has"),
        ):
            product(np.ones((graph.nodes, m)), np.empty((graph.nodes, m)))


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(
    ("name", "dtype", "value"),
    [
        ("columns.bin", np.int32, 2**31 - 1),
        ("columns.bin", np.int32, -7),
        ("offsets.bin", np.int64, 10**12),
        ("offsets.bin", np.int64, -5),
        ("offsets.bin", np.int64, 1),
    ],
)
def test_components_of_a_damaged_graph_are_refused(tmp_path, name, dtype, value, compiled):
    build(RMAT(8, 2000), tmp_path)
    numbers = np.memmap(tmp_path / name, dtype, "r+")
    numbers[100] = value
    numbers.flush()
    with nullcontext() if compiled else native.switched_off(), pytest.raises(ValueError, match=r"is damaged: it has"):
        components(DiskGraph.open(tmp_path))
    assert not (tmp_path / "components.bin").exists()


def test_contradicting_weights_and_settings_are_refused(tmp_path):
    twice = Edges(np.array([1, 1]), np.array([2, 2]), np.array([1.0, 3.0]), 4)
    with pytest.raises(ValueError, match="edge 1 → 2 occurs with weights 1 and 3; keep duplicates"):
        build(twice, tmp_path, duplicates="remove")
    with pytest.raises(ValueError, match="does not go with undirected=True"):
        build(twice, tmp_path, undirected=True, duplicates="keep")
    with pytest.raises(ValueError, match="duplicates must be one of 'keep', 'remove', got 'sum'"):
        build(twice, tmp_path, duplicates="sum")


def test_a_graph_without_edges(tmp_path):
    graph = build(Edges(np.zeros(0, int), np.zeros(0, int), nodes=3), tmp_path)
    assert (graph.edges, graph.offsets.tolist()) == (0, [0, 0, 0, 0])
    with pytest.raises(ValueError, match="edges holds no edges"):
        build(Edges(np.zeros(0, int), np.zeros(0, int)), tmp_path / "none")


@pytest.mark.parametrize("name", ["e.csv", "e.tsv", "e.txt", "e.txt.gz", "e.parquet", "e.npz"])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_kind_of_file_gives_the_same_edges(tmp_path, name, weighted):
    source, target, weight = [0, 2, 2, 1], [1, 0, 2, 2], [0.5, 2.0, 1.0, 3.0]
    path = tmp_path / name
    if name.endswith("parquet"):
        columns = {"source": source, "target": target} | ({"weight": weight} if weighted else {})
        pyarrow.parquet.write_table(pyarrow.table(columns), path)
    elif name.endswith("npz"):
        values = np.array(weight if weighted else [1.0] * 4)
        held = scipy.sparse.csr_array((values, (source, target)), shape=(3, 3))
        data = {"data": held.data} if weighted else {}
        np.savez(path, indptr=held.indptr.astype(np.uint32), indices=held.indices.astype(np.uint32), **data)
    else:
        mark = "," if "csv" in name else "\t"
        rows = [mark.join(map(str, row[: 2 + weighted])) for row in zip(source, target, weight, strict=True)]
        top = "# a comment" if "txt" in name else mark.join(["source", "target", "weight"][: 2 + weighted])
        text = "\n".join([top, *rows, ""]).encode()
        path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    graph = build(path, tmp_path / "g")
    assert graph.weighted == weighted
    assert np.array_equal(matrix(graph), dense(source, target, weight if weighted else None, 3))


@pytest.mark.parametrize(
    ("name", "text", "complaint"),
    [
        ("e.csv", "source,target\nann,bob\n", "whole numbers, so number yours first"),
        ("e.csv", "source,target\n1,-2\n", r"node ids must be 0 … 4294967295, got -2"),
        ("e.csv", "tail,head\n1,2\n", "has the columns tail,head; an edge list needs source,target"),
        ("e.csv", "source,target,graph\n1,2,3\n", "several graphs cannot be one graph on disk"),
        (
            "e.csv",
            "source,target,weight\n1,2,-3\n",
            "at least 0, got -3; encode graphs with negative weights in memory",
        ),
        ("e.csv", "source,target\n1,\n", "1 rows have no target"),
        ("e.txt", "# nothing\n", "holds no edges"),
        ("e.txt", "1\t2\t3\t4\n", "expected two or three columns, got '1\\\\t2"),
        ("e.gml", "graph []", r"not from '.gml'"),
    ],
)
def test_bad_files_are_named_with_what_is_wrong(tmp_path, name, text, complaint):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=complaint):
        build(tmp_path / name, tmp_path / "g")
    assert not DiskGraph.holds(tmp_path / "g")
    with pytest.raises(FileNotFoundError, match=r"there is no file"):
        EdgeFile(tmp_path / "missing.csv")


def test_blocks_of_an_rmat_graph_are_independent_and_follow_the_quadrants(monkeypatch):
    whole = next(RMAT(9, 50_000, seed=4).chunks())
    monkeypatch.setattr("gape.scale.rmat.BLOCK_EDGES", 1000)
    parts = [part.source for part in RMAT(9, 50_000, seed=4).chunks()]
    assert np.array_equal(np.concatenate(parts), whole.source)
    assert np.array_equal(next(RMAT(9, 50_000, seed=4).chunks(skip=7)).source, parts[7])
    assert not np.array_equal(next(RMAT(9, 50_000, seed=5).chunks()).source, parts[0])
    # At every level the quadrant has the given chances: within five standard errors.
    for level in range(9):
        quadrant = ((whole.source >> level) & 1) * 2 + ((whole.target >> level) & 1)
        share = np.bincount(quadrant, minlength=4) / len(quadrant)
        chance = np.array([0.57, 0.19, 0.19, 0.05])
        assert (np.abs(share - chance) < 5 * np.sqrt(chance * (1 - chance) / len(quadrant)) + 2**-15).all()


def test_shuffling_an_rmat_graph_renumbers_its_nodes():
    plain, shuffled = (next(RMAT(6, 3000, shuffle=shuffle).chunks()) for shuffle in (False, True))
    number = {}
    for a, b in ((plain.source, shuffled.source), (plain.target, shuffled.target)):
        for old, new in zip(a.tolist(), b.tolist(), strict=True):
            assert number.setdefault(old, new) == new
    assert len(set(number.values())) == len(number) == 64
