"""Pieces of words: a joint byte-pair vocabulary of both languages."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from gape._internal.files import replacing
from gape.experiments.translation.corpus import Corpus
from gape.experiments.translation.model import BEGIN, END, PAD, UNKNOWN


class Vocabulary:
    """Turns text into numbers of pieces and back, with sentencepiece.

    Args:
        model: the bytes of a sentencepiece model whose pieces 0 to 3 are padding, unknown, begin and end.

    Example:
        >>> text = Corpus("t", ("a rose is a rose",) * 9, ("hoa là hoa",) * 9)
        >>> vocabulary = Vocabulary.train(text, size=30)
        >>> vocabulary.decode(vocabulary.encode("a rose"))
        'a rose'
    """

    def __init__(self, model: bytes) -> None:
        self.model = model
        try:
            self._processor = _sentencepiece().SentencePieceProcessor(model_proto=model)
        except RuntimeError as error:
            raise ValueError(f"these {len(model):,} bytes are not a sentencepiece model: {error}") from error
        special = (
            self._processor.pad_id(),
            self._processor.unk_id(),
            self._processor.bos_id(),
            self._processor.eos_id(),
        )
        if special != (PAD, UNKNOWN, BEGIN, END):
            raise ValueError(
                f"padding, unknown, begin and end must be pieces {(PAD, UNKNOWN, BEGIN, END)}, they are {special}; "
                f"use a model made by Vocabulary.train"
            )

    @classmethod
    def train(cls, corpus: Corpus, size: int = 8000) -> Vocabulary:
        """Byte-pair encoding (Sennrich et al., 2016) of both sides together; the same text gives the same bytes.

        Text is taken without Unicode normalisation: decoding gives back what was encoded but for characters that the
        training text does not have, repeated blanks, and blanks at the ends.
        """
        written = io.BytesIO()
        try:
            _sentencepiece().SentencePieceTrainer.train(
                sentence_iterator=iter((*corpus.source, *corpus.target)),
                model_writer=written,
                model_type="bpe",
                vocab_size=size,
                character_coverage=1.0,
                normalization_rule_name="identity",
                max_sentence_length=1 << 20,
                pad_id=PAD,
                unk_id=UNKNOWN,
                bos_id=BEGIN,
                eos_id=END,
                num_threads=1,
                minloglevel=2,
            )
        except RuntimeError as error:
            raise ValueError(
                f"{len(corpus):,} training pairs cannot give a vocabulary of {size} pieces: {_bound(str(error))}"
            ) from error
        return cls(written.getvalue())

    @classmethod
    def load(cls, path: Path) -> Vocabulary:
        """Read what :meth:`save` wrote."""
        try:
            return cls(path.read_bytes())
        except FileNotFoundError as error:
            raise FileNotFoundError(f"there is no vocabulary {path}; train first, with gape translate train") from error
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def save(self, path: Path) -> None:
        with replacing(path) as temporary:
            temporary.write_bytes(self.model)

    def __len__(self) -> int:
        return int(self._processor.get_piece_size())

    def encode(self, line: str) -> list[int]:
        """Numbers of the pieces of a line, without begin and end."""
        pieces: list[int] = self._processor.encode(line)
        return pieces

    def encode_all(self, lines: Sequence[str]) -> list[list[int]]:
        pieces: list[list[int]] = self._processor.encode(list(lines))
        return pieces

    def decode(self, pieces: Iterable[int]) -> str:
        """The text of a sequence of pieces; begin, end and padding have none."""
        text: str = self._processor.decode(list(pieces))
        return text


def _bound(reason: str) -> str:
    """What sentencepiece says about the size, in words of ours; what else it says as it is.

    >>> _bound("... Vocabulary size too high (8000). Please set it to a value <= 7978.")
    'at most 7978 (pieces=7978)'
    >>> _bound("... Vocabulary size is smaller than required_chars. 10 vs 64. Increase ...")
    'more than 64 are needed, its characters alone (pieces=…)'
    """
    if most := re.search(r"value <= (\d+)", reason):
        return f"at most {most[1]} (pieces={most[1]})"
    if least := re.search(r"required_chars\. \d+ vs (\d+)", reason):
        return f"more than {least[1]} are needed, its characters alone (pieces=…)"
    return reason


def _sentencepiece() -> Any:
    try:
        import sentencepiece
    except ImportError as error:
        raise ImportError("translation needs sentencepiece: pip install 'gape[mt]'") from error
    return sentencepiece
