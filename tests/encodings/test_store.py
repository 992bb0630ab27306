"""The store returns what was computed, bit by bit, and never anything else."""

import os
import subprocess
import sys
import textwrap
import time
import warnings
from dataclasses import dataclass, make_dataclass

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gape import Graph, encode
from gape.encodings import Encoding, Pairs, RandomWalk
from gape.encodings.store import Store, read_entry

RING = Graph.from_edges([(0, 1), (1, 2), (2, 0)], undirected=True)


@dataclass(frozen=True)
class Slow(Encoding):
    """Counts its calls and takes a while."""

    seconds: float = 0.0

    def compute(self, graph):
        calls.append(self)
        time.sleep(self.seconds)
        return torch.full((graph.num_nodes, 2), 0.1, dtype=self.dtype)


@dataclass(frozen=True)
class Sizes(Encoding):
    """Every pair has the size of its graph."""

    pairwise = True

    def compute(self, graph):
        return Pairs(graph.sizes.repeat_interleave(graph.sizes.square()), graph.sizes)


calls: list[Slow] = []


def tensors(found):
    """Convert a result of :func:`gape.encode` to a list of tensors."""
    return found if isinstance(found, list) else found.matrices() if isinstance(found, Pairs) else [found]


@pytest.fixture(autouse=True)
def _no_calls_yet():
    calls.clear()


def test_what_was_computed_before_is_read_and_not_computed(tmp_path):
    store = Store(tmp_path, always=True)
    first, again = store.encode(RING, Slow()), store.encode(RING, Slow())
    assert len(calls) == len(store) == 1
    assert torch.equal(first, again)
    assert first.dtype == again.dtype


@pytest.mark.parametrize("name", ["rw", "spd", "degree", "sa"])
def test_the_store_answers_as_encode_does(tmp_path, name):
    store = Store(tmp_path, always=True)
    small = Graph.from_edges([(0, 1)], undirected=True)
    for graphs in (RING, Graph.union([RING, small]), [RING, small]):
        for _ in range(2):
            expected, found = encode(graphs, name), store.encode(graphs, name)
            assert type(found) is type(expected)
            for a, b in zip(tensors(found), tensors(expected), strict=True):
                torch.testing.assert_close(a, b, rtol=0, atol=0, equal_nan=True)


def test_encode_takes_a_store(tmp_path):
    store = Store(tmp_path, always=True)
    first, again = (encode([RING, RING], "rw", length=4, store=store) for _ in range(2))
    assert len(store) == 1
    for a, b in zip(first, again, strict=True):
        assert torch.equal(a, b)
    assert torch.equal(encode(RING, "rw", length=4, store=tmp_path), encode(RING, "rw", length=4))
    with pytest.raises(ValueError, match=r"store must be a gape.Store or a folder, .* got True"):
        encode(RING, "rw", store=True)
    with pytest.raises(ValueError, match="must be an encoding or its name, got int"):
        store.encode(RING, 3)


def test_an_encoding_of_the_same_name_from_elsewhere_has_other_entries(tmp_path):
    ours, theirs = RandomWalk(), make_dataclass("RandomWalk", [], bases=(RandomWalk,), frozen=True)()
    assert repr(theirs) == repr(ours)
    assert Store(tmp_path).path(RING, theirs) != Store(tmp_path).path(RING, ours)


def test_settings_go_with_a_name(tmp_path):
    with pytest.raises(ValueError, match="go with a name"):
        Store(tmp_path).encode(RING, RandomWalk(), length=3)


def test_encodings_of_pairs_are_kept_too(tmp_path):
    store = Store(tmp_path, always=True)
    batch = Graph.union([RING, Graph.from_edges([(0, 1)])])
    first, again = store.encode(batch, Sizes()), store.encode(batch, Sizes())
    assert isinstance(again, Pairs)
    assert torch.equal(first.values, again.values)
    assert torch.equal(first.sizes, again.sizes)


graphs = st.builds(
    lambda n, edges, weighted: Graph.from_edges(
        [(u % n, v % n) for u, v in edges],
        num_nodes=n,
        edge_weight=[0.5 + i for i in range(len(edges))] if weighted else None,
    ),
    st.integers(1, 5),
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=6),
    st.booleans(),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
