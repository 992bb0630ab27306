"""What a person sees while a model trains."""

from __future__ import annotations

import lightning
from lightning.pytorch.callbacks import Callback, RichProgressBar
from rich.console import Console

from gape.experiments.translation.task import TranslationTask


class Looks(Callback):
    """A line after each look at the development text."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def on_train_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        assert isinstance(pl_module, TranslationTask)
        if left_out := pl_module.train_text.dropped:
            longest = pl_module.run.model.max_positions - 1
            self.console.print(f"training pairs above {longest:,} pieces, left out: {left_out:,}", highlight=False)

    def on_train_epoch_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        assert isinstance(pl_module, TranslationTask)
        look = pl_module.history[-1]
        self.console.print(
            f"step {look['step']:,}: loss {look['loss']:.3f}, dev BLEU {look['dev_bleu']:.2f}, learning rate "
            f"{look['learning_rate']:.1e}, {look['tokens'] / max(look['seconds'], 1e-9):,.0f} tokens/s",
            highlight=False,
            soft_wrap=True,
        )


def training_callbacks(console: Console) -> list[Callback]:
    """A bar on a terminal, and a line for every look."""
    return [
        *([RichProgressBar(leave=False, console_kwargs={"stderr": True})] if console.is_terminal else []),
        Looks(console),
    ]
