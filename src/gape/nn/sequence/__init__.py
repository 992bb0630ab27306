"""A sequence transformer whose position encoding is exchanged, for the translation experiment and for your own."""

from gape.nn.sequence.positions import ENCODINGS, Positions, make_positions
from gape.nn.sequence.settings import ModelSettings
from gape.nn.sequence.transformer import Transformer

__all__ = ["ENCODINGS", "ModelSettings", "Positions", "Transformer", "make_positions"]
