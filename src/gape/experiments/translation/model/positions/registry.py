"""Position encodings of sequences by name: the rows of the translation experiment."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from gape.automaton import Automaton
from gape.encodings import CycleSpectrum, PathRandomWalk, SequenceLaplacian, Sinusoidal
from gape.experiments.translation.model.positions.automaton import gape_table, path_table
from gape.experiments.translation.model.positions.base import NoPositions, Positions
from gape.experiments.translation.model.positions.distance import DistancePositions
from gape.experiments.translation.model.positions.laplacian import LaplacianPositions
from gape.experiments.translation.model.positions.spectral import SpectralPositions
from gape.experiments.translation.model.positions.table import TablePositions


class Place(NamedTuple):
    """What an encoding must fit: the model's width and heads, its longest sequence, and a seed."""

    width: int
    heads: int
    limit: int
    seed: int


def _cycle_10k(place: Place) -> Positions:
    table = SequenceLaplacian(shape="cycle", length=max(10_000, place.limit)).table(place.limit)
    return TablePositions(table, place.width, linear=True)


#: The rows of the paper's first column, and no encoding; then Proposition 1.
ENCODINGS: dict[str, Callable[[Place], Positions]] = {
    "sinusoidal": lambda p: TablePositions(Sinusoidal(p.width).table(p.limit), p.width),
    "gape": lambda p: TablePositions(gape_table(p.width, p.limit, p.seed), p.width),
    "lape-p": lambda p: LaplacianPositions(SequenceLaplacian(shape="path"), p.width, p.limit),
    "lape-c": lambda p: LaplacianPositions(SequenceLaplacian(shape="cycle"), p.width, p.limit),
    "lape-c10k": _cycle_10k,
    "sa": lambda p: SpectralPositions(CycleSpectrum(), p.width, p.limit),
    "rw": lambda p: TablePositions(PathRandomWalk(length=p.limit).table(p.limit), p.width, linear=True),
    "spd+c": lambda p: DistancePositions(p.width, p.heads, p.limit),
    "none": lambda p: NoPositions(p.limit),
    "sinusoidal-automaton": lambda p: TablePositions(path_table(Automaton.sinusoidal(p.width), p.limit), p.width),
}


def check_encoding(name: str) -> str:
    """The name itself, if it is one."""
    if name not in ENCODINGS:
        raise ValueError(f"there is no position encoding {name!r} for sequences; there are {', '.join(ENCODINGS)}")
    return name


def make_positions(name: str, *, width: int, heads: int, limit: int = 1024, seed: int = 0) -> Positions:
    """The position encoding of that name.

    Example:
        >>> make_positions("gape", width=8, heads=2, limit=16).table.shape
        torch.Size([16, 8])
    """
    return ENCODINGS[check_encoding(name)](Place(width, heads, limit, seed))
