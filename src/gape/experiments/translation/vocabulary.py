"""Subword pieces: a joint byte-pair vocabulary of both languages."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from gape._internal.files import replacing
from gape.experiments.translation.corpus import Corpus
from gape.experiments.translation.transformer import BEGIN, END, PAD, UNKNOWN


class Vocabulary:
    """Maps text to indices of subword pieces and back, with sentencepiece.

    Args:
        model: bytes of a sentencepiece model whose pieces 0 to 3 are padding, unknown, begin and end.

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
                f"padding, unknown, begin and end must be pieces {(PAD, UNKNOWN, BEGIN, END)}, got {special}; use a "
                f"model made by Vocabulary.train"
            )

    @classmethod
    def train(cls, corpus: Corpus, size: int = 8000) -> Vocabulary:
        """Train byte-pair encoding (Sennrich et al., 2016) on both sides together; deterministic.

        Text is not normalised: decoding returns the encoded text, except for characters that do not occur in the
        training text, repeated spaces, and spaces at the ends.
        """
        buffer = io.BytesIO()
        try:
            _sentencepiece().SentencePieceTrainer.train(
                sentence_iterator=iter((*corpus.source, *corpus.target)),
                model_writer=buffer,
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
                f"{len(corpus):,} training pairs cannot give a vocabulary of {size} pieces: {_size_limit(str(error))}"
            ) from error
        return cls(buffer.getvalue())

    @classmethod
    def load(cls, path: Path) -> Vocabulary:
        """Read a file that :meth:`save` wrote."""
        try:
            return cls(path.read_bytes())
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f"there is no vocabulary {path}; train a model first, with gape translate train"
            ) from error
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error

    def save(self, path: Path) -> None:
        """Write the sentencepiece model."""
        with replacing(path) as temporary:
            temporary.write_bytes(self.model)

    def __len__(self) -> int:
        return int(self._processor.get_piece_size())

    def encode(self, line: str) -> list[int]:
        """Split a line into piece indices, without begin and end."""
        pieces: list[int] = self._processor.encode(line)
        return pieces

    def encode_all(self, lines: Sequence[str]) -> list[list[int]]:
        """Split many lines at once."""
        pieces: list[list[int]] = self._processor.encode(list(lines))
        return pieces

    def decode(self, pieces: Iterable[int]) -> str:
        """Join pieces to text; begin, end and padding are skipped."""
        text: str = self._processor.decode(list(pieces))
        return text


def _size_limit(reason: str) -> str:
    """Extract the limit from sentencepiece's error about the vocabulary size; other errors stay as they are.

    >>> _size_limit("... Vocabulary size too high (8000). Please set it to a value <= 7978.")
    'at most 7978 are possible; set pieces=7978 (--set pieces=7978)'
    >>> _size_limit("... Vocabulary size is smaller than required_chars. 10 vs 64. Increase ...")
    'the text has 64 characters, so more than 64 are needed; raise pieces (--set pieces=…)'
    """
    if most := re.search(r"value <= (\d+)", reason):
        return f"at most {most[1]} are possible; set pieces={most[1]} (--set pieces={most[1]})"
    if least := re.search(r"required_chars\. \d+ vs (\d+)", reason):
        return f"the text has {least[1]} characters, so more than {least[1]} are needed; raise pieces (--set pieces=…)"
    return reason


def _sentencepiece() -> Any:
    try:
        import sentencepiece
    except ImportError as error:
        raise ImportError("translation needs sentencepiece: pip install 'gape[mt]'") from error
    return sentencepiece
