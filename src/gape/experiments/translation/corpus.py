"""Parallel text: files, corpora, training, development and test splits, the datasets EVBNews and IWSLT'15."""

from __future__ import annotations

import codecs
import hashlib
import lzma
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from gape._internal.files import replacing
from gape.data.raw_files import data_folder


def read_lines(path: str | Path) -> list[str]:
    r"""Read the lines of a UTF-8 text file, decompressed if its name ends in ``.xz``.

    A byte order mark at the start is skipped. Only ``\n`` and ``\r\n`` end a line: other Unicode line separators may
    occur within a sentence, and splitting there would misalign two parallel files.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "a.txt").write_bytes("một\nhai\u2028ba\n".encode())
        ...     read_lines(Path(folder, "a.txt"))
        ['một', 'hai\u2028ba']
    """
    path = Path(path)
    try:
        raw = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
    except FileNotFoundError as error:
        raise FileNotFoundError(f"there is no file {path}") from error
    except IsADirectoryError as error:
        raise ValueError(f"{path} is a folder; expected a text file, plain or .xz") from error
    except lzma.LZMAError as error:
        raise ValueError(f"{path} is not a complete xz file: {error}") from error
    lines = raw.removeprefix(codecs.BOM_UTF8).split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    return [_decode(line, path, number) for number, line in enumerate(lines, 1)]


