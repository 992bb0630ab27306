"""Lines of text files, plain or xz; HTML entities and detokenisation."""

from __future__ import annotations

import codecs
import lzma
import re
from collections.abc import Sequence
from pathlib import Path

from gape._internal.files import replacing


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
