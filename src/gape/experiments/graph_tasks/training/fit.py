"""Lightning's ``fit``, from which Ctrl-C comes out as what it is."""

from __future__ import annotations

import signal
from typing import Any

from lightning.pytorch import LightningModule, Trainer


def fit(trainer: Trainer, module: LightningModule, **options: Any) -> None:
    """``trainer.fit``; an interruption is a ``KeyboardInterrupt``, where Lightning ends the process with code 1."""
    before = signal.getsignal(signal.SIGINT)
    try:
        trainer.fit(module, **options)
    except SystemExit as left:
        if isinstance(left.__context__, KeyboardInterrupt):
            # Lightning has switched Ctrl-C off for the time of its shutdown.
            signal.signal(signal.SIGINT, before)
            raise KeyboardInterrupt from left
        raise
