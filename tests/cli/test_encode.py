"""`gape encode`: what is in the output is what the library gives, under the names of the input."""

import csv
import errno
import gzip
import io
import os
import resource
import subprocess
import sys

import networkx as nx
import numpy as np
import pyarrow.parquet
import pytest
import torch

import gape
from gape.cli import main
from gape.encodings import GAPE, RandomWalk, names
from gape.encodings.store import Store
from gape.io.write import ENDINGS
from tests.command import run

FRIENDS = "source,target,weight,graph\nann,bob,2,work\nbob,cid,1,home\ncid,bob,3,work\nann,cid,0.5,home\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to work in, with a cache of its own."""
    monkeypatch.setenv("GAPE_CACHE", str(tmp_path / "cache"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    (work / "friends.csv").write_text(FRIENDS)
    return work


def by_hand():
    """The same two graphs, built without any file; nodes ann, bob, cid and bob, cid, ann."""
    work = gape.Graph.from_edges([(0, 1), (2, 1)], edge_weight=[2.0, 3.0])
    home = gape.Graph.from_edges([(0, 1), (2, 1)], edge_weight=[1.0, 0.5])
    keys = [("work", name) for name in ("ann", "bob", "cid")] + [("home", name) for name in ("bob", "cid", "ann")]
    return gape.Graph.union([work, home]), keys


def test_every_output_form_holds_the_rows_of_the_library_under_their_names(capsys, folder):
    graph, keys = by_hand()
    rows = GAPE(states=4, damping=0.1, seed=3)(graph).numpy()
    expected = dict(zip(keys, rows.tolist(), strict=True))
    for name in ("pe.parquet", "pe.csv", "pe.npz", "pe.npy"):
        run(capsys, "friends.csv", "-e", "gape", "--states", 4, "--damping=0.1", "--seed", 3, "-o", name)

    table = pyarrow.parquet.read_table("pe.parquet").to_pylist()
    columns = [f"gape_{i}" for i in range(4)]
    assert {(r["graph"], r["node"]): [r[c] for c in columns] for r in table} == expected
    with open("pe.csv", newline="") as file:
        found = {(r["graph"], r["node"]): [float(r[c]) for c in columns] for r in csv.DictReader(file)}
    assert {key: np.float32(row).tolist() for key, row in found.items()} == expected
    with np.load("pe.npz") as arrays:
        assert np.array_equal(arrays["encoding"], rows)
        assert list(zip(arrays["graph"], arrays["node"], strict=True)) == keys
        assert arrays["ptr"].tolist() == [0, 3, 6]
        assert "seed=3" in str(arrays["settings"])
    assert np.array_equal(np.load("pe.npy"), rows)
    with open("pe.nodes.csv", newline="") as file:
        assert [(r["graph"], r["node"]) for r in csv.DictReader(file)] == keys


def test_parquet_keeps_whole_numbers_as_numbers_and_the_settings(capsys, folder):
    (folder / "numbers.csv").write_text("source,target\n10,2\n2,7\n")
    run(capsys, "numbers.csv", "-e", "rw", "-o", "pe.parquet")
    table = pyarrow.parquet.read_table("pe.parquet")
    assert table.column("node").to_pylist() == [2, 7, 10]
    assert table.schema.metadata[b"gape.encoding"].startswith(b"rw: RandomWalk(")


@pytest.mark.filterwarnings("ignore::gape.solvers.solution.AlgebraicOnlyWarning")
@pytest.mark.parametrize("name", names())
def test_every_encoding_runs_from_the_shell_with_its_defaults(capsys, folder, name):
    graph = nx.karate_club_graph()
    nx.write_graphml(nx.relabel_nodes(graph, {0: "Mr. Hi"}), "karate.graphml")
    run(capsys, "karate.graphml", "-e", name, "-o", "pe.npz")
    expected = gape.encode(gape.as_graph(graph), name)
    expected = expected.matrices()[0] if isinstance(expected, gape.encodings.Pairs) else expected
    with np.load("pe.npz") as arrays:
        assert arrays["node"][0] == "Mr. Hi"
        torch.testing.assert_close(torch.from_numpy(arrays["encoding"]), expected, equal_nan=True)


def test_certificates_are_summed_up(capsys, folder):
    (folder / "mixed.csv").write_text("source,target,graph\na,b,one\nb,a,one\na,b,two\n")
    out, _ = run(capsys, "mixed.csv", "-e", "gape", "--damping", 0.5, "-o", "pe.npz")
    assert "2 converged (sum over all runs), 0 algebraic only, 0 singular" in out
    out, _ = run(capsys, "mixed.csv", "-e", "gape", "--damping", 1.5, "-o", "pe.npz")
    assert "1 converged (sum over all runs), 1 algebraic only, 0 singular" in out
    # A row-stochastic automaton on one edge: both have the eigenvalue 1.
    out, _ = run(capsys, "mixed.csv", "-e", "gape-star", "-o", "pe.npz")
    assert "1 converged (sum over all runs), 0 algebraic only, 1 singular" in out


def test_an_unsolvable_graph_is_named_and_nothing_is_written(capsys, folder):
    (folder / "mixed.csv").write_text("source,target,graph\na,b,fine\na,b,broken\nb,a,broken\n")
    words = ("mixed.csv", "-e", "gape-star", "--on-singular", "raise", "-o", "pe.npz")
    _, err = run(capsys, *words, code=2)
    assert err.startswith("gape: graph broken cannot be encoded; singular: ")
    assert "ask for on_singular='least_squares'" in err
    assert sorted(path.name for path in folder.iterdir()) == ["friends.csv", "mixed.csv"]


@pytest.mark.parametrize("readout", ["node", "pair"])
def test_a_graph_solved_by_least_squares_is_not_blamed_for_another(capsys, folder, readout):
    edges = "a,b,1,nearest\nb,a,1,nearest\na,b,1e90,large\n"
    (folder / "mixed.csv").write_text(f"source,target,weight,graph\n{edges}")
    _, err = run(capsys, "mixed.csv", "-e", "gape-star", "--readout", readout, "-o", "pe.npz", code=2)
    assert err.startswith("gape: graph large cannot be encoded; overflow: ")


def test_parts_give_what_the_whole_gives(capsys, folder, monkeypatch):
    monkeypatch.setattr("gape.cli.encode_file.PART_SIZE", 4)
    graph, _ = by_hand()
    for name in ("gape", "rw"):
        run(capsys, "friends.csv", "-e", name, "-o", "pe.npy")
        assert np.allclose(np.load("pe.npy"), gape.encode(graph, name), rtol=1e-6)
    run(capsys, "friends.csv", "-e", "gape", "--readout", "pair", "--states", 2, "-o", "pe.npz")
    with np.load("pe.npz") as arrays:
        assert np.allclose(arrays["encoding"], GAPE(states=2, readout="pair")(graph).values, rtol=1e-6)
        assert arrays["matrix_ptr"].tolist() == [0, 9, 18]


def test_undirected_takes_edges_both_ways(capsys, folder):
    (folder / "path.csv").write_text("source,target\n0,1\n1,2\n")
    run(capsys, "path.csv", "-e", "rw", "--length", 2, "--undirected", "-o", "pe.npy")
    assert np.allclose(np.load("pe.npy"), [[0, 0.5], [0, 1], [0, 0.5]])


def test_settings_may_stand_before_the_file(capsys, folder):
    run(capsys, "--relative", "--states", 2, "friends.csv", "--damping", 0.5, "-e", "gape", "-o", "pe.npz")
    with np.load("pe.npz") as arrays:
        assert "states=2, damping=0.5, relative=True" in str(arrays["settings"])


def test_parts_of_a_mix_have_their_own_options(capsys, folder):
    words = (
        "--rw.length",
        3,
        "--gape-rooted.machines",
        2,
        "--gape-rooted.layers=1",
        "--rw.scaling",
        "row",
        "--seed",
        7,
    )
    _, err = run(capsys, "friends.csv", "-e", "rw+gape-rooted", "--undirected", *words, "-o", "pe.npz")
    assert err == ""
    with np.load("pe.npz") as arrays:
        settings = str(arrays["settings"])
    assert "length=3" in settings
    assert "machines=2, layers=1" in settings
    assert "seed=7" in settings
    assert "scaling=('row', 'none')" in settings


def test_a_seed_where_none_is_needed_is_mentioned(capsys, folder):
    _, err = run(capsys, "friends.csv", "-e", "rw", "--undirected", "--seed", 1, "-o", "pe.npy")
    assert "rw draws no random numbers" in err
    _, err = run(capsys, "friends.csv", "-e", "rw", "--undirected", "--seed", 1, "-q", "-o", "pe.npy")
    assert err == ""


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("friends.csv", "-e", "gape*", "-o", "pe.csv"), "there are gape, gape-paper, gape-star"),
        (
            ("friends.csv", "-e", "gape", "--stats", "3", "-o", "pe.csv"),
            "no such option: --stats; gape has the settings",
        ),
        (("friends.csv", "-e", "gape", "--stats", "3", "-o", "pe.csv"), "did you mean '--states'?"),
        (("friends.csv", "-e", "gpae", "-o", "pe.csv"), "did you mean 'gape'?"),
        (("friends.csv", "-e", "rw", "-o", "pe.csv", "--undirectd"), "did you mean '--undirected'?"),
        (("--unwieghted", "friends.csv", "-e", "rw", "-o", "pe.csv"), "did you mean '--unweighted'?"),
        (("friends.csv", "-e", "rw", "-o", "pe.cvs"), "did you mean '.csv'?"),
        (("friends.csv", "-e", "rrwp", "-o", "pe.npy"), "write it to a .npz file"),
        (
            ("friends.csv", "-e", "gape", "--states", "few", "-o", "pe.csv"),
            "gape: states must be a whole number, got 'few'",
        ),
        (("friends.csv", "-e", "gape", "--states", "0", "-o", "pe.csv"), "gape: states must be at least 1, got 0"),
        (("friends.csv", "-e", "gape", "--damping", "-1", "-o", "pe.csv"), "gape: damping must be"),
        (("friends.csv", "-e", "gape", "--states", "-o", "pe.csv"), "--states needs a value"),
        (("friends.csv", "-e", "gape", "--states", "2", "--states", "3", "-o", "pe.csv"), "--states was given twice"),
        (("friends.csv", "more.csv", "-e", "gape", "-o", "pe.csv"), "expected one input file"),
        (("friends.csv", "-e", "gape", "-z", "-o", "pe.csv"), "no such option: -z"),
        (
            ("friends.csv", "-e", "gape", "-o", "pe.xls"),
            "known are .parquet, .csv, .tsv, .csv.gz, .tsv.gz, .npz, .npy, .pt",
        ),
        (("friends.csv", "-e", "gape", "-o", "nowhere/pe.csv"), "there is no folder nowhere"),
        (("friends.csv", "-e", "gape", "-o", "."), "cannot write"),
        (("missing.csv", "-e", "gape", "-o", "pe.csv"), "there is no file missing.csv"),
        (("friends.csv", "-e", "gape", "-o", "friends.csv"), "friends.csv is the input too"),
        (("bad.csv", "-e", "gape", "-o", "pe.csv"), "bad.csv: 1 bad row. line 3, 'a': has 1 values"),
        (("friends.csv", "-e", "gape", "--readout", "pair", "-o", "pe.npy"), "write it to a .npz file"),
        (("friends.csv", "-e", "lape", "-o", "pe.csv"), "set symmetrize=True to walk edges both ways"),
        (("friends.csv", "-e", "gape", "--labels", "3", "-o", "pe.csv"), "labels=3 and labelling='one' do not go"),
        (("friends.csv", "-e", "spd", "--memory", "1e-9", "-o", "pe.npz"), "or raise memory"),
        (("friends.csv", "-e", "spd", "--cap", "1", "-o", "pe.npz"), "gape: cap must be at least 2, got 1"),
    ],
)
def test_mistakes_cost_one_line_and_leave_nothing_behind(capsys, folder, words, complaint):
    (folder / "bad.csv").write_text("source,target\na,b\na\n")
    out, err = run(capsys, *words, code=2)
    assert out == ""
    assert complaint in err
    assert err.count("\n") == 1
    assert sorted(path.name for path in folder.iterdir()) == ["bad.csv", "friends.csv"]