@given(batch=st.lists(graphs.filter(lambda g: g.edge_weight is None), min_size=1, max_size=3), length=st.integers(1, 5))
def test_the_store_gives_what_the_encoding_gives(tmp_path, batch, length):
    store, graph, encoding = Store(tmp_path, always=True), Graph.union(batch), RandomWalk(length=length)
    for _ in range(2):
        assert torch.equal(store.encode(graph, encoding), encoding(graph))


def test_anything_that_could_change_the_result_changes_the_name(tmp_path, monkeypatch):
    store = Store(tmp_path)
    edges = torch.tensor([[0, 1], [1, 2]])
    base = Graph(edges, 4)
    others = [
        Graph(edges, 5),
        Graph(edges.flip(0), 4),
        Graph(edges, 4, edge_weight=torch.ones(2)),
        Graph(edges, 4, edge_weight=torch.ones(2).double()),
        Graph(edges, 4, edge_weight=torch.tensor([1.0, 2.0])),
        Graph(edges, 4, labels=torch.tensor([0, 1, 0, 0])),
        Graph(edges, 4, labels=torch.tensor([0, 0, 1, 0])),
        Graph(edges, 4, edge_type=torch.tensor([0, 1])),
        Graph(edges, 4, ptr=torch.tensor([0, 3, 4])),
    ]
    settings_ = [Slow(), Slow(seconds=1.0), Slow(dtype=torch.float64), Sizes(), RandomWalk(length=3)]
    paths = [store.path(graph, Slow()) for graph in [base, *others]]
    paths += [store.path(base, encoding) for encoding in settings_[1:]]
    monkeypatch.setattr(Slow, "version", 2)
    paths.append(store.path(base, Slow()))
    assert len(set(paths)) == len(paths)


def test_the_name_does_not_depend_on_how_the_tensors_lie_in_memory(tmp_path):
    store = Store(tmp_path)
    edges = torch.tensor([[0, 1], [1, 2], [2, 0]])
    assert store.path(Graph(edges.T, 3), Slow()) == store.path(Graph(edges.T.contiguous(), 3), Slow())


@pytest.mark.parametrize("keep", [0.0, 0.3, 0.9, 0.999])
def test_entries_cut_short_are_computed_anew(tmp_path, keep):
    store = Store(tmp_path, always=True)
    first = store.encode(RING, RandomWalk(length=20))
    (entry,) = store.entries()
    whole = entry.read_bytes()
    entry.write_bytes(whole[: int(keep * len(whole))])
    with pytest.warns(UserWarning, match="is damaged"):
        again = store.encode(RING, RandomWalk(length=20))
    assert torch.equal(first, again)
    assert entry.read_bytes() == whole


def test_one_changed_byte_never_changes_a_result(tmp_path):
    store = Store(tmp_path, always=True)
    first = store.encode(RING, RandomWalk(length=4))
    (entry,) = store.entries()
    whole = entry.read_bytes()
    noticed = 0
    for i in range(len(whole)):
        entry.write_bytes(whole[:i] + bytes([whole[i] ^ 0x55]) + whole[i + 1 :])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            again = store.encode(RING, RandomWalk(length=4))
        noticed += any("is damaged" in str(warning.message) for warning in caught)
        assert torch.equal(first, again), f"byte {i}"
    assert noticed > len(whole) / 4  # the rest are dates and the like, which nobody reads


def test_only_what_takes_five_times_as_long_as_reading_it_is_kept(tmp_path):
    store = Store(tmp_path)
    store.encode(RING, Slow(seconds=0.0))
    assert len(store) == 0
    store.encode(RING, Slow(seconds=0.3))
    assert len(store) == 1
    started = time.perf_counter()
    store.encode(RING, Slow(seconds=0.3))
    assert time.perf_counter() - started < 0.3 / 5


def test_what_turns_out_slow_to_read_is_not_kept(tmp_path, monkeypatch):
    def slowly(path):
        time.sleep(0.1 if path.exists() else 0.0)
        return read_entry(path)

    monkeypatch.setattr("gape.encodings.store.read_entry", slowly)
    store = Store(tmp_path)
    store.encode(RING, Slow(seconds=0.3))
    assert len(store) == 0
    store.encode(RING, Slow(seconds=3.0))
    assert len(store) == 1


