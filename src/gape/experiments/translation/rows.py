"""All rows of the comparison, one after the other, at equal steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from gape.experiments.translation.model import make_positions
from gape.experiments.translation.settings import Settings, override, preset
from gape.experiments.translation.unfinished import Unfinished

#: The paper's eight rows and no encoding.
ROWS = ("sinusoidal", "gape", "none", "rw", "lape-p", "lape-c", "lape-c10k", "sa", "spd+c")


def row_settings(
    encodings: Sequence[str], *, preset_name: str, data: str, steps: int, seed: int, changes: Mapping[str, str]
) -> dict[str, Settings]:
    """The settings of each run under the name of its folder; they differ in the encoding only.

    Args:
        encodings: names of rows.
        preset_name, data, steps, seed: of all of them.
        changes: other settings that are not the preset's, see :func:`gape.experiments.translation.settings.override`.

    Example:
        >>> shape = {"preset_name": "small", "data": "evbnews", "steps": 500, "seed": 147}
        >>> list(row_settings(["gape"], **shape, changes={"layers": "1", "width": "256"}))  # the preset's own width
        ['gape-small-500-147,layers=1']
    """
    plain = preset(preset_name, data=data, steps=steps, seed=seed)
    changed = override(plain, changes)
    before, after = ({**vars(one.model), **vars(one.training)} for one in (plain, changed))
    others = [f"{key}={value}" for key, value in sorted(after.items()) if before[key] != value]
    if data != "evbnews":
        others.insert(0, f"data={data}")
    name = ",".join([f"{preset_name}-{steps}-{seed}", *others])
    return {f"{encoding}-{name}": changed.with_positions(encoding) for encoding in encodings}


def run_rows(
    runs: dict[str, Settings], work: Callable[[str, Settings], object], done: Callable[[], object]
) -> list[str]:
    """Work on every run; those whose time is over are left for the next call.

    Args:
        runs: settings by name.
        work: trains one, and raises :class:`Unfinished` if its time is over.
        done: called after each that is complete, to gather results early.

    Returns:
        What was left unfinished, in words.
    """
    for model in (settings.model for settings in runs.values()):
        # What cannot be built is found before hours of training, not between them.
        make_positions(model.positions, width=model.width, heads=model.heads, max_positions=model.max_positions)
    left = []
    for name, settings in runs.items():
        try:
            work(name, settings)
        except Unfinished as unfinished:
            left.append(str(unfinished))
        else:
            done()
    return left
