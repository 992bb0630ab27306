"""`gape bench --scheduler` runs cells on the workers of a Dask scheduler, and ends without noise."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

from gape.cli import main
from gape.experiments.graph_tasks.cell import Cell
from gape.experiments.graph_tasks.run import RunOptions, run_cell

distributed = pytest.importorskip("distributed", reason="Dask is not installed: gape[scale]")


def words(tiny, runs, address):
    pairs = [word for name, value in tiny.items() for word in ("--set", f"{name}={value}")]
    return ["bench", "cycles", "-e", "none,rw", *pairs, "--out", str(runs), "--scheduler", address]


def check(cells, runs, alone):
    """The results are those of this process."""
    for cell in cells:
        result = json.loads((cell.folder(runs) / "result.json").read_text())
        assert result["last_epoch"] == run_cell(cell, RunOptions(alone))["last_epoch"]


def test_cells_run_on_a_scheduler_and_give_the_results_of_this_process(tmp_path, tiny, capfd):
    tiny["max_epochs"] = "2"
    with distributed.LocalCluster(
        2, threads_per_worker=1, processes=False, dashboard_address=None, protocol="tcp://"
    ) as cluster:
        with pytest.raises(SystemExit) as end:
            main(words(tiny, tmp_path / "runs", cluster.scheduler_address))
        out, err = capfd.readouterr()
    assert end.value.code == 0, err
    assert [line.split(":")[-1].split()[-1] for line in out.splitlines()] == ["[1/2]", "[2/2]"]
    assert all(line.startswith("dashboard: ") for line in err.splitlines())
    check([Cell("cycles", name, 41, tiny) for name in ("none", "rw")], tmp_path / "runs", tmp_path / "alone")


@contextmanager
def cluster(folder, workers=2):
    """A scheduler and workers as processes of their own; yields its address and the processes of the workers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    dask = [sys.executable, "-m", "dask"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    host, port = address.removeprefix("tcp://").split(":")
    started = [subprocess.Popen([*dask, "scheduler", "--host", host, "--port", port, "--no-dashboard"], **quiet)]
    # Without a nanny, which would start a killed worker again.
    worker = [*dask, "worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    started += [subprocess.Popen(worker, **quiet) for _ in range(workers)]
    try:
        with distributed.Client(address, timeout=60, set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=120)
        yield address, started[1:]
    finally:
        for process in started:
            process.kill()
            process.wait()


def gape(*arguments):
    return subprocess.Popen(
        [sys.executable, "-m", "gape", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def wait_for_epochs(folders):
    for _ in range(3000):
        if all((folder / "metrics.csv").exists() for folder in folders):
            return
        time.sleep(0.1)
    raise AssertionError(f"no epochs in {folders}")


@pytest.mark.slow(reason="starts several processes that import PyTorch")
def test_a_killed_worker_and_an_interrupted_client_lose_no_cell(tmp_path, tiny):
    tiny |= {"data.train": "500", "max_epochs": "12"}
    cells, runs = [Cell("cycles", name, 41, tiny) for name in ("none", "rw")], tmp_path / "runs"
    folders = [cell.folder(runs) for cell in cells]
    with cluster(tmp_path) as (address, workers):
        command = words(tiny, runs, address)
        client = gape(*command)
        wait_for_epochs(folders)
        client.send_signal(signal.SIGINT)
        _, err = client.communicate(timeout=300)
        assert client.returncode == 130, err
        assert f"gape: stopped; the same command resumes from what is in {runs}" in err
        assert "Traceback" not in err
        os.kill(workers[0].pid, signal.SIGKILL)
        while any(is_locked(folder) for folder in folders):
            time.sleep(0.1)  # the other worker finishes its cell
        client = gape(*command)
        out, err = client.communicate(timeout=300)
    assert client.returncode == 0, err
    assert out.count("stopped by") == 2
    assert all(line.startswith("dashboard: ") for line in err.splitlines()), err
    check(cells, runs, tmp_path / "alone")


def is_locked(folder):
    from filelock import FileLock, Timeout

    try:
        with FileLock(folder / ".lock", timeout=0):
            return False
    except Timeout:
        return True