def test_edge_weights_that_are_learned_are_not_looked_up(tmp_path):
    weight = torch.ones(3, requires_grad=True)
    Store(tmp_path, always=True).encode(Graph.from_edges([(0, 1), (1, 2), (2, 0)], edge_weight=weight), Slow())
    assert len(list(tmp_path.iterdir())) == 0


def test_a_folder_that_cannot_be_written_costs_the_entry_only(tmp_path):
    (tmp_path / "file").write_text("in the way")
    store = Store(tmp_path / "file", always=True)
    with pytest.warns(UserWarning, match="cannot be cached"):
        assert store.encode(RING, Slow()).shape == (3, 2)


def test_a_failing_write_leaves_nothing_behind(tmp_path, monkeypatch):
    def fail(file, **arrays):
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr("numpy.savez", fail)
    with pytest.warns(UserWarning, match="disk full"):
        Store(tmp_path, always=True).encode(RING, Slow())
    assert list(tmp_path.iterdir()) == []


def test_clearing_frees_everything_also_what_killed_processes_left(tmp_path):
    store = Store(tmp_path, always=True)
    store.encode(RING, Slow())
    for digit, age in (("a", 7200), ("b", 0)):
        left = tmp_path / f".slow-{32 * digit}.npz.1-00.part"
        left.write_bytes(b"x" * 10)
        os.utime(left, (time.time() - age, time.time() - age))
    (tmp_path / "notes.txt").write_text("not ours")
    size = store.size
    assert size > 0
    assert store.clear() == size + 10
    assert (len(store), store.size) == (0, 0)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f".slow-{32 * 'b'}.npz.1-00.part", "notes.txt"]


def test_processes_share_a_folder_without_harm(tmp_path):
    program = textwrap.dedent(
        f"""
        import torch, warnings
        from gape import Graph
        from gape.encodings import RandomWalk
        from gape.encodings.store import Store

        warnings.simplefilter("error")
        store = Store({str(tmp_path)!r}, always=True)
        paths = [Graph.from_edges([(i, i + 1) for i in range(n)], undirected=True) for n in range(3, 9)]
        for turn in range(20):
            for path in paths:
                assert torch.equal(store.encode(path, RandomWalk(length=8)), RandomWalk(length=8)(path))
            if turn % 7 == 0:
                store.clear()
        """
    )
    running = [subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE) for _ in range(2)]
    for process in running:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors.decode()
    assert not list(tmp_path.glob(".*"))


def test_all_caches_lie_in_the_folder_that_one_variable_names(tmp_path, monkeypatch):
    from gape.data.cycles import Cycles
    from gape.data.generation import cache_path

    def folders():
        return [Store().folder, cache_path(Cycles()).parent]

    monkeypatch.setenv("GAPE_CACHE", str(tmp_path / "own"))
    assert folders() == [tmp_path / "own" / "encodings", tmp_path / "own" / "data"]
    monkeypatch.delenv("GAPE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setattr(sys, "platform", "linux")
    assert folders() == [tmp_path / "xdg" / "gape" / "encodings", tmp_path / "xdg" / "gape" / "data"]


def test_files_of_others_in_the_folder_are_not_counted_and_not_removed(tmp_path):
    (tmp_path / "zinc-train.npz").write_bytes(b"mine")
    (tmp_path / ".zinc-train.npz.1-ab.part").write_bytes(b"mine")
    os.utime(tmp_path / ".zinc-train.npz.1-ab.part", (0, 0))
    store = Store(tmp_path, always=True)
    store.encode(Graph.from_edges([(0, 1)]), RandomWalk(length=2))
    assert len(store) == 1
    assert store.clear() > 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [".zinc-train.npz.1-ab.part", "zinc-train.npz"]


def test_weights_of_every_type_of_pytorch_have_a_key(tmp_path):
    weights = torch.ones(2, dtype=torch.bfloat16)
    graph = Graph(torch.tensor([[0, 1], [1, 0]]), 2, edge_weight=weights)
    assert Store(tmp_path, always=True).encode(graph, RandomWalk(length=2)).shape == (2, 2)
