"""Shards: the same files whoever computes them, whatever dies meanwhile; and nothing half-written."""

import errno
import json
import os
import signal
import socket
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import pairwise
from multiprocessing import get_context
from pathlib import Path

import networkx as nx
import numpy as np
import pyarrow
import pyarrow.dataset
import pyarrow.parquet
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gape._internal import executors
from gape._internal.executors import MAX_ATTEMPTS, ProcessPool
from gape.encodings import GAPE, NodeEncoding
from gape.io.blocks import GraphTable
from gape.io.edge_list import Columns
from gape.io.write import ParquetBlocks
from gape.scale import Reading, ShardsFailed, encode_shards
from gape.scale.manifest import LOG, MANIFEST
from tests.command import run as command

SMILES = ["CCO", "c1ccccc1", "CC(C)C", "O", "C1CC1", "N#N", "CCC"]
ENCODING = GAPE(states=3, seed=1)


@dataclass(frozen=True)
class Fatal(NodeEncoding):
    """Degrees; kills its process at a block whose first graph has ``nodes`` nodes, ``times`` times by ``folder``."""

    folder: str = ""
    times: int = 1
    nodes: int = 4

    def rows(self, graph):
        if int(graph.sizes[0]) == self.nodes:
            marks = len(os.listdir(self.folder))
            if marks < self.times:
                Path(self.folder, str(marks)).touch()
                os.kill(os.getpid(), signal.SIGKILL)
        return torch.bincount(graph.edge_index[0], minlength=graph.num_nodes)[:, None].double()


def edge_table(graphs, first=0):
    """Rows of cycles with 3, 4, 5, 6, 3, … nodes, with the graph's number."""
    rows = [(u, v, g) for g in range(first, first + graphs) for u, v in nx.cycle_graph(3 + g % 4).edges]
    return pyarrow.table(dict(zip(("source", "target", "graph"), map(list, zip(*rows, strict=True)), strict=True)))


@pytest.fixture
def source(tmp_path):
    """A folder with molecules as text, and edges in parquet row groups that cut graphs."""
    folder = tmp_path / "source"
    (folder / "more").mkdir(parents=True)
    (folder / "molecules.csv").write_text("\n".join(["smiles", *SMILES]) + "\n")
    pyarrow.parquet.write_table(edge_table(12), folder / "more" / "edges.parquet", row_group_size=10)
    return folder


def encode(source, out, executor=None, encoding=ENCODING, **options):
    if executor is None:
        options.setdefault("workers", 0)
    return encode_shards(source, encoding, out, executor, shard_rows=options.pop("shard_rows", 3), **options)