def _decode(line: bytes, path: Path, number: int) -> str:
    try:
        return line.removesuffix(b"\r").decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{path}, line {number}: byte {error.start + 1} ({line[error.start]:#04x}) is not UTF-8 in "
            f"{line[:60]!r}; convert the file, for instance with iconv -t UTF-8"
        ) from error


def write_lines(path: Path, lines: Sequence[str]) -> None:
    """Write lines atomically, compressed if the name ends in ``.xz``; :func:`read_lines` reads them."""
    content = "".join(f"{line}\n" for line in lines).encode()
    with replacing(path) as temporary:
        temporary.write_bytes(lzma.compress(content) if path.suffix == ".xz" else content)


def find_text(folder: Path, name: str) -> Path | None:
    """Return ``folder/name`` if it exists, else ``folder/name.xz``, else None."""
    return next((path for path in (folder / name, folder / f"{name}.xz") if path.is_file()), None)


def check_lines(lines: list[str], path: str | Path) -> None:
    """Validate that a file has lines, and that none is blank."""
    if not lines:
        raise ValueError(f"{path} has no lines; expected one sentence per line")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            raise ValueError(f"{path}, line {number}: the line is empty; remove it or write a sentence there")


def check_aligned(first: Path, first_lines: Sequence[str], second: Path, second_lines: Sequence[str]) -> None:
    """Validate that two parallel files have equally many lines."""
    if len(first_lines) != len(second_lines):
        shorter, last = min((first, len(first_lines)), (second, len(second_lines)), key=lambda file: file[1])
        raise ValueError(
            f"{first} has {len(first_lines):,} lines and {second} has {len(second_lines):,}; they must correspond line "
            f"by line. {shorter} ends after line {last:,}"
        )


# The ampersand comes last, so that "&amp;quot;" becomes "&quot;" and not a quotation mark.
_ENTITIES = (
    ("&#124;", "|"),
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&apos;", "'"),
    ("&quot;", '"'),
    ("&#91;", "["),
    ("&#93;", "]"),
    ("&amp;", "&"),
)


def unescape(line: str) -> str:
    r"""Replace the entities that the Moses tokeniser writes by their characters.

    The IWSLT'15 text has entities and EVBNews has none, so a model trained on one needs the other converted. The number
    of tokens does not change.

    >>> unescape("I &apos;d say &quot; yes &quot;")
    'I \'d say " yes "'
    """
    for entity, character in _ENTITIES:
        line = line.replace(entity, character)
    return line


_OPENING = "([{“‘"
_CLOSING = ")]}”’.,;:!?%…"
_CLITIC = re.compile(r"'(s|d|m|ll|re|ve|S|D|M|LL|RE|VE)")


def detokenise(line: str) -> str:
    """Join tokens to running text: no space before closing punctuation, none inside pairs of quotation marks.

    For English and Vietnamese. Tokenising loses information that a detokeniser can only guess, such as spaces around a
    dash.

    Example:
        >>> detokenise("&quot; I do n&apos;t know , &quot; she said ( twice ) .")
        '"I don\\'t know," she said (twice).'
    """
    parts: list[str] = []
    glue = True  # no space before the next token
    inside: dict[str, bool] = {'"': False, "'": False}
    for token in unescape(line).split():
        if token in inside:
            closing = inside[token]
            inside[token] = not closing
            parts.append(token if glue or closing else f" {token}")
            glue = not closing
            continue
        joined = glue or token[0] in _CLOSING or _CLITIC.fullmatch(token) or token == "n't"
        parts.append(token if joined else f" {token}")
        glue = token in _OPENING
    return "".join(parts)


#: Datasets by name.
DATASETS = ("evbnews", "iwslt15")
#: Folders relative to the data folder that are searched for IWSLT's files.
IWSLT_FOLDERS = ("iwslt15-en-vi", "iwslt15", ".")
#: Articles of EVBNews, of 1,000, held out for development, and as many for test.
HELD_OUT_ARTICLES = 50
#: Selects the articles. Part of the protocol, not a setting.
SPLIT_SEED = 2015


@dataclass(frozen=True)
class Corpus:
    """Sentences and their translations.

    Args:
        name: for tables and file names.
        source: tokenised sentences.
        target: one translation per sentence.

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
                f"expected one translation per sentence"
            )

    def __len__(self) -> int:
        return len(self.source)

    def __repr__(self) -> str:
        return f"Corpus({self.name!r}, {len(self):,} {'pair' if len(self) == 1 else 'pairs'})"

    def take(self, indices: list[int], name: str | None = None) -> Corpus:
        """Select pairs by index, in that order."""
        return Corpus(name or self.name, tuple(self.source[i] for i in indices), tuple(self.target[i] for i in indices))


@dataclass(frozen=True)
class Splits:
    """Training, development and test text.

    Args:
        train: trains the model and its vocabulary.
        dev: decides on the learning rate and the checkpoint.
        tests: scored once, at the end.
    """

    train: Corpus
    dev: Corpus
    tests: tuple[Corpus, ...]

    @cached_property
    def digest(self) -> str:
        """Hash of all training and development text. A run resumes only with the same text."""
        sha = hashlib.sha256()
        for corpus in (self.train, self.dev):
            for line in (*corpus.source, *corpus.target):
                sha.update(line.encode() + b"\n")
        return sha.hexdigest()[:16]


def read_corpus(source: str | Path, target: str | Path, *, name: str | None = None, drop_empty: bool = False) -> Corpus:
    """Read two text files, plain or xz, where line *i* of the second translates line *i* of the first.

    Args:
        source: file of sentences.
        target: file of translations.
        name: of the corpus; the source's file name if None.
        drop_empty: drop pairs with an empty side instead of raising an error; for training text.
    """
    source, target = Path(source), Path(target)
    sentences, translations = read_lines(source), read_lines(target)
    check_aligned(source, sentences, target, translations)
    present = []
    for i, pair in enumerate(zip(sentences, translations, strict=True)):
        empty = next((path for path, line in zip((source, target), pair, strict=True) if not line.strip()), None)
        if empty is None:
            present.append(i)
        elif not drop_empty:
            raise ValueError(
                f"{empty}, line {i + 1}: the line is empty; remove the pair from both files. In training text, "
                f"drop_empty=True (--drop-empty) drops such pairs"
            )
    if not present:
        raise ValueError(f"{source} and {target} contain no pair of sentences")
    corpus = Corpus(name or source.name.removesuffix(".xz"), tuple(sentences), tuple(translations))
    return corpus if len(present) == len(corpus) else corpus.take(present)


def load_splits(
    name: str,
    data_dir: str | Path | None = None,
    *,
    drop_empty: bool = False,
    languages: tuple[str, str] = ("en", "vi"),
) -> Splits:
    """Load a dataset by name, or a folder with ``train``, ``dev`` and ``test``, each in two files, plain or xz.

    ``evbnews`` tests on its own held-out articles and, if the files exist, on IWSLT's tst2013 with entities replaced by
    characters. ``iwslt15`` needs its training text, which is not free to redistribute.

    Args:
        name: of the dataset, or path of the folder.
        data_dir: folder of datasets; the environment variable ``GAPE_DATA`` if None.
        drop_empty: drop training pairs with an empty side instead of raising an error.
        languages: file extensions in a folder, source and target: ``train.en`` and ``train.vi``.
    """
    folder = data_folder(data_dir)
    if name in DATASETS and languages != ("en", "vi"):
        raise ValueError(
            f"languages (--languages) applies to a folder of your own; {name} is en-vi, got {'-'.join(languages)!r}"
        )
    if name in DATASETS and folder is None:
        raise FileNotFoundError(f"no data folder for {name!r}; set data_dir (--data-dir) or GAPE_DATA")
    if name == "iwslt15" and folder is not None:
        train = read_iwslt(folder, "train", drop_empty=drop_empty)
        return Splits(train, read_iwslt(folder, "tst2012"), (read_iwslt(folder, "tst2013"),))
    if name == "evbnews" and folder is not None:
        train, dev, test = read_evbnews(folder)
        try:
            talks = read_iwslt(folder, "tst2013")
        except FileNotFoundError:
            return Splits(train, dev, (test,))
        return Splits(train, dev, (test, _unescaped(talks)))
    if not Path(name).is_dir():
        raise ValueError(f"there is no dataset or folder {name!r}; there are {', '.join(DATASETS)}")
    train = _read_split(Path(name), "train", languages, drop_empty)
    return Splits(train, _read_split(Path(name), "dev", languages), (_read_split(Path(name), "test", languages),))


def _read_split(folder: Path, part: str, languages: tuple[str, str], drop_empty: bool = False) -> Corpus:
    source, target = (find_text(folder, f"{part}.{language}") for language in languages)
    if source is None or target is None:
        expected = " and ".join(f"{part}.{language}" for language in languages)
        raise FileNotFoundError(
            f"{folder} must contain {expected}, plain or .xz; for other extensions set languages (--languages)"
        )
    return read_corpus(source, target, name=part, drop_empty=drop_empty)


def read_iwslt(data_dir: Path, part: str, *, drop_empty: bool = False) -> Corpus:
    """Read ``part.en`` and ``part.vi`` of IWSLT'15 English-Vietnamese: TED talks, the text of the paper's experiment.

    The text is tokenised and contains entities such as ``&apos;``.

    Args:
        data_dir: folder of datasets.
        part: ``train``, ``tst2012`` or ``tst2013``.
        drop_empty: see :func:`read_corpus`.
    """
    for folder in IWSLT_FOLDERS:
        source, target = find_text(data_dir / folder, f"{part}.en"), find_text(data_dir / folder, f"{part}.vi")
        if source is not None and target is not None:
            return read_corpus(source, target, name=part, drop_empty=drop_empty)
    raise FileNotFoundError(
        f"no {part}.en and {part}.vi (or .xz) in {', '.join(str(data_dir / folder) for folder in IWSLT_FOLDERS)}; "
        f"put the files of IWSLT'15 English-Vietnamese there (the version tokenised by Stanford is the common one)"
    )


def read_raw_reference(data_dir: Path, part: str) -> list[str] | None:
    """Read IWSLT's untokenised ``raw/part.vi``, for detokenised scores; None if there is none."""
    for folder in IWSLT_FOLDERS:
        path = find_text(data_dir / folder / "raw", f"{part}.vi")
        if path is not None:
            return read_lines(path)
    return None


def _unescaped(corpus: Corpus) -> Corpus:
    """Replace entities by characters, for models trained on text without entities."""
    return Corpus(corpus.name, tuple(map(unescape, corpus.source)), tuple(map(unescape, corpus.target)))


def read_evbnews(data_dir: Path) -> tuple[Corpus, Corpus, Corpus]:
    """Read EVBNews (Ngo & Winiwarter, 2012), split by article into training, development and test text."""
    folder = data_dir / "evbnews-en-vi"
    source, target, articles = (find_text(folder, f"evbnews.{part}") for part in ("en", "vi", "docid"))
    if source is None or target is None or articles is None:
        raise FileNotFoundError(f"{folder} must contain evbnews.en, evbnews.vi and evbnews.docid, plain or .xz")
    corpus, article_of = read_corpus(source, target, name="evbnews"), read_lines(articles)
    if len(corpus) != len(article_of):
        raise ValueError(
            f"{source} has {len(corpus):,} lines and {articles} has {len(article_of):,}; expected one article per line"
        )
    return split_by_article(corpus, article_of, HELD_OUT_ARTICLES)


def split_by_article(corpus: Corpus, article_of: list[str], held_out: int) -> tuple[Corpus, Corpus, Corpus]:
    """Hold out ``held_out`` articles each for development and test, always the same ones; train on the rest.

    News repeats itself, so training pairs are dropped if either side also occurs in the development or test text, up to
    case, spaces and punctuation.

    Example:
        >>> corpus = Corpus("news", tuple("abcdef"), tuple("ABCDEF"))
        >>> split_by_article(corpus, ["x", "x", "y", "y", "z", "z"], held_out=1)
        (Corpus('train', 2 pairs), Corpus('dev', 2 pairs), Corpus('test', 2 pairs))
    """
    articles = sorted(set(article_of))
    if len(articles) <= 2 * held_out:
        raise ValueError(f"{len(articles)} articles are too few to hold out {held_out} for development and for test")
    random.Random(SPLIT_SEED).shuffle(articles)
    dev_articles, test_articles = set(articles[:held_out]), set(articles[held_out : 2 * held_out])
    dev = [i for i, article in enumerate(article_of) if article in dev_articles]
    test = [i for i, article in enumerate(article_of) if article in test_articles]
    held = dev_articles | test_articles
    seen = {_letters(side[i]) for i in dev + test for side in (corpus.source, corpus.target)}
    train = [
        i
        for i, article in enumerate(article_of)
        if article not in held and _letters(corpus.source[i]) not in seen and _letters(corpus.target[i]) not in seen
    ]
    return corpus.take(train, "train"), corpus.take(dev, "dev"), corpus.take(test, "test")


def _letters(line: str) -> str:
    """
    >>> _letters('" Not yet , " she said .') == _letters("“ not yet ” , she said")
    True
    """
    return re.sub(r"\W+", "", line.lower())
