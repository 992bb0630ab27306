"""What a run reads: training text, development text, and texts to test on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gape.data.folder import data_folder
from gape.translation.corpus import Corpus, read_corpus
from gape.translation.evbnews import read_evbnews
from gape.translation.iwslt import plain, read_iwslt

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


def load_splits(name: str, data_dir: str | Path | None = None, *, drop_empty: bool = False) -> Splits:
    """A data set by name, or a folder with ``train``, ``dev`` and ``test``, each ``.en`` and ``.vi``, plain or xz.

    ``evbnews`` tests on its own held-out articles and, if the files are there, on IWSLT's tst2013, of which the
    entities are turned into characters. ``iwslt15`` needs its training text, which is not free to redistribute.
    """
    folder = data_folder(data_dir)
    if name in NAMES and folder is None:
        raise FileNotFoundError(f"no data folder for {name!r}: pass --data-dir or set GAPE_DATA")
    if name == "iwslt15" and folder is not None:
        train, dev, test = (read_iwslt(folder, part, drop_empty=drop_empty) for part in ("train", "tst2012", "tst2013"))
        return Splits(train, dev, (test,))
    if name == "evbnews" and folder is not None:
        train, dev, test = read_evbnews(folder)
        try:
            talks = (plain(read_iwslt(folder, "tst2013")),)
        except FileNotFoundError:
            return Splits(train, dev, (test,))
        return Splits(train, dev, (test, *talks))
    if not Path(name).is_dir():
        raise ValueError(f"there is no data set {name!r} and no such folder; there are {', '.join(NAMES)}")
    return Splits(
        _own(Path(name), "train", drop_empty), _own(Path(name), "dev", drop_empty), (_own(Path(name), "test", False),)
    )


def _own(folder: Path, part: str, drop_empty: bool) -> Corpus:
    from gape.translation.text import find_text

    source, target = find_text(folder, f"{part}.en"), find_text(folder, f"{part}.vi")
    if source is None or target is None:
        raise FileNotFoundError(f"{folder} must hold {part}.en and {part}.vi, plain or .xz")
    return read_corpus(source, target, name=part, drop_empty=drop_empty)
