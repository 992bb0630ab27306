"""Position encodings, one a file: frozen settings, called on a graph. :func:`encode` is the door."""

from gape.encodings.apply import encode, is_collection
from gape.encodings.base import Encoding, NodeEncoding, PairEncoding
from gape.encodings.closed import closed
from gape.encodings.gape import GAPE
from gape.encodings.pair import pair
from gape.encodings.pairs import Pairs
from gape.encodings.presets import PRESETS
from gape.encodings.random_walk import RandomWalk
from gape.encodings.registry import Setting, make, names, settings_of, summary

__all__ = [
    "GAPE",
    "PRESETS",
    "Encoding",
    "NodeEncoding",
    "PairEncoding",
    "Pairs",
    "RandomWalk",
    "Setting",
    "closed",
    "encode",
    "is_collection",
    "make",
    "names",
    "pair",
    "settings_of",
    "summary",
]