@pytest.mark.parametrize(
    ("error", "code", "said"), [(OSError("disk full"), 2, "disk full"), (KeyboardInterrupt(), 130, "interrupted")]
)
@pytest.mark.parametrize("name", ["pe.parquet", "pe.csv", "pe.npz", "pe.npy"])
def test_a_failing_write_keeps_the_old_file_and_leaves_no_other(capsys, folder, monkeypatch, name, error, code, said):
    (folder / name).write_text("old")

    def fail(file, *rest, **more):
        with open(file, "wb") as out:
            out.write(b"half")
        raise error

    for writer in ("_parquet", "_csv", "_npz", "_npy"):
        monkeypatch.setattr(f"gape.io.write.{writer}", fail)
    _, err = run(capsys, "friends.csv", "-e", "rw", "--undirected", "-o", name, code=code)
    assert err == f"gape: {said}\n"
    assert (folder / name).read_text() == "old"
    assert sorted(path.name for path in folder.iterdir()) == sorted(["friends.csv", name])


ENDED = """
import os, signal, sys, time
import gape.io.write
from gape.cli import main

def halfway(file, *rest):
    file.write_text("half")
    os.kill(os.getpid(), signal.{signal})
    time.sleep(60)

gape.io.write._npz = halfway
signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background begins with Ctrl-C ignored
sys.argv = ["gape", "encode", "friends.csv", "-e", "rw", "-o", "pe.npz"]
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signals to send")
@pytest.mark.parametrize(("signal", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_program_asked_to_end_leaves_nothing_half_written(folder, signal, code):
    program = [sys.executable, "-c", ENDED.format(signal=signal)]
    assert subprocess.run(program, cwd=folder, capture_output=True, check=False).returncode == code
    assert [path.name for path in folder.iterdir()] == ["friends.csv"]


def test_what_took_long_is_kept_and_found_again(capsys, folder, monkeypatch):
    monkeypatch.setattr("gape.encodings.store.MIN_SECONDS", 0.0)
    monkeypatch.setattr("gape.encodings.store.MIN_SPEEDUP", 0.0)
    words = ("friends.csv", "-e", "rw", "--length", 3, "-o", "pe.npy")
    run(capsys, *words, "--no-cache")
    assert len(Store()) == 0
    run(capsys, *words)
    assert len(Store()) == 1
    first = np.load("pe.npy")
    monkeypatch.setattr(RandomWalk, "__call__", None)
    run(capsys, *words)
    assert np.array_equal(np.load("pe.npy"), first)


@pytest.mark.parametrize(("output", "there"), [("pe.npz", "pe.npz"), ("pe.npy", "pe.npy"), ("pe.npy", "pe.nodes.csv")])
@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_is_no_file_is_refused_before_anything_is_computed(capsys, folder, monkeypatch, output, there, make):
    make(folder / there)
    monkeypatch.setattr("gape.cli.encode_file.read_graphs", None)
    _, err = run(capsys, "friends.csv", "-e", "rw", "-o", output, code=2)
    assert err == f"gape: {there} is a folder or device; name a regular file\n"


def test_names_of_nodes_beside_an_array_overwrite_nothing_else(capsys, tmp_path):
    table = tmp_path / "h.nodes.csv"
    table.write_text("source,target\na,b\n")
    words = (table, "-e", "rw", "--length", 2, "-o")
    _, err = run(capsys, *words, tmp_path / "h.npy", code=2)
    assert "h.nodes.csv, which exists and is another kind of file" in err
    assert table.read_text() == "source,target\na,b\n"
    for _ in range(2):  # names that gape wrote may be written again
        out, _ = run(capsys, *words, tmp_path / "pe.npy")
        assert "pe.nodes.csv: the names of the nodes" in out


PAIR = "source,target\na,b\nb,a\nb,c\n"


@pytest.mark.parametrize("name", ["pe.tsv", "pe.csv.gz", "pe.tsv.gz", "pe.pt", "-"])
def test_more_output_forms_hold_the_same_rows(capfdbinary, folder, name):
    (folder / "pair.csv").write_text(PAIR)
    with pytest.raises(SystemExit):
        main(["encode", "pair.csv", "-e", "rw", "--length", "3", "-o", name])
    expected = RandomWalk(3)(gape.Graph.from_edges([(0, 1), (1, 0), (1, 2)])).numpy()
    if name == "pe.pt":
        held = torch.load(name, weights_only=True)
        assert held["node"] == ["a", "b", "c"]
        assert np.array_equal(held["encoding"].numpy(), expected)
        return
    content = capfdbinary.readouterr().out if name == "-" else (folder / name).read_bytes()
    text = (gzip.decompress(content) if name.endswith(".gz") else content).decode()
    rows = list(csv.DictReader(io.StringIO(text), delimiter="\t" if "tsv" in name else ","))
    assert [row["node"] for row in rows] == ["a", "b", "c"]
    assert np.allclose([[float(row[f"rw_{i}"]) for i in range(3)] for row in rows], expected)


@pytest.mark.parametrize("name", ["pairs.parquet", "pairs.csv"])
def test_encodings_of_pairs_are_long_tables(capsys, folder, name):
    run(capsys, "friends.csv", "-e", "gape", "--readout", "pair", "--states", 2, "--damping", 0.1, "-o", name)
    graph, keys = by_hand()
    expected = GAPE(states=2, readout="pair", damping=0.1)(graph).matrices()
    if name == "pairs.parquet":
        rows = pyarrow.parquet.read_table(name).to_pylist()
    else:
        with open(name, newline="") as file:
            rows = list(csv.DictReader(file))
    place = {key: i % 3 for i, key in enumerate(keys)}
    assert len(rows) == 18
    for row in rows:
        matrix = expected[["work", "home"].index(row["graph"])]
        u, v = place[row["graph"], row["source"]], place[row["graph"], row["target"]]
        assert np.allclose([float(row["gape_0"]), float(row["gape_1"])], matrix[u, v], rtol=1e-5)


def test_standard_input_is_read_as_a_table(capsys, folder, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"src;dst\na;b\nb;a\n")))
    run(capsys, "-", "-e", "rw", "--length", 2, "-o", "pe.npy")
    assert np.array_equal(np.load("pe.npy"), [[0, 1], [0, 1]])


def test_columns_are_named_by_options(capsys, folder):
    (folder / "edges.csv").write_text("when,who,whom,how\n1,a,b,2\n2,b,a,2\n")
    words = ("edges.csv", "-e", "rw", "--length", 2, "-o", "pe.npy")
    run(capsys, *words, "--source", "who", "--target", "whom", "--weight", "how")
    _, err = run(capsys, *words, code=2)
    assert "name the columns by --source and --target" in err
    _, err = run(capsys, *words, "--source", "whoo", "--target", "whom", code=2)
    assert "has no column 'whoo'; it has when,who,whom,how; did you mean 'who'?" in err


def test_weights_and_repeated_edges_are_mentioned_and_can_be_left_out(capsys, folder):
    nx.write_graphml(nx.Graph([("a", "b", {"weight": 3.0}), ("b", "c", {"weight": 1.0})]), "weighted.graphml")
    words = ("weighted.graphml", "-e", "gape", "--damping", "0.1", "-o", "pe.npy")
    _, err = run(capsys, *words)
    assert "the file's edge weights are used; --unweighted leaves them out" in err
    _, err = run(capsys, *words, "--unweighted")
    assert err == ""
    assert np.array_equal(np.load("pe.npy"), GAPE(damping=0.1)(nx.path_graph(3)).numpy())
    (folder / "twice.csv").write_text("source,target\na,b\na,b\nb,c\n")
    _, err = run(capsys, "twice.csv", "-e", "rw", "--undirected", "-o", "pe.npy")
    assert "1 edge is repeated, and weights of repeated edges add up; --unweighted counts every edge once" in err


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_full_disk_is_reported_with_the_file_and_leaves_the_old_one(capsys, folder, ending):
    output = folder / f"pe{ending}"
    output.write_text("old")
    _, hard = before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, hard))  # the system fails to write more, as on a full disk
    try:
        _, err = run(
            capsys, "friends.csv", "-e", "rw", "--length", 300, "--no-cache", "--undirected", "-o", output, code=2
        )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert err == f"gape: [Errno {errno.EFBIG}] {os.strerror(errno.EFBIG)}; nothing was written: '{output}'\n"
    assert output.read_text() == "old"
    assert sorted(path.name for path in folder.iterdir()) == ["friends.csv", output.name]


def test_a_full_disk_behind_standard_output_is_named(folder):
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "gape", "encode", "friends.csv", "-e", "rw", "--undirected", "-o", "-"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 2
    assert done.stderr == f"gape: [Errno {errno.ENOSPC}] {os.strerror(errno.ENOSPC)}: 'standard output'\n"
