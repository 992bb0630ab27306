"""Position encodings of sentences, one a file."""

from gape.nn.sequence.positions.automaton import gape_table, path_table
from gape.nn.sequence.positions.base import NoPositions, Positions
from gape.nn.sequence.positions.distance import DistancePositions
from gape.nn.sequence.positions.laplacian import LaplacianPositions
from gape.nn.sequence.positions.registry import ENCODINGS, check_encoding, make_positions
from gape.nn.sequence.positions.spectral import SpectralPositions
from gape.nn.sequence.positions.table import TablePositions

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
