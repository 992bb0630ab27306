"""A cell trains, is finished once, and an interruption changes nothing."""

import io
import json
import signal
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from rich.console import Console

from gape._internal.files import folder_lock
from gape._internal.progress import ProgressDisplay
from gape.data import Cycles, FlatGraphs, GraphDataset, Split
from gape.experiments.graph_tasks.cell import Cell, finished_result, matches_current_protocol, missing_cells
from gape.experiments.graph_tasks.checkpoint import Checkpoint, read_epochs
from gape.experiments.graph_tasks.run import CellListener, RunOptions, check_parts, run_cell, run_cells
from gape.experiments.report.table import comparison

# What depends on the clock rather than on the settings.
CLOCK = ("minutes", "finished", "encoding_seconds")

KILLED = """
import os, signal, sys, torch
from pathlib import Path
import gape.experiments.graph_tasks.training as loop
from gape._internal.progress import ProgressDisplay
from gape.experiments.graph_tasks.cell import Cell
from gape._internal.files import folder_lock
from gape.experiments.graph_tasks.run import RunOptions, run_cell

torch.set_num_threads(1)
loop.SAVE_EVERY_SECONDS = float(sys.argv[2])

def kill(fold, folds, line):
    if line["epoch"] == 4:
        os.kill(os.getpid(), signal.SIGKILL)

run_cell(Cell("cycles", sys.argv[3], 41, eval(sys.argv[4])), RunOptions(Path(sys.argv[1])), kill)
"""


def without_clock(result):
    return {name: value for name, value in result.items() if name not in CLOCK}


def test_ctrl_c_is_a_keyboard_interrupt_and_the_cell_goes_on_afterwards(tmp_path, tiny):
    def interrupt(fold, folds, line):
        if line["epoch"] == 3:
            raise KeyboardInterrupt

    cell, before = Cell("cycles", "gape", 41, tiny), signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run_cell(cell, RunOptions(tmp_path / "parts"), interrupt)
    assert signal.getsignal(signal.SIGINT) is before
    parts = run_cell(cell, RunOptions(tmp_path / "parts"))
    assert without_clock(parts) == without_clock(run_cell(cell, RunOptions(tmp_path / "whole")))


SIGNALS = """
import atexit, os, signal
from gape.experiments.runs import pool

both = {signal.SIGINT, signal.SIGTERM}

class Pipe:
    def send(self, message):
        print(message)

def work(item, send):
    # Ctrl-C in a terminal, and at once the end that the process asks for that started this one.
    signal.pthread_sigmask(signal.SIG_BLOCK, both)
    for kind in both:
        os.kill(os.getpid(), kind)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, both)

atexit.register(lambda: os.kill(os.getpid(), signal.SIGTERM))
pool._work(None, ITEM, Pipe())
"""


@pytest.mark.parametrize(
    ("work", "printed"),
    [("work", "('failed', 'interrupted')"), ("lambda *_: 7", "('done', 7)")],
    ids=["during", "after"],
)
def test_signals_end_a_worker_without_noise(work, printed):
    done = subprocess.run([sys.executable, "-c", SIGNALS.replace("ITEM", work)], capture_output=True, text=True)
    assert (done.stdout.strip(), done.stderr, done.returncode) == (printed, "", 0)


