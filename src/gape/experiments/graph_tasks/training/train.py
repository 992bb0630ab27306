"""Train one fold of a run, or go on where it was interrupted."""

from __future__ import annotations

import logging
import warnings
from pathlib import Path
from typing import Any

import torch

try:
    from lightning.pytorch import Trainer
except ImportError as error:
    raise ImportError("training needs Lightning: pip install 'gape[bench]'") from error

from gape.experiments.graph_tasks.settings import Settings
from gape.experiments.graph_tasks.training.batches import FixedBatches, TrainingBatches, mixed_seed
from gape.experiments.graph_tasks.training.checkpoint import Checkpoint
from gape.experiments.graph_tasks.training.encoded import EncodedDataset
from gape.experiments.graph_tasks.training.fit import fit
from gape.experiments.graph_tasks.training.journal import Journal, Report
from gape.experiments.graph_tasks.training.module import Training
from gape.experiments.graph_tasks.training.network import build_network


def train_fold(
    settings: Settings,
    encoded: EncodedDataset,
    fold: int,
    folder: Path,
    *,
    max_minutes: float | None = None,
    report: Report | None = None,
    tensorboard: bool = False,
    trainer_options: dict[str, Any] | None = None,
) -> Checkpoint:
    """Train until the schedule, the number of epochs or the time ends it.

    Args:
        settings: of the run.
        encoded: the data with its encodings.
        fold: which split.
        folder: for ``metrics.csv`` and ``checkpoint.pt``; a checkpoint there is where training goes on.
        max_minutes: of training, over all sessions.
        report: told about every epoch.
        tensorboard: write TensorBoard's files, too.
        trainer_options: of Lightning's ``Trainer``, such as ``devices=2, strategy="ddp_spawn"``.

    Returns: the last checkpoint.
    """
    path = folder / "checkpoint.pt"
    state = Checkpoint.load(path) or Checkpoint()
    if _ended(state, max_minutes):
        return state
    state.stopped = None
    module = _module(settings, encoded, fold, state)
    _fit(module, Journal(folder, state, max_minutes, report), tensorboard, trainer_options or {})
    finished = Checkpoint.load(path)
    if finished is None or not finished.stopped:
        raise RuntimeError(f"training in {folder} ended without a reason; its last epoch is in metrics.csv")
    return finished


def _ended(state: Checkpoint, max_minutes: float | None) -> bool:
    """Whether training ended before, and not by a limit of time that is now further away."""
    more_time = state.stopped == "time" and (max_minutes is None or state.minutes < max_minutes)
    return state.stopped is not None and not more_time


def _module(settings: Settings, encoded: EncodedDataset, fold: int, state: Checkpoint) -> Training:
    """The network, new or as the checkpoint has it, with its batches."""
    torch.manual_seed(mixed_seed(settings.seed, fold))
    network = build_network(settings, encoded)
    split = encoded.dataset.splits[fold]
    used = split.some_of_train(settings.train_fraction)
    if state.weights:
        network.load_state_dict(state.weights)
    elif network.encoding is not None:
        network.encoding.fit_scaling(
            (batch.encoding, network.pattern(batch.edge_index, batch.batch, batch.num_graphs))
            for batch in FixedBatches(encoded, used, settings.batch_size)
        )
    return Training(
        network,
        settings,
        encoded.dataset.task,
        TrainingBatches(encoded, used, settings.batch_size, mixed_seed(settings.seed, fold, 1)),
        FixedBatches(encoded, split.val, settings.batch_size),
        fold=fold,
        first_epoch=state.epoch,
        optimizer_state=state.optimizer or None,
    )


def _fit(module: Training, journal: Journal, tensorboard: bool, options: dict[str, Any]) -> None:
    """Let Lightning train the module, from its first epoch to where the journal stops it."""
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    with warnings.catch_warnings():
        # The journal logs once an epoch; and what Lightning uses of PyTorch is its own affair.
        warnings.filterwarnings("ignore", message=".*smaller than the logging interval")
        warnings.filterwarnings("ignore", category=FutureWarning, module="lightning")
        trainer = Trainer(
            max_epochs=module.settings.max_epochs - module.first_epoch,
            callbacks=[journal],
            logger=_tensorboard(journal.folder) if tensorboard else False,
            enable_checkpointing=False,
            enable_model_summary=False,
            enable_progress_bar=False,
            num_sanity_val_steps=0,
            use_distributed_sampler=False,
            default_root_dir=str(journal.folder),
            **{"accelerator": "auto", "devices": 1, **options},
        )
        fit(trainer, module)


def _tensorboard(folder: Path) -> Any:
    from lightning.pytorch.loggers import TensorBoardLogger

    try:
        return TensorBoardLogger(str(folder), name="tensorboard", version="")
    except ModuleNotFoundError as error:
        raise ImportError("tensorboard=True needs TensorBoard: pip install tensorboard") from error
