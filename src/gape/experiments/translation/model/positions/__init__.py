"""Position encodings of sentences, one a file."""

from gape.experiments.translation.model.positions.automaton import gape_table, path_table
from gape.experiments.translation.model.positions.base import NoPositions, Positions
from gape.experiments.translation.model.positions.distance import DistancePositions
from gape.experiments.translation.model.positions.laplacian import LaplacianPositions
from gape.experiments.translation.model.positions.registry import ENCODINGS, check_encoding, make_positions
from gape.experiments.translation.model.positions.spectral import SpectralPositions
from gape.experiments.translation.model.positions.table import TablePositions

__all__ = [
    "ENCODINGS",
    "DistancePositions",
    "LaplacianPositions",
    "NoPositions",
    "Positions",
    "SpectralPositions",
    "TablePositions",
    "check_encoding",
    "gape_table",
    "make_positions",
    "path_table",
]
