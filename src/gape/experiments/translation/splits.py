"""What a run reads: training text, development text, and texts to test on."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from gape.data.folder import data_folder
from gape.experiments.translation.corpus import Corpus, read_corpus
from gape.experiments.translation.evbnews import read_evbnews
from gape.experiments.translation.iwslt import plain, read_iwslt
from gape.experiments.translation.text import find_text

#: Data sets by name.
NAMES = ("evbnews", "iwslt15")


@dataclass(frozen=True)
class Splits:
    """Training, development and test text.

    Args:
        train: what the model and its vocabulary are trained on.
        dev: decides on the learning rate and the checkpoint.
        tests: scored once, at the end.
    """

    train: Corpus
    dev: Corpus
    tests: tuple[Corpus, ...]

    @cached_property
    def digest(self) -> str:
        """Changes with every line of training and development text: a run must not go on with others."""
        found = hashlib.sha256()
        for corpus in (self.train, self.dev):
            for line in (*corpus.source, *corpus.target):
                found.update(line.encode() + b"\n")
        return found.hexdigest()[:16]


def load_splits(
    name: str,
    data_dir: str | Path | None = None,
    *,
    drop_empty: bool = False,
    languages: tuple[str, str] = ("en", "vi"),
) -> Splits:
    """A data set by name, or a folder with ``train``, ``dev`` and ``test``, each in two files, plain or xz.

    ``evbnews`` tests on its own held-out articles and, if the files are there, on IWSLT's tst2013, of which the
    entities are turned into characters. ``iwslt15`` needs its training text, which is not free to redistribute.

    Args:
        name: of the data set, or of the folder.
        data_dir: where data sets lie; the environment variable ``GAPE_DATA`` if None.
        drop_empty: leave out training pairs of which a side is empty instead of refusing them.
        languages: endings of the files of a folder, source and target: ``train.en`` and ``train.vi``.
    """
    folder = data_folder(data_dir)
    if name in NAMES and languages != ("en", "vi"):
        raise ValueError(f"languages is for a folder of your own; {name} is en-vi, got {'-'.join(languages)!r}")
    if name in NAMES and folder is None:
        raise FileNotFoundError(f"no data folder for {name!r}: pass data_dir=… or set GAPE_DATA")
    if name == "iwslt15" and folder is not None:
        train = read_iwslt(folder, "train", drop_empty=drop_empty)
        return Splits(train, read_iwslt(folder, "tst2012"), (read_iwslt(folder, "tst2013"),))
    if name == "evbnews" and folder is not None:
        train, dev, test = read_evbnews(folder)
        try:
            talks = (plain(read_iwslt(folder, "tst2013")),)
        except FileNotFoundError:
            return Splits(train, dev, (test,))
        return Splits(train, dev, (test, *talks))
    if not Path(name).is_dir():
        raise ValueError(f"there is no data set {name!r} and no such folder; there are {', '.join(NAMES)}")
    train = _own(Path(name), "train", languages, drop_empty)
    return Splits(train, _own(Path(name), "dev", languages), (_own(Path(name), "test", languages),))


def _own(folder: Path, part: str, languages: tuple[str, str], drop_empty: bool = False) -> Corpus:
    source, target = (find_text(folder, f"{part}.{language}") for language in languages)
    if source is None or target is None:
        wanted = " and ".join(f"{part}.{language}" for language in languages)
        raise FileNotFoundError(f"{folder} must hold {wanted}, plain or .xz; name other endings by languages=…")
    return read_corpus(source, target, name=part, drop_empty=drop_empty)
