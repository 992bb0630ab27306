"""Runs on the same text, with progress on the terminal."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from gape.data.folder import data_folder
from gape.experiments.translation.corpus import Splits, load_splits
from gape.experiments.translation.progress import training_callbacks
from gape.experiments.translation.sentence_bar import sentence_bar
from gape.experiments.translation.settings import Settings
from gape.experiments.translation.training import train


@dataclass(frozen=True)
class Session:
    """The text of a data set, read once.

    Args:
        splits: the text.
        data_dir: where untokenised references are looked for.
        console: where progress is shown.
    """

    splits: Splits
    data_dir: Path | None
    console: Console

    @classmethod
    def open(cls, data: str, data_dir: Path | None, *, drop_empty: bool, languages: tuple[str, str]) -> Session:
        splits = load_splits(data, data_dir, drop_empty=drop_empty, languages=languages)
        return cls(splits, data_folder(data_dir), Console(stderr=True))

    def train(
        self, settings: Settings, folder: Path, minutes: float | None, after: Path | None = None
    ) -> dict[str, Any]:
        """Train and test one run; see :func:`gape.experiments.translation.training.train`."""
        self.console.print(
            f"{folder}: {settings.model.positions}, {len(self.splits.train):,} training pairs",
            highlight=False,
            soft_wrap=True,
        )
        with sentence_bar(self.console) as show:
            return train(
                settings,
                self.splits,
                folder,
                minutes=minutes,
                callbacks=training_callbacks(self.console),
                progress=show,
                data_dir=self.data_dir,
                after=after,
            )
