"""Several processes give the rows of one, whoever is killed, and wherever they are."""

import json
import os
import shutil
import socket
import subprocess
import sys
import uuid

import numpy as np
import pytest

from gape.encodings import GAPE
from gape.scale import RMAT, DiskGraph, build, encode_large
from gape.scale.encodings import NAMES, large_encoding
from tests.encodings.test_large import NAMES as REAL
from tests.scale.test_encode import exact, in_memory

RUN = [sys.executable, "-m", "torch.distributed.run", "--monitor-interval", "0.1"]

# Encodes a list of [file, name, settings]; a rank kills itself at a step, once, if it is asked to.
PROGRAM = """
import json, os, signal, sys
import gape.scale.workspace
from gape.scale import encode_large
from gape.scale.encodings import large_encoding
from gape.scale.walk import SplitWalk

gape.scale.workspace.CHECKPOINT_SECONDS = 0.0
folder, jobs, victim, step = sys.argv[1:]
first = os.environ["TORCHELASTIC_RESTART_COUNT"] == "0"
if first and os.environ["RANK"] == victim:
    advance = SplitWalk.step

    def fatal(self, *arguments):
        if self.steps == int(step):
            os.kill(os.getpid(), signal.SIGKILL)
        return advance(self, *arguments)

    SplitWalk.step = fatal
done = []

def progress(stage, step, _):
    if stage == "walking":
        done.append(step)

for out, name, settings in json.loads(jobs):
    encode_large(folder, large_encoding(name, **settings), out, progress=progress)
if os.environ["RANK"] == "0":
    print("first step", min(done))
"""


def free_port():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return str(server.getsockname()[1])


