"""Machine translation with exchanged position encodings: the first experiment of Soga & Chiang (2023, §4.1)."""

from gape.translation.beam import Hypothesis, beam_search
from gape.translation.corpus import Corpus, read_corpus
from gape.translation.run_folder import RunFolder
from gape.translation.settings import BeamSettings, Settings, TrainingSettings, preset
from gape.translation.splits import Splits, load_splits
from gape.translation.training import train
from gape.translation.translator import translate
from gape.translation.vocabulary import Vocabulary

__all__ = [
    "BeamSettings",
    "Corpus",
    "Hypothesis",
    "RunFolder",
    "Settings",
    "Splits",
    "TrainingSettings",
    "Vocabulary",
    "beam_search",
    "load_splits",
    "preset",
    "read_corpus",
    "train",
    "translate",
]
