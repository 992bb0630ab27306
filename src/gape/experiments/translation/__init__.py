"""Machine translation with interchangeable position encodings: the first experiment of Soga & Chiang (2023, §4.1)."""

from gape.experiments.translation.corpus import Corpus, Splits, load_splits, read_corpus
from gape.experiments.translation.folder import TranslationFolder
from gape.experiments.translation.positions import Positions, make_positions
from gape.experiments.translation.settings import BeamSettings, Settings, TrainingSettings, preset
from gape.experiments.translation.training import Unfinished, train
from gape.experiments.translation.transformer import ModelSettings, Transformer
from gape.experiments.translation.translator import Hypothesis, beam_search, translate
from gape.experiments.translation.vocabulary import Vocabulary

__all__ = [
    "BeamSettings",
    "Corpus",
    "Hypothesis",
    "ModelSettings",
    "Positions",
    "Settings",
    "Splits",
    "TrainingSettings",
    "Transformer",
    "TranslationFolder",
    "Unfinished",
    "Vocabulary",
    "beam_search",
    "load_splits",
    "make_positions",
    "preset",
    "read_corpus",
    "train",
    "translate",
]
