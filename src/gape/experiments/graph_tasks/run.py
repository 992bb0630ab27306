"""Run cells, one or many, each in its folder; ``result.json`` is written last.

A folder with ``result.json`` is finished and not trained again, unless a time limit ended it and the cell now has a
later one. A folder without it resumes from its last checkpoint and comes to the same numbers as if it had not been
interrupted. Of many cells, the unfinished ones run in worker processes, with progress.
"""

from __future__ import annotations

import math
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import torch

from gape._internal.progress import ProgressDisplay, duration
from gape.data import GraphDataset, edge_count_baseline
from gape.experiments.graph_tasks.cell import Cell, describe_metric, finished_result
from gape.experiments.graph_tasks.checkpoint import Checkpoint
from gape.experiments.graph_tasks.data import EncodedDataset, FixedBatches, encoded_dataset
from gape.experiments.graph_tasks.network import build_network, evaluate
from gape.experiments.graph_tasks.settings import epochs_left, minutes_left, protocol_changes, settings_record
from gape.experiments.graph_tasks.training import train_fold
from gape.experiments.runs.folder import Record, RunFolder, versions
from gape.experiments.runs.pool import Send, run_on_executor, run_pool

# Seconds between two lines about a cell where there is no terminal: training takes minutes to hours.
LINE_EVERY_SECONDS = 300.0
#: Called after every epoch: index of the fold, number of folds, line of metrics.csv.
Report = Callable[[int, int, dict[str, float]], None]


