"""Many cells in a text file, one a line, in the order in which they are to run."""

from __future__ import annotations

from pathlib import Path

from gape._internal.validation import parse_setting
from gape.experiments.graph_tasks.cell import Cell
from gape.experiments.graph_tasks.overrides import parse_pairs
from gape.experiments.graph_tasks.protocol import SEEDS


def read_queue(path: Path, max_minutes: float | None = None) -> list[Cell]:
    """The cells of a file of lines ``TASK ENCODING[,ENCODING…] [seed=N[,N…]] [minutes=M] [key=value …]``.

    Empty lines and what follows a ``#`` do not count. No cell has more than ``max_minutes``, whatever its line says.
    """
    if not path.is_file():
        raise ValueError(
            f"there is no file {str(path)!r}; a queue has lines TASK ENCODING [seed=N] [minutes=M] [key=value ...]"
        )
    cells = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.partition("#")[0].strip():
            try:
                cells += parse_line(line, max_minutes)
            except ValueError as error:
                raise ValueError(f"{path}, line {number}: {error}") from error
    return cells


def parse_line(line: str, max_minutes: float | None = None) -> list[Cell]:
    """The cells of one line.

    >>> [cell.name for cell in parse_line("cycles rw,gape seed=41,95 minutes=40 layers=4")]
    ['cycles rw layers=4 seed 41', 'cycles gape layers=4 seed 41', 'cycles rw layers=4 seed 95', \
'cycles gape layers=4 seed 95']
    >>> parse_line("cycles")
    Traceback (most recent call last):
    ValueError: expected TASK ENCODING [seed=N] [minutes=M] [key=value ...], got 'cycles'
    """
    words = line.partition("#")[0].split()
    if len(words) < 2 or "=" in words[0] or "=" in words[1]:
        raise ValueError(f"expected TASK ENCODING [seed=N] [minutes=M] [key=value ...], got {line.strip()!r}")
    pairs = parse_pairs(words[2:])
    seeds = [parse_setting(text, int, "seed") for text in pairs.pop("seed", str(SEEDS[0])).split(",")]
    minutes = pairs.pop("minutes", None)
    limits = [max_minutes, None if minutes is None else parse_setting(minutes, float, "minutes")]
    allowed = min((limit for limit in limits if limit is not None), default=None)
    return [Cell(words[0], row, seed, pairs, allowed) for seed in seeds for row in words[1].split(",")]
