"""IWSLT'15 English-Vietnamese: TED talks, the text of the paper's experiment."""

from __future__ import annotations

from pathlib import Path

from gape.experiments.translation.corpus import Corpus, read_corpus
from gape.experiments.translation.entities import unescape
from gape.experiments.translation.text import find_text, read_lines

#: Folders, relative to the data folder, where the files may lie.
FOLDERS = ("iwslt15-en-vi", "iwslt15", ".")


def read_iwslt(data_dir: Path, part: str, *, drop_empty: bool = False) -> Corpus:
    """``part.en`` and ``part.vi`` (``train``, ``tst2012`` or ``tst2013``), plain or xz, as the literature uses them.

    The text is tokenised and holds entities such as ``&apos;``.
    """
    for folder in FOLDERS:
        source, target = find_text(data_dir / folder, f"{part}.en"), find_text(data_dir / folder, f"{part}.vi")
        if source is not None and target is not None:
            return read_corpus(source, target, name=part, drop_empty=drop_empty)
    raise FileNotFoundError(
        f"no {part}.en and {part}.vi (or .xz) in {', '.join(str(data_dir / folder) for folder in FOLDERS)}; "
        f"put the files of IWSLT'15 English-Vietnamese there (Stanford's tokenised version is the one in use)"
    )


def read_raw_reference(data_dir: Path, part: str) -> list[str] | None:
    """The untokenised ``raw/part.vi`` of IWSLT, for detokenised scores; None if it is not there."""
    for folder in FOLDERS:
        path = find_text(data_dir / folder / "raw", f"{part}.vi")
        if path is not None:
            return read_lines(path)
    return None


def plain(corpus: Corpus) -> Corpus:
    """The corpus without entities: what a model trained on text without them can read."""
    return Corpus(corpus.name, tuple(map(unescape, corpus.source)), tuple(map(unescape, corpus.target)))