@dataclass(frozen=True)
class RunOptions:
    """Options of running cells that do not change their numbers.

    Args:
        runs: folder of all runs.
        data_dir: folder with real data, see :func:`gape.data.load`.
        devices: processes that train one cell together.
        tensorboard: also write TensorBoard's files.
        rank: number of this process among the ``devices`` that ``torchrun`` started; ``None`` to start them here.
    """

    runs: Path = Path("runs")
    data_dir: Path | None = None
    devices: int = 1
    tensorboard: bool = False
    rank: int | None = None

    def __post_init__(self) -> None:
        if self.devices < 1:
            raise ValueError(f"devices must be at least 1, got {self.devices}")

    def absolute(self) -> RunOptions:
        """Return the same for a process that works in another folder."""
        return replace(self, runs=self.runs.resolve(), data_dir=self.data_dir and self.data_dir.resolve())

    @property
    def trainer(self) -> dict[str, Any]:
        """Options of Lightning's ``Trainer``."""
        if self.rank is not None:
            here = int(os.environ["LOCAL_WORLD_SIZE"])
            return {"devices": here, "num_nodes": self.devices // here, "strategy": "ddp"}
        return {"devices": self.devices, "strategy": "ddp_spawn"} if self.devices > 1 else {}

    @property
    def writes(self) -> bool:
        """True unless another process writes the results."""
        return not self.rank


def run_cell(cell: Cell, options: RunOptions | None = None, report: Report | None = None) -> dict[str, Any]:
    """Train and test a cell and write its result, or read the result if it is there."""
    options = options or RunOptions()
    known = finished_result(cell, options.runs)
    if known is not None:
        return known
    folder = RunFolder(cell.folder(options.runs))
    if not options.writes:
        return _compute(cell, options, folder, report)
    with folder.locked():
        record = {**settings_record(cell.settings), "devices": options.devices}
        folder.pin("settings.json", record, protocol_changes)
        result = _compute(cell, options, folder, report)
        folder.write_result(result)
    return result


def _compute(cell: Cell, options: RunOptions, folder: RunFolder, report: Report | None) -> dict[str, Any]:
    encoded = encoded_dataset(cell.settings, options.data_dir)
    if options.writes:
        folder.pin("data.json", {"data": encoded.dataset.provenance, "graphs": len(encoded.dataset)})
    used = folder.add_versions() if options.writes else {"versions": versions()}
    check_parts(encoded.dataset)
    folds = len(encoded.dataset.splits)
    done: list[Checkpoint] = []
    tests: list[dict[str, dict[str, float]]] = []
    if options.devices > 1 and options.rank is None:
        report = None  # the epochs happen in other processes; metrics.csv has them
    for fold in range(folds):
        where = folder.path / f"fold-{fold}" if folds > 1 else folder.path
        where.mkdir(parents=True, exist_ok=True)
        state = train_fold(
            cell.settings,
            encoded,
            fold,
            where,
            max_minutes=_fold_minutes(cell.max_minutes, done, folds),
            report=None if report is None else lambda line, fold=fold: report(fold, folds, line),  # type: ignore[misc]
            tensorboard=options.tensorboard,
            trainer_options=options.trainer,
        )
        done.append(state)
        tests.append(_test(cell, encoded, fold, state))
    return {**_result(cell, encoded, done, tests), **used, "devices": options.devices}


def check_parts(dataset: GraphDataset) -> None:
    """Raise if a part of the dataset is empty, before training rather than after it."""
    for split in dataset.splits:
        if empty := [name for name in ("train", "val", "test") if not len(getattr(split, name))]:
            raise ValueError(f"{dataset!r} has no {' and no '.join(empty)} graphs: {split!r}, {dataset.provenance}")


def _fold_minutes(minutes: float | None, done: list[Checkpoint], folds: int) -> float | None:
    """Share the time that is left equally among the folds that are left."""
    if minutes is None:
        return None
    left = minutes - sum(state.minutes for state in done)
    return max(left, 1e-9) / (folds - len(done))


def _test(cell: Cell, encoded: EncodedDataset, fold: int, state: Checkpoint) -> dict[str, dict[str, float]]:
    """Compute validation and test metrics with the weights of the best validation and with the last ones."""
    split, task, size = encoded.dataset.splits[fold], encoded.dataset.task, cell.settings.batch_size
    network = build_network(cell.settings, encoded)
    val, test = FixedBatches(encoded, split.val, size), FixedBatches(encoded, split.test, size)
    found: dict[str, dict[str, float]] = {}
    for rule, weights in (("best_validation", state.best_weights), ("last_epoch", state.weights)):
        if rule == "last_epoch" and state.best_epoch == state.epoch:
            found.update(last_epoch=found["best_validation"], last_epoch_val=found["best_validation_val"])
            continue
        found[rule] = evaluate(network, weights, test, task)
        found[f"{rule}_val"] = evaluate(network, weights, val, task)
    return found


def _two_classes(dataset: GraphDataset) -> bool:
    return dataset.level == "graph" and dataset.num_classes == 2


def _finite(value: float) -> float | None:
    """Replace infinity and NaN, which JSON does not have, by None."""
    return value if math.isfinite(value) else None


def _result(
    cell: Cell, encoded: EncodedDataset, done: list[Checkpoint], tests: list[dict[str, dict[str, float]]]
) -> dict[str, Any]:
    task, network = encoded.dataset.task, build_network(cell.settings, encoded)
    reasons = {state.stopped for state in done}
    split = encoded.dataset.splits[0]
    return {
        "task": cell.task,
        "encoding": cell.encoding,
        "seed": cell.seed,
        "overrides": dict(cell.overrides),
        "metric": task.key,
        **{
            rule: {name: _finite(statistics.fmean(test[rule][name] for test in tests)) for name in tests[0][rule]}
            for rule in tests[0]
        },
        "folds": [_finite(test["best_validation"][task.key]) for test in tests],
        "epochs": [state.epoch for state in done],
        "best_epochs": [state.best_epoch for state in done],
        "final_lr": [state.lr for state in done],
        "halvings": [round(math.log(state.lr / cell.settings.lr, cell.settings.factor)) for state in done],
        "stopped": "time" if "time" in reasons else "epochs" if "epochs" in reasons else "lr",
        "minutes": round(sum(state.minutes for state in done), 3),
        "max_minutes": cell.max_minutes,
        "certificates": encoded.certificates,
        "edge_count_baseline": edge_count_baseline(encoded.dataset) if _two_classes(encoded.dataset) else None,
        "encoding_seconds": round(encoded.seconds, 3),
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
        "graphs": [len(split.some_of_train(cell.settings.train_fraction)), len(split.val), len(split.test)],
        "data": encoded.dataset.provenance,
        "settings": settings_record(cell.settings),
        "threads": torch.get_num_threads(),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def run_cells(
    cells: Sequence[Cell],
    options: RunOptions,
    *,
    jobs: int = 1,
    executor: Executor | None = None,
    display: ProgressDisplay | None = None,
) -> tuple[list[Record], list[str]]:
    """Run cells in order, ``jobs`` at a time, or on the workers of an executor; skip finished ones.

    A cell that fails does not stop the others. One whose worker dies resumes on another.

    Returns:
        The results in the order of ``cells``, without those that failed, and the failures as text.
    """
    if jobs < 1:
        raise ValueError(f"jobs must be at least 1, got {jobs}")
    if jobs > 1 and options.devices > 1:
        raise ValueError(
            f"jobs={jobs} and devices={options.devices}: split one cell among processes, or run several cells; not both"
        )
    if executor is not None and (jobs > 1 or options.devices > 1):
        raise ValueError(f"jobs={jobs}, devices={options.devices}: a scheduler runs one cell per worker")
    if options.rank is not None and (jobs > 1 or executor is not None):
        raise ValueError("torchrun's processes train one cell together; leave out --jobs and --scheduler")
    cells = _unique(cells)
    progress = display or ProgressDisplay(amount="note", show=options.writes, line_every_seconds=LINE_EVERY_SECONDS)
    with progress as shown:
        listener = CellListener(shown, len(cells), quiet=not options.writes)
        waiting = []
        for cell in cells:
            try:
                known = finished_result(cell, options.runs)
            except ValueError as error:
                listener.on_failed(cell, str(error))
                continue
            if known is None:
                waiting.append(cell)
            else:
                listener.on_done(cell, known, skipped=True)
        if options.rank is not None:
            for cell in waiting:  # an error ends all processes: the others would wait for this one
                listener.on_start(cell)
                listener.on_done(cell, _run(options, cell, partial(listener.on_message, cell)))
        elif executor is None:
            run_pool(waiting, partial(_run, options), workers=jobs, listener=listener)
        elif waiting:
            listener.start_count(len(waiting))  # workers elsewhere do not report their epochs
            run_on_executor(waiting, partial(_run, options.absolute()), executor=executor, listener=listener)
    return [listener.results[cell.name] for cell in cells if cell.name in listener.results], listener.failures


def _run(options: RunOptions, cell: Cell, send: Send) -> Record:
    return run_cell(cell, options, lambda fold, folds, line: send((fold, folds, line)))


def _unique(cells: Sequence[Cell]) -> list[Cell]:
    """Remove repeated cells, and keep the longest time limit of each.

    >>> cells = [Cell("csl", "rw", max_minutes=minutes) for minutes in (60.0, 30.0)]
    >>> [cell.max_minutes for cell in _unique(cells)]
    [60.0]
    """
    kept: dict[str, Cell] = {}
    for cell in cells:
        known = kept.setdefault(cell.name, cell)
        if known.max_minutes is not None and (cell.max_minutes is None or cell.max_minutes > known.max_minutes):
            kept[cell.name] = cell
    return list(kept.values())


@dataclass
class CellListener:
    """Shows the progress of cells, prints how they end and gathers their results by name, for :func:`run_pool`.

    Args:
        display: of the progress, on standard error; how cells end is printed on standard output.
        total: number of cells.
        quiet: print nothing.
        results: by the name of the cell.
        failures: name and reason of each cell that failed.
    """

    display: ProgressDisplay
    total: int = 1
    quiet: bool = False
    results: dict[str, Record] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    ended: int = 0
    waiting: int = 0

    def start_count(self, cells: int) -> None:
        """Show a bar of cells that end, for cells of which nothing else is known."""
        self.waiting = cells
        self.display.start("runs", cells, f"0 of {cells}")

    def on_start(self, cell: Cell) -> None:
        self.display.start(cell.name, note="running")
        if self.display.lines:
            self.display.log(f"{cell.name}: started")

    def on_message(self, cell: Cell, message: tuple[int, int, Mapping[str, float]]) -> None:
        """Show an epoch: fold, number of folds, line of ``metrics.csv``."""
        fold, folds, line = message
        left = minutes_left(cell.settings, fold, folds, line, cell.max_minutes)
        metric = next(name for name in line if name.startswith("val_") and name != "val_loss")
        note = f"{f'fold {fold + 1}/{folds}, ' if folds > 1 else ''}epoch {line['epoch']:.0f}, "
        if self.display.wide:
            note += f"lr {line['lr']:.1e}, {metric.replace('_', ' ')} {line[metric]:.4f}, at least "
        note += f"{duration(left)} left"
        done = line["epoch"]
        per_fold = done + epochs_left(cell.settings, line)
        self.display.update(cell.name, done + fold * per_fold, per_fold * folds, note)

    def on_done(self, cell: Cell, result: Any, skipped: bool = False) -> None:
        self.results[cell.name] = result
        how = "was finished before" if skipped else f"{sum(result['epochs'])} epochs, {result['minutes']:.1f} min"
        self._end(
            cell,
            f"test {result['metric'].replace('_', ' ')} {describe_metric(result)} ({how}, stopped by "
            f"{result['stopped']})",
        )

    def on_failed(self, cell: Cell, reason: str) -> None:
        self.failures.append(f"{cell.name}: {reason}")
        # The caller prints all reasons in full at the end; in a long queue the first line helps at once.
        self._end(cell, f"failed: {reason.splitlines()[0]}" if self.total > 1 else "failed")

    def _end(self, cell: Cell, text: str) -> None:
        """Print how a cell ended, and remove its bar."""
        self.ended += 1
        if not self.quiet:
            print(f"{cell.name}: {text} [{self.ended}/{self.total}]", flush=True)
        self.display.remove(cell.name)
        if self.waiting:
            self._advance_count()

    def _advance_count(self) -> None:
        done = self.waiting - (self.total - self.ended)
        left = self.display.elapsed_seconds("runs") / 60 * (self.waiting - done) / done
        self.display.update("runs", done, self.waiting, f"{done} of {self.waiting}, about {duration(left)} left")
