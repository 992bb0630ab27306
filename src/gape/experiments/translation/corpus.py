"""Parallel text: sentences and their translations, line by line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gape.experiments.translation.text import read_lines


@dataclass(frozen=True)
class Corpus:
    """Sentences and their translations.

    Args:
        name: what to call it in tables and file names.
        source: sentences, tokenised, as text.
        target: their translations, as many.

    Example:
        >>> Corpus("greetings", ("good morning",), ("chào buổi sáng",))
        Corpus('greetings', 1 pair)
    """

    name: str
    source: tuple[str, ...]
    target: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.source) != len(self.target):
            raise ValueError(
                f"corpus {self.name!r} has {len(self.source):,} sentences and {len(self.target):,} translations; "
                f"there must be one translation a sentence"
            )

    def __len__(self) -> int:
        return len(self.source)

    def __repr__(self) -> str:
        return f"Corpus({self.name!r}, {len(self):,} {'pair' if len(self) == 1 else 'pairs'})"

    def take(self, indices: list[int], name: str | None = None) -> Corpus:
        """The pairs of those numbers, in that order."""
        return Corpus(name or self.name, tuple(self.source[i] for i in indices), tuple(self.target[i] for i in indices))


def read_corpus(source: str | Path, target: str | Path, *, name: str | None = None, drop_empty: bool = False) -> Corpus:
    """Two text files, plain or xz, of which line *i* of the second translates line *i* of the first.

    Args:
        source: file of sentences.
        target: file of translations.
        name: of the corpus; the source's file name if None.
        drop_empty: leave out pairs of which a side is empty instead of refusing the files: for training text.
    """
    source, target = Path(source), Path(target)
    sentences, translations = read_lines(source), read_lines(target)
    if len(sentences) != len(translations):
        shorter, last = (source, len(sentences)) if len(sentences) < len(translations) else (target, len(translations))
        raise ValueError(
            f"{source} has {len(sentences):,} lines and {target} has {len(translations):,}; they must be translations "
            f"line by line. {shorter} ends after line {last:,}"
        )
    kept = []
    for i, pair in enumerate(zip(sentences, translations, strict=True)):
        empty = next((path for path, line in zip((source, target), pair, strict=True) if not line.strip()), None)
        if empty is None:
            kept.append(i)
        elif not drop_empty:
            raise ValueError(
                f"{empty}, line {i + 1}: the line is empty, so the pair says nothing; remove it from both files. "
                f"In training text, drop_empty=True leaves such pairs out"
            )
    if not kept:
        raise ValueError(f"{source} and {target} hold no pair of sentences")
    whole = Corpus(name or source.name.removesuffix(".xz"), tuple(sentences), tuple(translations))
    return whole if len(kept) == len(whole) else whole.take(kept)