def test_ctrl_c_keeps_every_whole_epoch(tmp_path, tiny, monkeypatch):
    from gape.experiments.graph_tasks.training import TrainingModule

    cell = Cell("cycles", "rw", 41, tiny)
    expected = run_cell(cell, RunOptions(tmp_path / "whole"))["best_validation"]
    step = TrainingModule.training_step

    def interrupted(self, *batch):
        if self.epoch == 3:
            raise KeyboardInterrupt
        return step(self, *batch)

    with monkeypatch.context() as patch:
        patch.setattr(TrainingModule, "training_step", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_cell(cell, RunOptions(tmp_path / "runs"))
    assert Checkpoint.load(cell.folder(tmp_path / "runs") / "checkpoint.pt").epoch == 3
    assert run_cell(cell, RunOptions(tmp_path / "runs"))["best_validation"] == expected


def test_a_cell_trains_and_leaves_a_complete_folder(tmp_path, tiny):
    cell = Cell("cycles", "gape", 41, {**tiny, "data.variant": "matched"})
    seen = []
    result = run_cell(cell, RunOptions(tmp_path), lambda *what: seen.append(what))
    folder = cell.folder(tmp_path)
    assert {path.name for path in folder.iterdir()} == {
        ".lock",
        "settings.json",
        "data.json",
        "versions.json",
        "metrics.csv",
        "checkpoint.pt",
        "result.json",
    }
    epochs = read_epochs(folder / "metrics.csv")
    assert [line["epoch"] for line in epochs] == [1, 2, 3, 4, 5, 6] == [line["epoch"] for _, _, line in seen]
    assert result["epochs"] == [6]
    assert result["stopped"] == "epochs"
    assert result["certificates"] == {"run_sum": 42}
    assert result["edge_count_baseline"] == 0.5
    assert result["settings"]["encoding_options"]["seed"] == 41
    for rule in ("best_validation", "last_epoch"):
        assert 0 <= result[rule]["accuracy"] <= 1
    # What training saw after the best epoch is what the best weights give when they are loaded again.
    best = epochs[result["best_epochs"][0] - 1]
    assert best["val_accuracy"] == max(line["val_accuracy"] for line in epochs)
    assert result["best_validation_val"]["accuracy"] == pytest.approx(best["val_accuracy"])
    assert result["best_validation_val"]["loss"] == pytest.approx(best["val_loss"], rel=1e-5)
    assert result["last_epoch_val"]["loss"] == pytest.approx(epochs[-1]["val_loss"], rel=1e-5)
    assert json.loads((folder / "result.json").read_text()) == result


def test_a_finished_cell_is_not_run_again(tmp_path, tiny):
    cell = Cell("cycles", "none", 41, {**tiny, "max_epochs": "1"})
    first = run_cell(cell, RunOptions(tmp_path))

    def never(*_):
        raise AssertionError("trained again")

    assert run_cell(cell, RunOptions(tmp_path), never) == first
    assert finished_result(Cell("cycles", "none", 95, cell.overrides), tmp_path) is None


def test_a_result_of_other_settings_is_not_taken_for_the_cells(tmp_path, tiny):
    cell = Cell("cycles", "none", 41, {**tiny, "max_epochs": "1"})
    result = run_cell(cell, RunOptions(tmp_path))
    path = cell.folder(tmp_path) / "result.json"
    path.write_text(json.dumps({**result, "settings": {**result["settings"], "lr": 0.5}}))
    with pytest.raises(ValueError, match=r"a run with other settings: lr is 0\.5 there and 0\.02 here; remove it"):
        run_cell(cell, RunOptions(tmp_path))
    results, failures = run_cells([cell], RunOptions(tmp_path))
    assert (results, len(failures)) == ([], 1)
    path.write_text('{"task": "cyc')
    with pytest.raises(ValueError, match=r"result\.json is damaged"):
        run_cell(cell, RunOptions(tmp_path))


def test_a_run_is_not_resumed_by_another_number_of_processes(tmp_path, tiny):
    cell = Cell("cycles", "none", 41, tiny, max_minutes=1e-6)
    assert run_cell(cell, RunOptions(tmp_path))["devices"] == 1
    with pytest.raises(ValueError, match="holds a run with other settings: devices is 1 there and 2 here"):
        run_cell(Cell("cycles", "none", 41, tiny), RunOptions(tmp_path, devices=2))


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others(tmp_path, tiny):
    tiny["max_epochs"] = "2"
    one, again, other = (
        run_cell(Cell("cycles", "lape", seed, tiny), RunOptions(tmp_path / name))
        for name, seed in (("a", 41), ("b", 41), ("c", 95))
    )
    assert without_clock(one) == without_clock(again)
    assert one["last_epoch"]["loss"] != other["last_epoch"]["loss"]


# SA has dropout, LAPE random signs; a checkpoint after each epoch, or none before the kill.
@pytest.mark.parametrize(
    ("encoding", "save_every"),
    [("sa", 0.0), pytest.param("lape", 0.0, marks=pytest.mark.slow), pytest.param("lape", 1e9, marks=pytest.mark.slow)],
)
def test_killed_and_resumed_gives_the_same_numbers_as_never_killed(tmp_path, tiny, encoding, save_every):
    tiny["lr"] = "0.5"  # so large that the loss rises and the schedule lowers it, whatever the processor's rounding
    if encoding == "sa":
        tiny["encoding.pairs"] = "3"  # its small transformer is wide
    cell = Cell("cycles", encoding, 41, tiny)
    words = [sys.executable, "-c", KILLED, str(tmp_path / "killed"), str(save_every), encoding, repr(tiny)]
    killed = subprocess.run(words, capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    folder = cell.folder(tmp_path / "killed")
    assert not (folder / "result.json").exists()
    assert (folder / "checkpoint.pt").exists() == (save_every == 0)
    resumed_at = []
    resumed = run_cell(cell, RunOptions(tmp_path / "killed"), lambda *what: resumed_at.append(what[2]["epoch"]))
    whole = run_cell(cell, RunOptions(tmp_path / "whole"))
    assert resumed_at[0] == (5 if save_every == 0 else 1)
    assert without_clock(resumed) == without_clock(whole)

    def numbers(folder):
        return [{k: v for k, v in line.items() if k != "minutes"} for line in read_epochs(folder / "metrics.csv")]

    assert numbers(folder) == numbers(cell.folder(tmp_path / "whole"))
    one, other = (Checkpoint.load(cell.folder(tmp_path / name) / "checkpoint.pt") for name in ("killed", "whole"))
    assert all(torch.equal(one.weights[name], other.weights[name]) for name in one.weights)
    assert one.scheduler == other.scheduler
    assert numbers(folder)[-1]["lr"] < numbers(folder)[0]["lr"]  # so the schedule was put to the test


def test_time_stops_a_cell_and_more_time_lets_it_go_on(tmp_path, tiny):
    stopped = run_cell(Cell("cycles", "none", 41, tiny, max_minutes=1e-6), RunOptions(tmp_path))
    assert (stopped["stopped"], stopped["epochs"]) == ("time", [1])
    assert finished_result(Cell("cycles", "none", 41, tiny, max_minutes=1e-6), tmp_path) == stopped
    more = run_cell(Cell("cycles", "none", 41, tiny), RunOptions(tmp_path))
    assert (more["stopped"], more["epochs"]) == ("epochs", [6])
    assert without_clock(more) == without_clock(
        run_cell(Cell("cycles", "none", 41, tiny), RunOptions(tmp_path / "whole"))
    )


def test_training_ends_when_the_learning_rate_is_below_the_least(tmp_path, tiny):
    tiny |= {"max_epochs": "100", "min_lr": "2e-4", "lr": "5e-4", "patience": "0"}
    result = run_cell(Cell("cycles", "none", 41, tiny), RunOptions(tmp_path))
    assert result["stopped"] == "lr"
    assert result["epochs"][0] < 100


def test_other_settings_in_the_same_folder_are_refused(tmp_path, tiny):
    cell = Cell("cycles", "none", 41, tiny)
    path = cell.folder(tmp_path) / "settings.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"layers": 3}')
    with pytest.raises(ValueError, match="holds a run with other settings"):
        run_cell(cell, RunOptions(tmp_path))


def test_a_run_does_not_go_on_with_other_data(tmp_path, tiny):
    cell = Cell("cycles", "none", 41, tiny, max_minutes=1e-6)
    stopped = run_cell(cell, RunOptions(tmp_path))
    path = cell.folder(tmp_path) / "data.json"
    record = json.loads(path.read_text())
    assert record == {"data": stopped["data"], "graphs": sum(stopped["graphs"])}
    path.write_text(json.dumps({**record, "graphs": 5}))
    with pytest.raises(ValueError, match=f"graphs is 5 there and {sum(stopped['graphs'])} here; remove it"):
        run_cell(Cell("cycles", "none", 41, tiny), RunOptions(tmp_path))


def test_a_result_says_which_versions_its_earlier_sessions_had(tmp_path, tiny):
    cell = Cell("cycles", "none", 41, tiny, max_minutes=1e-6)
    stopped = run_cell(cell, RunOptions(tmp_path))
    assert "versions_before" not in stopped
    path = cell.folder(tmp_path) / "versions.json"
    before = {**stopped["versions"], "torch": "1.0"}
    path.write_text(json.dumps({"sessions": [before]}))
    more = run_cell(Cell("cycles", "none", 41, tiny), RunOptions(tmp_path))
    assert (more["versions"], more["versions_before"]) == (stopped["versions"], [before])


def test_a_damaged_checkpoint_is_named(tmp_path):
    (tmp_path / "checkpoint.pt").write_bytes(b"")
    with pytest.raises(ValueError, match=r"checkpoint.pt is damaged .*remove its folder and train again"):
        Checkpoint.load(tmp_path / "checkpoint.pt")


def test_an_empty_part_is_found_before_training():
    graphs = FlatGraphs.from_edges([2, 2], [[(0, 1)], [(0, 1)]], y=np.array([1, 0]))
    dataset = GraphDataset(graphs, Cycles.TASK, [Split([0], [1], [])], "drawn by hand")
    with pytest.raises(ValueError, match=r"has no test graphs: Split\(train=1, val=1, test=0\), drawn by hand"):
        check_parts(dataset)


def test_a_run_that_another_process_is_at_is_refused(tmp_path, tiny):
    cell = Cell("cycles", "none", 41, tiny)
    cell.folder(tmp_path).mkdir(parents=True)
    with folder_lock(cell.folder(tmp_path)), pytest.raises(ValueError, match="is in use by another process"):
        run_cell(cell, RunOptions(tmp_path))


def test_csl_is_the_mean_over_five_folds(tmp_path):
    small = {"layers": "1", "hidden": "16", "heads": "2", "max_epochs": "1", "batch_size": "30"}
    cell = Cell("csl", "rw", 41, small)
    result = run_cell(cell, RunOptions(tmp_path))
    assert len(result["folds"]) == len(result["epochs"]) == 5
    assert result["best_validation"]["accuracy"] == pytest.approx(sum(result["folds"]) / 5, abs=1e-6)
    assert (cell.folder(tmp_path) / "fold-4" / "metrics.csv").exists()


def test_a_run_whose_error_is_never_finite_ends_and_says_so(tmp_path, tiny, monkeypatch, capsys):
    # Molecules whose targets are infinite: no epoch is better than another.
    from gape import data
    from gape.experiments.graph_tasks import data as training_data

    source = data.load("cycles", train=20, val=10, test=12)
    source.task = data.Task("zinc", "graph", "mae", num_classes=0)
    source._data.y = torch.full((42,), float("inf"))
    monkeypatch.setattr(training_data, "load", lambda *_, **__: source)
    small = {name: text for name, text in tiny.items() if not name.startswith("data.")}
    cell = Cell("zinc", "none", 41, {**small, "max_epochs": "2"})
    result = run_cell(cell, RunOptions(tmp_path))
    assert result["best_epochs"] == [1]
    assert result["best_validation"]["mae"] is None
    assert result["folds"] == [None]
    text = (cell.folder(tmp_path) / "result.json").read_text()

    def refuse(word):
        raise AssertionError(f"{word} is not JSON")

    assert json.loads(text, parse_constant=refuse) == result
    with ProgressDisplay(show=False) as display:
        CellListener(display).on_done(cell, result)
    assert "test mae not finite at best validation" in capsys.readouterr().out
    table = comparison("graph-performance", [{**result, "overrides": {}}], tasks=["zinc"], encodings=["none"])
    assert table.lines[0][2][0].text == "not finite [1]"


def test_of_lightnings_warnings_only_those_that_say_nothing_are_hidden(tmp_path, tiny, monkeypatch):
    from gape.experiments.graph_tasks import training as loop

    def fit(trainer, module):
        warnings.warn_explicit("something new", UserWarning, "trainer.py", 1, module="lightning.pytorch.trainer")
        real_fit(trainer, module)

    real_fit = loop.fit
    monkeypatch.setattr(loop, "fit", fit)
    cell = Cell("cycles", "none", 41, {**tiny, "max_epochs": "1"})
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        run_cell(cell, RunOptions(tmp_path, tensorboard=True))
    from_lightning = [one for one in shown if "lightning" in one.filename or one.filename == "trainer.py"]
    assert [str(one.message) for one in from_lightning] == ["something new"]
    assert list((cell.folder(tmp_path) / "tensorboard").iterdir())


@pytest.mark.parametrize("width", [80, 160])
def test_bars_say_which_cell_it_is_and_how_long_it_takes_whatever_the_width(width):
    cell = Cell("directed-cycles", "spd", 95, {"data.symmetrized": "true"}, 10.0)
    line = {"epoch": 107.0, "minutes": 2.0, "lr": 5e-4, "train_loss": 0.7, "val_loss": 0.7, "val_accuracy": 0.665}
    page = Console(file=io.StringIO(), width=width)
    with ProgressDisplay(
        amount="note", console=Console(file=io.StringIO(), width=width, force_terminal=True)
    ) as display:
        listener = CellListener(display)
        listener.on_start(cell)
        listener.on_message(cell, (0, 1, line))
        page.print(display.bars.get_renderable())
    shown = page.file.getvalue()
    # A name that is too long for its column goes on in the next line.
    letters = "".join(shown.split())
    assert "seed95" in letters
    assert "epoch 107" in shown
    assert " min left" in shown
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= width


def test_a_result_says_where_the_learning_rate_ended(tmp_path, tiny):
    cell = Cell("cycles", "none", 41, {**tiny, "patience": "0", "lr": "0.5", "max_epochs": "12"})
    result = run_cell(cell, RunOptions(tmp_path))
    rates = [line["lr"] for line in read_epochs(cell.folder(tmp_path) / "metrics.csv")]
    halvings = result["halvings"][0]
    assert result["final_lr"] == [0.5 * 0.5**halvings]
    assert rates[-1] in (result["final_lr"][0], 2 * result["final_lr"][0])
    assert halvings >= len(set(rates)) - 1 > 0


def test_a_folder_with_the_earlier_name_of_a_setting_stays_valid(tmp_path, tiny):
    few = {name: text for name, text in tiny.items() if name.startswith("data.")}
    few |= {"pooling": "mean", "max_epochs": "1", "layers": "1"}
    cell = Cell("cycles", "none", 41, few)
    result = run_cell(cell, RunOptions(tmp_path))
    folder = cell.folder(tmp_path)
    assert "pooling=mean" in str(folder)
    # As earlier versions wrote it.
    earlier = folder.parent.with_name(folder.parent.name.replace("pooling", "readout"))
    folder.parent.rename(earlier)
    rename = {"pooling": "readout"}
    for part in ("settings", "overrides"):
        result[part] = {rename.get(name, name): value for name, value in result[part].items()}
    (earlier / folder.name / "result.json").write_text(json.dumps(result))
    assert run_cell(cell, RunOptions(tmp_path)) == result
    assert Cell("cycles", "none", 41, result["overrides"]) == cell
    assert matches_current_protocol(result)
    assert missing_cells([cell], tmp_path) == []
    table = comparison("graph-performance", [result], {"cycles": few}, ["cycles"], ["none"])
    assert table.lines[0][2][0].text != "missing"


def test_an_executor_runs_cells_as_the_pool_does_and_goes_on_after_a_failure(tmp_path, tiny, monkeypatch):
    monkeypatch.delenv("GAPE_DATA", raising=False)
    cells = [Cell("zinc", "none", 41), Cell("cycles", "none", 41, {**tiny, "max_epochs": "2"})]
    with ThreadPoolExecutor(1) as executor:
        (result,), (failure,) = run_cells(cells, RunOptions(tmp_path / "runs"), executor=executor)
    assert failure.startswith("zinc none seed 41: no files for dataset")
    alone = run_cell(cells[1], RunOptions(tmp_path / "alone"))
    assert result["last_epoch"] == alone["last_epoch"]
    with ThreadPoolExecutor(1) as executor, pytest.raises(ValueError, match="jobs=2, devices=1: a scheduler runs one"):
        run_cells(cells, RunOptions(tmp_path / "runs"), jobs=2, executor=executor)
