"""A sequence transformer whose position encoding is exchanged, for the translation experiment and for your own."""

from gape.experiments.translation.model.positions import ENCODINGS, Positions, make_positions
from gape.experiments.translation.model.settings import ModelSettings
from gape.experiments.translation.model.transformer import Transformer

__all__ = ["ENCODINGS", "ModelSettings", "Positions", "Transformer", "make_positions"]
