"""`gape encode --on-disk`: the same rows as in memory, in a folder that can be used again."""

import numpy as np
import pytest

import gape
from gape.encodings import GAPE
from tests.command import run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = np.random.default_rng(0).integers(0, 50, (200, 2)) * 2
    np.savetxt(tmp_path / "web.txt", rows, fmt="%d", delimiter="\t", header="FromNodeId\tToNodeId")
    return tmp_path


def test_rows_are_those_in_memory(capsys, folder):
    settings = ("-e", "gape", "--states", 4, "--relative", "--damping", 0.5, "--seed", 3)
    for more in ((), ("--unweighted",), ("--undirected", "--unweighted")):
        disk = f"disk{len(more)}{'-'.join(more)}"
        out, _ = run(capsys, "web.txt", *settings, *more, "--on-disk", disk, "-o", "disk.npy")
        run(capsys, "web.txt", *settings, *more, "-o", "memory.npy")
        expected = np.load("memory.npy")
        assert np.abs(np.load("disk.npy") - expected).max() <= 2e-6 * np.abs(expected).max()
        assert (folder / "disk.nodes.csv").read_text() == (folder / "memory.nodes.csv").read_text()
        assert "1 graph on disk" in out
        assert "certificate: converged (sum over all runs), relative residual" in out


def test_a_folder_is_an_input_too(capsys, folder):
    run(capsys, "web.txt", "-e", "katz", "--beta", 0.001, "--on-disk", "g", "-o", "a.npy")
    run(capsys, "g", "-e", "katz", "--beta=0.001", "-o", "b.npy")
    assert np.array_equal(np.load("a.npy"), np.load("b.npy"))
    out, _ = run(capsys, "g", "-e", "rw", "--length", 3, "--samples", 40, "-o", "rw.npy")
    assert "estimate: 40 samples, standard errors of at most" in out
    assert np.load("rw.npy").shape == np.load("rw.error.npy").shape
    run(capsys, "g", "-e", "ppr", "--sources", "2,4", "-o", "ppr.parquet")
    _, err = run(capsys, "g", "-e", "ppr", "-o", "ppr.parquet", "--on-disk", "h", code=2)
    assert "needs the nodes where walks start" in err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("-e", "gape", "--no-relative", "--on-disk", "g", "-o", "pe.npy"), "diverges: ρ(μ) = 0.9 times ρ(A)"),
        (("-e", "lape", "--on-disk", "g", "-o", "pe.npy"), "'lape' is not available on disk"),
        (("-e", "gape", "--on-disk", "g", "-o", "pe.csv"), "written as .npy or .parquet files"),
        (("-e", "gape", "--on-disk", "g", "-o", "nowhere/pe.npy"), "there is no folder nowhere"),
        (("-e", "gape", "--stats", 3, "--on-disk", "g", "-o", "pe.npy"), "gape has no setting 'stats'"),
        (("more.txt", "-e", "gape", "--on-disk", "g", "-o", "pe.npy"), "expected one input file"),
        (("-e", "gape", "--vectors", "float32", "-o", "pe.npy"), "give --on-disk FOLDER"),
    ],
)
def test_mistakes_cost_one_line_and_write_nothing(capsys, folder, words, complaint):
    out, err = run(capsys, "web.txt", *words, code=2)
    assert out == ""
    assert complaint in err
    assert err.count("\n") == 1
    assert {path.name for path in folder.iterdir()} <= {"web.txt", "g"}


def test_torchrun_without_a_folder_is_refused(capsys, folder, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    _, err = run(capsys, "web.txt", "-e", "gape", "-o", "pe.npy", code=2)
    assert err == "gape: torchrun is for one graph on disk: give --on-disk FOLDER\n"


def test_ctrl_c_says_how_to_go_on(capsys, folder, monkeypatch):
    words = ("web.txt", "-e", "gape", "--relative", "--damping", 0.9, "--on-disk", "g", "-o", "pe.npy")
    run(capsys, *words)
    expected = (folder / "pe.npy").read_bytes()
    (folder / "pe.npy").unlink()
    with monkeypatch.context() as patch:
        patch.setattr("gape.scale.walk_sum.WalkSum.write", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        _, err = run(capsys, *words, code=130)
    assert "gape: stopped; what is done is in g, and the same command resumes from there\n" in err
    assert not (folder / "pe.npy").exists()
    run(capsys, *words)
    assert (folder / "pe.npy").read_bytes() == expected


def test_undirected_counts_an_edge_in_both_directions_once(capsys, folder):
    (folder / "e.csv").write_text("source,target\n0,1\n1,0\n1,2\n")
    words = ("-e", "gape", "--states", 2, "--matrix", "random_walk", "--undirected")
    run(capsys, "e.csv", *words, "--on-disk", "e", "-o", "pe.npy")
    graph = gape.Graph.from_edges([(0, 1), (1, 2)], undirected=True)
    assert np.allclose(np.load("pe.npy"), GAPE(states=2, matrix="random_walk")(graph), rtol=1e-6)
