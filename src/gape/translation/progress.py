"""What a person sees while a model trains and translates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import lightning
from lightning.pytorch.callbacks import Callback, RichProgressBar
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from gape.translation.task import TranslationTask


class Looks(Callback):
    """A line after each look at the development text."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def on_train_epoch_end(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        assert isinstance(pl_module, TranslationTask)
        look = pl_module.history[-1]
        self.console.print(
            f"step {look['step']:,}: loss {look['loss']:.3f}, dev BLEU {look['dev_bleu']:.2f}, learning rate "
            f"{look['learning_rate']:.1e}, {look['tokens'] / max(look['seconds'], 1e-9):,.0f} tokens/s",
            highlight=False,
        )


def training_callbacks(console: Console) -> list[Callback]:
    """A bar on a terminal, and a line for every look."""
    return [*([RichProgressBar(leave=False)] if console.is_terminal else []), Looks(console)]


@contextmanager
def sentence_bar(console: Console) -> Iterator[Callable[[str, int, int], None]]:
    """A bar over the sentences of a text: call it with the text's name, how many are done, and how many there are."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        tasks: dict[str, Any] = {}

        def show(name: str, done: int, total: int) -> None:
            if name not in tasks:
                tasks[name] = bar.add_task(f"translating {name}", total=total)
            bar.update(tasks[name], completed=done)

        yield show
