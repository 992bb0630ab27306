"""Settings of an encoding from the words of a command line."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

_NUMBER = re.compile(r"-(\d|\.\d)")


def option(name: str) -> str:
    """The option of a setting.

    >>> option("on_singular")
    '--on-singular'
    """
    return f"--{name.replace('_', '-')}"


def split_words(words: Sequence[str], flags: Collection[str]) -> tuple[list[str], dict[str, str]]:
    """Words that stand alone, and settings as text.

    ``--on-singular raise``, ``--on-singular=raise``; ``flags`` need no value and may be said no to.

    >>> split_words(["graph.csv", "--states", "8", "--relative", "--no-fast", "--damping=-1"], {"relative", "fast"})
    (['graph.csv'], {'states': '8', 'relative': 'true', 'fast': 'false', 'damping': '-1'})
    """
    alone: list[str] = []
    settings: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-") or word == "-":
            alone.append(word)
            continue
        name, equals, value = word.lstrip("-").partition("=")
        name = name.replace("-", "_")
        if not word.startswith("--") or not name:
            raise ValueError(f"no such option: {word}; see `gape encode --help`")
        if not equals:
            if name in flags:
                value = rest.pop(0) if rest and rest[0].lower() in ("true", "false") else "true"
            elif name.removeprefix("no_") in flags:
                name, value = name.removeprefix("no_"), "false"
            elif rest and (not rest[0].startswith("-") or _NUMBER.match(rest[0])):
                value = rest.pop(0)
            else:
                raise ValueError(f"{word} needs a value, such as {word} 1; see `gape encode --help`")
        if name in settings:
            raise ValueError(f"{option(name)} was given twice, as {settings[name]!r} and as {value!r}; give it once")
        settings[name] = value
    return alone, settings