def content(folder):
    """All files of a folder but the log and the lock, by name."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in (LOG, ".lock"))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def log(folder):
    return [json.loads(line) for line in (folder / LOG).read_text().splitlines()]


@pytest.fixture(scope="module")
def two_processes():
    with ProcessPool(2) as pool:
        yield pool


@pytest.fixture
def executor(request):
    """Anything with the interface of concurrent.futures; None is this process."""
    kind = request.param
    if kind == "in-process":
        yield None
    elif kind == "threads":
        with ThreadPoolExecutor(2) as pool:
            yield pool
    elif kind == "two processes":
        yield request.getfixturevalue("two_processes")
    elif kind == "one process":
        with ProcessPool(1) as pool:
            yield pool
    elif kind == "standard library":
        with ProcessPoolExecutor(2, get_context("spawn")) as pool:
            yield pool
    else:
        distributed = pytest.importorskip("distributed", reason="Dask is not installed: gape[scale]")
        with (
            distributed.LocalCluster(
                2, threads_per_worker=1, processes=kind == "dask processes", dashboard_address=None, protocol="tcp://"
            ) as cluster,
            executors.dask_executor(cluster.scheduler_address) as (pool, _),
        ):
            yield pool


SLOW = "starts several processes that import PyTorch"
EXECUTORS = [
    "threads",
    "two processes",
    "dask threads",
    *(
        pytest.param(kind, marks=pytest.mark.slow(reason=SLOW))
        for kind in ("one process", "standard library", "dask processes")
    ),
]


@pytest.mark.parametrize("executor", EXECUTORS, indirect=True)
def test_every_executor_writes_the_same_bytes_and_goes_on_after_a_killed_worker(request, tmp_path, source, executor):
    reference = encode(source, tmp_path / "reference")
    assert encode(source, tmp_path / "out", executor) == replace(reference, folder=tmp_path / "out")
    assert content(tmp_path / "out") == content(tmp_path / "reference")
    assert len(content(tmp_path / "out")) == reference.shards - empty_shards(tmp_path / "reference") + 1
    if "threads" in request.node.callspec.id or "library" in request.node.callspec.id:
        return  # threads cannot be killed, and the standard library's pool cannot be used after it
    marks = tmp_path / "marks"
    marks.mkdir()
    fatal = Fatal(str(marks))
    encode(source, tmp_path / "killed", executor, fatal)
    assert len(os.listdir(marks)) == 1
    encode(source, tmp_path / "calm", None, fatal)
    assert content(tmp_path / "killed") == content(tmp_path / "calm")
    done = [line["shard"] for line in log(tmp_path / "killed") if line["status"] == "done"]
    assert len(done) == len(set(done)) == reference.shards
    assert sum(line["status"] == "retried" for line in log(tmp_path / "killed")) <= 1
    assert not list((tmp_path / "killed").rglob("*.part"))


def empty_shards(folder):
    return sum(not json.loads(line).get("graphs", 1) for line in (folder / MANIFEST).read_text().splitlines())


def test_shards_hold_the_encodings_of_the_library(tmp_path, source):
    result = encode(source, tmp_path / "out")
    assert (result.graphs, result.nodes) == (7 + 12, 3 + 6 + 4 + 1 + 3 + 2 + 3 + 3 * (3 + 4 + 5 + 6))
    table = pyarrow.dataset.dataset(tmp_path / "out", format="parquet").to_table().to_pylist()
    columns = [f"pe_{i}" for i in range(3)]
    rows = [[row[name] for name in columns] for row in table]
    # Files by name: molecules, then edges; graphs by number.
    bonds = [nx.path_graph(3), nx.cycle_graph(6), nx.star_graph(3), nx.empty_graph(1), nx.cycle_graph(3)]
    bonds += [nx.path_graph(2), nx.path_graph(3)]
    bonds[2] = nx.Graph([(0, 1), (1, 2), (1, 3)])
    cycles = [nx.DiGraph(list(nx.cycle_graph(3 + g % 4).edges)) for g in range(12)]
    for cycle in cycles:
        cycle_nodes = nx.DiGraph()
        cycle_nodes.add_nodes_from(sorted(cycle))
        cycle_nodes.add_edges_from(cycle.edges)
        bonds.append(cycle_nodes)
    expected = torch.cat([ENCODING(graph) for graph in bonds])
    np.testing.assert_array_equal(np.array(rows, dtype=np.float32), expected.numpy())
    assert [row["graph"] for row in table[:3]] == [0, 0, 0]


@given(cuts=st.lists(st.integers(1, 53), max_size=6), size=st.integers(1, 20))
def test_parts_of_a_table_hold_every_graph_once(tmp_path_factory, cuts, size):
    path = tmp_path_factory.getbasetemp() / "parts.parquet"
    if not path.exists():
        pyarrow.parquet.write_table(edge_table(12), path, row_group_size=7)
    table = GraphTable.open(path)
    bounds = [0, *sorted(set(cuts)), table.count()]
    blocks = [block for start, stop in pairwise(bounds) for block in table.blocks(start, stop, size)]
    assert [name for block in blocks for name in block.graphs] == list(range(12))
    assert [int(n) for block in blocks for n in block.graph.sizes] == [3 + g % 4 for g in range(12)]
    assert all(block.graph.num_edges < size + 6 for block in blocks)


def test_a_killed_client_goes_on(tmp_path, source):
    marks = tmp_path / "marks"
    marks.mkdir()
    script = (
        "import sys; from tests.scale.test_shards import *\n"
        "encode(Path(sys.argv[1]), Path(sys.argv[2]), None, Fatal(sys.argv[3], nodes=1))\n"
    )
    words = [sys.executable, "-c", script, str(source), str(tmp_path / "out"), str(marks)]
    root = Path(__file__).parents[2]
    killed = subprocess.run(words, cwd=root, capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    # A half-written line and file, as a crash may leave them.
    with open(tmp_path / "out" / MANIFEST, "a") as file:
        file.write('{"shard": "mol')
    assert [line["shard"] for line in log(tmp_path / "out")] == ["molecules.csv-00000.parquet"]
    result = encode(source, tmp_path / "out", None, Fatal(str(marks), nodes=1))
    assert result.skipped == 1
    encode(source, tmp_path / "calm", None, Fatal(str(marks), nodes=1))
    assert content(tmp_path / "out") == content(tmp_path / "calm")


@pytest.mark.slow(reason=SLOW)
def test_a_shard_that_always_kills_its_worker_is_named_and_the_others_are_kept(tmp_path, source):
    marks = tmp_path / "marks"
    marks.mkdir()
    with pytest.raises(ShardsFailed, match=r"1 of .* shards failed") as error:
        encode(source / "molecules.csv", tmp_path / "out", None, Fatal(str(marks), times=99, nodes=1), workers=2)
    assert len(os.listdir(marks)) == MAX_ATTEMPTS
    (name,) = error.value.failures
    kept = {name for name in content(tmp_path / "out") if name.endswith(".parquet")}
    assert name not in kept
    assert len(kept) == error.value.shards - 1


def test_a_full_disk_ends_the_run_and_the_next_one_goes_on(tmp_path, source, monkeypatch):
    whole, write = [], ParquetBlocks.write

    def full(self, values, named):
        write(self, values, named)
        whole.append(self.file)
        if len(whole) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(ParquetBlocks, "write", full)
    with pytest.raises(OSError, match=r"No space left on device; nothing was written.*the same call resumes"):
        encode(source, tmp_path / "out")
    assert len(whole) == 2  # the others were not tried
    assert sorted(content(tmp_path / "out")) == [MANIFEST, "molecules.csv-00000.parquet"]
    monkeypatch.undo()
    assert encode(source, tmp_path / "out").skipped == 1
    encode(source, tmp_path / "calm")
    assert content(tmp_path / "out") == content(tmp_path / "calm")


def test_damaged_results_and_changed_sources_are_done_again_and_nothing_else(tmp_path, source):
    total = encode(source, tmp_path / "out").shards
    expected = content(tmp_path / "out")
    assert encode(source, tmp_path / "out").skipped == total
    first, second, *_ = sorted((tmp_path / "out").glob("*.parquet"))
    first.write_bytes(first.read_bytes()[:-1])
    second.write_bytes(bytes([second.read_bytes()[0] ^ 1]) + second.read_bytes()[1:])
    assert encode(source, tmp_path / "out").skipped == total - 2
    assert content(tmp_path / "out") == expected
    (source / "molecules.csv").write_text("smiles\nCC\n")
    assert encode(source, tmp_path / "out").graphs == 1 + 12
    assert [path.name for path in sorted((tmp_path / "out").glob("*.parquet"))] == ["molecules.csv-00000.parquet"]


def test_truncated_sources_are_named_and_the_others_kept(tmp_path, source):
    edges = source / "more" / "edges.parquet"
    edges.write_bytes(edges.read_bytes()[:-100])
    with pytest.raises(ShardsFailed, match=r"1 of 4 shards failed(.|\n)*edges.parquet-00000.parquet: .*as parquet"):
        encode(source, tmp_path / "out")
    assert len(list((tmp_path / "out").rglob("*.parquet"))) == 3


@pytest.mark.parametrize(
    ("files", "shard", "said"),
    [
        (
            {"a.csv": "0,1,1", "b.csv": "0,1,x"},
            "b.csv",
            "column graph is string, but int64 in a.csv-00000.parquet",
        ),
        ({"a.csv": "0,1,1", "b.csv": "u,v,2"}, "b.csv", "column node is string, but int64 in a.csv-00000.parquet"),
        ({"a.csv": "0,1,1\n0,1,2", "b.csv": "0,1,2"}, "b.csv", "graph 2 is in a.csv-00000.parquet, too"),
        ({"a.csv": "0,1,x\n0,1,z", "b.csv": "0,1,y\n0,1,x"}, "b.csv", "graph x is in a.csv-00000.parquet, too"),
        ({"a.csv": "0,1,1\n0,1,2\n1,2,1", "b.csv": "0,1,3"}, "a.csv", "graph 1 continues in line 4 after other graphs"),
        ({"a.csv": "0,1,1\n0,,2", "b.csv": "0,1,3"}, "a.csv", "line 3, '0,,2': no target"),
    ],
)
def test_shards_that_do_not_fit_are_named_and_not_written(tmp_path, files, shard, said):
    for name, rows in files.items():
        (tmp_path / name).write_text(f"source,target,graph\n{rows}\n")
    with pytest.raises(ShardsFailed, match="1 of 2 shards failed") as error:
        encode([tmp_path / name for name in files], tmp_path / "out")
    assert said in error.value.failures[f"{shard}-00000.parquet"]
    kept = [f"{name}-00000.parquet" for name in files if name != shard]
    assert [name for name in content(tmp_path / "out") if name != MANIFEST] == kept


def test_text_names_make_whole_numbers_fit_text(tmp_path):
    for name, graph in {"a.csv": "1", "b.csv": "x"}.items():
        (tmp_path / name).write_text(f"source,target,graph\n0,1,{graph}\n")
    encode([tmp_path / "a.csv", tmp_path / "b.csv"], tmp_path / "out", reading=Reading(text_names=True))
    table = pyarrow.dataset.dataset(tmp_path / "out", format="parquet").to_table()
    assert table.column("graph").to_pylist() == ["1", "1", "x", "x"]


def test_molecules_with_a_name_twice_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("gape.io.blocks.BLOCK_MOLECULES", 2)
    pyarrow.parquet.write_table(
        pyarrow.table({"smiles": ["C", "CC", "CCC"], "key": ["x", "y", "x"]}), tmp_path / "m.parquet"
    )
    reading = Reading(Columns(graph="key"))
    with pytest.raises(ShardsFailed, match="row 3, 'CCC,x': graph 'x' is already on row 1"):
        encode(tmp_path / "m.parquet", tmp_path / "out", reading=reading)


def test_other_settings_need_another_folder(tmp_path, source):
    encode(source, tmp_path / "out")
    before = content(tmp_path / "out")
    with pytest.raises(ValueError, match=r"has shards of another run, encoding .pe: GAPE.*choose another folder"):
        encode(source, tmp_path / "out", None, GAPE(states=4))
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "molecules.csv").write_text("smiles\nC\n")
    with pytest.raises(ValueError, match=r"was made from .*source/molecules.csv, now from .*copy/molecules.csv"):
        encode(tmp_path / "copy", tmp_path / "out")
    assert content(tmp_path / "out") == before


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"workers": -1}, "workers must be at least 0"),
        ({"shard_rows": 0}, "shard_rows must be at least 1, got 0"),
        ({"source": []}, "got an empty list"),
        ({"source": ["none.csv"]}, "there is no file none.csv"),
    ],
)
def test_invalid_calls_are_refused_before_anything_is_made(tmp_path, source, options, said):
    with pytest.raises((ValueError, OSError), match=said):
        encode(options.pop("source", source), tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_the_command_encodes_files_of_many_kinds_into_a_folder(capsys, tmp_path, source):
    nx.write_graphml(nx.path_graph(4), source / "path.graphml")
    words = (source, "-e", "rw", "--length", 3, "--text-names", "--workers", 0, "-o", tmp_path / "out")
    out, _ = command(capsys, *words)
    assert "3 shards, 20 graphs" in out
    path = pyarrow.parquet.read_table(tmp_path / "out" / "path.graphml-00000.parquet")
    assert set(path.column("graph").to_pylist()) == {"path.graphml"}
    assert path.column_names == ["graph", "node", "rw_0", "rw_1", "rw_2"]
    assert {(line["status"], line["shard"]) for line in log(tmp_path / "out")} == {
        ("done", f"{name}-00000.parquet") for name in ("molecules.csv", "more/edges.parquet", "path.graphml")
    }
    assert all(
        {"time", "host", "pid", "seconds", "cpu_seconds", "graphs"} <= line.keys() for line in log(tmp_path / "out")
    )
    again, _ = command(
        capsys, source, "-e", "rw", "--length", 3, "--text-names", "--workers", 0, "-o", tmp_path / "out"
    )
    assert "(3 finished before)" in again


def test_an_interrupted_command_says_how_to_go_on(capsys, tmp_path, source, monkeypatch):
    seen, write = [], ParquetBlocks.write

    def interrupted(self, values, named):
        seen.append(named)
        if len(seen) == 2:
            raise KeyboardInterrupt
        write(self, values, named)

    monkeypatch.setattr(ParquetBlocks, "write", interrupted)
    words = (source, "-e", "rw", "--workers", 0, "-o", tmp_path / "out")
    _, err = command(capsys, *words, code=130)
    assert f"stopped; 1 finished shards are in {tmp_path / 'out'}, and the same command resumes from there" in err
    monkeypatch.undo()
    out, _ = command(capsys, *words)
    assert "2 shards (1 finished before)" in out


def test_a_scheduler_that_does_not_answer_or_has_no_workers_is_named(capsys, tmp_path, source, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="Dask is not installed: gape[scale]")
    monkeypatch.setattr(executors, "CONNECT_SECONDS", 0.5)
    words = (source, "-e", "rw", "-o", tmp_path / "out")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        other = f"tcp://127.0.0.1:{silent.getsockname()[1]}"
        for address in ("tcp://127.0.0.1:1", "http://127.0.0.1:1", "nonsense", "", other):
            _, err = command(capsys, *words, "--scheduler", address, code=2)
            assert err.startswith(f"gape: no Dask scheduler answers at {address!r}")
            assert len(err.splitlines()) == 1
    monkeypatch.setattr(executors, "CONNECT_SECONDS", 5.0)
    monkeypatch.setattr(executors, "WORKER_SECONDS", 0.5)
    alone = {"cls": distributed.Scheduler, "options": {"dashboard": False, "host": "127.0.0.1", "port": 0}}
    with distributed.SpecCluster(workers={}, scheduler=alone) as cluster:
        _, err = command(capsys, *words, "--scheduler", cluster.scheduler_address, code=2)
    assert "has no workers; start some by `dask worker tcp://" in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--workers", 1, "-o", "pe.parquet"), "--output pe.parquet looks like a file"),
        (("--workers", 1, "--scheduler", "tcp://x:1", "-o", "out"), "the scheduler has workers; give one of both"),
    ],
)
def test_the_command_refuses_what_contradicts(capsys, source, words, said):
    assert said in command(capsys, source, "-e", "rw", *words, code=2)[1]
