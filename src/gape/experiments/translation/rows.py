"""Runs on the same text with progress on the terminal: one, or all rows of the paper's comparison at equal steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from gape._internal.progress import ProgressDisplay
from gape.data.raw_files import data_folder
from gape.experiments.runs.settings import override_key, value_text
from gape.experiments.translation.corpus import Splits, load_splits
from gape.experiments.translation.positions import make_positions
from gape.experiments.translation.settings import Settings, override, preset
from gape.experiments.translation.training import Unfinished, console_callbacks, train

#: The paper's eight rows and no encoding.
ROWS = ("sinusoidal", "gape", "none", "rw", "lape-p", "lape-c", "lape-c10k", "sa", "spd+c")


@dataclass(frozen=True)
class Session:
    """A dataset, read once for several runs.

    Args:
        splits: the text.
        data_dir: folder of datasets, searched for untokenised references.
        console: shows progress.
    """

    splits: Splits
    data_dir: Path | None
    console: Console

    @classmethod
    def open(cls, data: str, data_dir: Path | None, *, drop_empty: bool, languages: tuple[str, str]) -> Session:
        """Read a dataset; see :func:`gape.experiments.translation.corpus.load_splits`."""
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
        with ProgressDisplay(amount="count", console=self.console) as display:
            return train(
                settings,
                self.splits,
                folder,
                minutes=minutes,
                callbacks=console_callbacks(self.console),
                progress=lambda text, done, total: display.update(f"translating {text}", done, total),
                data_dir=self.data_dir,
                after=after,
            )


def row_settings(
    encodings: Sequence[str], *, preset_name: str, data: str, steps: int, seed: int, changes: Mapping[str, str]
) -> dict[str, Settings]:
    """Return the settings of each run by the name of its folder. They differ only in the encoding.

    Args:
        encodings: names of rows.
        preset_name: of all rows, like ``data``, ``steps`` and ``seed``.
        data: name of the text.
        steps: number of updates.
        seed: of all rows.
        changes: settings that differ from the preset, see :func:`gape.experiments.translation.settings.override`.

    Example:
        >>> shape = {"preset_name": "small", "data": "evbnews", "steps": 500, "seed": 147}
        >>> list(row_settings(["gape"], **shape, changes={"layers": "1", "width": "256"}))  # the preset's own width
        ['gape-small-500-147,layers=1']
    """
    original = preset(preset_name, data=data, steps=steps, seed=seed)
    changed = override(original, changes)
    before = original.flat()
    different = {key: value_text(value) for key, value in changed.flat().items() if before[key] != value}
    parts = [f"{preset_name}-{steps}-{seed}"]
    if data != "evbnews":
        parts.append(f"data={data}")
    if different:
        parts.append(override_key(different))
    return {f"{encoding}-{','.join(parts)}": changed.with_positions(encoding) for encoding in encodings}


def run_rows(
    runs: Mapping[str, Settings], work: Callable[[str, Settings], object], done: Callable[[], object]
) -> list[str]:
    """Train every run; those that reach the time limit are left for the next call.

    Args:
        runs: settings by name.
        work: trains one run; raises :class:`Unfinished` at the time limit.
        done: called after each complete run, to collect results early.

    Returns:
        A message per unfinished run.
    """
    for model in (settings.model for settings in runs.values()):
        # Fail on an impossible encoding before hours of training, not between them.
        make_positions(model.positions, width=model.width, heads=model.heads, max_positions=model.max_positions)
    unfinished = []
    for name, settings in runs.items():
        try:
            work(name, settings)
        except Unfinished as error:
            unfinished.append(str(error))
        else:
            done()
    return unfinished
