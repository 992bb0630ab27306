"""From space-separated tokens back to running text."""

from __future__ import annotations

import re

from gape.experiments.translation.entities import unescape

_OPENING = "([{“‘"
_CLOSING = ")]}”’.,;:!?%…"
_CLITIC = re.compile(r"'(s|d|m|ll|re|ve|S|D|M|LL|RE|VE)")


def detokenise(line: str) -> str:
    """Running text of a tokenised line: no blank before closing punctuation, quotation marks closed up in pairs.

    For English and Vietnamese. Tokenising loses what a detokeniser can only guess, such as blanks around a dash.

    Example:
        >>> detokenise("&quot; I do n&apos;t know , &quot; she said ( twice ) .")
        '"I don\\'t know," she said (twice).'
    """
    pieces: list[str] = []
    glue = True  # no blank before the next token
    inside: dict[str, bool] = {'"': False, "'": False}
    for token in unescape(line).split():
        if token in inside:
            closing = inside[token]
            inside[token] = not closing
            pieces.append(token if glue or closing else f" {token}")
            glue = not closing
            continue
        joined = glue or token[0] in _CLOSING or _CLITIC.fullmatch(token) or token == "n't"
        pieces.append(token if joined else f" {token}")
        glue = token in _OPENING
    return "".join(pieces)
