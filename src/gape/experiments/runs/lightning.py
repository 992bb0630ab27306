"""Lightning's ``fit`` without its logging, and with Ctrl-C as a ``KeyboardInterrupt``."""

from __future__ import annotations

import logging
import signal
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lightning.pytorch import LightningModule, Trainer

# Warnings that say nothing about a run: batches are in memory, and metrics are logged once per epoch.
_HARMLESS = (".*does not have many workers", ".*smaller than the logging interval")


@contextmanager
def quiet_lightning() -> Iterator[None]:
    """Hide Lightning's notices, and those of its warnings that say nothing about the run."""
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    with warnings.catch_warnings():
        for message in _HARMLESS:
            warnings.filterwarnings("ignore", message=message)
        warnings.filterwarnings("ignore", category=FutureWarning, module="lightning")
        yield


def fit(trainer: Trainer, module: LightningModule, **options: Any) -> None:
    """Call ``trainer.fit``; on Ctrl-C raise ``KeyboardInterrupt``, where Lightning exits the process with code 1."""
    before = signal.getsignal(signal.SIGINT)
    try:
        trainer.fit(module, **options)
    except SystemExit as left:
        if isinstance(left.__context__, KeyboardInterrupt):
            # Lightning ignores SIGINT during its shutdown.
            signal.signal(signal.SIGINT, before)
            raise KeyboardInterrupt from left
        raise
