"""Sequence-to-sequence transformer with interchangeable position encodings."""

from gape.experiments.translation.model.positions import ENCODINGS, Positions, make_positions
from gape.experiments.translation.model.transformer import BEGIN, END, PAD, UNKNOWN, ModelSettings, Transformer

__all__ = [
    "BEGIN",
    "ENCODINGS",
    "END",
    "PAD",
    "UNKNOWN",
    "ModelSettings",
    "Positions",
    "Transformer",
    "make_positions",
]
