"""Lines of text files, plain or xz, with errors that name the file and the line."""

from __future__ import annotations

import codecs
import lzma
from collections.abc import Sequence
from pathlib import Path

from gape._internal.files import replacing


def read_lines(path: str | Path) -> list[str]:
    r"""The lines of a UTF-8 text file; a name that ends in ``.xz`` is decompressed.

    A byte order mark at the beginning is no part of the text. Only ``\n`` and ``\r\n`` end a line: other separators of
    Unicode may stand within a sentence, and splitting there would put two files out of step.

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
        raise ValueError(f"{path} is a folder; name a text file, plain or .xz") from error
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
    """What :func:`read_lines` reads, whole or not at all; compressed if the name ends in ``.xz``."""
    content = "".join(f"{line}\n" for line in lines).encode()
    with replacing(path) as temporary:
        temporary.write_bytes(lzma.compress(content) if path.suffix == ".xz" else content)


def find_text(folder: Path, name: str) -> Path | None:
    """``folder/name`` or ``folder/name.xz``, whichever is there; the plain file if both are."""
    return next((path for path in (folder / name, folder / f"{name}.xz") if path.is_file()), None)


def refuse_empty(lines: list[str], path: str | Path) -> None:
    """Refuse a file without lines, or with one of nothing but blanks."""
    if not lines:
        raise ValueError(f"{path} has no lines; there must be a sentence a line")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            raise ValueError(f"{path}, line {number}: the line is empty; write something there, or leave it out")
