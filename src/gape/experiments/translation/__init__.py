"""Machine translation with exchanged position encodings: the first experiment of Soga & Chiang (2023, §4.1)."""

from gape.experiments.translation.beam import Hypothesis, beam_search
from gape.experiments.translation.corpus import Corpus, Splits, load_splits, read_corpus
from gape.experiments.translation.model import ModelSettings, Positions, Transformer, make_positions
from gape.experiments.translation.run_folder import RunFolder
from gape.experiments.translation.settings import BeamSettings, Settings, TrainingSettings, preset
from gape.experiments.translation.training import train
from gape.experiments.translation.translator import translate
from gape.experiments.translation.vocabulary import Vocabulary

__all__ = [
    "BeamSettings",
    "Corpus",
    "Hypothesis",
    "ModelSettings",
    "Positions",
    "RunFolder",
    "Settings",
    "Splits",
    "TrainingSettings",
    "Transformer",
    "Vocabulary",
    "beam_search",
    "load_splits",
    "make_positions",
    "preset",
    "read_corpus",
    "train",
    "translate",
]
