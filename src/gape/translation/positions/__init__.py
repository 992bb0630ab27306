"""Position encodings of sentences, one a file."""

from gape.translation.positions.automaton import gape_table, path_table
from gape.translation.positions.base import NoPositions, Positions
from gape.translation.positions.distance import DistancePositions
from gape.translation.positions.laplacian import LaplacianPositions
from gape.translation.positions.registry import ENCODINGS, check_encoding, make_positions
from gape.translation.positions.spectral import SpectralPositions
from gape.translation.positions.table import TablePositions

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