def program(tmp_path, folder, jobs, victim=-1, step=0):
    """Words of a program that encodes the graph in a folder: jobs are (file, name, settings)."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return [str(path), str(folder), json.dumps([(str(out), *what) for out, *what in jobs]), str(victim), str(step)]


def launch(words, ranks=2, restarts=0):
    command = [*RUN, "--nproc-per-node", str(ranks), "--max-restarts", str(restarts)]
    command += ["--master-addr", "127.0.0.1", "--master-port", free_port(), *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_a_rank_killed_mid_run_changes_nothing(tmp_path):
    graph = build(RMAT(8, 3000, seed=2), tmp_path / "g")
    settings = {"states": "6", "damping": "0.4", "dtype": "float64"}
    encode_large(graph, "gape", tmp_path / "one.npy", **settings)
    # Rank 1 of 2 dies in step 11, and all go on from the last checkpoint.
    out = launch(program(tmp_path, graph.folder, [(tmp_path / "two.npy", "gape", settings)], 1, 11), restarts=1)
    assert int(out.split("first step ")[1]) > 5
    expected = np.load(tmp_path / "one.npy")
    assert np.abs(np.load(tmp_path / "two.npy") - expected).max() <= 1e-14 * np.abs(expected).max()
    assert not list(graph.folder.glob("encode-*"))


ENCODINGS = [
    ("gape", {"damping": "0.9", "relative": "true", "labels": "3", "labelling": "degree", "dtype": "float64"}),
    ("katz", {"beta": "0.5", "relative": "true", "dtype": "float64"}),
    ("ppr", {"sources": "1,5", "dtype": "float64"}),
    ("rw", {"length": "5", "samples": "36", "dtype": "float64"}),
]


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize(("name", "settings"), ENCODINGS)
def test_every_encoding_is_that_of_one_process(tmp_path, ranks, name, settings):
    assert {*NAMES, "gape"} == {"gape", "katz", "ppr", "rw"}
    graph = build(RMAT(8, 3000, seed=2), tmp_path / "g")
    encode_large(graph, large_encoding(name, **settings), tmp_path / "one.npy")
    jobs = [(tmp_path / "many.npy", name, settings)]
    launch(program(tmp_path, graph.folder, jobs, ranks - 1, 2), ranks, restarts=1)
    for end in (".npy", ".error.npy") if name == "rw" else (".npy",):
        expected = np.load(tmp_path / f"one{end}")
        assert np.allclose(np.load(tmp_path / f"many{end}"), expected, rtol=1e-12, atol=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("name", REAL)
def test_real_graphs_are_encoded_as_in_memory_and_by_one_process(tmp_path, real_data, name, ranks):
    path = real_data / "large" / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"needs {path}")
    graph = build(path, tmp_path / "g")
    relative = {"damping": "0.9", "relative": "true", "dtype": "float64"}
    walk = {"matrix": "random_walk", "relative": "false", "dtype": "float64"}
    jobs = [(tmp_path / f"{i}.npy", *what) for i, what in enumerate([("gape", relative), ("gape", walk), *ENCODINGS])]
    launch(program(tmp_path, graph.folder, jobs), ranks)
    for out, kind, settings in jobs:
        encoding = large_encoding(kind, **settings)
        if settings in (relative, walk):
            expected = exact(encoding, in_memory(graph))
        else:
            encode_large(graph, encoding, tmp_path / "one.npy")
            expected = np.load(tmp_path / "one.npy")
        assert np.abs(np.load(out) - expected).max() <= 1e-10 * np.abs(expected).max(), (kind, settings)


@pytest.mark.slow
def test_the_command_sorts_and_encodes_in_several_processes(tmp_path):
    rows = np.random.default_rng(0).integers(0, 300, (2000, 2))
    np.savetxt(tmp_path / "web.txt", rows, fmt="%d", delimiter="\t")
    words = ["encode", "web.txt", "-e", "gape", "--states", "4", "--damping", "0.5", "--on-disk", "g", "-o", "pe.npy"]
    command = [*RUN, "--nproc-per-node", "2", "--master-addr", "127.0.0.1", "--master-port", free_port(), "-m", "gape"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, *words], cwd=tmp_path, capture_output=True, text=True, check=False, env=environment, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("pe.npy: gape, 1 graph on disk") == 1
    expected = exact(GAPE(4, 0.5), in_memory(DiskGraph.open(tmp_path / "g")))
    assert np.abs(np.load(tmp_path / "pe.npy") - expected).max() <= 1e-6 * np.abs(expected).max()


@pytest.fixture
def hosts():
    """Two network namespaces joined by a cable; yields their names and the address of the first."""
    if shutil.which("ip") is None or os.geteuid() != 0:
        pytest.skip("network namespaces need the command `ip` and root")
    tag = uuid.uuid4().hex[:6]
    names = [f"gape{tag}{end}" for end in "ab"]
    cables = [f"g{tag}{end}" for end in "ab"]

    def ip(*words):
        subprocess.run(["ip", *words], check=True, capture_output=True, text=True)

    try:
        try:
            ip("link", "add", cables[0], "type", "veth", "peer", "name", cables[1])
            for i, (name, cable) in enumerate(zip(names, cables, strict=True)):
                ip("netns", "add", name)
                ip("link", "set", cable, "netns", name)
                ip("-n", name, "addr", "add", f"10.77.0.{i + 1}/24", "dev", cable)
                ip("-n", name, "link", "set", cable, "up")
                ip("-n", name, "link", "set", "lo", "up")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"network namespaces cannot be made here: {error.stderr.strip()}")
        yield names, cables, "10.77.0.1"
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
        subprocess.run(["ip", "link", "del", cables[0]], check=False, capture_output=True)


@pytest.mark.slow
def test_two_hosts_share_a_graph(tmp_path, hosts):
    names, cables, address = hosts
    graph = build(RMAT(8, 3000, seed=2), tmp_path / "g")
    words = program(tmp_path, graph.folder, [(tmp_path / "pe.npy", "gape", {"states": 4, "dtype": "float64"})])
    started = []
    for i, name in enumerate(names):
        command = ["ip", "netns", "exec", name, *RUN, "--nnodes", "2", "--nproc-per-node", "1", "--node-rank", str(i)]
        command += ["--master-addr", address, "--master-port", "29511"]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": cables[i]}
        command += words
        started.append(subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True))
    for process in started:
        _, err = process.communicate(timeout=300)
        assert process.returncode == 0, err[-3000:]
    expected = exact(large_encoding("gape", states=4, dtype="float64"), in_memory(graph))
    assert np.abs(np.load(tmp_path / "pe.npy") - expected).max() <= 1e-10 * np.abs(expected).max()


def test_rows_are_split_by_edges(tmp_path):
    graph = build(RMAT(10, 20_000), tmp_path)
    for parts in (1, 2, 3, 7):
        bounds = graph.rows_by_edges(parts)
        assert (bounds[0], bounds[-1]) == (0, graph.nodes)
        edges = np.diff(np.asarray(graph.offsets)[bounds])
        widest = int(np.diff(graph.offsets).max())
        assert (edges >= 0).all()
        assert np.abs(edges - graph.edges / parts).max() <= widest
