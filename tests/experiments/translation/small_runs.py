"""Runs of a tiny model on the mirror language, for the tests of training, folders and results."""

from gape.experiments.translation.folder import TranslationFolder
from gape.experiments.translation.settings import Settings, preset
from gape.experiments.translation.vocabulary import Vocabulary


def settings(positions="sinusoidal", **changes) -> Settings:
    small = {"layers": 1, "width": 32, "feed_forward": 64, "heads": 4, "max_positions": 64, "pieces": 40}
    short = {"steps": 6, "validate_every": 2, "tokens": 200, "dev_sentences": 5}
    return preset("small", data="mirror", positions=positions, **{**small, **short, **changes})


def start(folder, of, mirror) -> None:
    """Make a run that was interrupted before its first validation."""
    TranslationFolder(folder).start(of, Vocabulary.train(mirror.train, of.model.pieces), mirror.digest)
