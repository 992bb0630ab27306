"""Two processes that train one cell together come to what one process comes to."""

import socket
import subprocess
import sys

import pytest

from gape.experiments.graph_tasks.cell import Cell
from gape.experiments.graph_tasks.checkpoint import read_epochs
from gape.experiments.graph_tasks.run import RunOptions, run_cell


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.mark.slow
def test_two_processes_compute_what_one_does(tmp_path, tiny):
    # Layer norm, because batch norm sees the graphs of its own process only.
    cell = Cell("cycles", "rw", 41, {**tiny, "norm": "layer", "lr": "1e-3", "batch_size": "7", "max_epochs": "3"})
    two = run_cell(cell, RunOptions(tmp_path / "two", devices=2), lambda *_: None)
    one = run_cell(cell, RunOptions(tmp_path / "one"))
    for first, second in zip(
        read_epochs(cell.folder(tmp_path / "one") / "metrics.csv"),
        read_epochs(cell.folder(tmp_path / "two") / "metrics.csv"),
        strict=True,
    ):
        assert first["val_loss"] == pytest.approx(second["val_loss"], rel=1e-4)
        assert first["val_accuracy"] == second["val_accuracy"]
    assert one["last_epoch"]["loss"] == pytest.approx(two["last_epoch"]["loss"], rel=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("norm", ["layer", "batch"])
def test_torchrun_gives_the_metrics_of_one_process_on_pattern(tmp_path, tiny, norm):
    # Four patterns with ten training graphs each.
    data = {"data.patterns": "4", "data.train": "10", "data.val": "5", "data.test": "5"}
    changes = {**tiny, **data, "norm": norm, "lr": "1e-3", "batch_size": "8", "max_epochs": "3"}
    cell = Cell("pattern", "gape", 41, changes)
    pairs = [word for name, value in changes.items() for word in ("--set", f"{name}={value}")]
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-addr", "127.0.0.1"]
    command += ["--master-port", str(free_port()), "-m", "gape", "bench", "pattern", "-e", "gape", *pairs]
    done = subprocess.run(
        [*command, "--out", str(tmp_path / "two")], capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("stopped by epochs) [1/1]") == 1  # one of the processes speaks
    run_cell(cell, RunOptions(tmp_path / "one"))
    one, two = (read_epochs(cell.folder(tmp_path / name) / "metrics.csv") for name in ("one", "two"))
    assert len(one) == len(two) == 3
    # Batch norm sees the graphs of its own process only: equal up to the noise of half a batch.
    tolerance = 1e-4 if norm == "layer" else 0.1
    for first, second in zip(one, two, strict=True):
        for name in ("train_loss", "val_loss", "val_macro_recall"):
            assert first[name] == pytest.approx(second[name], rel=tolerance), name


@pytest.mark.slow
def test_batch_norm_trains_on_two_processes_and_goes_on_where_it_stopped(tmp_path, tiny):
    cell = Cell("cycles", "lape", 41, tiny)
    stopped = run_cell(Cell("cycles", "lape", 41, tiny, max_minutes=1e-6), RunOptions(tmp_path, devices=2))
    assert (stopped["stopped"], stopped["epochs"]) == ("time", [1])
    result = run_cell(cell, RunOptions(tmp_path, devices=2))
    assert result["epochs"] == [6]


def _scores(rank, world, port, folder):
    """One of several processes: scores every ``world``-th batch, and writes what all of them come to."""
    import json
    from datetime import timedelta

    import torch
    from torch import distributed

    from gape.data import Task
    from gape.experiments.graph_tasks.network import metrics_for

    generator = torch.Generator().manual_seed(0)
    batches = [(torch.randn(9, 3, generator=generator), torch.randint(3, (9,), generator=generator)) for _ in range(3)]
    metrics = metrics_for(Task("cluster", "node", "macro-recall", num_classes=3, node_categories=(7,)))
    if world > 1:
        address = f"tcp://127.0.0.1:{port}"
        wait = timedelta(seconds=30)
        distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=world, timeout=wait)
    for predictions, targets in batches[rank::world]:
        metrics.update(predictions, targets)
    found = {name: float(value) for name, value in metrics.compute().items()}
    (folder / f"{world}-{rank}.json").write_text(json.dumps(found))


@pytest.mark.slow
def test_metrics_of_unequal_shares_of_the_batches_are_those_of_all_batches(tmp_path):
    import json

    from torch import multiprocessing

    port = free_port()
    multiprocessing.spawn(_scores, (2, port, tmp_path), nprocs=2)
    _scores(0, 1, port, tmp_path)
    alone = json.loads((tmp_path / "1-0.json").read_text())
    for rank in range(2):
        assert json.loads((tmp_path / f"2-{rank}.json").read_text()) == pytest.approx(alone)


def _gradients(rank, world, port, folder):
    """One of several processes: the gradient of its share of a batch of nodes, averaged as DDP does."""
    import json
    from datetime import timedelta
    from types import SimpleNamespace

    import torch
    from torch import distributed

    from gape.data import Task
    from gape.experiments.graph_tasks.network import loss
    from gape.experiments.graph_tasks.training import training_loss

    task = Task("cluster", "node", "macro-recall", num_classes=3, node_categories=(7,))
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(3, 4, generator=generator, requires_grad=True)
    features = torch.randn(11, 4, generator=generator)
    targets = torch.tensor([0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 2])  # the first process sees no class 2
    if world == 1:
        value = loss(task, features @ weight.T, targets)
    else:
        address = f"tcp://127.0.0.1:{port}"
        wait = timedelta(seconds=30)
        distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=world, timeout=wait)
        mine = slice(0, 8) if rank == 0 else slice(8, 11)
        batch = SimpleNamespace(y=targets[mine], weight=1.0)
        value = training_loss(task, features[mine] @ weight.T, batch, world)
    value.backward()
    found = torch.cat([value.detach()[None], weight.grad.flatten()])
    if world > 1:
        distributed.all_reduce(found)
    (folder / f"{world}-{rank}.json").write_text(json.dumps((found / world).tolist()))


