"""Two processes that train one cell together come to what one process comes to."""

import pytest

from gape.bench.cell import Cell
from gape.bench.epochs import read_epochs
from gape.bench.run import RunOptions, run


@pytest.mark.slow
def test_two_processes_compute_what_one_does(tmp_path, tiny):
    # Layer norm, because batch norm sees the graphs of its own process only.
    cell = Cell("cycles", "rw", 41, {**tiny, "norm": "layer", "lr": "1e-3", "batch_size": "7", "max_epochs": "3"})
    two = run(cell, RunOptions(tmp_path / "two", devices=2), lambda *_: None)
    one = run(cell, RunOptions(tmp_path / "one"))
    for first, second in zip(
        read_epochs(cell.folder(tmp_path / "one") / "metrics.csv"),
        read_epochs(cell.folder(tmp_path / "two") / "metrics.csv"),
        strict=True,
    ):
        assert first["val_loss"] == pytest.approx(second["val_loss"], rel=1e-4)
        assert first["val_accuracy"] == second["val_accuracy"]
    assert one["last_epoch"]["loss"] == pytest.approx(two["last_epoch"]["loss"], rel=1e-4)


@pytest.mark.slow
def test_batch_norm_trains_on_two_processes_and_goes_on_where_it_stopped(tmp_path, tiny):
    cell = Cell("cycles", "lape", 41, tiny)
    stopped = run(Cell("cycles", "lape", 41, tiny, max_minutes=1e-6), RunOptions(tmp_path, devices=2))
    assert (stopped["stopped"], stopped["epochs"]) == ("time", [1])
    result = run(cell, RunOptions(tmp_path, devices=2))
    assert result["epochs"] == [6]