@pytest.mark.slow
def test_class_weights_of_two_processes_are_those_of_the_whole_batch(tmp_path):
    import json

    from torch import multiprocessing

    port = free_port()
    multiprocessing.spawn(_gradients, (2, port, tmp_path), nprocs=2)
    _gradients(0, 1, port, tmp_path)
    alone = json.loads((tmp_path / "1-0.json").read_text())
    for rank in range(2):
        assert json.loads((tmp_path / f"2-{rank}.json").read_text()) == pytest.approx(alone, rel=1e-5)


def test_class_weights_are_those_of_the_whole_batch(monkeypatch):
    """The mean gradient of the shares is that of the batch, with the sum over processes done by hand."""
    from types import SimpleNamespace

    import torch

    from gape.data import Task
    from gape.experiments.graph_tasks.network import loss
    from gape.experiments.graph_tasks.training import training_loss

    task = Task("cluster", "node", "macro-recall", num_classes=3, node_categories=(7,))
    generator = torch.Generator().manual_seed(0)
    features, targets = torch.randn(11, 4, generator=generator), torch.tensor([0] * 7 + [1] * 3 + [2])
    weight = torch.randn(3, 4, generator=generator, requires_grad=True)
    counts = torch.bincount(targets)
    monkeypatch.setattr(torch.distributed, "all_reduce", lambda mine: mine.copy_(counts))
    (whole,) = torch.autograd.grad(loss(task, features @ weight.T, targets), weight)
    shares = []
    for mine in (slice(0, 8), slice(8, 11)):
        value = training_loss(task, features[mine] @ weight.T, SimpleNamespace(y=targets[mine], weight=1.0), 2)
        shares += torch.autograd.grad(value, weight)
    torch.testing.assert_close(sum(shares) / 2, whole)
